//! The key of a request that opens a websocket, and the answer that proves it was understood. The frames that follow are
//! in `laboro-dialects`.

use crate::SecurityError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};

/// What whoever opens a websocket says first.
pub fn new_key() -> Result<String, SecurityError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
    Ok(STANDARD.encode(bytes))
}

/// The answer to it: proves that it was understood what is being opened.
pub fn accept_of(key: &str) -> String {
    const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let text = format!("{key}{GUID}");
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}
