//! The file `~/.runexp`: a name and a value a line. A manager needs the port; a runner the manager's address and
//! the host name that it says. Whatever else stands there is refused with the number of its line, as the original
//! does; blanks around `=`, which it does not understand, are let pass.

use crate::exit::usage;
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(super) port: Option<u16>,
    /// HOST or HOST:PORT.
    qmanager: Option<String>,
    pub(crate) hostname: Option<String>,
}

impl Config {
    /// Nothing, if there is no such file.
    pub(crate) fn of_home() -> anyhow::Result<Config> {
        let Some(home) = std::env::var_os("HOME") else { return Ok(Config::default()) };
        let path = Path::new(&home).join(".runexp");
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                parse(&text).map_err(|why| usage(format_args!("{}: {why}", path.display())))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Config::default()),
            Err(error) => Err(usage(format_args!("{}: {error}", path.display()))),
        }
    }

    /// Where the manager is, with its port.
    pub(crate) fn manager(&self) -> Option<String> {
        let manager = self.qmanager.as_deref()?;
        match (manager.contains(':'), self.port) {
            (true, _) => Some(manager.to_owned()),
            (false, port) => Some(format!("{manager}:{}", port?)),
        }
    }
}

fn parse(text: &str) -> Result<Config, String> {
    let mut config = Config::default();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            config.set(line).map_err(|why| format!("line {}: {why}", at + 1))?;
        }
    }
    Ok(config)
}

impl Config {
    fn set(&mut self, line: &str) -> Result<(), String> {
        let end = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':');
        let (name, value) = line.split_at(end.unwrap_or(line.len()));
        let value = value.trim_start_matches([' ', '\t', '=', ':']).trim_matches(['"', '\'']);
        if value.is_empty() {
            return Err(format!("`{line}` is not a setting: write NAME=VALUE"));
        }
        // In any case of letters, as the original reads it.
        match &*name.to_ascii_lowercase() {
            "port" => {
                let port = value.parse().map_err(|_| format!("`{value}` is not a port"))?;
                self.port = Some(port);
            }
            "qmanager" => self.qmanager = Some(value.to_owned()),
            "hostname" => self.hostname = Some(value.to_owned()),
            _ => {
                let known = "port, qmanager and hostname";
                return Err(format!("there is no setting `{name}`; there are {known}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
