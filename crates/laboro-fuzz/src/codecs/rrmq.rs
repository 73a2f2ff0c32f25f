//! Envelopes, packets and streams of rrmq.

use bytes::Bytes;
use laboro_dialects::rrmq::{Envelope, Pack, Packet, Status, StreamReader, Writer};
use laboro_dialects::zmtp::Message;

/// A stream may unpack to as much as it says, up to this.
const STREAM_BYTES_MAX: usize = 256 << 10;

/// Frames with a length of two bytes each; every frame is looked at alone, too.
pub(crate) fn message(bytes: &[u8]) {
    let message = Message::from_iter(frames(bytes));
    if let Ok(envelope) = Envelope::parse(&message) {
        assert_eq!(Envelope::parse(&envelope.to_message()).as_ref(), Ok(&envelope));
        let _ = envelope.app();
    }
    let mut reader = StreamReader::new(STREAM_BYTES_MAX);
    for frame in &message {
        if let Some(status) = Status::parse(frame) {
            assert_eq!(Status::parse(&status.to_frame()), Some(status));
        }
        if let Ok(packet) = Packet::parse(frame) {
            assert_eq!(Packet::parse(&packet.to_frame()).as_ref(), Ok(&packet));
            if let Ok(Some(whole)) = reader.read(&packet) {
                assert!(whole.len() <= STREAM_BYTES_MAX);
            }
        }
        for pack in [Pack::Raw, Pack::Zlib] {
            stream(frame, pack);
        }
    }
}

/// What is cut into packets is put together again.
fn stream(data: &Bytes, pack: Pack) {
    let mut writer = Writer::new(7, pack, data.clone());
    let mut reader = StreamReader::new(data.len());
    loop {
        match reader.read(&writer.next_packet()) {
            Ok(None) => {}
            Ok(Some(whole)) => return assert_eq!(whole, data),
            Err(error) => panic!("our own stream is not read: {error}"),
        }
    }
}

pub(crate) fn frames(bytes: &[u8]) -> Vec<Bytes> {
    let (mut rest, mut frames) = (bytes, Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(after.len());
        frames.push(Bytes::copy_from_slice(&after[..length]));
        rest = &after[length..];
    }
    frames
}
