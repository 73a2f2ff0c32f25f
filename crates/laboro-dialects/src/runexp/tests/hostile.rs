//! Peers that are broken or mean it. Each loses its own conversation and nothing else.

use super::rig::Rig;
use crate::runexp::words::is_host;
use crate::session::HangUp;
use laboro_core::State;
use proptest::prelude::*;

fn lending() -> Rig {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.greet(1, "r1");
    rig.says(1, "PETO");
    rig.says(1, "PRETA");
    rig
}

#[test]
fn a_result_of_a_job_it_was_never_given_drops_the_client() {
    let mut rig = lending();
    assert_eq!(rig.says(1, "REZULTO b success 5"), [""; 0]);
    assert!(rig.malformed(1).contains("result of `b`, which it was never given"));
    rig.close(1);
    assert_eq!(rig.state("a"), State::Ready);
    assert!(rig.kept.is_empty());
}

#[test]
fn a_name_that_climbs_out_is_just_another_unknown_name() {
    for name in ["../../etc/passwd", "/etc/passwd", "a/../../b", "..", "a\0b"] {
        let mut rig = lending();
        assert_eq!(rig.says(1, format!("REZULTO {name} success 5")), [""; 0]);
        assert!(rig.malformed(1).contains("never given"), "{name}");
    }
}

#[test]
fn a_result_without_end_is_not_begun() {
    let mut rig = lending();
    assert_eq!(rig.says(1, "REZULTO a success 99999999999999"), [""; 0]);
    assert!(rig.malformed(1).contains("is more than"));
    let mut rig = lending();
    assert_eq!(rig.says(1, "REZULTO a success 99999999999999999999999999"), [""; 0]);
    rig.pass(60_000);
    assert!(rig.malformed(1).contains("it said `REZULTO a success 9999"), "not a number");
}

#[test]
fn a_body_that_is_longer_than_its_size_is_no_word() {
    let mut rig = lending();
    assert_eq!(rig.says(1, "REZULTO a success 5"), ["PRETA"]);
    assert_eq!(rig.says(1, "12345678"), ["RICEVIS"]);
    assert!(rig.malformed(1).contains("`678` is not a word"));
}

#[test]
fn a_body_that_is_shorter_than_its_size_is_waited_for_a_while() {
    let mut rig = lending();
    assert_eq!(rig.says(1, "REZULTO a success 1000"), ["PRETA"]);
    for _ in 0..9 {
        rig.pass(50_000);
        assert_eq!(rig.says(1, [b'x'; 100]), [""; 0]);
    }
    assert_eq!(rig.hang_up(1), None, "slow, but not silent");
    rig.pass(60_000);
    assert_eq!(rig.hang_up(1), Some(HangUp::Silent));
    rig.close(1);
    assert_eq!(rig.state("a"), State::Ready);
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_body_gives_the_job_back() {
    let mut rig = lending();
    rig.says(1, "REZULTO a success 1000");
    rig.says(1, "half");
    rig.close(1);
    assert_eq!(rig.state("a"), State::Ready);
}

#[test]
fn silence_is_limited_wherever_a_word_is_due() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.connect(1);
    rig.pass(9_999);
    assert_eq!(rig.hang_up(1), None);
    rig.pass(1);
    assert_eq!(rig.hang_up(1), Some(HangUp::Silent), "no hail");
    rig.connect(2);
    rig.says(2, "SALUTON; MI r1");
    rig.pass(6_000);
    rig.says(2, "KOMPRENAS");
    rig.pass(4_000);
    assert_eq!(rig.hang_up(2), Some(HangUp::Silent), "the limit is for the whole handshake");
    rig.greet(3, "r3");
    rig.says(3, "PETO");
    rig.pass(60_000);
    assert_eq!(rig.hang_up(3), Some(HangUp::Silent), "no PRETA");
    rig.close(3);
    rig.greet(4, "r4");
    rig.says(4, "PE");
    rig.pass(60_000);
    assert_eq!(rig.malformed(4), "it said `PE` and not the rest of it in time");
    assert_eq!(rig.state("a"), State::Ready);
}

#[test]
fn a_thousand_silent_connections_are_gone_after_the_handshakes_time() {
    let mut rig = Rig::with_scripts(&["a"], 1);
    (10..1010).for_each(|peer| rig.connect(peer));
    rig.greet(1, "r1");
    rig.pass(10_000);
    assert!((10..1010).all(|peer| rig.hang_up(peer) == Some(HangUp::Silent)));
    assert_eq!(rig.hang_up(1), None);
    assert_eq!(rig.says(1, "PETO"), ["LABORO a .sh 12"]);
}

/// A hail without its arguments is half a word, but not one that may come here.
#[test]
fn what_cannot_become_a_word_that_is_due_is_not_waited_for() {
    for said in ["SALUTON", "KOMP", "SALUTON; MI "] {
        let mut rig = lending();
        rig.says(1, said);
        let why = format!("it said `{said}` where PETO, REZULTO or FINO ANKAU was due");
        assert_eq!(rig.malformed(1), why);
    }
    let mut rig = Rig::with_scripts(&["a"], 1);
    rig.connect(1);
    rig.says(1, "PE");
    assert_eq!(rig.malformed(1), "it said `PE` where SALUTON was due");
}

#[test]
fn words_out_of_place_are_named() {
    let mut rig = lending();
    rig.says(1, "KOMPRENAS");
    let why = rig.malformed(1);
    assert_eq!(why, "it said `KOMPRENAS` where PETO, REZULTO or FINO ANKAU was due");
}

#[test]
fn each_state_takes_its_own_words_and_no_others() {
    const WORDS: [&str; 10] = [
        "SALUTON; MI x",
        "KOMPRENAS",
        "JES",
        "PETO",
        "PRETA",
        "REZULTO a success 1",
        "FINO ANKAU",
        "LABORO a .sh 1",
        "ATENDI",
        "hello",
    ];
    let states: [(&str, &[&str], &[&str]); 7] = [
        ("accept", &[], &["SALUTON; MI x"]),
        ("version", &["SALUTON; MI r"], &["KOMPRENAS"]),
        ("group", &["SALUTON; MI r", "KOMPRENAS"], &["JES"]),
        ("wait", &["SALUTON; MI r", "KOMPRENAS", "JES"], &["PETO", "FINO ANKAU"]),
        ("send", &["SALUTON; MI r", "KOMPRENAS", "JES", "PETO"], &["PRETA"]),
        (
            "wait with a job",
            &["SALUTON; MI r", "KOMPRENAS", "JES", "PETO", "PRETA"],
            &["PETO", "REZULTO a success 1", "FINO ANKAU"],
        ),
        (
            "close",
            &["SALUTON; MI r", "KOMPRENAS", "JES", "PETO", "PRETA", "PETO"],
            &["PETO", "REZULTO a success 1", "FINO ANKAU"],
        ),
    ];
    for (state, before, taken) in states {
        for word in WORDS {
            let mut rig = Rig::with_scripts(&["a"], 1);
            rig.connect(1);
            before.iter().for_each(|word| rig.hears(1, word.as_bytes()));
            assert_eq!(rig.hang_up(1), None, "{state}");
            rig.hears(1, word.as_bytes());
            let is_refused = matches!(rig.hang_up(1), Some(HangUp::Malformed(_)));
            assert_eq!(is_refused, !taken.contains(&word), "{word} in {state}");
        }
    }
}

#[test]
fn a_flood_is_not_kept() {
    let mut rig = lending();
    rig.says(1, "REZULTO a success 5");
    rig.says(1, vec![b'x'; 1 << 20]);
    assert!(matches!(rig.hang_up(1), Some(HangUp::Malformed(_))));
    let kept: usize = rig.kept.iter().map(|chunk| chunk.bytes.len()).sum();
    assert_eq!(kept, 5);
}

#[test]
fn hosts_are_letters_digits_and_two_signs() {
    assert!(is_host(b"node-17_b"));
    for host in ["", "a.b", "a b", "a/b", "ä"] {
        assert!(!is_host(host.as_bytes()), "{host}");
    }
}

fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::sample::select(vec![
            "SALUTON; MI r1",
            "KOMPRENAS",
            "JES",
            "PETO",
            "PRETA",
            "REZULTO a success 5",
            "REZULTO b failure 3",
            "FINO ANKAU",
            "hello",
            "\n",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn whatever_a_peer_says_no_job_is_lost(words in prop::collection::vec(word(), 0..20)) {
        let mut rig = Rig::with_scripts(&["a", "b"], 1);
        rig.connect(1);
        for word in ["SALUTON; MI r1", "KOMPRENAS", "JES"] {
            rig.hears(1, word.as_bytes());
        }
        for word in words {
            if rig.hang_up(1).is_some() {
                break;
            }
            rig.hears(1, &word);
        }
        rig.close(1);
        for task in ["a", "b"] {
            let state = rig.state(task);
            prop_assert!(matches!(state, State::Ready | State::Done | State::Failed), "{state:?}");
        }
    }
}
