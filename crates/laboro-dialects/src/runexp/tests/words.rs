//! The reading rule.

use super::golden::{FILES, From, What, read};
use crate::runexp::words::{ManagerWord, RunnerWord, WordBuffer, WordError};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

fn heard(bytes: &[u8]) -> WordBuffer {
    let mut heard = WordBuffer::default();
    heard.take_in(&mut BytesMut::from(bytes));
    heard
}

fn runner(bytes: &[u8]) -> Vec<RunnerWord> {
    let mut heard = heard(bytes);
    std::iter::from_fn(|| heard.runner_word().unwrap()).collect()
}

fn manager(bytes: &[u8]) -> Vec<ManagerWord> {
    let mut heard = heard(bytes);
    std::iter::from_fn(|| heard.manager_word().unwrap()).collect()
}

#[test]
fn merged_words_are_taken_apart() {
    assert_eq!(runner(b"JESPETO"), [RunnerWord::Jes, RunnerWord::Peto]);
    assert_eq!(runner(b"PRETAPETO"), [RunnerWord::Preta, RunnerWord::Peto]);
    assert_eq!(manager(b"PRETARICEVIS"), [ManagerWord::Preta, ManagerWord::Ricevis]);
}

#[test]
fn one_newline_after_a_word_is_accepted_and_no_more() {
    assert_eq!(runner(b"JES\nPETO\r\n"), [RunnerWord::Jes, RunnerWord::Peto]);
    assert_eq!(runner(b"SALUTON; MI r1\r\n"), [RunnerWord::Saluton("r1".into())]);
    assert!(matches!(manager(b"LABORO a .sh 5\n")[..], [ManagerWord::Laboro { size: 5, .. }]));
    let mut twice = heard(b"JES\n\n");
    assert_eq!(twice.runner_word(), Ok(Some(RunnerWord::Jes)));
    assert!(matches!(twice.runner_word(), Err(WordError::Unknown(_))));
}

#[test]
fn names_are_found_from_the_right() {
    let name = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    assert_eq!(
        manager(b"LABORO x .sh 5 .sh 14"),
        [ManagerWord::Laboro { name: name("x .sh 5"), kind: name(".sh"), size: 14 }]
    );
    assert_eq!(
        runner(b"REZULTO x success 3 failure 235"),
        [RunnerWord::Rezulto { name: name("x success 3"), is_good: false, size: 235 }]
    );
    assert_eq!(
        runner(b"REZULTO  success 7"),
        [],
        "a result needs a name, so this is half of something"
    );
}

#[test]
fn half_a_word_is_waited_for_and_nonsense_is_not() {
    for half in ["S", "SALUTON; MI ", "PET", "FINO ANK", "REZULTO a succ", "REZULTO a success "] {
        assert_eq!(runner(half.as_bytes()), [], "{half}");
    }
    for nonsense in ["peto", "PETER", "LABORO a .sh 3", "\n", "GET / HTTP/1.1\r\n", "FINO PETO"] {
        let word = heard(nonsense.as_bytes()).runner_word();
        assert!(matches!(word, Err(WordError::Unknown(_))), "{nonsense}: {word:?}");
    }
    let dotted = heard(b"SALUTON; MI a.b").runner_word();
    assert!(matches!(dotted, Err(WordError::Unknown(_))), "a host has no dots, whatever follows");
    assert_eq!(runner(b"SALUTON; MI r1\r"), [], "half a newline");
    let endless = [b"REZULTO ".as_slice(), &[b'a'; 2000]].concat();
    assert!(matches!(heard(&endless).runner_word(), Err(WordError::TooLong(_))));
}

#[test]
fn a_name_of_980_bytes_fits_into_one_message() {
    let word = RunnerWord::Rezulto {
        name: vec![b'n'; 980].into(),
        is_good: true,
        size: 99_999_999_999_999_999,
    };
    let mut said = BytesMut::new();
    word.write(&mut said);
    assert!(said.len() <= 1024, "{}", said.len());
    assert_eq!(runner(&said), [word]);
}

/// Whole messages and bodies of one side of a recorded conversation.
fn stream(file: &str, from: From) -> Vec<(Bytes, bool)> {
    let mut messages = Vec::new();
    let mut body = 0;
    for line in read(file).into_iter().filter(|line| line.connection == 1) {
        let What::Bytes(by, bytes) = line.what else { continue };
        if by != from {
            continue;
        }
        if body > 0 {
            body -= bytes.len() as u64;
            messages.push((bytes, true));
            continue;
        }
        body = match from {
            From::Runner => match &runner(&bytes)[..] {
                [RunnerWord::Rezulto { size, .. }] => *size,
                _ => 0,
            },
            From::Manager => match &manager(&bytes)[..] {
                [ManagerWord::Laboro { size, .. }] => *size,
                _ => 0,
            },
        };
        messages.push((bytes, false));
    }
    messages
}

/// A reader of either side, who knows when a body comes.
#[derive(Default)]
struct Reader {
    heard: WordBuffer,
    body: u64,
    found: BytesMut,
}

impl Reader {
    fn read(&mut self, from: From, piece: &[u8]) {
        self.heard.take_in(&mut BytesMut::from(piece));
        loop {
            if self.body > 0 {
                let Some(bytes) = self.heard.body(self.body) else { return };
                self.body -= bytes.len() as u64;
                self.found.extend_from_slice(&bytes);
                continue;
            }
            match from {
                From::Runner => {
                    let Some(word) = self.heard.runner_word().unwrap() else { return };
                    if let RunnerWord::Rezulto { size, .. } = word {
                        self.body = size;
                    }
                    word.write(&mut self.found);
                }
                From::Manager => {
                    let Some(word) = self.heard.manager_word().unwrap() else { return };
                    if let ManagerWord::Laboro { size, .. } = word {
                        self.body = size;
                    }
                    word.write(&mut self.found);
                }
            }
        }
    }
}

/// Has it arguments, so that its sender waits and its end is where the read ends?
fn has_arguments(message: &[u8]) -> bool {
    let words: [&[u8]; 5] = [b"SALUTON", b"REZULTO", b"VERSIO", b"ALIGI", b"LABORO"];
    words.iter().any(|word| message.starts_with(word))
}

/// May a read end here? Not where what was read is a whole message by chance.
fn may_cut(from: From, message: &[u8], at: usize) -> bool {
    let before = &message[..at];
    !has_arguments(message)
        || match from {
            From::Runner => runner(before).is_empty(),
            From::Manager => manager(before).is_empty(),
        }
}

proptest! {
    #[test]
    fn recorded_conversations_may_be_cut_and_merged_anywhere(
        file in prop::sample::select(&FILES[..]),
        is_runner in any::<bool>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 64),
        choices in prop::collection::vec(0..6u8, 64),
    ) {
        let from = if is_runner { From::Runner } else { From::Manager };
        let messages = stream(file, from);
        let mut reader = Reader::default();
        let mut pending = BytesMut::new();
        let mut expected = BytesMut::new();
        for (number, (message, is_body)) in messages.iter().enumerate() {
            expected.extend_from_slice(message);
            let choice = choices[number % choices.len()];
            let mut bytes = message.to_vec();
            if !is_body {
                bytes.extend_from_slice([&b"\n"[..], b"\r\n", b"", b"", b"", b""][usize::from(choice)]);
            }
            let cut = cuts[number % cuts.len()].index(bytes.len() + 1);
            if *is_body || cut <= message.len() && may_cut(from, message, cut.min(message.len())) {
                pending.extend_from_slice(&bytes[..cut]);
                reader.read(from, &pending.split());
                pending.extend_from_slice(&bytes[cut..]);
            } else {
                pending.extend_from_slice(&bytes);
            }
            // After these the other side has to speak first; the others may run into what comes next.
            if *is_body || has_arguments(message) || choice > 3 {
                reader.read(from, &pending.split());
            }
        }
        reader.read(from, &pending);
        prop_assert_eq!(reader.found, expected);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), word in 0..6usize) {
        let words: [&[u8]; 6] = [b"", b"REZULTO ", b"SALUTON; MI ", b"LABORO ", b"ALIGI ", b"JES\r"];
        let input = [words[word], &bytes].concat();
        let (mut one, mut other) = (heard(&input), heard(&input));
        while let Ok(Some(_)) = one.runner_word() {}
        while let Ok(Some(_)) = other.manager_word() {}
    }
}
