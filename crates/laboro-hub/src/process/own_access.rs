//! The access file of the hub's own user, written anew at every start with the addresses as they are, for this machine
//! and for others that share its directory. Its token stays the same, so that copies of the file go on working.

use super::addresses;
use super::bind::from_elsewhere;
use crate::config::{Listen, Settings};
use crate::security::{
    Access, Doorman, Identity, NewToken, Role, Secret, SecurityError, TokenBook, Tokens, host_name,
    make_dir, user_name,
};
use laboro_core::Time;
use std::net::SocketAddr;
use std::path::Path;

/// The name of its token.
const NAME: &str = "local";

pub(super) fn write(
    settings: &Settings,
    identity: &Identity,
    (socket, http, native): (Option<String>, Option<SocketAddr>, Option<SocketAddr>),
    now: Time,
) -> Result<Access, SecurityError> {
    let dir = settings.dir.as_path();
    let path = Access::path_in(dir);
    let has_others = settings.journal.is_some();
    let old = if has_others { Access::read_own(&path)? } else { None };
    // The file travels to the machines of the other hubs, where an address of this machine's own is wrong.
    let place = |bound, old| match has_others {
        true => with_others(from_elsewhere(bound, settings), old),
        false => addresses::of(bound, settings.advertise.as_deref()),
    };
    let (old_http, old_native) = old.map_or((None, None), |old| (old.http, old.native));
    let access = Access {
        socket,
        host: (!has_others).then(host_name),
        prepared: false,
        http: http.map(|bound| place(bound, old_http)),
        native: native.map(|bound| place(bound, old_native)),
        role: Role::Admin,
        group: None,
        token: token(dir, &path, now)?,
        certificate: identity.certificate_pem().to_owned(),
    };
    access.write(&path)?;
    Ok(access)
}

/// Makes what a hub makes at its first start, except that nobody listens yet: its certificate, its token and the access
/// file. Ports that the system is to choose are not known before; the hub writes them into the file.
pub fn prepare(
    settings: &Settings,
    host: Option<&str>,
    now: Time,
) -> Result<Access, SecurityError> {
    make_dir(&settings.dir)?;
    let identity = Identity::open(&settings.dir, &settings.names)?;
    let path = Access::path_in(&settings.dir);
    let place = |listen| match listen {
        Listen::At(address) if address.port() != 0 => Some(match host {
            Some(host) => addresses::with_port(host, address.port()),
            None => addresses::of(address, settings.advertise.as_deref()),
        }),
        _ => None,
    };
    let access = Access {
        socket: None,
        host: Some(host.map_or_else(host_name, str::to_owned)),
        prepared: true,
        http: place(settings.http),
        native: place(settings.native),
        role: Role::Admin,
        group: None,
        token: token(&settings.dir, &path, now)?,
        certificate: identity.certificate_pem().to_owned(),
    };
    access.write(&path)?;
    Ok(access)
}

/// The one in the old file if it still counts, else a new one.
fn token(dir: &Path, path: &Path, now: Time) -> Result<Secret, SecurityError> {
    let tokens = Tokens::open(dir)?;
    let old = Access::read_own(path)?.map(|access| access.token);
    let still_counts = |token: &Secret| {
        let who = tokens.identify(token.expose().as_bytes(), None, now);
        who.is_ok_and(|who| who.role == Role::Admin && who.group.is_none())
    };
    if let Some(token) = old.filter(still_counts) {
        return Ok(token);
    }
    let book = TokenBook::of(dir);
    match book.revoke(NAME) {
        Ok(_) | Err(SecurityError::NoSuchToken { .. }) => {}
        Err(error) => return Err(error),
    }
    let fits = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let new = NewToken {
        name: Some(NAME.into()),
        role: Role::Admin,
        owner: Some(user_name().chars().map(fits).take(64).collect()),
        group: None,
        expires_ms: None,
    };
    book.add(new, now).map(|(secret, _)| secret)
}

/// Those of hubs that led before this one stay known, so that whoever has the file finds any of them.
fn with_others(own: String, old: Option<String>) -> String {
    let mut all = vec![own];
    for other in old.as_deref().map(Access::each).into_iter().flatten() {
        if all.len() < ADDRESSES_MAX && !all.iter().any(|known| known == other) {
            all.push(other.to_owned());
        }
    }
    all.join(",")
}

const ADDRESSES_MAX: usize = 8;
