//! The bytes on the disk, which outlive any version of this program.

use super::super::format::{FileHead, FileKind, HeadFault, RecordHead, RecordKind, encode_record};
use super::*;

const HEAD: FileHead = FileHead {
    kind: FileKind::Segment,
    id: 0x0102_0304_0506_0708,
    salt: 0x1112_1314_1516_1718,
    number: 42,
    chain: 0xaabb_ccdd,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_format_of_version_1_does_not_change() {
    assert_eq!(
        hex(&HEAD.encode()),
        "4c41424f524f4a4c0100000000000000080706050403020118171615141312112a00000000000000ddccbbaa00000000000000000000000000000000e48e44e2"
    );
    let mut record = Vec::new();
    encode_record(&mut record, HEAD.salt, RecordKind::Batch, 42, HEAD.chain, b"payload");
    assert_eq!(
        hex(&record),
        "ae270fc7070000002a00000000000000ddccbbaa7069e3f401010000000000007061796c6f616400"
    );
}

#[test]
fn heads_are_read_as_written_and_no_bit_can_change() {
    let bytes = HEAD.encode();
    assert_eq!(FileHead::decode(FileKind::Segment, &bytes), Ok(HEAD));
    for bit in 0..bytes.len() * 8 {
        let mut bytes = bytes;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(FileHead::decode(FileKind::Segment, &bytes).is_err(), "bit {bit}");
    }
    let wrong = FileHead::decode(FileKind::Snapshot, &bytes);
    assert!(matches!(wrong, Err(HeadFault::Broken(_))));
}

#[test]
fn record_heads_are_read_only_with_their_own_salt() {
    let mut bytes = Vec::new();
    let check = encode_record(&mut bytes, 7, RecordKind::Batch, 3, 9, b"hello");
    assert_eq!(bytes.len() % 8, 0);
    let head = bytes.first_chunk().unwrap();
    let record = RecordHead::decode(7, head).unwrap();
    assert_eq!((record.number, record.previous, record.check), (3, 9, check));
    assert_eq!(record.stride(), bytes.len() as u64);
    assert_eq!(RecordHead::decode(8, head), None);
}

#[test]
fn a_file_of_a_newer_version_is_refused_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &["one"]);
    let segment = &files(dir.path(), ".log")[0];
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    let mut head = fs::read(segment).unwrap()[..64].to_vec();
    head[8..12].copy_from_slice(&9u32.to_le_bytes());
    let check = crc32c::crc32c(&head[..60]);
    head[60..].copy_from_slice(&check.to_le_bytes());
    file.write_all_at(&head, 0).unwrap();
    let error = open(dir.path()).unwrap_err();
    assert!(matches!(error, LogError::NewerVersion { version: 9, known: 1, .. }));
    assert!(error.to_string().contains("use a newer laboro"), "{error}");
    assert!(matches!(repair(dir.path()), Err(LogError::NewerVersion { .. })));
}

#[test]
fn a_version_that_alone_is_damaged_is_damage_and_not_a_newer_version() {
    let mut bytes = HEAD.encode();
    bytes[9] ^= 1;
    let head = FileHead::decode(FileKind::Segment, &bytes);
    assert_eq!(head, Err(HeadFault::Broken("the format version is damaged")));
}

/// Directories as they were left before there was an end mark and a second snapshot.
#[test]
fn directories_of_earlier_versions_open_and_go_on() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/journal/directories");
    for name in ["log", "condensed", "snapshot", "killed"] {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(&golden.join(name), dir.path());
        assert_eq!(check(dir.path()).unwrap().problem, None, "{name}");
        let (mut log, recovery, told) = open_with(dir.path(), small(), Ledger::maker()).unwrap();
        assert_eq!(recovery.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(Ledger::of(&told), state_after(100), "{name}");
        commit_all(&mut log, 101..=200, entry);
        log.condense().unwrap();
        log.wait_for_condensing();
        assert_eq!(log.take_warnings(), Vec::<String>::new(), "{name}");
        log.commit(&entry(201)).unwrap();
        log.close().unwrap();
        assert_eq!(Ledger::of(&open(dir.path()).unwrap().2), state_after(201), "{name}");
    }
}
