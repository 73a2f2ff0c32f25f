//! The server: what it reacts to, what it passes on, and what the original got wrong.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const PING: &str = "\"\"|LMQv100|\\x04|id|\\x01|\"\"";

fn with_worker() -> Scene {
    let mut scene = Scene::new();
    scene.open("WC");
    let registered = scene.say("W", "\"\"|LMQv100|\\x04|r|\\x08|10|\"\"");
    assert_eq!(registered, "W> \"\"|LMQv100|\\x06|r|\"\"");
    scene
}

#[test]
fn a_request_goes_to_a_worker_and_its_answer_comes_back() {
    let mut scene = with_worker();
    assert_eq!(scene.say("C", PING), format!("W> {PING}|C"));
    let answer = scene.say("W", "C|\"\"|LMQv100|\\x06|id|\"\"");
    assert_eq!(answer, "C> \"\"|LMQv100|\\x06|id|\"\"|W");
    assert_eq!(scene.table(), [("W".into(), 9)]);
    assert_eq!(scene.say("W", "\"\"|LMQv100|\\x03|i|\\x07|\"\""), "");
    assert_eq!(scene.table(), [("W".into(), 10)]);
}

#[test]
fn the_heartbeat_is_answered_by_the_server_itself() {
    let mut scene = Scene::new();
    scene.open("C");
    let ping = "\"\"|LMQv100|\\x01|id|\"\"";
    assert_eq!(scene.say("C", ping), "C> \"\"|LMQv100|\\x02|id|\"\"");
    // From behind another server: back the way it came.
    assert_eq!(scene.say("C", &format!("{ping}|A|B")), "C> B|A|\"\"|LMQv100|\\x02|id|\"\"");
}

#[test]
fn a_registration_is_answered_before_the_requests_that_it_lets_through() {
    let mut scene = Scene::new();
    scene.open("WC");
    assert_eq!(scene.say("C", PING), "");
    let said = scene.say("W", "\"\"|LMQv100|\\x04|r|\\x08|1|\"\"");
    assert_eq!(said, format!("W> \"\"|LMQv100|\\x06|r|\"\"\nW> {PING}|C"));
}

#[test]
fn slots_are_a_decimal_number_or_nothing() {
    let mut scene = Scene::new();
    scene.open("W");
    let bad = ["abc", "-1", "+1", "1.5", " 1", "99999999999", "100001", "0x10"];
    for slots in bad {
        assert_eq!(
            scene.say("W", &format!("\"\"|LMQv100|\\x04|r|\\x08|{slots}|\"\"")),
            "",
            "{slots}"
        );
    }
    assert_eq!(scene.say("W", "\"\"|LMQv100|\\x04|r|\\x08|\"\""), "");
    assert_eq!(scene.say("W", "\"\"|LMQv100|\\x04|r|\\x08|1|2|\"\""), "");
    assert_eq!(scene.dropped(Dropped::BadSlots), bad.len() as u64 + 2);
    assert_eq!(scene.table(), []);
}

#[test]
fn an_addressed_message_is_never_interpreted() {
    let mut scene = with_worker();
    // An id that looks like DEREGISTER deregisters nobody.
    assert_eq!(
        scene.say("W", "C|\"\"|LMQv100|\\x06|\\x09|\"\""),
        "C> \"\"|LMQv100|\\x06|\\t|\"\"|W"
    );
    assert_eq!(
        scene.say("C", "W|\"\"|LMQv100|\\x04|x|\\x09|\"\""),
        "W> \"\"|LMQv100|\\x04|x|\\t|\"\"|C"
    );
    assert_eq!(scene.say("C", "W|what|ever"), "W> what|ever|C");
    assert_eq!(scene.table(), [("W".into(), 10)]);
    assert_eq!(scene.say("C", "nobody|\"\"|LMQv100|\\x06|id|\"\""), "");
    assert_eq!(scene.dropped(Dropped::NoRoute), 1);
    assert_eq!(scene.say("C", "W"), "");
    assert_eq!(scene.dropped(Dropped::Malformed), 1);
}

#[test]
fn what_is_no_message_is_dropped_and_counted() {
    let mut scene = with_worker();
    let bad = [
        "\"\"",
        "\"\"|LMQv100",
        "\"\"|LMQv100|\\x04",
        "\"\"|LMQv100|\\x04|id",
        "\"\"|LMQv100|\\x04|id|\\x01",
        "\"\"|LMQv100|\\x04|id|\"\"",
        "\"\"|LMQv100|\\x07|id|\\x01|\"\"",
        "\"\"|LMQv100|\\x00|id|\\x01|\"\"",
        "\"\"|LMQv100|\\x04\\x04|id|\\x01|\"\"",
        "\"\"|LMQv999|\\x04|id|\\x01|\"\"",
    ];
    for said in bad {
        assert_eq!(scene.say("C", said), "", "{said}");
    }
    assert_eq!(scene.dropped(Dropped::Malformed), bad.len() as u64);
    for unasked in ["\\x02", "\\x05", "\\x06"] {
        assert_eq!(scene.say("C", &format!("\"\"|LMQv100|{unasked}|id|\"\"")), "");
    }
    assert_eq!(scene.dropped(Dropped::Unasked), 3);
    assert_eq!(scene.table(), [("W".into(), 10)]);
}

#[test]
fn ids_of_any_length_pass() {
    let mut scene = with_worker();
    let said = PING.replace("id", &"x".repeat(5000));
    assert_eq!(scene.say("C", &said), format!("W> {said}|C"));
    let said = PING.replace("id", "\"\"");
    assert_eq!(scene.say("C", &said), format!("W> {said}|C"));
}

#[test]
fn a_peer_without_an_identity_gets_one() {
    let mut scene = with_worker();
    scene.server.open(NOW, PeerId(0x44), b"", &mut scene.out);
    let address = "\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00D";
    assert_eq!(scene.say("D", PING), format!("W> {PING}|{address}"));
    let answer = scene.say("W", &format!("{address}|\"\"|LMQv100|\\x06|id|\"\""));
    assert_eq!(answer, "D> \"\"|LMQv100|\\x06|id|\"\"|W");
}

#[test]
fn a_silent_worker_is_asked_by_the_server_and_its_pong_is_enough() {
    let mut scene = with_worker();
    let at = scene.server.deadline().unwrap();
    scene.server.tick(at, &mut scene.out);
    let probe = scene.done();
    assert_eq!(probe, "W> \"\"|LMQv100|\\x01|\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00|\"\"");
    // The answer to it is not one that nobody asked for, once.
    let pong = message(&probe[3..].replace("\\x01|\\x01", "\\x02|\\x01"));
    let peer = PeerId(u64::from(b'W'));
    let mut hear = |message| scene.server.receive(at, peer, message, &mut scene.out);
    assert_eq!(hear(message("\"\"|LMQv100|\\x02|x|\"\"")), Err(Dropped::Unasked), "another id");
    assert_eq!(hear(pong.clone()), Ok(()));
    assert_eq!(hear(pong), Err(Dropped::Unasked));
    scene.server.tick(at.after_ms(10_000), &mut scene.out);
    assert_eq!(scene.done(), "");
    scene.server.tick(at.after_ms(30_000), &mut scene.out);
    scene.done();
    scene.server.tick(at.after_ms(40_000), &mut scene.out);
    assert_eq!(scene.done(), "W closed");
}

#[test]
fn a_connection_that_was_given_up_is_not_heard() {
    let mut scene = with_worker();
    scene.server.close(NOW, PeerId(u64::from(b'C')));
    assert_eq!(scene.say("C", PING), "");
    assert_eq!(scene.dropped(Dropped::UnknownPeer), 1);
}

/// Frames as a peer might say them, good and bad.
fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let word = prop_oneof![
        3 => Just(b"".to_vec()),
        3 => Just(b"LMQv100".to_vec()),
        4 => (0u8..12).prop_map(|byte| vec![byte]),
        2 => prop_oneof![Just(b"A".to_vec()), Just(b"B".to_vec()), Just(b"3".to_vec())],
        1 => vec(any::<u8>(), 0..5),
    ];
    let good = (1u8..8, 0u8..12).prop_map(|(command, app)| {
        let start = [b"".to_vec(), b"LMQv100".to_vec(), vec![command], b"id".to_vec()];
        [&start[..], &[vec![app], b"2".to_vec(), b"".to_vec()]].concat()
    });
    prop_oneof![vec(word, 1..9), good]
}

proptest! {
    #[test]
    fn whatever_peers_say_the_slots_stay_within_bounds_and_every_effect_has_a_receiver(
        said in vec((b'A'..b'F', frames(), 0u64..5000), 0..80),
    ) {
        let mut scene = Scene::new();
        scene.open("ABCDE");
        let mut now = NOW;
        for (from, frames, ms) in said {
            now = now.after_ms(ms);
            let message: Message = frames.into_iter().collect();
            let _ = scene.server.receive(now, PeerId(u64::from(from)), message, &mut scene.out);
            scene.server.tick(now, &mut scene.out);
            for row in scene.server.broker().workers() {
                prop_assert!(row.free <= row.slots);
            }
            for effect in scene.out.drain(..) {
                let (Effect::Send { to: peer, .. } | Effect::Close { peer }) = effect;
                prop_assert!((b'A'..b'F').contains(&(peer.0 as u8)));
            }
        }
        let (counters, waiting) =
            (scene.server.broker().counters(), scene.server.broker().waiting().0 as u64);
        let expired = counters.dropped(Dropped::Expired);
        prop_assert_eq!(counters.requests, counters.dispatched + waiting + expired);
    }
}
