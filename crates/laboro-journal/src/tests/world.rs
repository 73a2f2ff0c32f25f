//! A hub with a life: commands of every kind, from a seed, in a defined order.

use crate::log::{Durability, Options};
use laboro_core::{
    ArraySpec, Ask, Batch, Capacity, Command, CommandWork, Config, Drain, Effect, Grant, Hub,
    IfTaken, JobId, JobOptions, Join, Kinds, LeaseRef, Leave, Leaving, Ledger, Name, Offer,
    Outcome, Patience, Place, Profile, Program, Reply, Report, Return, Returned, Route, Selection,
    SessionId, Setting, State, Submit, SubmitTo, Supply, TaskRef, TaskResult, TaskSpec, Time,
    Token, UnknownPred, Which, Work, WorkerRef,
};
use std::sync::Arc;

pub(super) const SEED: u64 = 42;

pub(super) fn lazy() -> Options {
    Options { durability: Durability::Os, ..Options::default() }
}

pub(super) fn begin(ledger: Ledger, now: u64) -> (Hub, Batch) {
    Hub::begin(ledger, Config::default(), Time(now), SEED)
}

pub(super) fn ask(command: Command) -> Vec<Ask> {
    vec![Ask { token: Token(1), command }]
}

pub(super) fn submit(job: SubmitTo, tasks: Vec<TaskSpec>, arrays: Vec<ArraySpec>) -> Command {
    Command::Submit(Submit {
        group: "default".into(),
        job,
        profiles: vec![Profile::default(), Profile { attempts: 3, ..Profile::default() }],
        tasks,
        arrays,
        unknown_pred: UnknownPred::Ignore,
        if_taken: IfTaken::Merge,
    })
}

pub(super) fn task(name: impl Into<Name>, work: Option<Arc<Work>>) -> TaskSpec {
    TaskSpec { name: name.into(), profile: 0, work, preds: Default::default(), memo: None }
}

pub(super) fn script(body: Vec<u8>) -> Arc<Work> {
    let setting = Arc::new(Setting::default());
    Arc::new(Work::script(".sh", body.into(), setting))
}

pub(super) fn join(name: &str) -> Command {
    Command::Join(Join {
        group: "default".into(),
        name: name.into(),
        dialect: "test",
        session: SessionId(1),
        life: None,
        kinds: Kinds::ALL,
        tags: Vec::new(),
        capacity: Capacity {
            slots: 8,
            memory: 1 << 30,
            resources: vec![("gpu".into(), Supply::of(4))],
            time_left_ms: None,
        },
        period_ms: Some(5000),
        running: None,
        acknowledges: false,
        host: Default::default(),
    })
}

pub(super) fn worker(name: &str) -> WorkerRef {
    WorkerRef::Name { group: "default".into(), name: name.into() }
}

/// The first line in which two states differ, and what it is in each.
pub(super) fn difference(found: &Ledger, expected: &Ledger) -> Option<(String, String)> {
    let (found, expected) = (found.describe(), expected.describe());
    let (mut found, mut expected) = (found.lines(), expected.lines());
    loop {
        match (found.next(), expected.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => {
                return Some((one.unwrap_or_default().into(), other.unwrap_or_default().into()));
            }
        }
    }
}

/// Makes up what peers say. Remembers what was granted, as workers do.
pub(super) struct Peers {
    state: u64,
    named: u32,
    jobs: u32,
    held: Vec<(u64, Grant)>,
    works: Vec<Arc<Work>>,
}

impl Peers {
    pub fn new(seed: u64) -> Peers {
        let setting = Arc::new(Setting { dir: Some((*b"/d").into()), ..Setting::default() });
        let shell = Program::Shell((*b"make").into());
        let works = vec![
            script(b"echo".to_vec()),
            Arc::new(Work::Command(CommandWork { program: shell, setting })),
        ];
        Peers { state: seed, named: 0, jobs: 0, held: Vec::new(), works }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.state >> 33) % limit
    }

    pub fn commands(&mut self) -> Vec<Ask> {
        let count = 1 + self.below(5);
        (0..count).flat_map(|_| ask(self.command())).collect()
    }

    fn command(&mut self) -> Command {
        match self.below(20) {
            0 | 1 => self.submit(),
            2 | 3 => join(&self.worker_name()),
            4..=7 => self.offer(),
            8..=12 => self.report(),
            13 => self.give_back(),
            14 => Command::Cancel(self.selection()),
            15 => Command::Hold(self.selection()),
            16 => Command::Release(self.selection()),
            17 => Command::Retry(self.selection()),
            18 => Command::Prioritise(self.selection(), 7),
            _ => self.rare(),
        }
    }

    fn rare(&mut self) -> Command {
        let (name, job) = (self.worker_name(), self.job());
        match self.below(8) {
            0 => Command::Pause("default".into()),
            1 | 2 => Command::Resume("default".into()),
            3 => Command::Close(job),
            4 => Command::Limit { job, max_running: Some(Some(3)), max_fails: None },
            5 => Command::Eject(worker(&name), "told to".to_owned()),
            6 => Command::Drain(worker(&name), Drain::AtOnce),
            _ => {
                let how = Leaving::Gone;
                Command::Leave(Leave { worker: worker(&name), session: None, how })
            }
        }
    }

    fn worker_name(&mut self) -> String {
        format!("worker-{}", self.below(4))
    }

    fn job(&mut self) -> JobId {
        JobId(1 + self.below(u64::from(self.jobs) + 1) as u32)
    }

    fn selection(&mut self) -> Selection {
        let which = match self.below(4) {
            0 => Which::Job,
            1 => Which::InState(State::Failed),
            _ => {
                let first = 1 + self.below(12) as u32;
                Which::Ranges(vec![(first, first + self.below(4) as u32)])
            }
        };
        Selection { job: self.job(), which }
    }

    fn submit(&mut self) -> Command {
        let job = if self.jobs == 0 || self.below(3) == 0 {
            self.jobs += 1;
            let key = (self.below(2) == 0).then(|| Box::from(self.jobs.to_le_bytes()));
            SubmitTo::New(JobOptions { open: true, key, ..JobOptions::default() })
        } else {
            SubmitTo::Add(self.job())
        };
        let count = self.below(6);
        let tasks = (0..count).map(|_| self.task()).collect();
        let arrays = (0..self.below(2)).map(|_| self.array()).collect();
        submit(job, tasks, arrays)
    }

    fn task(&mut self) -> TaskSpec {
        self.named += 1;
        let at = self.below(3) as usize;
        let work = self.works.get(at).cloned();
        let mut spec = task(format!("task-{}", self.named), work);
        spec.profile = self.below(2) as u32;
        for _ in 0..self.below(3) {
            let pred = 1 + self.below(u64::from(self.named));
            spec.preds.push(TaskRef::Name(format!("task-{pred}").into()));
        }
        spec.preds.retain(|pred| *pred != TaskRef::Name(spec.name.clone()));
        spec.memo = (self.below(4) == 0).then(|| Arc::from(&b"memo"[..]));
        spec
    }

    fn array(&mut self) -> ArraySpec {
        self.named += 1;
        let count = 1 + self.below(40) as u32;
        let mut spec = ArraySpec::numbered(format!("array-{}", self.named), count, Work::Named);
        if self.below(2) == 0 {
            spec.values = (0..count).map(u32::to_le_bytes).collect();
        }
        spec
    }

    fn offer(&mut self) -> Command {
        let route = Route::Answer { most: 1 + self.below(4) as u32, patience: Patience::None };
        let lease_ms = (self.below(2) == 0).then_some(300);
        Command::Offer(Offer { worker: worker(&self.worker_name()), route, lease_ms })
    }

    fn taken(&mut self) -> Option<(u64, Grant)> {
        let count = self.held.len() as u64;
        (count > 0).then(|| self.below(count) as usize).map(|at| self.held.swap_remove(at))
    }

    fn report(&mut self) -> Command {
        let Some((id, grant)) = self.taken() else { return self.offer() };
        let outcome = match self.below(6) {
            0 => Outcome::Exit(3),
            1 => Outcome::TimedOut,
            _ => Outcome::Success,
        };
        let result = TaskResult {
            lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
            outcome,
            message: (!outcome.is_success()).then(|| "sad".into()),
            memo: (self.below(4) == 0).then(|| Arc::from(&b"result"[..])),
        };
        let worker = WorkerRef::Id(laboro_core::WorkerId(id as u32));
        Command::Report(Report { worker, results: vec![result] })
    }

    fn give_back(&mut self) -> Command {
        let Some((id, grant)) = self.taken() else { return self.offer() };
        let lease = LeaseRef::Number { task: grant.task, lease: grant.lease };
        let worker = WorkerRef::Id(laboro_core::WorkerId(id as u32));
        let tasks = vec![Returned { lease, preds: Vec::new() }];
        Command::Return(Return { worker, tasks, place: Place::Back })
    }

    pub fn hear(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            if let Effect::Reply { reply: Reply::Work { worker, grants }, .. } = effect {
                self.held.extend(grants.into_iter().map(|grant| (u64::from(worker.0), grant)));
            }
        }
    }
}
