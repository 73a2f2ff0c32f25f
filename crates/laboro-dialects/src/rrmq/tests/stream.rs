//! Packets from strangers: none panics, none unpacks to more than is allowed.

use super::*;
use proptest::prelude::*;

fn packet(state: StreamState, pack: Pack, payload: &[u8]) -> Packet {
    Packet { state, pack, handle: [7; 8], payload: Bytes::copy_from_slice(payload) }
}

#[test]
fn bad_packets_are_named() {
    let short = Bytes::from_static(b"0R\x081234567");
    assert_eq!(Packet::parse(&short), Err(PacketError::Short(10)));
    let odd = Bytes::from_static(b"3R\x0812345678");
    assert_eq!(Packet::parse(&odd), Err(PacketError::Header(*b"3R\x08")));

    use StreamState::*;
    let mut reader = StreamReader::new(10);
    assert_eq!(reader.read(&packet(More, Pack::Raw, b"12345")), Ok(None));
    let last = packet(Finished, Pack::Raw, b"6");
    assert_eq!(reader.read(&last), Ok(Some(Bytes::from_static(b"123456"))));
    assert_eq!(reader.read(&last), Err(PacketError::AfterEnd));

    let mut reader = StreamReader::new(10);
    assert_eq!(reader.read(&packet(More, Pack::Raw, b"12345")), Ok(None));
    assert_eq!(reader.read(&packet(More, Pack::Zlib, b"")), Err(PacketError::Mixed));
    assert_eq!(reader.read(&last), Err(PacketError::AfterEnd));
    let long = packet(More, Pack::Raw, b"12345678901");
    assert_eq!(StreamReader::new(10).read(&long), Err(PacketError::TooLong { max: 10 }));

    let broken = packet(More, Pack::Zlib, b"no zlib at all");
    assert_eq!(StreamReader::new(10).read(&broken), Err(PacketError::Broken));
    let empty = packet(Finished, Pack::Zlib, b"");
    assert_eq!(StreamReader::new(10).read(&empty), Err(PacketError::CutOff));
    let aborted = packet(Abort, Pack::Raw, b"");
    assert_eq!(StreamReader::new(10).read(&aborted), Err(PacketError::Aborted));
}

#[test]
fn a_small_packet_does_not_unpack_to_more_than_is_allowed() {
    let mut writer = Writer::new(1, Pack::Zlib, Bytes::from(vec![0; 5_000_000]));
    let first = writer.next_packet();
    assert!(first.payload.len() < 10_000);
    let mut reader = StreamReader::new(1_000_000);
    assert_eq!(reader.read(&first), Err(PacketError::TooLong { max: 1_000_000 }));
    assert_eq!(reader.read(&first), Err(PacketError::AfterEnd));
}

proptest! {
    #[test]
    fn data_survives_being_cut_into_packets(
        data in proptest::collection::vec(any::<u8>(), 0..40_000),
        is_packed: bool,
    ) {
        let pack = if is_packed { Pack::Zlib } else { Pack::Raw };
        let mut writer = Writer::new(9, pack, data.clone().into());
        let mut reader = StreamReader::new(data.len());
        let arrived = loop {
            let frame = writer.next_packet().to_frame();
            prop_assert!(frame.len() <= 8192);
            if let Some(arrived) = reader.read(&Packet::parse(&frame).unwrap()).unwrap() {
                break arrived;
            }
        };
        prop_assert_eq!(arrived, data);
        prop_assert!(writer.is_over());
    }

    #[test]
    fn no_packets_panic(
        frames in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..5),
        starts_well: bool,
    ) {
        let mut reader = StreamReader::new(100);
        for frame in frames {
            let start = if starts_well { &b"0Z\x0812345678\x78\x9c"[..] } else { b"" };
            let frame = Bytes::from([start, &frame].concat());
            let _ = Packet::parse(&frame).map(|packet| reader.read(&packet));
            let _ = Status::parse(&frame);
            let _ = example::ones(&frame);
        }
    }

    #[test]
    fn statuses_survive(op: i64, error: i64) {
        let status = Status { op, error };
        prop_assert_eq!(Status::parse(&status.to_frame()), Some(status));
    }
}
