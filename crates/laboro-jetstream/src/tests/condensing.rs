//! Snapshots: they mean the same as what they replace, and a crash at any point costs nothing.

use super::model::Model;
use super::world::{begin, encoded, ledger, submit};
use crate::pen::{Mark, Pen};
use crate::snapshot::{Task, condense};
use laboro_core::Ledger;
use std::sync::atomic::AtomicBool;
use tokio::runtime::Runtime;

struct Rig {
    runtime: Runtime,
    journal: Model,
    snapshots: Model,
}

impl Rig {
    /// A journal of some batches, one of which has several parts.
    fn new(tasks: usize) -> (Rig, Mark) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let rig = Rig { runtime, journal: Model::new(3), snapshots: Model::new(4) };
        let mut pen = Pen::new(rig.journal.clone(), Mark::default(), 1, 1, 200);
        let (mut hub, first) = begin(Ledger::default());
        let mut write =
            |bytes: Vec<u8>| rig.runtime.block_on(pen.record(&bytes)).map(drop).unwrap();
        write(encoded(&first));
        for n in 0..tasks {
            let script = vec![b'x'; if n == 3 { 1000 } else { 10 }];
            write(encoded(&submit(&mut hub, &format!("task.{n}"), Some(script))));
        }
        (rig, pen.mark())
    }

    fn condense(&self, upto: Mark) -> bool {
        let task = Task { upto, writer: 9, life: 1, part_bytes: 200 };
        let (mut journal, stop) = (self.journal.clone(), AtomicBool::new(false));
        condense(&self.runtime, &mut journal, self.snapshots.clone(), task, &stop).is_ok()
    }

    fn text(&self) -> String {
        ledger(&self.journal, &self.snapshots).describe()
    }
}

#[test]
fn what_is_condensed_means_the_same_and_is_shorter() {
    let (rig, mark) = Rig::new(30);
    let before = rig.text();
    assert!(rig.condense(mark));
    assert_eq!(rig.text(), before);
    assert_eq!(rig.journal.kept(), 0);
    assert!(!rig.condense(mark), "it is there already");

    // A hub goes on after it, and it is condensed again.
    let mut pen = Pen::new(rig.journal.clone(), mark, 1, 1, 200);
    let (_, more) = begin(ledger(&rig.journal, &rig.snapshots));
    rig.runtime.block_on(pen.record(&encoded(&more))).unwrap();
    let (before, kept) = (rig.text(), rig.snapshots.kept());
    assert!(rig.condense(pen.mark()));
    assert_eq!(rig.text(), before);
    assert!(rig.snapshots.kept() <= kept + 1, "the old snapshot is still there");
}

#[test]
fn a_crash_at_any_point_leaves_the_old_or_the_new() {
    let (rig, mark) = Rig::new(12);
    let before = rig.text();
    let mut crashes = 0;
    for requests in 0.. {
        let rig = Rig {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .unwrap(),
            journal: rig.journal.copy(),
            snapshots: rig.snapshots.copy(),
        };
        rig.journal.dies_after(Some(requests / 2));
        rig.snapshots.dies_after(Some(requests));
        let is_done = rig.condense(mark);
        rig.journal.dies_after(None);
        rig.snapshots.dies_after(None);
        assert_eq!(rig.text(), before, "after {requests} requests");
        // And the next one makes a good snapshot of it.
        assert!(is_done || rig.condense(mark) || rig.journal.kept() == 0, "after {requests}");
        assert_eq!(rig.text(), before, "after {requests} requests and another snapshot");
        if is_done {
            break;
        }
        crashes += 1;
    }
    assert!(crashes > 10, "{crashes} points show too little");
}
