//! A real process, killed with -9 under load, again and again: nothing it acknowledged is lost, and no task
//! whose completion it acknowledged runs again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use laboro_core::*;
use laboro_hub::{Handle, ServerOptions};
use laboro_journal::{FileJournal, Journal, log};
use laboro_net::Clock;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

const DIR: &str = "LABORO_TEST_KILL_DIR";
const LIFE: &str = "LABORO_TEST_KILL_LIFE";
const ROUNDS: u32 = 60;

#[test]
fn slow_a_hub_killed_at_any_moment_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut book = Book::default();
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for life in 0..ROUNDS {
        let wait = Duration::from_micros(2_000 + dice.roll(60_000));
        book.watch_life(dir.path(), &life.to_string(), Some(wait));
    }
    book.watch_life(dir.path(), "drain", None);

    assert!(book.created.len() > 1000, "only {} tasks were created: no load", book.created.len());
    assert!(book.done.len() > 500, "only {} tasks were done: no load", book.done.len());
    for name in &book.created {
        let state = book.final_states.get(name).map(String::as_str);
        assert_eq!(state, Some("done"), "{name} was acknowledged and is {state:?}");
    }
}

/// What the killed processes said.
#[derive(Default)]
struct Book {
    created: HashSet<String>,
    done: HashSet<String>,
    final_states: HashMap<String, String>,
}

impl Book {
    /// Starts a hub, reads what it says, and kills it after a while, or lets it end.
    fn watch_life(&mut self, dir: &Path, life: &str, kill_after: Option<Duration>) {
        let mut child = Process::new(std::env::current_exe().unwrap())
            .args(["--exact", "the_hub_that_is_killed", "--nocapture"])
            .env(DIR, dir)
            .env(LIFE, life)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut kill_at: Option<Instant> = None;
        let mut drained = false;
        for line in lines.by_ref().map_while(Result::ok) {
            drained |= line == "drained";
            self.note(&line);
            // The clock starts when there is something to lose.
            if let (None, Some(after)) = (kill_at, kill_after)
                && line.starts_with("created ")
            {
                kill_at = Some(Instant::now() + after);
            }
            if kill_at.is_some_and(|at| Instant::now() >= at) {
                child.kill().unwrap();
                break;
            }
        }
        // What was said before the kill is still in the pipe.
        for line in lines.map_while(Result::ok) {
            self.note(&line);
        }
        let status = child.wait().unwrap();
        if kill_after.is_none() {
            assert!(status.success() && drained, "the last life ended with {status}");
        }
    }

    fn note(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("created", name)) => {
                self.created.insert(name.to_owned());
            }
            Some(("run", name)) => {
                assert!(!self.done.contains(name), "{name} was done and runs again");
            }
            Some(("done", name)) => {
                self.done.insert(name.to_owned());
            }
            Some(("state", rest)) => {
                let (name, state) = rest.split_once(' ').unwrap();
                self.final_states.insert(name.to_owned(), state.to_owned());
            }
            _ => {}
        }
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Not a test by itself: the process that the test above starts and kills.
#[test]
fn the_hub_that_is_killed() {
    let (Ok(dir), Ok(life)) = (std::env::var(DIR), std::env::var(LIFE)) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(live(Path::new(&dir), &life));
}

async fn live(dir: &Path, life: &str) {
    // Small, so that rolling over and condensing are under way at many of the kills.
    let options = log::Options {
        condense_after_bytes: 64 * 1024,
        segment_bytes_min: 16 * 1024,
        ..Default::default()
    };
    let (mut journal, ledger, _) = FileJournal::open(dir, options).unwrap();
    let clock = Clock::start();
    let (mut hub, first) = Hub::begin(ledger, Config::default(), clock.now(), 7);
    journal.commit(first).await.unwrap();
    let (mut server, handle) = laboro_hub::server(&ServerOptions::default(), clock);
    let drain = life == "drain";
    let work = async {
        let workers =
            async { tokio::join!(worker(&handle, "w1", drain), worker(&handle, "w2", drain)) };
        if drain {
            workers.await;
            tell_states(&handle).await;
            say("drained");
        } else {
            tokio::join!(submitter(&handle, life), workers);
        }
    };
    tokio::select! {
        () = work => {}
        failed = laboro_hub::run(&mut hub, &mut server, &mut journal) => failed.unwrap(),
    }
}

/// One write a line, so that a kill cuts between lines.
fn say(line: &str) {
    std::io::stdout().lock().write_all(format!("{line}\n").as_bytes()).unwrap();
}

async fn submitter(handle: &Handle, life: &str) {
    let open = JobOptions { open: true, ..JobOptions::default() };
    let Reply::Submitted { job, .. } = submit(handle, SubmitTo::New(open), Vec::new()).await else {
        panic!("a new job is taken");
    };
    for batch in 0.. {
        let names: Vec<String> = (0..10).map(|n| format!("{life}-{batch}-{n}")).collect();
        // Each after the one before it: a chain has more to lose than a heap.
        let pred = |n: usize| {
            names[n.saturating_sub(1)..n].iter().map(|p| TaskRef::Name(p.as_str().into()))
        };
        let tasks = names.iter().enumerate().map(|(n, name)| TaskSpec {
            name: name.as_str().into(),
            profile: 0,
            work: None,
            preds: pred(n).collect(),
            memo: None,
        });
        let reply = submit(handle, SubmitTo::Add(job), tasks.collect()).await;
        assert!(matches!(reply, Reply::Submitted { .. }), "{reply:?}");
        names.iter().for_each(|name| say(&format!("created {name}")));
        tokio::task::yield_now().await;
    }
}

async fn submit(handle: &Handle, job: SubmitTo, tasks: Vec<TaskSpec>) -> Reply {
    let submit = Submit {
        group: "default".into(),
        job,
        profiles: vec![Profile { lost_max: u16::MAX, ..Profile::default() }],
        tasks,
        arrays: Vec::new(),
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    };
    handle.ask(Command::Submit(submit)).await.unwrap()
}

async fn worker(handle: &Handle, name: &str, until_empty: bool) {
    let worker = WorkerRef::Name { group: "default".into(), name: name.into() };
    let join = Join {
        group: "default".into(),
        name: name.into(),
        dialect: "test",
        session: SessionId(0),
        life: None,
        kinds: Kinds::ALL,
        tags: Vec::new(),
        capacity: Capacity::slots(8),
        period_ms: None,
        running: Some(Vec::new()),
        acknowledges: false,
        host: Default::default(),
    };
    handle.ask(Command::Join(join)).await.unwrap();
    loop {
        let route = Route::Answer { most: 8, patience: Patience::None };
        let offer = Offer { worker: worker.clone(), route, lease_ms: None };
        let grants = match handle.ask(Command::Offer(offer)).await.unwrap() {
            Reply::Work { grants, .. } => grants,
            Reply::Nothing(Idle::Finished | Idle::Fresh) if until_empty => return,
            _ => {
                tokio::task::yield_now().await;
                continue;
            }
        };
        grants.iter().for_each(|grant| say(&format!("run {}", grant.name)));
        let results = grants.iter().map(|grant| TaskResult {
            lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
            outcome: Outcome::Success,
            message: None,
            memo: None,
        });
        let report = Report { worker: worker.clone(), results: results.collect() };
        let Reply::Reported(verdicts) = handle.ask(Command::Report(report)).await.unwrap() else {
            panic!("a report is answered");
        };
        for (grant, verdict) in grants.iter().zip(verdicts) {
            verdict.unwrap_or_else(|refusal| panic!("{}: {refusal}", grant.name));
            say(&format!("done {}", grant.name));
        }
    }
}

async fn tell_states(handle: &Handle) {
    let query = Query::Jobs { group: None, owner: None, from: JobId(0), most: 1000 };
    let Reply::Jobs(jobs) = handle.ask(Command::Query(query)).await.unwrap() else { panic!() };
    for job in jobs {
        let mut from = Some(1);
        while let Some(index) = from {
            let query = Query::Tasks { job: job.job, state: None, from: index, most: 1000 };
            let reply = handle.ask(Command::Query(query)).await.unwrap();
            let Reply::Tasks { tasks, next } = reply else { panic!("{reply:?}") };
            for task in tasks {
                say(&format!("state {} {}", task.name, task.state.word()));
            }
            from = next;
        }
    }
}
