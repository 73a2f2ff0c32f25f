//! The secret half of a token: 32 random bytes as text, with a prefix by which leaked ones are found and an
//! id by which the hub finds its hash. Never shown by accident: `Debug` says only the id.

use laboro_net::SecurityError;
use laboro_net::hex::hex;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;

const PREFIX: &str = "laboro_";
const ID_BYTES: usize = 4;
const SECRET_BYTES: usize = 32;

/// The secret half of a token.
#[derive(Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// A new one.
    pub fn make() -> Result<Secret, SecurityError> {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
        let (id, secret) = bytes.split_at(ID_BYTES);
        Ok(Secret(format!("{PREFIX}{}_{}", hex(id), hex(secret))))
    }

    /// One that was made elsewhere.
    pub fn from_text(text: &str) -> Secret {
        Secret(text.to_owned())
    }

    /// What goes over the wire and into an access file, and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The part by which the hub finds it; not secret.
    pub fn id(&self) -> Option<&str> {
        id_of(self.0.as_bytes())
    }

    /// What is stored of it.
    pub fn hash(&self) -> Hash {
        hash_of(self.0.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.id().unwrap_or("?"))
    }
}

/// What is stored of a secret.
pub type Hash = [u8; 32];

/// A plain hash is enough: there are 256 random bits in it, which nobody guesses however fast.
pub fn hash_of(secret: &[u8]) -> Hash {
    let digest = ring::digest::digest(&ring::digest::SHA256, secret);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Whatever a peer sent: the id in it, if it has the form of a secret.
pub fn id_of(secret: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(secret).ok()?.strip_prefix(PREFIX)?;
    let (id, rest) = text.split_once('_')?;
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let fits = id.len() == 2 * ID_BYTES && rest.len() == 2 * SECRET_BYTES;
    (fits && is_hex(id) && is_hex(rest)).then_some(id)
}
