//! The one password that nodes and clients of a door share. Compared in constant time, and never shown.

use crate::security::{SecurityError, read_secret, write_secret};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
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

/// From a file that is the password, or that has a line `auth PASSWORD` as the original's settings do.
pub fn read_password(path: &Path) -> Result<String, SecurityError> {
    let malformed = |reason: &str| SecurityError::Malformed {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let missing = "there is no such file: put the password of the fuq nodes into it";
    let text = read_secret(path)?.ok_or_else(|| malformed(missing))?;
    let unclear = "it is to hold the password alone on one line, or a line `auth PASSWORD`";
    find(&text).map(str::to_owned).ok_or_else(|| malformed(unclear))
}

/// The password in a file's text.
pub(super) fn find(text: &str) -> Option<&str> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let named = lines.filter_map(|line| line.strip_prefix("auth")).find_map(|rest| {
        let password = rest.trim();
        (rest.len() > password.len() && !password.is_empty()).then_some(password)
    });
    let alone = text.trim_end_matches(['\r', '\n']);
    named.or((!alone.is_empty() && !alone.contains('\n')).then_some(alone))
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}
