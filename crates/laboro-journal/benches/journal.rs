//! What a journal costs a hub: a million tasks created, leased and completed in group commits of a
//! thousand, against the same bytes written with nothing around them and synced as often; and what a
//! hub waits for a million live tasks when it starts. Alternating rounds, medians of five.
//!
//! `cargo bench -p laboro-journal --bench journal`; the directory is made under `LABORO_BENCH_DIR`, or
//! the system's temporary directory. Prints tables; asserts nothing.

use laboro_core::*;
use laboro_journal::FileJournal;
use laboro_journal::log::{Durability, Options};
use laboro_journal::record::{Decoder, Encoder};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TASKS: usize = 1_000_000;
const GROUP: usize = 1000;
const ROUNDS: usize = 5;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` does not, and wants a quick look only.
    let tasks = if std::env::args().any(|arg| arg == "--bench") { TASKS } else { 5000 };
    for (name, creates) in [("created together", GROUP), ("created one by one", 1)] {
        encoding(name, tasks, creates);
    }
    committing(tasks);
    for (name, spec) in [("named", named as Spec), ("with a command each", with_command as Spec)] {
        recovery(name, tasks, spec);
    }
}

type Spec = fn(usize) -> TaskSpec;

fn named(number: usize) -> TaskSpec {
    let name = Name::from(format!("task-{number:011}"));
    TaskSpec { name, profile: 0, work: None, preds: Default::default(), memo: None }
}

fn with_command(number: usize) -> TaskSpec {
    let program = Program::Shell(format!("./simulate --seed {number}").into_bytes().into());
    let setting = Default::default();
    let work = Work::Command(CommandWork { program, setting });
    TaskSpec { work: Some(work.into()), ..named(number) }
}

fn ask(command: Command) -> Ask {
    Ask { token: Token(1), command }
}

fn submit(job: SubmitTo, tasks: Vec<TaskSpec>) -> Ask {
    ask(Command::Submit(Submit {
        group: "default".into(),
        job,
        profiles: vec![Profile::default()],
        tasks,
        arrays: Vec::new(),
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    }))
}

/// A hub with one open job, and the batches that led there.
fn hub() -> (Hub, Vec<Batch>) {
    let (mut hub, began) = Hub::begin(Ledger::default(), Config::default(), Time(1), 42);
    let open = JobOptions { open: true, ..JobOptions::default() };
    let made = hub.step(Time(2), vec![submit(SubmitTo::New(open), Vec::new())]);
    (hub, vec![began, made])
}

/// Creates them in steps of a thousand, so many a command.
fn create(hub: &mut Hub, tasks: usize, creates: usize, spec: Spec, take: &mut dyn FnMut(Batch)) {
    for first in (0..tasks).step_by(GROUP) {
        let all: Vec<TaskSpec> = (first..(first + GROUP).min(tasks)).map(spec).collect();
        let asks = all.chunks(creates).map(|some| submit(SubmitTo::Add(JobId(1)), some.to_vec()));
        take(hub.step(Time(4), asks.collect()));
    }
}

/// Leases and completes everything in steps of a thousand.
fn complete(hub: &mut Hub, take: &mut dyn FnMut(Batch)) {
    let join = Join {
        group: "default".into(),
        name: "w".into(),
        dialect: "bench",
        session: SessionId(1),
        life: None,
        kinds: Kinds::ALL,
        tags: Vec::new(),
        capacity: Capacity::slots(GROUP as u32),
        period_ms: None,
        running: None,
        acknowledges: false,
        host: Default::default(),
    };
    take(hub.step(Time(3), vec![ask(Command::Join(join))]));
    let worker = WorkerRef::Id(WorkerId(0));
    loop {
        let route = Route::Answer { most: GROUP as u32, patience: Patience::None };
        let offer = Offer { worker: worker.clone(), route, lease_ms: None };
        let leased = hub.step(Time(5), vec![ask(Command::Offer(offer))]);
        if leased.events.is_empty() {
            return;
        }
        let results = leased.events.iter().filter_map(|event| match event {
            Event::Leased { task, lease, .. } => Some(TaskResult {
                lease: LeaseRef::Number { task: *task, lease: *lease },
                outcome: Outcome::Success,
                message: None,
                memo: None,
            }),
            _ => None,
        });
        let report = Report { worker: worker.clone(), results: results.collect() };
        take(leased);
        take(hub.step(Time(6), vec![ask(Command::Report(report))]));
    }
}

/// Of each batch as it comes from the hub, because that is when it is encoded.
#[derive(Default)]
struct Gauge {
    encoder: Encoder,
    decoder: Decoder,
    encode: Duration,
    decode: Duration,
    bytes: usize,
}

impl Gauge {
    fn take(&mut self, batch: &Batch) {
        let start = Instant::now();
        let record = self.encoder.batch(batch.at, &batch.events);
        self.encode += start.elapsed();
        self.bytes += record.len();
        let start = Instant::now();
        let events = self.decoder.record(record).expect("we wrote it");
        let events: Result<Vec<Event>, _> = events.collect();
        self.decode += start.elapsed();
        assert_eq!(events.map(|events| events.len()), Ok(batch.events.len()));
    }
}

fn encoding(name: &str, tasks: usize, creates: usize) {
    println!("{tasks} tasks, {name}, in batches of {GROUP}, {ROUNDS} rounds: a task");
    let mut rounds: [Vec<Gauge>; 2] = Default::default();
    for _ in 0..ROUNDS {
        let (mut hub, _) = hub();
        let (mut created, mut completed) = (Gauge::default(), Gauge::default());
        create(&mut hub, tasks, creates, named, &mut |batch| created.take(&batch));
        complete(&mut hub, &mut |batch| completed.take(&batch));
        rounds[0].push(created);
        rounds[1].push(completed);
    }
    for (part, rounds) in ["create", "lease and complete"].into_iter().zip(rounds) {
        let ns = |time: Duration| time.as_secs_f64() * 1e9 / tasks as f64;
        println!(
            "  {part:<20} encode {:>6.1} ns  decode {:>6.1} ns  {:>5.2} bytes",
            ns(median(rounds.iter().map(|gauge| gauge.encode))),
            ns(median(rounds.iter().map(|gauge| gauge.decode))),
            rounds[0].bytes as f64 / tasks as f64
        );
    }
}

fn committing(tasks: usize) {
    let batches = || {
        let (mut hub, mut batches) = hub();
        create(&mut hub, tasks, GROUP, named, &mut |batch| batches.push(batch));
        complete(&mut hub, &mut |batch| batches.push(batch));
        batches
    };
    let mut encoder = Encoder::default();
    let records: Vec<Vec<u8>> =
        batches().iter().map(|batch| encoder.batch(batch.at, &batch.events).to_vec()).collect();
    let bytes: usize = records.iter().map(Vec::len).sum();
    println!(
        "{tasks} tasks created, leased, completed: {} commits, {bytes} bytes, {ROUNDS} rounds",
        records.len()
    );
    for durability in [Durability::Sync, Durability::Os, Durability::None] {
        let (mut raw, mut journal) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            raw.push(write_raw(&records, durability));
            journal.push(write_journal(batches(), durability));
        }
        let (raw, journal) = (median(raw), median(journal));
        println!(
            "  {:<6} raw {raw:>8.1?}  journal {journal:>8.1?}  ratio {:.2}  {:.3} µs a task",
            format!("{durability:?}"),
            journal.as_secs_f64() / raw.as_secs_f64(),
            journal.as_secs_f64() * 1e6 / tasks as f64
        );
    }
}

fn write_raw(records: &[Vec<u8>], durability: Durability) -> Duration {
    let dir = place();
    let mut file = File::create(dir.path().join("raw")).expect("the bench directory is writable");
    let start = Instant::now();
    for record in records {
        file.write_all(record).expect("the file can be written");
        if durability == Durability::Sync {
            file.sync_data().expect("the file can be synced");
        }
    }
    start.elapsed()
}

/// Includes encoding, and giving the batches up.
fn write_journal(batches: Vec<Batch>, durability: Durability) -> Duration {
    let dir = place();
    let options = Options { durability, ..Options::default() };
    let (mut journal, _, _) = FileJournal::open(dir.path(), options).expect("a journal is made");
    let start = Instant::now();
    for batch in batches {
        journal.commit_blocking(batch).expect("the bench directory is writable");
    }
    start.elapsed()
}

/// Opening with a million live tasks, from the log and from a snapshot.
fn recovery(name: &str, tasks: usize, spec: Spec) {
    let dir = place();
    let options = Options { durability: Durability::Os, ..Options::default() };
    let open = || FileJournal::open(dir.path(), options.clone()).expect("the journal opens");
    let (mut journal, _, _) = open();
    let mut commit = |batch| {
        journal.commit_blocking(batch).expect("the bench directory is writable");
    };
    let (mut hub, batches) = hub();
    batches.into_iter().for_each(&mut commit);
    create(&mut hub, tasks, GROUP, spec, &mut commit);
    drop(journal);
    println!("opening with {tasks} live tasks, {name}, {ROUNDS} rounds");
    let show = |from: &str| {
        let mut bytes = 0;
        let times = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            let (_journal, ledger, recovery) = open();
            let took = start.elapsed();
            assert_eq!(ledger.tasks_in(State::Ready), tasks as u64);
            bytes = recovery.snapshot_bytes + recovery.log_bytes;
            took
        });
        let took = median(times);
        println!("  from {from:<9} {took:>8.1?}  {:.2} bytes a task", bytes as f64 / tasks as f64);
    };
    show("log");
    let (mut journal, _, _) = open();
    let start = Instant::now();
    journal.condense_blocking().expect("the journal condenses");
    let took = start.elapsed();
    drop(journal);
    show("snapshot");
    println!("  condensed in {took:.1?}");
}

fn median(times: impl IntoIterator<Item = Duration>) -> Duration {
    let mut times: Vec<Duration> = times.into_iter().collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn place() -> tempfile::TempDir {
    let parent =
        std::env::var_os("LABORO_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(parent).expect("the bench directory can be made")
}
