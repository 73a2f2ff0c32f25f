//! A snapshot of a version in which only finished tasks were over: what waited behind a blocked task finds its place.

use laboro_core::restore::*;
use laboro_core::*;

fn task(index: u32, name: &str, profile: u32, phase: RestoredPhase) -> RestoredTask {
    RestoredTask {
        index,
        name: name.into(),
        profile,
        work: None,
        waiting: 0,
        failed: 0,
        fails: 0,
        lost: 0,
        phase,
        extra: None,
    }
}

/// `f` failed, `g` comes after it, `h` after `g`, and `bye` after `h` whatever happens.
fn snapshot() -> Vec<Restore> {
    let (job, group) = (JobId(1), GroupId(0));
    let outcome = Outcome::Exit(1);
    let ended = RestoredAttempt { outcome, worker: WorkerId(1), started: Time(1), took_ms: 1 };
    let anyway = Profile { runs_anyway: true, ..Profile::default() };
    let id = |index| TaskId::new(job, index);
    vec![
        Restore::Counters {
            life: 1,
            seed: 7,
            next_lease: 1,
            next_job: 1,
            next_worker: 1,
            front: 0,
            back: 0,
        },
        Restore::Group { group, name: "default".into(), paused: false, ever_used: true },
        Restore::Job(Box::new(RestoredJob {
            job,
            group,
            options: JobOptions::default(),
            stopped: false,
            forgiven: 0,
            submitted: Time(1),
            ended: None,
            next_index: 5,
            failures: vec![(outcome, 1)],
            good: 0,
            bad: 1,
        })),
        Restore::Tasks(Box::new(RestoredTasks {
            job,
            profiles: vec![Profile::default(), anyway],
            tasks: vec![
                task(1, "f", 0, RestoredPhase::Finished(ended)),
                RestoredTask { failed: 1, ..task(2, "g", 0, RestoredPhase::Blocked) },
                RestoredTask { waiting: 1, ..task(3, "h", 0, RestoredPhase::Waiting) },
                RestoredTask { waiting: 1, ..task(4, "bye", 1, RestoredPhase::Waiting) },
            ],
        })),
        Restore::Edges(vec![(id(1), id(2)), (id(2), id(3)), (id(3), id(4))]),
    ]
}

#[test]
fn what_waited_behind_a_blocked_task_is_blocked_or_runs() {
    let mut ledger = Ledger::default();
    for piece in snapshot() {
        ledger.apply(Time(5), &Event::Restored(Box::new(piece)));
    }
    ledger.apply(Time(9), &Event::Began { life: 2, seed: 7 });
    ledger.check().expect("the ledger agrees with itself");
    let states = (1..=4).map(|index| ledger.state_of(TaskId::new(JobId(1), index)).unwrap());
    let words: Vec<&str> = states.map(State::word).collect();
    assert_eq!(words, ["failed", "blocked", "blocked", "ready"]);

    let mut condensed = Ledger::default();
    ledger.condense(&mut |event| condensed.apply(Time(9), &event));
    condensed.apply(Time(10), &Event::Began { life: 3, seed: 7 });
    condensed.check().expect("so does what is made of it");
    let retried = Event::Retried { job: JobId(1), ranges: vec![(1, 1)] };
    condensed.apply(Time(11), &retried);
    let states = (1..=4).map(|index| condensed.state_of(TaskId::new(JobId(1), index)).unwrap());
    let words: Vec<&str> = states.map(State::word).collect();
    assert_eq!(words, ["ready", "waiting", "waiting", "waiting"]);
    condensed.check().expect("also then");
}
