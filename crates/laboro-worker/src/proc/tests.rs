//! Odd process names and environments.

use super::*;

#[test]
fn a_name_with_brackets_and_newlines_does_not_shift_the_fields() {
    let stat = b"12 (a) Z 9 (\n9) S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 99 321 0";
    let expected = Process {
        pid: 12,
        parent: 7,
        group: 8,
        session: 9,
        is_zombie: false,
        born: 4711,
        resident_pages: 321,
    };
    assert_eq!(parse_stat(12, stat), Some(expected));
    assert_eq!(parse_stat(12, b"12 (a"), None);
    assert_eq!(parse_stat(12, b"12 (a) R x"), None);
}

#[test]
fn a_mark_is_found_wherever_it_stands() {
    let long = [b"LONG=".as_slice(), &[b'x'; 9000]].concat();
    for entries in [
        vec![b"M=n.7".as_slice(), b"A=1"],
        vec![b"A=1".as_slice(), &long, b"M=n.7"],
        vec![b"XM=n.9".as_slice(), b"M=other.3", b"M=n.7", b""],
    ] {
        let environment = entries.join(&0);
        assert_eq!(find_mark(environment.as_slice(), b"M=n."), Some(b"7".to_vec()));
    }
    assert_eq!(find_mark(b"A=M=n.7\0".as_slice(), b"M=n."), None);
}

#[test]
fn this_process_is_in_the_table() {
    let me = process::id().cast_signed();
    let found = processes().into_iter().find(|p| p.pid == me).unwrap();
    assert_eq!(found.parent, std::os::unix::process::parent_id().cast_signed());
    assert!(!found.is_zombie);
    let (resident, shared) = (found.resident_pages * 4096, proportional_bytes(me).unwrap());
    assert!(shared > 0 && resident > 1 << 20, "{resident} {shared}");
}
