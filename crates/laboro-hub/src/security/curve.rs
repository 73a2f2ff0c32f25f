//! Keys of CURVE, the lock of ZeroMQ doors: the hub's own pair in its directory, pairs of clients in files of
//! theirs, and public keys as they stand in settings. Who may come to which door is the door's affair.

use laboro_dialects::zmtp::{KeyBytes, KeyError, KeyPair, key_from_text, key_to_text};
use laboro_net::SecurityError;
use laboro_net::secret_file::{read, replace};
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

/// A public key in the forty characters that ZeroMQ programs write it with.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CurveKey(pub KeyBytes);

impl FromStr for CurveKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<CurveKey, KeyError> {
        key_from_text(text).map(CurveKey)
    }
}

impl fmt::Display for CurveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&key_to_text(&self.0))
    }
}

impl fmt::Debug for CurveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CurveKey({self})")
    }
}

impl TryFrom<String> for CurveKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<CurveKey, KeyError> {
        text.parse()
    }
}

impl From<CurveKey> for String {
    fn from(key: CurveKey) -> String {
        key.to_string()
    }
}

/// The pair of the hub in this directory, made at the first call.
pub fn curve_keys(dir: &Path) -> Result<KeyPair, SecurityError> {
    let path = dir.join("curve.key");
    if let Some(text) = read(&path)? {
        return parse(&path, &text);
    }
    match make_curve_keys(&path) {
        // Somebody else was first.
        Err(SecurityError::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists => {
            read_curve_keys(&path)
        }
        made => made,
    }
}

/// A new pair, in a file that only its owner can read. One that is there is never overwritten: somebody may
/// count on it.
pub fn make_curve_keys(path: &Path) -> Result<KeyPair, SecurityError> {
    let keys = KeyPair::generate();
    let (public, secret) = (key_to_text(&keys.public), key_to_text(&keys.secret));
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    replace(&draft, &format!("public {public}\nsecret {secret}\n"))?;
    // A link is made only where nothing is, and is whole at once.
    let linked = std::fs::hard_link(&draft, path).map_err(SecurityError::io(path, "make it"));
    std::fs::remove_file(&draft).map_err(SecurityError::io(&draft, "remove it"))?;
    linked.map(|()| keys)
}

/// The pair in this file: as it is written here, the bare secret key, or a certificate of ZeroMQ's own tools.
pub fn read_curve_keys(path: &Path) -> Result<KeyPair, SecurityError> {
    match read(path)? {
        Some(text) => parse(path, &text),
        None => Err(SecurityError::malformed(
            path,
            "it is not there: make a pair of keys with `laboro mq keys --file`",
        )),
    }
}

fn parse(path: &Path, text: &str) -> Result<KeyPair, SecurityError> {
    let named = text.lines().find_map(|line| {
        let line = line.trim();
        line.strip_prefix("secret-key").or(line.strip_prefix("secret ")).map(|rest| {
            // A certificate has a sign of equality between blanks, and a key may have one too.
            rest.trim().strip_prefix("= ").unwrap_or(rest).trim().trim_matches('"')
        })
    });
    let key = named.unwrap_or(text.trim());
    let malformed = |error| {
        SecurityError::malformed(path, format_args!("it holds no secret key of CURVE: {error}"))
    };
    key_from_text(key).map(KeyPair::from_secret).map_err(malformed)
}
