//! Long random lives, with restarts and condensing in between: what a journal gives back is what the
//! events come to, every time. Whether that is what it should be is tested with the core.

use super::world::{Peers, begin, difference, lazy};
use crate::log::Options;
use crate::{FileJournal, check};
use laboro_core::{Batch, Ledger, Time};
use proptest::prelude::*;

/// What happens to the journal after some steps.
#[derive(Debug, Clone, Copy)]
enum Turn {
    Restart,
    Condense,
    Both,
}

fn turns() -> impl Strategy<Value = Vec<(usize, Turn)>> {
    let turn = prop_oneof![Just(Turn::Restart), Just(Turn::Condense), Just(Turn::Both)];
    prop::collection::vec((1_usize..120, turn), 1..5)
}

/// The same history without a disk or a byte in between.
#[derive(Default)]
struct Shadow {
    ledger: Ledger,
    at: Time,
}

impl Shadow {
    fn apply(&mut self, batch: &Batch) {
        self.at = batch.at;
        batch.events.iter().for_each(|event| self.ledger.apply(batch.at, event));
    }

    fn condense(&mut self) {
        let mut condensed = Ledger::default();
        self.ledger.condense(&mut |event| condensed.apply(self.at, &event));
        self.ledger = condensed;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_journal_gives_back_what_happened(seed: u64, turns in turns()) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { segment_bytes_min: 4096, ..lazy() };
        let (mut journal, ledger, _) = FileJournal::open(dir.path(), options.clone()).unwrap();
        let (mut peers, mut shadow) = (Peers::new(seed), Shadow::default());
        let mut now = 1_700_000_000_000;
        let (mut hub, began) = begin(ledger, now);
        shadow.apply(&began);
        journal.commit_blocking(began).unwrap();
        for (steps, turn) in turns {
            for _ in 0..steps {
                now += 40;
                let batch = hub.step(Time(now), peers.commands());
                shadow.apply(&batch);
                peers.hear(journal.commit_blocking(batch).unwrap());
            }
            if matches!(turn, Turn::Condense | Turn::Both) {
                journal.condense_blocking().unwrap();
                shadow.condense();
                prop_assert_eq!(journal.take_warnings(), Vec::<String>::new());
            }
            let checked = check(dir.path()).unwrap();
            prop_assert_eq!(checked.problem, shadow.ledger.check().err());
            prop_assert_eq!(checked.jobs, hub.ledger().job_count() as u64);
            if matches!(turn, Turn::Restart | Turn::Both) {
                journal.close().unwrap();
                let (opened, ledger, _) = FileJournal::open(dir.path(), options.clone()).unwrap();
                prop_assert_eq!(difference(&ledger, &shadow.ledger), None);
                let (next, began) = begin(ledger, now);
                (journal, hub) = (opened, next);
                shadow.apply(&began);
                journal.commit_blocking(began).unwrap();
            }
        }
    }
}
