//! The codec for fuzzing, with bytes of any kind: what was read is written and read again, and must be the same.

use super::codec::Message;
use bytes::BytesMut;

const BODY_BYTES_MAX: usize = 1 << 20;

/// Reads these bytes as messages. Panics where writing and reading do not agree.
pub fn probe(bytes: &[u8]) {
    let mut input = BytesMut::from(bytes);
    while let Ok(Some(message)) = Message::take(&mut input, BODY_BYTES_MAX) {
        let mut written = BytesMut::new();
        message.write(&mut written);
        let again = Message::take(&mut written, usize::MAX);
        assert_eq!(again, Ok(Some(message)), "what is written is read as it was");
        assert!(written.is_empty(), "a message is as long as it says");
    }
}
