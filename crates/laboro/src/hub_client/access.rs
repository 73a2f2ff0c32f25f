//! Which hub is meant and how it is reached: an access file, by name, from the environment, or where a hub of
//! this machine leaves it.

use crate::args::hub::HubArgs;
use crate::files::read_access;
use anyhow::{Context, anyhow};
use laboro_api::DEFAULT_GROUP;
use laboro_api::access::{Access, client_config};
use laboro_api::client::Target;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    let address = access.http.as_deref().with_context(|| {
        format!("{}: this hub has no http door, which commands need", path.display())
    })?;
    let place = |address: &str| {
        let (host, port) = split(address)
            .with_context(|| format!("{}: `{address}` is not a host and a port", path.display()))?;
        anyhow::Ok((host.to_owned(), port))
    };
    let mut places = Access::each(address).map(place).collect::<Result<Vec<_>, _>>()?.into_iter();
    let (host, port) = places
        .next()
        .with_context(|| format!("{}: it names no address of a hub", path.display()))?;
    let mut target = Target::new(host, port);
    target.others = places.collect();
    target.local = access.local_socket().map(Path::to_owned);
    target.tls = Some(Arc::new(client_config(&access)?));
    target.token = Some(access.token.expose().to_owned());
    Ok((target, access.group.unwrap_or_else(|| DEFAULT_GROUP.to_owned())))
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

/// `host:7910` or `[::1]:7910`.
fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host, port.parse().ok()?)).filter(|(host, _)| !host.is_empty())
}
