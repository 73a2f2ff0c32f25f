//! The file `~/.runexp`: a name and a value a line. A manager needs the port; a runner the manager's address and
//! the host name that it says. What nobody knows is let pass.

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
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(end) = line.find(|c: char| c.is_whitespace() || c == '=' || c == ':') else {
            continue;
        };
        let (name, value) = line.split_at(end);
        let value = value.trim_start_matches([' ', '\t', '=', ':']).trim_matches(['"', '\'']);
        // As the original reads it.
        match &*name.to_ascii_lowercase() {
            "port" => {
                let port = value.parse();
                let port =
                    port.map_err(|_| format!("line {}: `{value}` is no port", number + 1))?;
                config.port = Some(port);
            }
            "qmanager" if !value.is_empty() => config.qmanager = Some(value.to_owned()),
            "hostname" if !value.is_empty() => config.hostname = Some(value.to_owned()),
            _ => {}
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests;
