//! Addresses as people write them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::Address;

#[test]
fn an_address_may_be_written_in_several_ways() {
    for (text, shown) in [
        ("hub", "hub:6125"),
        ("hub:7", "hub:7"),
        ("tcp://10.0.0.1:6125", "10.0.0.1:6125"),
        ("dwork://hub", "hub:6125"),
        ("::1", "[::1]:6125"),
        ("tcp://[::1]:9", "[::1]:9"),
    ] {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), shown);
    }
}

#[test]
fn what_is_no_address_is_refused_with_a_hint() {
    for text in ["", ":6125", "hub:", "hub:x", "hub:70000", "ipc:///tmp/x", "[::1", "[::1]x", "a/b"]
    {
        let error = text.parse::<Address>().unwrap_err();
        assert!(error.contains("write host"), "{error}");
    }
}
