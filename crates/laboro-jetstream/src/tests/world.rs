//! A hub that is given tasks, for whoever needs something to write down.

use crate::tests::model::Model;
use laboro_core::{
    Ask, Batch, Command, Config, Hub, IfTaken, JobOptions, Ledger, Profile, State, Submit,
    SubmitTo, TaskSpec, Time, Token, UnknownPred, Work,
};
use laboro_journal::record::Encoder;
use std::sync::Arc;
use std::time::Duration;

pub(super) const LEASE: Duration = Duration::from_secs(3);

pub(super) fn begin(ledger: Ledger) -> (Hub, Batch) {
    Hub::begin(ledger, Config::default(), Time(1), 42)
}

pub(super) fn submit(hub: &mut Hub, name: &str, work: Option<Vec<u8>>) -> Batch {
    let script = |body: Vec<u8>| Arc::new(Work::script(".sh", body.into(), Arc::default()));
    let task = TaskSpec {
        name: name.into(),
        profile: 0,
        work: work.map(script),
        preds: Default::default(),
        memo: None,
    };
    let command = Command::Submit(Submit {
        group: "default".into(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![Profile::default()],
        tasks: vec![task],
        arrays: Vec::new(),
        unknown_pred: UnknownPred::Ignore,
        if_taken: IfTaken::Refuse,
    });
    hub.step(Time(2), vec![Ask { token: Token(1), command }])
}

pub(super) fn encoded(batch: &Batch) -> Vec<u8> {
    Encoder::default().batch(batch.at, &batch.events).to_vec()
}

pub(super) fn tasks(ledger: &Ledger) -> u64 {
    State::ALL.iter().map(|state| ledger.tasks_in(*state)).sum()
}

/// The ledger of what these streams hold, read without any trouble.
pub(super) fn ledger(journal: &Model, snapshots: &Model) -> Ledger {
    let (mut journal, mut snapshots) = (journal.copy(), snapshots.copy());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reader = crate::read::Reader::load(&mut journal, &mut snapshots, None);
    runtime.block_on(reader).unwrap().replay.ledger
}
