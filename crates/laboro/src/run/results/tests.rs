//! What makes a result good.

use super::*;

fn good(pieces: &[&str]) -> bool {
    let mut line = ResLine::default();
    pieces.iter().for_each(|piece| line.take(piece.as_bytes()));
    line.is_good()
}

#[test]
fn the_last_res_line_decides() {
    assert!(good(&["RES:done\n"]));
    assert!(good(&["x RES: fine"]));
    assert!(good(&["RES: failed\nRES: ok\nbye\n"]));
    assert!(!good(&["RES: ok\nRES:  FAILED\n"]));
    assert!(!good(&["nothing\n"]));
    assert!(good(&["R", "ES", ":", "done", "\nmore"]));
}
