//! `laboro hub install-service`: writes a systemd unit for a hub, made of the one that packages have. It starts nothing: the
//! commands for that are printed.

use crate::exit::{Exit, usage};
use crate::files::{make_dir, write_output};
use crate::output::{print, say, shell_word};
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};

const UNIT: &str = include_str!("../../../../packaging/systemd/laboro-hub.service");
const NAME: &str = "laboro-hub.service";

#[derive(Debug, Args)]
pub(crate) struct InstallService {
    /// Install it for this user instead of the whole system.
    #[arg(long)]
    user: bool,

    /// The hub's directory. Default: /var/lib/laboro, with --user that of `laboro hub`.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// The hub's configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the unit instead of writing it.
    #[arg(long)]
    print: bool,

    /// Replace a unit that is there and differs.
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(args: &InstallService) -> anyhow::Result<Exit> {
    let program = std::env::current_exe().context("the path of this program is not known")?;
    let unit = unit(args, &program)?;
    if args.print {
        print(unit.trim_end())?;
        return Ok(Exit::Done);
    }
    let folder = match args.user {
        true => user_units()?,
        false => PathBuf::from("/etc/systemd/system"),
    };
    let path = folder.join(NAME);
    if !args.replace && std::fs::read_to_string(&path).is_ok_and(|there| there != unit) {
        bail!("{} is there already and differs: --replace overwrites it", path.display());
    }
    make_dir(&folder)?;
    write_output(Some(&path), &unit)?;
    let systemctl = if args.user { "systemctl --user" } else { "systemctl" };
    say(format_args!("{} is written. Start the hub now and at every boot:", path.display()));
    print(format_args!("{systemctl} daemon-reload && {systemctl} enable --now laboro-hub"))?;
    if args.user {
        say("A user's services end when the user logs out, unless: loginctl enable-linger");
    }
    Ok(Exit::Done)
}

/// The packaged unit with another program and directory, and without what only the system's own may have.
fn unit(args: &InstallService, program: &Path) -> anyhow::Result<String> {
    let mut command = vec![word(program)?, "hub".to_owned()];
    let dir = match (&args.dir, args.user) {
        (None, false) => Some(PathBuf::from("/var/lib/laboro")),
        (dir, _) => dir.clone(),
    };
    for (option, path) in [("--dir", &dir), ("--config", &args.config)] {
        if let Some(path) = path {
            let path = std::path::absolute(path)?;
            command.extend([option.to_owned(), word(&path)?]);
        }
    }
    let lines = UNIT.lines().filter_map(|line| match line.split_once('=').map(|(key, _)| key) {
        Some("ExecStart") => Some(format!("ExecStart={}", command.join(" "))),
        Some("User" | "Group" | "ProtectSystem" | "ProtectHome") if args.user => None,
        Some("StateDirectory" | "StateDirectoryMode") if args.user || args.dir.is_some() => None,
        Some("ProtectSystem") if args.dir.is_some() => None,
        Some("WantedBy") if args.user => Some("WantedBy=default.target".to_owned()),
        _ => Some(line.to_owned()),
    });
    Ok(lines.map(|line| line + "\n").collect())
}

/// As systemd reads it: a percent sign stands for itself when it stands twice.
fn word(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '"', '\\', '$']));
    let text = text.with_context(|| format!("{} cannot stand in a unit", path.display()));
    let text = text.map_err(usage)?.replace('%', "%%");
    Ok(if text.contains(' ') { format!("\"{text}\"") } else { shell_word(&text) })
}

fn user_units() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match (variable("XDG_CONFIG_HOME"), variable("HOME")) {
        (Some(config), _) => Ok(PathBuf::from(config).join("systemd/user")),
        (None, Some(home)) => Ok(PathBuf::from(home).join(".config/systemd/user")),
        (None, None) => bail!("$HOME is not set: --print shows the unit"),
    }
}
