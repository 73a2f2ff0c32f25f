//! The one password that nodes and clients of a door share. Compared in constant time, and never shown.

use crate::security::{SecurityError, read_secret, write_secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use laboro_net::secret_file::read_password;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::path::Path;
use subtle::ConstantTimeEq;

/// Its hash: as long for every password, so that comparing tells nothing of its length either.
pub(super) struct Password([u8; 32]);

impl Password {
    pub(super) fn new(text: &str) -> Password {
        Password(hash(text.as_bytes()))
    }

    pub(super) fn read(path: &Path) -> Result<Password, SecurityError> {
        read_password(path).map(|password| Password::new(&password))
    }

    pub(super) fn read_or_make(path: &Path) -> Result<Password, SecurityError> {
        if read_secret(path)?.is_some() {
            return Password::read(path);
        }
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
        let password = STANDARD_NO_PAD.encode(bytes);
        // A line of the original's settings, so that the file can become such a one.
        write_secret(path, &format!("auth {password}\n"))?;
        Ok(Password::new(&password))
    }

    pub(super) fn is(&self, shown: &str) -> bool {
        self.0.ct_eq(&hash(shown.as_bytes())).into()
    }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}
