//! Who may come to a door.

use super::*;

#[test]
fn a_network_holds_its_addresses_and_no_others() {
    for (network, inside, outside) in [
        ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
        ("192.168.1.7", "192.168.1.7", "192.168.1.8"),
        ("192.168.1.77/25", "192.168.1.127", "192.168.1.128"),
        ("0.0.0.0/0", "255.1.2.3", "::1"),
        ("::/0", "2001:db8::1", "1.2.3.4"),
        ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
        ("10.0.0.0/8", "::ffff:10.1.1.1", "::ffff:11.1.1.1"),
    ] {
        let parsed: Network = network.parse().unwrap();
        assert!(parsed.contains(inside.parse().unwrap()), "{network} {inside}");
        assert!(!parsed.contains(outside.parse().unwrap()), "{network} {outside}");
    }
}

#[test]
fn a_network_is_shown_as_what_it_means() {
    let shown = |text: &str| text.parse::<Network>().unwrap().to_string();
    assert_eq!(shown("192.168.1.77/24"), "192.168.1.0/24");
    assert_eq!(shown("::1"), "::1/128");
}

#[test]
fn what_is_no_network_is_refused() {
    for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/-1", "10.0.0.0/8/8"] {
        assert!(text.parse::<Network>().is_err(), "{text}");
    }
}

#[test]
fn an_empty_list_keeps_nobody_out() {
    let peer = "1.2.3.4".parse().unwrap();
    assert!(allows(&[], peer));
    assert!(!allows(&["10.0.0.0/8".parse().unwrap()], peer));
}
