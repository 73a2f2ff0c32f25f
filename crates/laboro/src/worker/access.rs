//! Which hub is meant, and what is needed to be let in: an access file by its path, by the environment, from
//! the hub's directory, or on standard input.

use super::args::Worker;
use super::front::Front;
use crate::access;
use crate::exit::usage;
use crate::files::read_access;
use anyhow::Context;
use laboro_api::access::{Access, Role};
use laboro_hub::config::default_dir;
use laboro_hub::security::{NewToken, TokenBook};
use laboro_net::Clock;
use std::path::{Path, PathBuf};

/// The access, and who is in front of this worker if that is where it came from.
pub(crate) fn find(args: &Worker) -> anyhow::Result<(Access, Option<Front>)> {
    let (mut access, front) = match file(args) {
        None => {
            let (text, front) = Front::open()?;
            (Access::parse(&text)?, front)
        }
        Some(path) => {
            let read = read_access(&path);
            let hint = "no access to a hub: start one with `laboro hub`, or name its access file with --access";
            (read.context(hint)?, None)
        }
    };
    if let Some(address) = args.hub.as_deref().filter(|hub| !is_dir(hub)) {
        if !address.contains(':') {
            return Err(usage(format!(
                "{address}: give the hub's directory, or HOST:PORT of its native door"
            )));
        }
        access.native = Some(address.to_owned());
        access.prepared = false;
    }
    Ok((access, front))
}

/// The same access with no more than workers elsewhere need, where this is the hub's own machine: a token that
/// may only run tasks, which can be taken back. Whatever was given otherwise is passed on.
pub(crate) fn for_others(args: &Worker, access: Access) -> anyhow::Result<(Access, Option<Lent>)> {
    let Some(file) = file(args) else { return Ok((access, None)) };
    let dir = file.parent().unwrap_or(Path::new("."));
    let is_own = file == Access::path_in(dir) && access.role == Role::Admin;
    if !is_own {
        return Ok((access, None));
    }
    let book = TokenBook::of(dir);
    let now = Clock::start().now();
    let group = args.group.clone();
    let name = format!("ssh-{}-{}", std::process::id(), now.0);
    let new = NewToken {
        name: Some(name.clone()),
        role: Role::Work,
        owner: None,
        group: group.clone(),
        expires_ms: None,
    };
    let (token, made) = book.add(new, now)?;
    access::note(dir, "token made", access::described(&made));
    let lent = Lent { dir: dir.to_owned(), book, name };
    Ok((Access { role: Role::Work, group, token, socket: None, http: None, ..access }, Some(lent)))
}

/// A token that others have for a while.
pub(crate) struct Lent {
    dir: PathBuf,
    book: TokenBook,
    name: String,
}

impl Lent {
    pub(crate) fn take_back(self) -> anyhow::Result<()> {
        self.book.revoke(&self.name)?;
        access::note(&self.dir, "token revoked", self.name);
        Ok(())
    }
}

/// `None`: standard input.
pub(super) fn file(args: &Worker) -> Option<PathBuf> {
    if let Some(file) = &args.access {
        return Some(file.clone()).filter(|file| file != Path::new("-"));
    }
    if let Some(dir) = args.hub.as_deref().filter(|hub| is_dir(hub)) {
        return Some(Access::path_in(Path::new(dir)));
    }
    if let Some(file) = std::env::var_os("LABORO_ACCESS").filter(|file| !file.is_empty()) {
        return Some(file.into());
    }
    Some(Access::path_in(&default_dir()))
}

/// A name with a slash is a path, also if nothing is there.
pub(super) fn is_dir(hub: &str) -> bool {
    hub.contains('/') || hub == "." || Path::new(hub).is_dir()
}
