//! Addresses as they are typed and found.

use super::*;

#[test]
fn of_several_addresses_one_that_every_client_looks_for_is_taken() {
    let parse = |words: &[&str]| words.iter().map(|w| w.parse().unwrap()).collect::<Vec<_>>();
    let chosen = |words: &[&str]| choose(parse(words).into_iter()).map(|a| a.to_string());
    assert_eq!(chosen(&["[::1]:5", "127.0.0.1:5"]).unwrap(), "127.0.0.1:5");
    assert_eq!(chosen(&["[::1]:5", "[::2]:5"]).unwrap(), "[::1]:5");
    assert_eq!(chosen(&[]), None);
}

#[test]
fn a_host_is_remembered_as_it_was_typed() {
    let address: Address = "localhost:0".parse().unwrap();
    assert!(address.at().ip().is_loopback());
    assert_eq!(address.typed(6714), "localhost:6714");
    assert_eq!(String::from(address), "localhost:0");
    let address: Address = "[::1]:7".parse().unwrap();
    assert_eq!(Address::from(address.at()), address);
}

#[test]
fn a_port_may_be_left_out_where_one_is_usual() {
    for (text, whole) in [
        ("127.0.0.1", "127.0.0.1:6125"),
        ("127.0.0.1:7", "127.0.0.1:7"),
        ("::1", "[::1]:6125"),
        ("[::1]", "[::1]:6125"),
        ("[::1]:7", "[::1]:7"),
    ] {
        let address = Address::with_usual_port(text, 6125).unwrap();
        assert_eq!(address.at().to_string(), whole);
    }
    assert!(Address::with_usual_port("nobody:x", 6125).is_err());
}
