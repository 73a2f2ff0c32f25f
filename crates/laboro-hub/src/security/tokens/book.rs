//! The file of tokens: who was given access, never the secrets themselves. Changed by `laboro access` while
//! a hub runs, so every change takes a lock, reads the file, and replaces it as a whole.

use super::super::{Role, SecurityError};
use laboro_api::access::{Hash, Secret, in_line};
use laboro_core::{Name, Time};
use laboro_net::hex::{hex, unhex};
use laboro_net::secret_file as files;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What is known of one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Also part of the secret, so that its hash is found.
    pub id: String,
    /// For people; no two have the same.
    pub name: String,
    pub role: Role,
    /// Whose jobs are those that it submits. `None`: the token's own.
    pub owner: Option<String>,
    /// `None`: every group.
    pub group: Option<Name>,
    pub created: Time,
    pub expires: Option<Time>,
    pub(super) hash: Hash,
}

/// A token to be made.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// `None`: named after its role and id.
    pub name: Option<String>,
    pub role: Role,
    /// `None`: the token is an owner of its own, by its name.
    pub owner: Option<String>,
    pub group: Option<String>,
    pub expires_ms: Option<u64>,
}

#[derive(Debug)]
pub struct TokenBook {
    path: PathBuf,
}

impl TokenBook {
    /// The one of the hub in this directory.
    pub fn of(dir: &Path) -> TokenBook {
        TokenBook { path: dir.join("tokens.toml") }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// In the order in which they were made.
    pub fn list(&self) -> Result<Vec<Token>, SecurityError> {
        let Some(text) = files::read(&self.path)? else { return Ok(Vec::new()) };
        let broken = |reason: String| SecurityError::malformed(&self.path, reason);
        let page: Page = toml::from_str(&text).map_err(|error| broken(in_line(&text, &error)))?;
        let token = |line: TokenLine| {
            let id = line.id.clone();
            line.token().ok_or_else(|| broken(format!("token {id} has no valid hash or time")))
        };
        page.token.into_iter().map(token).collect()
    }

    /// The secret is in the answer and nowhere else.
    pub fn add(&self, new: NewToken, now: Time) -> Result<(Secret, Token), SecurityError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let secret = Secret::make()?;
        let id = secret.id().expect("a new secret has an id").to_owned();
        let name = new.name.unwrap_or_else(|| format!("{}-{id}", new.role.word()));
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        for name in [Some(&name), new.owner.as_ref()].into_iter().flatten() {
            if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
                return Err(SecurityError::BadName { name: name.clone() });
            }
        }
        if tokens.iter().any(|token| token.name == name) {
            return Err(SecurityError::NameTaken { name });
        }
        let token = Token {
            id,
            name,
            role: new.role,
            owner: new.owner,
            group: new.group.map(Name::from),
            created: now,
            expires: new.expires_ms.map(|ms| now.after_ms(ms)),
            hash: secret.hash(),
        };
        tokens.push(token.clone());
        self.save(&tokens)?;
        Ok((secret, token))
    }

    /// By name or id.
    pub fn revoke(&self, which: &str) -> Result<Token, SecurityError> {
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        let at = tokens.iter().position(|token| token.name == which || token.id == which);
        let at = at.ok_or_else(|| SecurityError::NoSuchToken { name: which.to_owned() })?;
        let gone = tokens.remove(at);
        self.save(&tokens)?;
        Ok(gone)
    }

    /// Held until it is dropped; waits for whoever has it.
    fn lock(&self) -> Result<File, SecurityError> {
        let path = self.path.with_extension("lock");
        let mut options = OpenOptions::new();
        let file = options.create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(SecurityError::io(&path, "open it"))?;
        file.lock().map_err(SecurityError::io(&path, "lock it"))?;
        Ok(file)
    }

    fn save(&self, tokens: &[Token]) -> Result<(), SecurityError> {
        let page = Page { token: tokens.iter().map(TokenLine::of).collect() };
        let text = toml::to_string(&page).expect("a list of tables of strings has a TOML form");
        files::replace(&self.path, &format!("{HEAD}{text}"))
    }
}

const HEAD: &str = "# The tokens of this hub. Only hashes of the secrets are here. `laboro access` changes this file;\n\
     # a running hub notices.\n\n";

/// The form on disk.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    #[serde(default)]
    token: Vec<TokenLine>,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenLine {
    id: String,
    name: String,
    role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    created: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    sha256: String,
}

impl TokenLine {
    fn of(token: &Token) -> TokenLine {
        TokenLine {
            id: token.id.clone(),
            name: token.name.clone(),
            role: token.role,
            owner: token.owner.clone(),
            group: token
                .group
                .as_ref()
                .map(|name| String::from_utf8_lossy(name.bytes()).into_owned()),
            created: instant(token.created),
            expires: token.expires.map(instant),
            sha256: hex(&token.hash),
        }
    }

    fn token(self) -> Option<Token> {
        Some(Token {
            hash: unhex(&self.sha256)?.try_into().ok()?,
            created: time(&self.created)?,
            expires: match self.expires {
                None => None,
                Some(text) => Some(time(&text)?),
            },
            id: self.id,
            name: self.name,
            role: self.role,
            owner: self.owner,
            group: self.group.map(Name::from),
        })
    }
}

fn instant(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).unwrap_or(jiff::Timestamp::MAX).to_string()
}

fn time(text: &str) -> Option<Time> {
    let at: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(at.as_millisecond()).ok().map(Time)
}
