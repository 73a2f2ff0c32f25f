//! The access file of the hub's own machine, written anew at every start with the addresses as they are.
//! Its token stays the same, so that copies of the file go on working.

use crate::security::{
    Access, Doorman, Identity, NewToken, Role, Secret, SecurityError, TokenBook, Tokens,
};
use laboro_core::Time;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The name of its token.
const NAME: &str = "local";

pub(super) fn write(
    dir: &Path,
    identity: &Identity,
    http: Option<SocketAddr>,
    native: Option<SocketAddr>,
    now: Time,
) -> Result<Access, SecurityError> {
    let path = Access::path_in(dir);
    let access = Access {
        http: http.map(reachable),
        native: native.map(reachable),
        role: Role::Admin,
        group: None,
        token: token(dir, &path, now)?,
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
    let new =
        NewToken { name: Some(NAME.into()), role: Role::Admin, group: None, expires_ms: None };
    book.add(new, now).map(|(secret, _)| secret)
}

/// Nobody connects to "all addresses"; from this machine any of its own will do.
fn reachable(bound: SocketAddr) -> String {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port()).to_string()
}
