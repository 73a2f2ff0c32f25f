//! How others reach a hub, whatever it calls itself.

use super::reached;

#[test]
fn the_port_is_the_hubs_own_whether_it_names_an_address_or_a_machine() {
    for own in ["127.0.0.1:7911", "node1:7911", "[::1]:7911", "node1:7911,node2:7911"] {
        let others = reached(Some(own.to_owned()), Some("h1, fd00::2"));
        assert_eq!(others.as_deref(), Some("h1:7911,[fd00::2]:7911"), "{own}");
    }
}
