//! The hub's end of a tunnel: looks at the token, finds the door, and carries bytes to it as if the client stood there.
//! What is said before, and the client's end, are in `laboro_api::tunnel`.

use crate::listen::stats::count;
use crate::listen::{Dialect, OpenDoor, Reception};
use crate::security::{Role, TokenAdmission, Who};
use crate::transport::Parting;
use laboro_api::tunnel::{BUFFER_BYTES, read_line};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// A door of this same process answers at once or never.
const DOOR_TIME_MAX: Duration = Duration::from_secs(5);

/// Carries bytes until one side has enough, the token does not count any more, or the hub stops.
pub(crate) async fn receive(
    mut near: TlsStream<TcpStream>,
    peer: IpAddr,
    reception: &Reception,
) -> Parting {
    let (stats, limits) = (&reception.door.stats, &reception.hall.limits);
    let patience = Duration::from_millis(limits.handshake_ms);
    let line = match tokio::time::timeout(patience, read_line(&mut near)).await {
        Ok(Ok(line)) => line,
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            count(&stats.malformed, 1);
            return Parting::Malformed(format!("tunnel: {error}"));
        }
        Ok(Err(_)) => return Parting::Left,
        Err(_) => {
            count(&stats.silent, 1);
            return Parting::Silent;
        }
    };
    let admission = TokenAdmission::new(Arc::clone(&reception.tokens));
    let opened = match choose(reception, &admission, &line, peer) {
        Ok(door) => open(&door).await,
        Err(why) => Err(why),
    };
    let mut far = match opened {
        Ok(far) => far,
        Err(why) => {
            count(&stats.denied, 1);
            let answer = format!("no {why}\n");
            let told = async {
                near.write_all(answer.as_bytes()).await?;
                near.shutdown().await
            };
            // A client that does not wait for the answer knows it already.
            let _ = tokio::time::timeout(patience, told).await;
            return Parting::Denied(why);
        }
    };
    if near.write_all(b"ok\n").await.is_err() || near.flush().await.is_err() {
        return Parting::Left;
    }
    count(&stats.tunnels, 1);
    tokio::select! {
        carried = copy_bidirectional_with_sizes(&mut near, &mut far, BUFFER_BYTES, BUFFER_BYTES) => {
            if let Ok((heard, said)) = carried {
                count(&stats.bytes_in, usize::try_from(heard).unwrap_or(usize::MAX));
                count(&stats.bytes_out, usize::try_from(said).unwrap_or(usize::MAX));
            }
            Parting::Left
        }
        () = lapsed(reception, &admission) => {
            count(&stats.denied, 1);
            Parting::Denied("its token was revoked or has expired".into())
        }
        () = reception.hall.stop.cancelled() => Parting::Stopped,
    }
}

/// The door that is asked for, if the client may go there.
fn choose(
    reception: &Reception,
    admission: &TokenAdmission,
    line: &str,
    peer: IpAddr,
) -> Result<Arc<OpenDoor>, String> {
    let Some((token, wanted)) = line.split_once(' ') else {
        return Err("a tunnel is asked for with a token and a door".into());
    };
    let now = reception.hall.clock.now();
    let who =
        admission.identify(token.as_bytes(), Some(peer), now).map_err(|why| why.to_string())?;
    let (word, group) = match wanted.split_once('/') {
        Some((word, group)) => (word, Some(group)),
        None => (wanted, None),
    };
    // Said whether or not there is one: it holds for each of them, and tells nothing of other groups.
    if word == HTTP || Dialect::from_str(word).is_ok_and(Dialect::has_authentication) {
        return Err(format!("door {word} has its own authentication and needs no tunnel"));
    }
    let may_see = |door: &&Arc<OpenDoor>| match &who.group {
        Some(bound) => bound.bytes() == door.group.as_bytes(),
        None => true,
    };
    let is_meant = |door: &&Arc<OpenDoor>| {
        door.dialect.word() == word && group.is_none_or(|group| group == door.group)
    };
    let mut seen = reception.doors.iter().filter(may_see);
    match seen.find(is_meant) {
        Some(door) => may_pass(&who, door.dialect).map(|()| Arc::clone(door)),
        None => Err(none_such(reception.doors.iter().filter(may_see), &who, wanted)),
    }
}

/// The API is no door of this list, and people ask for it all the same.
const HTTP: &str = "http";

/// A token learns of the doors that it may use. Whatever else there is, is not there.
fn none_such<'a>(seen: impl Iterator<Item = &'a Arc<OpenDoor>>, who: &Who, wanted: &str) -> String {
    let usable = seen.filter(|door| is_open(door) && may_pass(who, door.dialect).is_ok());
    let names: Vec<String> = usable.map(|door| name(door)).collect();
    match names.is_empty() {
        true => format!(
            "this hub has no door {wanted} for the token {}, and no other one: open one with --door",
            who.token
        ),
        false => format!("this hub has no door {wanted}: there is {}", names.join(", ")),
    }
}

/// A dialect whose peers create work needs the right to submit; one whose peers only do it, the right to work.
fn may_pass(who: &Who, dialect: Dialect) -> Result<(), String> {
    let (may, wanted) = match dialect.peers_submit() {
        true => (matches!(who.role, Role::Submit | Role::Admin), Role::Submit),
        false => (who.role.may_work(), Role::Work),
    };
    if may {
        return Ok(());
    }
    Err(format!(
        "the token {} has the role {}, and door {} needs {}: make one with `laboro access --role {}` on \
         the hub's machine",
        who.token,
        who.role.word(),
        dialect.word(),
        wanted.word(),
        wanted.word()
    ))
}

fn is_open(door: &OpenDoor) -> bool {
    !door.dialect.has_authentication()
}

fn name(door: &OpenDoor) -> String {
    format!("{}/{}", door.dialect.word(), door.group)
}

async fn open(door: &OpenDoor) -> Result<TcpStream, String> {
    let opened = tokio::time::timeout(DOOR_TIME_MAX, TcpStream::connect(reachable(door.address)));
    match opened.await {
        Ok(Ok(stream)) => {
            // Without it everything is only slower.
            let _ = stream.set_nodelay(true);
            Ok(stream)
        }
        Ok(Err(error)) => Err(format!("door {} cannot be reached: {error}", name(door))),
        Err(_) => Err(format!("door {} does not answer", name(door))),
    }
}

/// Nobody connects to "all addresses"; from here any of this machine's own will do.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// Returns when the token does not count any more.
async fn lapsed(reception: &Reception, admission: &TokenAdmission) {
    let every = Duration::from_millis(reception.hall.limits.admission_ms);
    while admission.still_holds(reception.hall.clock.now()) {
        tokio::time::sleep(every).await;
    }
}
