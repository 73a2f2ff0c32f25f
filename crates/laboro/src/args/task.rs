//! Options about how the process of each task runs, the same for `run` and `submit`: what a flow says with the keys of
//! its defaults.

use crate::exit::usage;
use clap::Args as ClapArgs;
use laboro_plan::{Settings, Warning};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, ClapArgs)]
pub(crate) struct TaskArgs {
    /// Working directory of tasks, such as out/{}. Default: this directory.
    #[arg(long, visible_alias = "wd", value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,

    /// Environment variable of tasks; without =VALUE, the value it has here. May be given several times.
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,

    /// Niceness of tasks, from -20 to 19.
    #[arg(long, value_name = "N", allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-20..=19))]
    pub(crate) nice: Option<i32>,

    /// Umask of tasks, such as 027.
    #[arg(long, value_name = "MASK", value_parser = Settings::parse_umask)]
    pub(crate) umask: Option<u32>,

    /// Shell for command lines. Default: $LABORO_SHELL, else bash if it is installed here, else sh.
    #[arg(long, value_name = "PROGRAM", value_parser = Settings::parse_shell)]
    pub(crate) shell: Option<String>,

    /// A command to run each task with, such as 'numactl --localalloc': it gets the task's command as its arguments.
    /// May hold placeholders.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) wrap: Option<String>,

    /// Send the processes of a task this signal some time before its time limit, such as USR1@60s.
    #[arg(long, value_name = "SIGNAL@TIME", value_parser = Warning::parse)]
    pub(crate) signal: Option<Warning>,
}

impl TaskArgs {
    /// For `Plan::apply`.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let wrap = self.wrap.as_deref().map(Settings::parse_wrap).transpose();
        let wrap = wrap.map_err(|why| usage(format!("--wrap: {why}")))?;
        Ok(Settings {
            dir: self.workdir.clone().map(PathBuf::into_os_string),
            env: self.env.iter().map(|given| variable(given)).collect::<Result<_, _>>()?,
            nice: self.nice,
            umask: self.umask,
            shell: Some(self.shell.clone().map_or_else(usual_shell, Ok)?),
            wrap: wrap.into_iter().flatten().map(OsString::from).collect(),
            signal: self.signal,
            ..Settings::default()
        })
    }
}

/// Fixed where the job is made: what the lines mean must not depend on where they run.
fn usual_shell() -> anyhow::Result<String> {
    match std::env::var("LABORO_SHELL") {
        Ok(shell) if !shell.is_empty() => {
            Settings::parse_shell(&shell).map_err(|why| usage(format!("LABORO_SHELL: {why}")))
        }
        _ if laboro_worker::on_path("bash") => Ok("bash".into()),
        _ => Ok("sh".into()),
    }
}

/// `NAME=VALUE`, or `NAME` with the value it has here.
fn variable(given: &str) -> anyhow::Result<(String, OsString)> {
    let (name, value) = match given.split_once('=') {
        Some((name, value)) => (name, value.into()),
        None => {
            let unset =
                || usage(format!("--env {given}: it has no value here: write {given}=VALUE"));
            (given, std::env::var_os(given).ok_or_else(unset)?)
        }
    };
    if name.is_empty() {
        return Err(usage(format!("--env {given}: a variable needs a name")));
    }
    Ok((name.to_owned(), value))
}
