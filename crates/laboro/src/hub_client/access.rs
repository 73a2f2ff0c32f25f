//! Which hub is meant and how it is reached: an access file, by name, from the environment, or where a hub of
//! this machine leaves it.

use crate::args::hub::HubArgs;
use crate::files::read_access;
use anyhow::{Context, anyhow};
use laboro_api::DEFAULT_GROUP;
use laboro_api::access::Access;
use laboro_api::client::Target;
use std::path::PathBuf;

pub(super) const START_ONE: &str = "\
Start one here: laboro hub
Or use one elsewhere: copy its access file (`laboro access` makes one) and say --access FILE";

/// The hub, and the group that the token is for.
pub(super) fn target(args: &HubArgs) -> anyhow::Result<(Target, String)> {
    let path = path(args)?;
    if !path.exists() {
        return Err(anyhow!("no hub was found: {} is not there\n{START_ONE}", path.display()));
    }
    let access = read_access(&path)?;
    let target = Target::of_access(&access).with_context(|| format!("{}", path.display()))?;
    Ok((target, access.group.unwrap_or_else(|| DEFAULT_GROUP.to_owned())))
}

/// Whether the environment names a hub.
pub(super) fn is_in_environment() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("LABORO_ACCESS") || is_set("LABORO_DIR")
}

/// Whether there is a hub to ask, as far as can be told without asking.
pub(crate) fn is_known(args: &HubArgs) -> bool {
    path(args).is_ok_and(|path| path.exists())
}

/// What was typed comes before what the environment says, and a file before a directory.
pub(crate) fn path(args: &HubArgs) -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = &args.access {
        return Ok(file.clone());
    }
    if let Some(dir) = &args.dir {
        return Ok(Access::path_in(dir));
    }
    if let Some(file) = variable("LABORO_ACCESS") {
        return Ok(file.into());
    }
    if let Some(dir) = variable("LABORO_DIR") {
        return Ok(Access::path_in(&PathBuf::from(dir)));
    }
    let state = match (variable("XDG_STATE_HOME"), variable("HOME")) {
        (Some(state), _) => PathBuf::from(state),
        (None, Some(home)) => PathBuf::from(home).join(".local/state"),
        (None, None) => return Err(anyhow!("$HOME is not set: say --dir DIR or --access FILE")),
    };
    Ok(Access::path_in(&state.join("laboro/hub")))
}
