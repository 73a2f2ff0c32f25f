//! The tokens of pools, each in the access file that its workers are given, and all of them in one file that hubs which share a
//! journal share too: workers that a hub started know the one that takes over.

use crate::security::{NewToken, Role, Secret, SecurityError, TokenBook};
use laboro_api::PoolSpec;
use laboro_core::Time;
use laboro_net::secret_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) struct PoolTokens {
    book: TokenBook,
    path: PathBuf,
}

const FILE: &str = "pools.toml";

impl PoolTokens {
    /// Those of the hub in this directory.
    pub fn of(dir: &Path) -> PoolTokens {
        PoolTokens { book: TokenBook::of(dir), path: dir.join(FILE) }
    }

    /// What this pool has, or a new one. `own` is what its access file here says.
    pub fn give(
        &self,
        spec: &PoolSpec,
        own: Option<Secret>,
        now: Time,
    ) -> Result<Secret, SecurityError> {
        let name = token_name(&spec.name);
        let mut all = self.read()?;
        // Another hub may have revoked it since.
        let is_good = self.book.list()?.iter().any(|token| token.name == name);
        let known = all.get(&spec.name).cloned().or(own).filter(|_| is_good);
        let token = match known {
            Some(token) => token,
            None => {
                self.revoke(&spec.name)?;
                let group = Some(spec.group.clone());
                let name = Some(name);
                let new = NewToken { name, role: Role::Work, owner: None, group, expires_ms: None };
                self.book.add(new, now)?.0
            }
        };
        if all.get(&spec.name) != Some(&token) {
            all.insert(spec.name.clone(), token.clone());
            self.write(&all)?;
        }
        Ok(token)
    }

    /// The pool is gone, or has another group.
    pub fn take_back(&self, pool: &str) -> Result<(), SecurityError> {
        self.revoke(pool)?;
        let mut all = self.read()?;
        match all.remove(pool) {
            Some(_) => self.write(&all),
            None => Ok(()),
        }
    }

    fn revoke(&self, pool: &str) -> Result<(), SecurityError> {
        match self.book.revoke(&token_name(pool)) {
            Ok(_) | Err(SecurityError::NoSuchToken { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn read(&self) -> Result<BTreeMap<String, Secret>, SecurityError> {
        let Some(text) = secret_file::read(&self.path)? else { return Ok(BTreeMap::new()) };
        toml::from_str(&text).map_err(|error| SecurityError::malformed(&self.path, error))
    }

    fn write(&self, all: &BTreeMap<String, Secret>) -> Result<(), SecurityError> {
        let text = toml::to_string(all).expect("names and tokens have a TOML form");
        secret_file::replace(&self.path, &text)
    }
}

fn token_name(pool: &str) -> String {
    format!("pool-{pool}")
}
