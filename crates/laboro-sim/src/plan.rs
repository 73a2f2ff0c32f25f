//! What one seed means: who is there, what goes wrong and how often, and which limits hold. Drawn before
//! anything happens, so that it can be told in the timeline's first lines.

use crate::dice::Dice;
use crate::journal::Disposition;
use crate::network::Weather;
use laboro_core::{
    Conduct, ConductRule, Config, DocumentLimits, Fields, Keep, Limits, OwnerShare, Quotas, Shares,
};
use laboro_dialects::fuq2::Numbering;
use laboro_hub::ServerOptions;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// How long things go wrong.
    pub turbulent_ms: u64,
    pub workers: Vec<WorkerPlan>,
    pub visitors: u64,
    pub faults: Faults,
    pub weather: Weather,
    pub journal: Disposition,
    pub config: Config,
    pub server: ServerOptions,
    /// Between two things that people ask for.
    pub clerk_ms: u64,
    pub clerk_most: u32,
    /// A stolen task goes back by itself after this time.
    pub dwork_lease_ms: u64,
    /// Only who has a task may say to the dwork door that it is done.
    pub dwork_only_holder: bool,
    pub grace_ms: u64,
    /// Tasks take as many whole workers as this. 0: none does.
    pub nodes_max: u32,
    /// Tasks ask for more than slots.
    pub asks_much: bool,
    pub sabotage: Option<Sabotage>,
}

#[derive(Clone, Debug)]
pub(crate) struct WorkerPlan {
    pub number: u64,
    pub name: String,
    pub dialect: Dialect,
    pub slots: u32,
    pub ahead: u32,
    pub period_ms: u64,
    pub numbering: Numbering,
    /// Of a native worker: the fields of a task that it understands.
    pub fields: Fields,
    /// What a native worker has beside slots, in one life after the other. In the calm it has the first.
    pub rooms: Vec<Room>,
}

/// What a worker has beside its slots.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub memory: u64,
    /// Told apart.
    pub gpus: u64,
    pub gpu_names: Vec<String>,
    /// Too many to be told apart.
    pub licences: u64,
    pub is_fast: bool,
    /// It leaves after this time.
    pub stays_ms: Option<u64>,
}

impl Room {
    /// Enough for whatever the clerk asks for.
    pub const FULL: Room = Room {
        memory: 1 << 30,
        gpus: 4,
        gpu_names: Vec::new(),
        licences: 200,
        is_fast: true,
        stays_ms: None,
    };

    fn draw(dice: &mut Dice) -> Room {
        let gpus = [0, 1, 2, 4, 8][dice.index(5)];
        let names = (0..gpus).map(|number| format!("gpu-{}", 7 - number));
        Room {
            memory: [0, 1 << 28, 1 << 30][dice.index(3)],
            gpus,
            gpu_names: if dice.one_in(3) { names.collect() } else { Vec::new() },
            licences: [0, 129, 150, 200][dice.index(4)],
            is_fast: dice.one_in(2),
            stays_ms: dice.one_in(3).then(|| dice.between(1000, 20_000)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Native,
    Dwork,
    /// On a byte stream, without names.
    Fuq2,
    /// On a websocket, with the name of its login.
    Fuq,
    Fuq1,
    Runexp,
}

/// The mean time between two faults of a kind; 0: it does not happen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub hub_crash_ms: u64,
    pub hub_stop_ms: u64,
    pub disk_refusal_ms: u64,
    pub cut_ms: u64,
    pub partition_ms: u64,
    pub worker_crash_ms: u64,
    pub worker_stall_ms: u64,
    pub worker_leaves_ms: u64,
    /// Whether clocks jump between two lives.
    pub clocks_jump: bool,
}

/// Faults of the product itself, for proving that somebody would notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The journal acknowledges some batches and never writes them.
    AcksUnwritten,
    /// The disk says that it has synced, and has not.
    NeverSyncs,
    /// The first answer of each batch is given twice.
    AnswersTwice,
    /// Results are never answered.
    NeverAnswers,
    /// The first task of each dispatch is in it twice.
    GivesTwice,
    /// The broker sends every seventh message to two of its peers.
    SendsTwice,
    /// The broker drops every seventh message without a word.
    DropsSilently,
}

impl Plan {
    pub fn draw(dice: &mut Dice, sabotage: Option<Sabotage>) -> Plan {
        let mut aside = dice.aside();
        let mut workers = workers(dice);
        let asks_much = aside.percent(60);
        if asks_much {
            workers.iter_mut().for_each(|worker| worker.rooms = rooms(worker.number, &mut aside));
        }
        // Workers added for this do not change what else is drawn from the seed.
        let count = workers.len();
        let nodes_max = if aside.percent(40) { aside.small(2, 3) } else { 0 };
        for number in 0..nodes_max as usize {
            workers.push(wide_worker(count + number, &mut aside));
        }
        let rules = [ConductRule::Off, ConductRule::Compared, ConductRule::Fixed];
        let rule = rules[dice.index(rules.len())];
        let conduct = Conduct {
            rule,
            hold_ms: 500,
            hold_most_ms: 4000,
            ejected_ms: 8000,
            ..Conduct::default()
        };
        let keep = match dice.below(4) {
            0 => Keep {
                jobs: 3,
                slice: 2,
                tasks_of_open_job: 4,
                worker_ms: 20_000,
                ..Keep::default()
            },
            _ => Keep::default(),
        };
        let server = ServerOptions {
            inbox: 8192,
            step: dice.between(1, 64) as usize,
            session: [8, 64, 4096][dice.index(3)],
        };
        let is_strict = count.is_multiple_of(2);
        let is_weighted = !count.is_multiple_of(3);
        Plan {
            turbulent_ms: dice.between(4, 25) * 1000,
            workers,
            visitors: dice.below(3),
            faults: Faults::draw(dice),
            weather: Weather {
                delay_ms_max: [2, 40, 800][dice.index(3)],
                pieces_max: dice.between(1, 8),
            },
            journal: Disposition {
                sync_ms_max: [0, 20, 400, 3000][dice.index(4)],
                segment_bytes_min: [4096, 16_384, 65_536][dice.index(3)],
                sabotage,
            },
            config: Config {
                documents: DocumentLimits::default(),
                conduct,
                keep,
                // Most searches for cycles are over at once unless the slices are small.
                limits: Limits { cycle_search: [1, 4, 20_000][dice.index(3)], ..Limits::default() },
                quotas: if is_strict { STRICT } else { Quotas::default() },
                shares: Arc::new(if is_weighted { weighted() } else { Shares::default() }),
                passes_max: if dice.one_in(4) { 2 } else { 8 },
                work_bytes: laboro_core::WORK_BYTES_MAX,
            },
            server,
            clerk_ms: dice.between(50, 1500),
            clerk_most: dice.small(10, 60),
            dwork_lease_ms: dice.between(1000, 6000),
            grace_ms: dice.between(0, 3000),
            dwork_only_holder: dice.one_in(4),
            nodes_max,
            asks_much,
            sabotage,
        }
    }
}

/// Reached now and then.
const STRICT: Quotas =
    Quotas { group_tasks: 400, group_bytes: 1 << 20, token_tasks: 60, token_bytes: 40_000 };

/// One owner counts more than others, and one has little room: enough for the largest task.
fn weighted() -> Shares {
    let mut shares = Shares::default();
    let heavy = OwnerShare { weight: 3, max_running_slots: None };
    let bounded = OwnerShare { weight: 1, max_running_slots: Some(3) };
    shares.owners.extend([("owner-1".into(), heavy), ("owner-2".into(), bounded)]);
    shares
}

const NUMBERINGS: [Numbering; 3] = [Numbering::Current, Numbering::Older, Numbering::Oldest];

fn workers(dice: &mut Dice) -> Vec<WorkerPlan> {
    // Our own workers can do everything, so there is one in every world.
    let mut dialects = vec![Dialect::Native];
    for _ in 0..dice.below(6) {
        dialects.push(Dialect::ALL[dice.index(Dialect::ALL.len())]);
    }
    let plan = |(number, dialect): (usize, Dialect)| WorkerPlan {
        number: number as u64 + 1,
        name: format!("{}-{number}", dialect.word()),
        dialect,
        // Somebody has room for the largest task.
        slots: dice.small(if number == 0 { 2 } else { 1 }, 4),
        ahead: if dice.one_in(3) { dice.small(1, 8) } else { 0 },
        period_ms: dice.between(900, 6000),
        numbering: NUMBERINGS[dice.index(NUMBERINGS.len())],
        // And somebody is as new as the hub.
        fields: if number > 0 && dice.one_in(2) { Fields::NONE } else { Fields::known() },
        rooms: vec![Room::FULL],
    };
    dialects.into_iter().enumerate().map(plan).collect()
}

/// One of those that a task may take together. What it has beside slots changes from life to life.
fn wide_worker(number: usize, dice: &mut Dice) -> WorkerPlan {
    WorkerPlan {
        number: number as u64 + 1,
        name: format!("wide-{number}"),
        dialect: Dialect::Native,
        slots: dice.small(1, 4),
        ahead: if dice.one_in(3) { dice.small(1, 8) } else { 0 },
        period_ms: dice.between(900, 6000),
        numbering: NUMBERINGS[dice.index(NUMBERINGS.len())],
        fields: Fields::known(),
        rooms: rooms(1, dice),
    }
}

/// The first of all workers has everything, at least in the calm.
fn rooms(number: u64, dice: &mut Dice) -> Vec<Room> {
    let first = if number == 1 { Room::FULL } else { Room { stays_ms: None, ..Room::draw(dice) } };
    let others = (0..dice.below(3)).map(|_| Room::draw(dice));
    std::iter::once(first).chain(others).collect()
}

impl Dialect {
    pub const ALL: [Dialect; 6] = [
        Dialect::Native,
        Dialect::Dwork,
        Dialect::Fuq2,
        Dialect::Fuq,
        Dialect::Fuq1,
        Dialect::Runexp,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Dialect::Native => "native",
            Dialect::Dwork => "dwork",
            Dialect::Fuq2 => "fuq2",
            Dialect::Fuq => "fuq",
            Dialect::Fuq1 => "fuq1",
            Dialect::Runexp => "runexp",
        }
    }
}

impl Faults {
    fn draw(dice: &mut Dice) -> Faults {
        let mut often = |most_ms: u64| {
            if dice.one_in(3) { 0 } else { dice.between(most_ms / 8, most_ms) }
        };
        Faults {
            hub_crash_ms: often(8000),
            hub_stop_ms: often(20_000),
            disk_refusal_ms: often(30_000),
            cut_ms: often(4000),
            partition_ms: often(12_000),
            worker_crash_ms: often(6000),
            worker_stall_ms: often(6000),
            worker_leaves_ms: often(15_000),
            clocks_jump: dice.one_in(2),
        }
    }
}
