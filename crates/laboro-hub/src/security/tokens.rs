//! The doorman of a running hub. Looks at the file of tokens whenever someone comes: a token that was made
//! or revoked meanwhile counts from then on.

mod book;

pub use book::{NewToken, Token, TokenBook};

use super::failures::{Failures, LoginLimits};
use super::job_keys::JobKeys;
use super::{Denied, Doorman, Role, SecurityError, Who};
use laboro_api::access::{hash_of, id_of};
use laboro_core::{JobId, Time};
use laboro_dialects::session::{self, Admission, Admitted};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use subtle::ConstantTimeEq;

#[derive(Debug)]
pub struct Tokens {
    book: TokenBook,
    known: RwLock<ReadTokens>,
    failures: Mutex<Failures>,
    jobs: JobKeys,
}

#[derive(Debug, Default)]
struct ReadTokens {
    /// Of the file as it was read.
    stamp: Option<Stamp>,
    tokens: Vec<Token>,
}

/// A file that was replaced has another of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

/// No secret of ours is longer.
const SECRET_BYTES_MAX: usize = 256;

impl Tokens {
    pub fn open(dir: &Path) -> Result<Tokens, SecurityError> {
        let book = TokenBook::of(dir);
        // First the stamp: a change in between is read twice, and not missed.
        let stamp = stamp(book.path());
        let known = RwLock::new(ReadTokens { stamp, tokens: book.list()? });
        Ok(Tokens { book, known, failures: Mutex::default(), jobs: JobKeys::open(dir)? })
    }

    /// How many wrong ones somebody may show.
    pub(crate) fn with_logins(mut self, limits: LoginLimits) -> Tokens {
        self.failures = Mutex::new(Failures::new(limits));
        self
    }

    /// Is this token still there, and in time?
    fn is_good(&self, id: &str, now: Time) -> bool {
        self.look_again();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.tokens.iter().any(|token| token.id == id && !is_over(token, now))
    }

    fn look_again(&self) {
        let stamp = stamp(self.book.path());
        if self.known.read().unwrap_or_else(PoisonError::into_inner).stamp == stamp {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match self.book.list() {
            Ok(tokens) => known.tokens = tokens,
            // Somebody's slip in an editor shall not throw everyone out.
            Err(error) => tracing::error!("the tokens were not reloaded: {error}"),
        }
        known.stamp = stamp;
    }

    fn find(&self, secret: &[u8], now: Time) -> Result<Who, Denied> {
        if secret.len() > SECRET_BYTES_MAX {
            return Err(Denied::Unknown);
        }
        let id = id_of(secret).unwrap_or_default();
        let hash = hash_of(secret);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let token = known.tokens.iter().find(|token| token.id == id).ok_or(Denied::Unknown)?;
        if !bool::from(token.hash.ct_eq(&hash)) {
            return Err(Denied::Unknown);
        }
        if is_over(token, now) {
            return Err(Denied::Expired(token.name.clone()));
        }
        let owner = token.owner.clone().unwrap_or_else(|| token.name.clone());
        let (token, role, group) = (token.name.clone(), token.role, token.group.clone());
        Ok(Who { id: id.to_owned(), token, owner, role, group, job: None })
    }

    fn check(&self, secret: &[u8], peer: Option<IpAddr>, now: Time) -> Result<Who, Denied> {
        self.look_again();
        let found = self.find(secret, now);
        if found == Err(Denied::Unknown) {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            // Who shows a good one comes in: others behind the same address must not keep it out.
            if let Some(seconds) = failures.wait_s(peer, now) {
                return Err(Denied::TooMany(seconds));
            }
            let shown = &secret[..secret.len().min(SECRET_BYTES_MAX)];
            failures.note(peer, hash_of(shown), now);
        }
        found
    }
}

impl Doorman for Tokens {
    fn identify(&self, secret: &[u8], peer: Option<IpAddr>, now: Time) -> Result<Who, Denied> {
        // Only here: a task may use the API, and no other door.
        if let Some(job) = self.jobs.job(secret) {
            let token = format!("job-{}", job.0);
            // Whose job it is, and of which group, is known to the hub.
            let (owner, role, group) = (token.clone(), Role::Submit, None);
            return Ok(Who { id: token.clone(), token, owner, role, group, job: Some(job) });
        }
        self.check(secret, peer, now)
    }

    fn still_holds(&self, who: &Who, now: Time) -> bool {
        who.job.is_some() || self.is_good(&who.id, now)
    }
}

/// Admission to one connection, by token. Remembers which token opened it, so that the connection ends with the token.
#[derive(Debug)]
pub(crate) struct TokenAdmission {
    tokens: Arc<Tokens>,
    by: OnceLock<String>,
}

impl TokenAdmission {
    pub fn new(tokens: Arc<Tokens>) -> TokenAdmission {
        TokenAdmission { tokens, by: OnceLock::new() }
    }

    /// Who shows this secret. From here on the connection stands with its token.
    pub fn identify(&self, secret: &[u8], peer: Option<IpAddr>, now: Time) -> Result<Who, Denied> {
        let who = self.tokens.check(secret, peer, now)?;
        self.by.get_or_init(|| who.id.clone());
        Ok(who)
    }

    /// False once the token that opened the connection was revoked or has expired.
    pub fn still_holds(&self, now: Time) -> bool {
        self.by.get().is_none_or(|id| self.tokens.is_good(id, now))
    }
}

impl Admission for TokenAdmission {
    fn admit_worker(
        &self,
        secret: &[u8],
        peer: Option<IpAddr>,
        now: Time,
    ) -> Result<Admitted, session::Denied> {
        let found = self.tokens.check(secret, peer, now);
        let who = found.map_err(|denied| session::Denied(denied.to_string()))?;
        if !who.role.may_work() {
            return Err(session::Denied(format!(
                "the token {} has the role {}, which may not run tasks: make one with \
                 `laboro access --role work` on the hub's machine",
                who.token,
                who.role.word()
            )));
        }
        self.by.get_or_init(|| who.id);
        Ok(Admitted { group: who.group })
    }

    fn job_secret(&self, job: JobId) -> Option<String> {
        Some(self.tokens.jobs.secret(job))
    }
}

fn is_over(token: &Token, now: Time) -> bool {
    token.expires.is_some_and(|end| end <= now)
}

/// `None` when there is no file: then nobody may come in.
fn stamp(path: &Path) -> Option<Stamp> {
    let about = std::fs::metadata(path).ok()?;
    let changed = (about.mtime(), about.mtime_nsec());
    Some(Stamp { inode: about.ino(), bytes: about.len(), changed })
}
