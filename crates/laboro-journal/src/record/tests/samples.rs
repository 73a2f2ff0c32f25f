//! A batch for every kind of event, by the name of its golden file. What each shows is said by its fields.

use laboro_core::restore::{
    Restore, RestoredArray, RestoredAttempt, RestoredExtra, RestoredJob, RestoredPhase,
    RestoredTask, RestoredTasks, RestoredWorker,
};
use laboro_core::{
    Added, Amount, Backoff, CallWork, CommandWork, Demand, DocumentChange, Event, Fields, GroupId,
    JobId, JobOptions, LeaseNo, Name, Needs, NewArray, NewTask, Outcome, Portion, Profile, Program,
    Request, ReturnReason, Runner, Setting, Share, Standing, State, Stdin, TaskId, Then, Time,
    Values, Warning, Words, Work, WorkKind, WorkerId,
};
use std::sync::Arc;

pub(super) const AT: Time = Time(1_700_000_000_000);

pub(super) fn samples() -> Vec<(&'static str, Vec<Event>)> {
    let mut samples = happenings();
    samples.extend(pieces());
    samples
}

fn happenings() -> Vec<(&'static str, Vec<Event>)> {
    let (job, group, worker) = (JobId(3), GroupId(1), WorkerId(5));
    let ranges = vec![(1, 4), (7, 7), (100, 1000)];
    vec![
        ("began", vec![Event::Began { life: 2, seed: 0x1234_5678_9abc_def0 }]),
        ("group-made", vec![Event::GroupMade { group, name: "exp".into() }]),
        ("group-forgotten", vec![Event::GroupForgotten { group }]),
        ("group-paused", vec![Event::GroupPaused { group, paused: true }]),
        ("job-made", vec![Event::JobMade { job, group, options: Box::new(job_options()) }]),
        (
            "job-made-by",
            vec![Event::JobMade { job, group, options: Box::new(owned_job_options()) }],
        ),
        (
            "job-made-naming",
            [None, Some("alice".into())]
                .map(|owner| {
                    let options = JobOptions { own_names: true, owner, ..job_options() };
                    Event::JobMade { job, group, options: Box::new(options) }
                })
                .into(),
        ),
        (
            "job-made-tagged",
            vec![Event::JobMade { job, group, options: Box::new(tagged_job_options()) }],
        ),
        (
            "job-made-later",
            vec![Event::JobMade { job, group, options: Box::new(later_job_options()) }],
        ),
        (
            "document-changed",
            [
                DocumentChange::set("pool", "night", b"{\"queued\":2}"),
                DocumentChange::remove("pool", "night"),
            ]
            .map(|change| Event::DocumentChanged(Box::new(change)))
            .into(),
        ),
        ("job-due", vec![Event::JobDue { job }]),
        (
            "job-deferred",
            vec![
                Event::JobDeferred { job, begin: Some(Time(AT.0 + 3_600_000)) },
                Event::JobDeferred { job, begin: None },
            ],
        ),
        ("job-closed", vec![Event::JobClosed { job }]),
        ("job-held", vec![Event::JobHeld { job, held: true }]),
        ("job-stopped", vec![Event::JobStopped { job, stopped: true }]),
        ("job-limited", vec![Event::JobLimited { job, max_running: Some(10), max_fails: None }]),
        ("job-forgotten", vec![Event::JobForgotten { job }]),
        ("added-tagged", vec![Event::Added(Box::new(added()))]),
        ("added-one-by-one-tagged", (1..=3).map(added_alone).collect()),
        ("added-umask", vec![Event::Added(Box::new(added_masked()))]),
        ("added-needs", vec![Event::Added(Box::new(added_needs()))]),
        ("added-nodes", vec![Event::Added(Box::new(added_nodes()))]),
        ("added-call", vec![Event::Added(Box::new(added_calls()))]),
        ("added-shell", vec![Event::Added(Box::new(added_shell()))]),
        ("added-placeholders", vec![Event::Added(Box::new(added_placeholders()))]),
        ("added-wrap", vec![Event::Added(Box::new(added_wrapped()))]),
        ("added-value-names", vec![Event::Added(Box::new(added_with_names()))]),
        ("preds-added", vec![Event::PredsAdded { task: task(9), preds: vec![task(7), array()] }]),
        (
            "renewed",
            vec![Event::Renewed {
                task: task(9),
                preds: vec![task(8)],
                memo: Some(bytes(b"memo")),
            }],
        ),
        (
            "worker-met",
            vec![Event::WorkerMet {
                worker,
                group,
                name: "node-17".into(),
                dialect: "native".into(),
                period_ms: Some(30_000),
            }],
        ),
        ("worker-forgotten", vec![Event::WorkerForgotten { worker }]),
        ("leased", vec![leased(7, Some(share()))]),
        ("leased-parts", vec![leased(7, Some(parts()))]),
        ("leased-nodes", vec![leased(7, Some(nodes()))]),
        ("leased-run", (7..=10).map(|number| leased(number, None)).collect()),
        ("finished", vec![finished(7, Outcome::Exit(-1), Then::Again(AT.after_ms(500)))]),
        ("finished-memory", vec![finished(7, Outcome::Memory, Then::Failed)]),
        ("finished-run", (7..=10).map(succeeded).collect()),
        (
            "returned",
            vec![Event::Returned {
                task: task(7),
                why: ReturnReason::Lapsed,
                preds: vec![task(6)],
            }],
        ),
        (
            "held-back",
            vec![Event::HeldBack {
                task: task(7),
                why: ReturnReason::Lapsed,
                reason: "held: its worker was lost 6 times".into(),
            }],
        ),
        ("woken", vec![Event::Woken { task: task(7) }]),
        ("cancelled", vec![Event::Cancelled { job, ranges: ranges.clone() }]),
        ("held", vec![Event::Held { job, ranges: ranges.clone() }]),
        ("released", vec![Event::Released { job, ranges: ranges.clone() }]),
        ("marked-done", vec![Event::MarkedDone { job, ranges: ranges.clone() }]),
        ("retried", vec![Event::Retried { job, ranges: ranges.clone() }]),
        ("prioritised", vec![Event::Prioritised { job, ranges: ranges.clone(), priority: -5 }]),
        ("tasks-forgotten", vec![Event::TasksForgotten { job, ranges }]),
        (
            "judged",
            vec![Event::Judged {
                worker,
                standing: Standing::OnHold,
                reason: "4 of its last 10 failed".into(),
                until: Some(AT.after_ms(10_000)),
            }],
        ),
    ]
}

fn pieces() -> Vec<(&'static str, Vec<Event>)> {
    let job = JobId(3);
    let piece = |piece| vec![Event::Restored(Box::new(piece))];
    let pairs = vec![(task(1), task(2)), (task(1), task(3)), (task(2), array())];
    vec![
        (
            "restored-counters",
            piece(Restore::Counters {
                life: 2,
                seed: 42,
                next_lease: 1000,
                next_job: 3,
                next_worker: 6,
                front: -7,
                back: 9,
            }),
        ),
        ("restored-blocked-is-over", piece(Restore::BlockedIsOver)),
        (
            "restored-group",
            piece(Restore::Group {
                group: GroupId(1),
                name: "exp".into(),
                paused: false,
                ever_used: true,
            }),
        ),
        ("restored-worker", piece(Restore::Worker(Box::new(restored_worker())))),
        ("restored-job", piece(Restore::Job(Box::new(restored_job())))),
        (
            "restored-job-by",
            piece(Restore::Job(Box::new(RestoredJob {
                options: owned_job_options(),
                ..restored_job()
            }))),
        ),
        (
            "restored-job-naming",
            piece(Restore::Job(Box::new(RestoredJob {
                options: JobOptions { own_names: true, ..owned_job_options() },
                ..restored_job()
            }))),
        ),
        (
            "restored-job-tagged",
            piece(Restore::Job(Box::new(RestoredJob {
                options: tagged_job_options(),
                ..restored_job()
            }))),
        ),
        (
            "restored-job-later",
            piece(Restore::Job(Box::new(RestoredJob {
                options: later_job_options(),
                ended: None,
                ..restored_job()
            }))),
        ),
        ("restored-array-tagged", piece(Restore::Array(Box::new(restored_array())))),
        (
            "restored-elements",
            State::ALL
                .map(|state| Restore::Elements { job, state, ranges: vec![(5, 20), (30, 30)] })
                .map(|piece| Event::Restored(Box::new(piece)))
                .into(),
        ),
        (
            "restored-failed-because",
            piece(Restore::FailedBecause {
                job,
                why: "program /no/such not found".into(),
                ranges: vec![(21, 29)],
            }),
        ),
        (
            "restored-failed-elements",
            piece(Restore::FailedElements {
                job,
                outcome: Outcome::Signal(9),
                ranges: vec![(21, 29)],
            }),
        ),
        ("restored-tasks-tagged", piece(Restore::Tasks(Box::new(restored_tasks())))),
        ("restored-followers", piece(Restore::Followers(vec![(array(), TaskId::whole(job, 50))]))),
        ("restored-edges", piece(Restore::Edges(pairs))),
        (
            "restored-lane-tagged",
            piece(Restore::Lane {
                job,
                profile: Profile::default(),
                kind: Demand {
                    kind: WorkKind::Script,
                    fields: Fields::NONE.with(5).with(6).with(7),
                },
                turn: -3,
                tasks: vec![task(4), task(5), task(9)],
            }),
        ),
        (
            "restored-lease",
            piece(Restore::Lease {
                task: task(7),
                lease: LeaseNo::new(2, 999),
                worker: WorkerId(5),
                started: Time(AT.0 - 4000),
                until: Some(AT.after_ms(26_000)),
                period_ms: Some(30_000),
                share: Some(Arc::new(share())),
            }),
        ),
        (
            "restored-lease-parts",
            piece(Restore::Lease {
                task: task(7),
                lease: LeaseNo::new(2, 999),
                worker: WorkerId(5),
                started: Time(AT.0 - 4000),
                until: None,
                period_ms: None,
                share: Some(Arc::new(parts())),
            }),
        ),
        (
            "restored-lease-nodes",
            piece(Restore::Lease {
                task: task(7),
                lease: LeaseNo::new(2, 999),
                worker: WorkerId(5),
                started: Time(AT.0 - 4000),
                until: None,
                period_ms: None,
                share: Some(Arc::new(nodes())),
            }),
        ),
    ]
}

fn task(number: u32) -> TaskId {
    TaskId::new(JobId(3), number)
}

fn array() -> TaskId {
    TaskId::whole(JobId(2), 1)
}

fn bytes<T: for<'a> From<&'a [u8]>>(bytes: &[u8]) -> T {
    T::from(bytes)
}

fn job_options() -> JobOptions {
    JobOptions {
        begin: None,
        name: "sweep".into(),
        open: true,
        held: false,
        max_running: Some(10),
        max_fails: Some(3),
        key: Some(bytes(b"key-1")),
        own_names: false,
        owner: None,
        on_end: Box::default(),
    }
}

fn tagged_job_options() -> JobOptions {
    let on_end = ["https://example.org/done".into(), "mail:alice@example.org".into()].into();
    JobOptions { own_names: true, on_end, ..owned_job_options() }
}

fn owned_job_options() -> JobOptions {
    JobOptions { owner: Some("alice".into()), ..job_options() }
}

fn profile() -> Profile {
    Profile {
        needs: Needs {
            slots: 4,
            memory: 8 << 30,
            resources: vec![("gpu".into(), Request::whole(2))],
            tags: vec!["fast".into()],
            ..Needs::default()
        },
        priority: -5,
        attempts: 3,
        lost_max: 5,
        backoff: Backoff { first_ms: 100, most_ms: 60_000 },
        retry_on: vec![75, -1],
        time_limit_ms: Some(3_600_000),
        time_request_ms: None,
        runs_anyway: true,
    }
}

fn setting() -> Arc<Setting> {
    Arc::new(Setting {
        dir: Some(bytes(b"/data")),
        env: vec![(bytes(b"LANG"), bytes(b"C"))],
        stdin: Stdin::Text(bytes(b"input")),
        stdout: Some(bytes(b"out.log")),
        stderr: Some(bytes(b"out.log")),
        ..Setting::default()
    })
}

/// Every field that the first form of records did not have.
fn other_setting() -> Arc<Setting> {
    Arc::new(Setting {
        stdin: Stdin::File(bytes(b"in.txt")),
        stdout: Some(bytes(b"out/{}.txt")),
        stderr: Some(bytes(b"err/{}.txt")),
        nice: Some(-5),
        ..Setting::default()
    })
}

/// Fractions, all there is, other ways to run it, and a time request.
fn added_needs() -> Added {
    let half = Request::Some(Amount::of_parts(5_000));
    let variant =
        Needs { slots: 2, resources: vec![("cpu".into(), Request::whole(8))], ..Needs::default() };
    let resources = vec![
        ("gpu".into(), half),
        ("licence".into(), Request::whole(3)),
        ("scratch".into(), Request::All),
    ];
    let needs = Needs { resources, variants: vec![variant], ..Needs::default() };
    let mut added = added_masked();
    added.profiles = vec![Profile { needs, time_request_ms: Some(60_000), ..Profile::default() }];
    added.tasks.iter_mut().for_each(|task| task.profile = 0);
    added
}

fn added_nodes() -> Added {
    let mut added = added_needs();
    added.profiles =
        vec![Profile { needs: Needs { nodes: 300, ..Needs::default() }, ..Profile::default() }];
    added
}

fn added_shell() -> Added {
    let setting = Arc::new(Setting { shell: Some(bytes(b"bash")), ..Setting::default() });
    let mut added = added_masked();
    added.tasks[0].work = Some(Arc::new(Work::script(".sh", bytes(b"true\n"), setting)));
    added
}

fn added_placeholders() -> Added {
    let setting = Arc::new(Setting { placeholders: Some(2), ..Setting::default() });
    let mut added = added_masked();
    added.tasks[0].work = Some(Arc::new(Work::script(".sh", bytes(b"true\n"), setting)));
    added
}

fn added_wrapped() -> Added {
    let wrap = vec![bytes(b"numactl"), bytes(b"--localalloc")];
    let warning = Some(Warning { signal: 10, before_ms: 60_000 });
    let setting = Arc::new(Setting { wrap, warning, ..Setting::default() });
    let mut added = added_masked();
    added.tasks[0].work = Some(Arc::new(Work::script(".sh", bytes(b"true\n"), setting)));
    added
}

fn added_with_names() -> Added {
    let value_names = vec![bytes(b"model"), bytes(b""), bytes(b"seed")];
    let setting = Arc::new(Setting { value_names, ..Setting::default() });
    let mut added = added_masked();
    added.tasks[0].work = Some(Arc::new(Work::script(".sh", bytes(b"true\n"), setting)));
    added
}

fn added_masked() -> Added {
    let setting = Arc::new(Setting { umask: Some(0o27), ..Setting::default() });
    let work = Some(Arc::new(Work::script(".sh", bytes(b"true\n"), setting)));
    let mut added = added();
    added.arrays.clear();
    added.tasks.truncate(1);
    added.tasks[0].work = work;
    added
}

/// An array of calls and one call.
fn added_calls() -> Added {
    let runner = Runner {
        words: vec![bytes(b"python3"), bytes(b"-m"), bytes(b"laboro_hub.serve")],
        idle_ms: Some(60_000),
        calls_max: Some(1000),
        memory_max: Some(1 << 30),
    };
    let setting = Arc::new(Setting { runner: Some(Arc::new(runner)), ..Setting::default() });
    let payload: Arc<[u8]> = Arc::from(&b"\x80\x05function"[..]);
    let call = Work::Call(CallWork { payload, setting });
    let mut added = added();
    let array = &mut added.arrays[0];
    array.work = Arc::new(call.clone());
    array.values = [&b"\x00one"[..], b"\xff"].into_iter().collect();
    added.arrays.truncate(1);
    added.tasks.truncate(1);
    added.tasks[0].work = Some(Arc::new(call));
    added
}

/// Work of every kind; two tasks share one, three share their setting.
fn added() -> Added {
    let (setting, body) = (setting(), Arc::<[u8]>::from(&b"echo hello\n"[..]));
    let script = Arc::new(Work::script(".sh", Arc::clone(&body), Arc::clone(&setting)));
    let argv = Work::Command(CommandWork {
        program: Program::Argv(["echo", "a b"].into_iter().collect()),
        setting: Arc::clone(&setting),
    });
    let shell = Work::Command(CommandWork {
        program: Program::Shell(bytes(b"echo $HOME")),
        setting: other_setting(),
    });
    let again = Work::script(".py", body, setting);
    let works = [
        Some(Arc::clone(&script)),
        Some(Arc::new(argv)),
        Some(script),
        None,
        Some(Arc::new(shell)),
        Some(Arc::new(again)),
        Some(Arc::new(Work::Named)),
    ];
    let tasks = works.into_iter().zip(1_u32..).map(|(work, number)| NewTask {
        name: Name::from(format!("task-{number:04}")),
        profile: u32::from(number > 4),
        work,
        preds: (1..number).filter(|pred| pred % 3 == 0).map(task).collect(),
        memo: (number == 4).then(|| bytes(b"memo")),
    });
    Added {
        job: JobId(3),
        profiles: vec![Profile::default(), profile()],
        arrays: vec![
            new_array(Values::Numbers { first: -10, step: 5 }),
            new_array(["red", "green"].into_iter().collect()),
        ],
        tasks: tasks.collect(),
    }
}

fn new_array(values: Values) -> NewArray {
    NewArray {
        name: "cells".into(),
        count: 2,
        profile: 1,
        work: Arc::new(Work::indexed(bytes(b"./run"), bytes(b"/data"), bytes(b"/data/log"))),
        values,
        preds: vec![task(1)],
        each: vec![array()],
    }
}

/// Name and profile resemble the ones of the event before.
fn added_alone(number: u32) -> Event {
    Event::Added(Box::new(Added {
        job: JobId(3),
        profiles: vec![Profile::default()],
        arrays: Vec::new(),
        tasks: vec![NewTask {
            name: Name::from(format!("task-{number:04}")),
            profile: 0,
            work: None,
            preds: Default::default(),
            memo: None,
        }],
    }))
}

fn leased(number: u32, share: Option<Share>) -> Event {
    Event::Leased {
        task: task(number),
        lease: LeaseNo::new(2, u64::from(number) + 990),
        worker: WorkerId(5),
        until: Some(AT.after_ms(30_000)),
        share: share.map(Arc::new),
    }
}

/// A fraction, a count, and the second way to run it.
fn parts() -> Share {
    let half = Portion { shared: Some((3, 5_000)), ..Portion::of_items(0b11) };
    let count = Portion { amount: Amount::whole(200), ..Portion::default() };
    Share {
        portions: vec![("gpu".into(), half), ("licence".into(), count)],
        variant: 1,
        nodes: Vec::new(),
    }
}

fn nodes() -> Share {
    Share { nodes: vec![WorkerId(6), WorkerId(300)], ..Share::default() }
}

fn share() -> Share {
    Share::of_items(vec![("gpu".into(), 0b101), ("licence".into(), 1 << 127)])
}

fn finished(number: u32, outcome: Outcome, then: Then) -> Event {
    let words = Words { message: Some("out of memory".into()), memo: Some(bytes(b"memo")) };
    let words = Some(Box::new(words));
    Event::Finished { task: task(number), worker: WorkerId(5), outcome, then, words }
}

fn succeeded(number: u32) -> Event {
    Event::Finished {
        task: task(number),
        worker: WorkerId(5),
        outcome: Outcome::Success,
        then: Then::Done,
        words: None,
    }
}

fn restored_worker() -> RestoredWorker {
    RestoredWorker {
        worker: WorkerId(5),
        group: GroupId(1),
        name: "node-17".into(),
        dialect: "native".into(),
        seen: Time(AT.0 - 1000),
        period_ms: Some(30_000),
        good: 100,
        bad: 4,
        since: 12,
        recent: vec![(JobId(2), true), (JobId(3), false)],
        tallies: vec![(JobId(2), 90, 0), (JobId(3), 10, 4)],
        standing: Standing::Probation,
        reason: Some("4 of its last 10 failed".into()),
        until: Some(AT.after_ms(10_000)),
        holds: 1,
    }
}

fn later_job_options() -> JobOptions {
    let begin = Some(Time(AT.0 + 7_200_000));
    JobOptions { own_names: true, begin, ..owned_job_options() }
}

fn restored_job() -> RestoredJob {
    RestoredJob {
        job: JobId(3),
        group: GroupId(1),
        options: job_options(),
        stopped: true,
        forgiven: 2,
        submitted: Time(AT.0 - 60_000),
        ended: Some(Time(AT.0 - 10)),
        next_index: 1001,
        failures: vec![(Outcome::Exit(1), 3), (Outcome::TimedOut, 1)],
        good: 100,
        bad: 4,
    }
}

fn restored_array() -> RestoredArray {
    RestoredArray {
        job: JobId(3),
        first: 5,
        array: new_array(Values::Numbers { first: 0, step: 1 }),
        profile: profile(),
        waiting: 1,
        failed: 0,
        unfinished: 2,
        bad: 0,
    }
}

/// A task in every phase.
fn restored_tasks() -> RestoredTasks {
    let attempt = RestoredAttempt {
        outcome: Outcome::Success,
        worker: WorkerId(5),
        started: Time(AT.0 - 2000),
        took_ms: 1500,
    };
    let lost = RestoredAttempt { outcome: Outcome::Lost, ..attempt.clone() };
    let extra = RestoredExtra {
        memo: Some(bytes(b"memo")),
        message: Some("done".into()),
        past: vec![lost],
        lapsed: Some((LeaseNo::new(2, 7), WorkerId(4))),
    };
    let phases = [
        RestoredPhase::Waiting,
        RestoredPhase::Blocked,
        RestoredPhase::Ready,
        RestoredPhase::Delayed(AT.after_ms(500)),
        RestoredPhase::Held,
        RestoredPhase::Leased,
        RestoredPhase::Finished(attempt),
        RestoredPhase::Cancelled,
    ];
    let work = Arc::new(Work::Command(CommandWork {
        program: Program::Shell(bytes(b"make")),
        setting: setting(),
    }));
    let tasks = phases.into_iter().zip(1_u32..).map(|(phase, number)| RestoredTask {
        index: if number < 6 { number } else { number + 10 },
        name: Name::from(format!("task-{number:04}")),
        profile: u32::from(number == 5),
        work: (number != 2).then(|| Arc::clone(&work)),
        waiting: u32::from(number == 1),
        failed: u32::from(number == 2),
        fails: u16::from(number == 4),
        lost: u16::from(number == 7),
        extra: matches!(phase, RestoredPhase::Finished(_)).then(|| Box::new(extra.clone())),
        phase,
    });
    RestoredTasks {
        job: JobId(3),
        profiles: vec![Profile::default(), profile()],
        tasks: tasks.collect(),
    }
}
