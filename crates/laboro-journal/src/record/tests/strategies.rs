//! Random events of every kind, for properties. They need not make sense to a ledger.

use laboro_core::restore::{
    Restore, RestoredArray, RestoredAttempt, RestoredExtra, RestoredJob, RestoredPhase,
    RestoredTask, RestoredTasks, RestoredWorker,
};
use laboro_core::{
    Added, Amount, Backoff, CallWork, CommandWork, Demand, DocumentChange, DocumentId, Event,
    Fields, GroupId, JobId, JobOptions, LeaseNo, Name, Needs, NewArray, NewTask, Outcome, Portion,
    Profile, Program, Ranges, Request, ReturnReason, Setting, Share, Standing, State, Stdin,
    TaskId, Then, Time, Values, Words, Work, WorkKind, WorkerId,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) fn batch() -> impl Strategy<Value = (Time, Vec<Event>)> {
    (time(), vec(event(), 0..12))
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => about_groups_and_jobs(),
        2 => about_tasks(),
        4 => attempts(),
        2 => about_ranges(),
        1 => about_workers(),
        4 => restore().prop_map(|piece| Event::Restored(Box::new(piece))),
    ]
}

fn about_groups_and_jobs() -> impl Strategy<Value = Event> {
    prop_oneof![
        (any::<u32>(), any::<u64>()).prop_map(|(life, seed)| Event::Began { life, seed }),
        (group(), name()).prop_map(|(group, name)| Event::GroupMade { group, name }),
        group().prop_map(|group| Event::GroupForgotten { group }),
        (group(), any::<bool>()).prop_map(|(group, paused)| Event::GroupPaused { group, paused }),
        (job(), group(), job_options()).prop_map(|(job, group, options)| Event::JobMade {
            job,
            group,
            options: Box::new(options)
        }),
        job().prop_map(|job| Event::JobClosed { job }),
        (job(), any::<bool>()).prop_map(|(job, held)| Event::JobHeld { job, held }),
        (job(), any::<bool>()).prop_map(|(job, stopped)| Event::JobStopped { job, stopped }),
        (job(), of(any::<u32>()), of(any::<u32>())).prop_map(|(job, max_running, max_fails)| {
            Event::JobLimited { job, max_running, max_fails }
        }),
        job().prop_map(|job| Event::JobDue { job }),
        (job(), of(time())).prop_map(|(job, begin)| Event::JobDeferred { job, begin }),
        job().prop_map(|job| Event::JobForgotten { job }),
        (name(), name(), of(bytes())).prop_map(|(kind, name, body)| {
            let (id, body) = (DocumentId { kind, name }, body.map(Arc::from));
            Event::DocumentChanged(Box::new(DocumentChange { id, body }))
        }),
    ]
}

fn about_tasks() -> impl Strategy<Value = Event> {
    let added = (job(), vec(profile(), 0..4), vec(new_array(), 0..3), new_tasks());
    prop_oneof![
        added.prop_map(|(job, profiles, arrays, tasks)| {
            Event::Added(Box::new(Added { job, profiles, arrays, tasks }))
        }),
        (task(), vec(task(), 0..5)).prop_map(|(task, preds)| Event::PredsAdded { task, preds }),
        (task(), vec(task(), 0..5), of(bytes())).prop_map(|(task, preds, memo)| Event::Renewed {
            task,
            preds,
            memo: memo.map(Arc::from)
        }),
        (task(), back(), vec(task(), 0..3)).prop_map(|(task, why, preds)| Event::Returned {
            task,
            why,
            preds
        }),
        (task(), back(), text()).prop_map(|(task, why, reason)| Event::HeldBack {
            task,
            why,
            reason
        }),
        task().prop_map(|task| Event::Woken { task }),
    ]
}

fn attempts() -> impl Strategy<Value = Event> {
    let leased = (task(), lease(), worker(), of(time()), of(share()));
    let finished = (task(), worker(), outcome(), then(), of((of(text()), of(bytes()))));
    prop_oneof![
        leased.prop_map(|(task, lease, worker, until, share)| Event::Leased {
            task,
            lease,
            worker,
            until,
            share: share.map(Arc::new)
        }),
        finished.prop_map(|(task, worker, outcome, then, words)| Event::Finished {
            task,
            worker,
            outcome,
            then,
            words: words
                .map(|(message, memo)| Box::new(Words { message, memo: memo.map(Arc::from) })),
        }),
    ]
}

fn about_ranges() -> impl Strategy<Value = Event> {
    prop_oneof![
        (job(), ranges()).prop_map(|(job, ranges)| Event::Cancelled { job, ranges }),
        (job(), ranges()).prop_map(|(job, ranges)| Event::Held { job, ranges }),
        (job(), ranges()).prop_map(|(job, ranges)| Event::Released { job, ranges }),
        (job(), ranges()).prop_map(|(job, ranges)| Event::Retried { job, ranges }),
        (job(), ranges()).prop_map(|(job, ranges)| Event::MarkedDone { job, ranges }),
        (job(), ranges(), any::<i32>()).prop_map(|(job, ranges, priority)| Event::Prioritised {
            job,
            ranges,
            priority
        }),
        (job(), ranges()).prop_map(|(job, ranges)| Event::TasksForgotten { job, ranges }),
    ]
}

fn about_workers() -> impl Strategy<Value = Event> {
    let met = (worker(), group(), name(), name(), of(any::<u64>()));
    prop_oneof![
        met.prop_map(|(worker, group, name, dialect, period_ms)| Event::WorkerMet {
            worker,
            group,
            name,
            dialect,
            period_ms
        }),
        worker().prop_map(|worker| Event::WorkerForgotten { worker }),
        (worker(), standing(), text(), of(time())).prop_map(|(worker, standing, reason, until)| {
            Event::Judged { worker, standing, reason, until }
        }),
    ]
}

fn restore() -> impl Strategy<Value = Restore> {
    let counters = (
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        any::<i64>(),
        any::<i64>(),
    );
    let lane = (job(), profile(), demand(), any::<i64>(), vec(task(), 0..6));
    let leased = (task(), lease(), worker(), time(), of(time()), of(share()));
    prop_oneof![
        counters.prop_map(|(life, seed, next_lease, next_job, next_worker, front, back)| {
            Restore::Counters { life, seed, next_lease, next_job, next_worker, front, back }
        }),
        Just(Restore::BlockedIsOver),
        (group(), name(), any::<bool>(), any::<bool>()).prop_map(
            |(group, name, paused, ever_used)| Restore::Group { group, name, paused, ever_used }
        ),
        restored_worker().prop_map(|worker| Restore::Worker(Box::new(worker))),
        restored_job().prop_map(|job| Restore::Job(Box::new(job))),
        restored_array().prop_map(|array| Restore::Array(Box::new(array))),
        (job(), state(), ranges()).prop_map(|(job, state, ranges)| Restore::Elements {
            job,
            state,
            ranges
        }),
        (job(), ".{0,20}", ranges()).prop_map(|(job, why, ranges)| Restore::FailedBecause {
            job,
            why: why.into(),
            ranges
        }),
        (job(), outcome(), ranges()).prop_map(|(job, outcome, ranges)| Restore::FailedElements {
            job,
            outcome,
            ranges
        }),
        (job(), vec(profile(), 0..3), restored_tasks()).prop_map(|(job, profiles, tasks)| {
            Restore::Tasks(Box::new(RestoredTasks { job, profiles, tasks }))
        }),
        vec((task(), task()), 0..6).prop_map(Restore::Followers),
        vec((task(), task()), 0..6).prop_map(Restore::Edges),
        lane.prop_map(|(job, profile, kind, turn, tasks)| Restore::Lane {
            job,
            profile,
            kind,
            turn,
            tasks
        }),
        leased.prop_map(|(task, lease, worker, started, until, share)| Restore::Lease {
            task,
            lease,
            worker,
            started,
            until,
            period_ms: until.map(|until| until.0),
            share: share.map(Arc::new)
        }),
    ]
}

fn restored_worker() -> impl Strategy<Value = RestoredWorker> {
    let who = (worker(), group(), name(), name(), time(), of(any::<u64>()));
    let counts = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    let lists = (vec((job(), any::<bool>()), 0..4), vec((job(), any::<u32>(), any::<u32>()), 0..4));
    (who, counts, lists, (standing(), of(text()), of(time()))).prop_map(
        |(
            (worker, group, name, dialect, seen, period_ms),
            (good, bad, since, holds),
            (recent, tallies),
            (standing, reason, until),
        )| RestoredWorker {
            worker,
            group,
            name,
            dialect,
            seen,
            period_ms,
            good,
            bad,
            since,
            recent,
            tallies,
            standing,
            reason,
            until,
            holds,
        },
    )
}

fn restored_job() -> impl Strategy<Value = RestoredJob> {
    let what = (job(), group(), job_options(), any::<bool>(), time(), of(time()));
    let counts = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    (what, counts, vec((outcome(), any::<u32>()), 0..4)).prop_map(
        |(
            (job, group, options, stopped, submitted, ended),
            (forgiven, next_index, good, bad),
            failures,
        )| RestoredJob {
            job,
            group,
            options,
            stopped,
            forgiven,
            submitted,
            ended,
            next_index,
            failures,
            good,
            bad,
        },
    )
}

fn restored_array() -> impl Strategy<Value = RestoredArray> {
    (job(), new_array(), profile(), any::<[u32; 5]>()).prop_map(
        |(job, array, profile, [first, waiting, failed, unfinished, bad])| RestoredArray {
            job,
            first,
            array,
            profile,
            waiting,
            failed,
            unfinished,
            bad,
        },
    )
}

fn restored_tasks() -> impl Strategy<Value = Vec<RestoredTask>> {
    let task = (small(), name(), small(), counts(), phase(), of(extra()));
    (vec((task, 0_usize..4), 0..8), vec(work(), 3)).prop_map(|(tasks, works)| {
        let made = tasks.into_iter().map(|((index, name, profile, counts, phase, extra), work)| {
            let (waiting, failed, fails, lost) = counts;
            let (work, extra) = (works.get(work).cloned(), extra.map(Box::new));
            RestoredTask { index, name, profile, work, waiting, failed, fails, lost, phase, extra }
        });
        made.collect()
    })
}

fn counts() -> impl Strategy<Value = (u32, u32, u16, u16)> {
    prop_oneof![Just((0, 0, 0, 0)), any::<(u32, u32, u16, u16)>()]
}

fn phase() -> impl Strategy<Value = RestoredPhase> {
    prop_oneof![
        Just(RestoredPhase::Waiting),
        Just(RestoredPhase::Blocked),
        Just(RestoredPhase::Ready),
        time().prop_map(RestoredPhase::Delayed),
        Just(RestoredPhase::Held),
        Just(RestoredPhase::Leased),
        attempt().prop_map(RestoredPhase::Finished),
        Just(RestoredPhase::Cancelled),
    ]
}

fn attempt() -> impl Strategy<Value = RestoredAttempt> {
    (outcome(), worker(), time(), any::<u32>()).prop_map(|(outcome, worker, started, took_ms)| {
        RestoredAttempt { outcome, worker, started, took_ms }
    })
}

fn extra() -> impl Strategy<Value = RestoredExtra> {
    (of(bytes()), of(text()), vec(attempt(), 0..3), of((lease(), worker()))).prop_map(
        |(memo, message, past, lapsed)| RestoredExtra {
            memo: memo.map(Arc::from),
            message,
            past,
            lapsed,
        },
    )
}

/// Some share their work, some have equal ones, some have none.
fn new_tasks() -> impl Strategy<Value = Vec<NewTask>> {
    let task = (name(), small(), vec(task(), 0..4), of(bytes()));
    (vec((task, 0_usize..4), 0..8), vec(work(), 3)).prop_map(|(tasks, works)| {
        let made = tasks.into_iter().map(|((name, profile, preds, memo), work)| NewTask {
            name,
            profile,
            work: works.get(work).cloned(),
            preds: preds.into_iter().collect(),
            memo: memo.map(Arc::from),
        });
        made.collect()
    })
}

fn new_array() -> impl Strategy<Value = NewArray> {
    let values = prop_oneof![
        any::<(i64, i64)>().prop_map(|(first, step)| Values::Numbers { first, step }),
        vec(bytes(), 0..4).prop_map(|list| list.iter().collect()),
    ];
    (name(), any::<u32>(), small(), work(), values, vec(task(), 0..3), vec(task(), 0..3)).prop_map(
        |(name, count, profile, work, values, preds, each)| NewArray {
            name,
            count,
            profile,
            work,
            values,
            preds,
            each,
        },
    )
}

fn work() -> impl Strategy<Value = Arc<Work>> {
    prop_oneof![
        Just(Work::Named),
        (vec(bytes(), 0..3), setting()).prop_map(|(words, setting)| {
            let program = Program::Argv(words.into_iter().collect());
            Work::Command(CommandWork { program, setting })
        }),
        (bytes(), setting()).prop_map(|(line, setting)| {
            Work::Command(CommandWork { program: Program::Shell(line), setting })
        }),
        (text(), bytes(), setting()).prop_map(|(kind, body, setting)| Work::script(
            kind,
            body.into(),
            setting
        )),
        (bytes(), bytes(), bytes())
            .prop_map(|(program, dir, log_dir)| Work::indexed(program, dir, log_dir)),
        (bytes(), setting()).prop_map(|(payload, setting)| {
            Work::Call(CallWork { payload: payload.into(), setting })
        }),
    ]
    .prop_map(Arc::new)
}

fn setting() -> impl Strategy<Value = Arc<Setting>> {
    prop_oneof![
        Just(Setting::default()),
        (of(bytes()), vec((bytes(), bytes()), 0..3), of(bytes()), of(bytes()), of(bytes()))
            .prop_map(|(dir, env, stdin, stdout, stderr)| Setting {
                dir,
                env,
                stdin: stdin.map_or(Stdin::Null, Stdin::Text),
                stdout,
                stderr,
                ..Setting::default()
            }),
    ]
    .prop_map(Arc::new)
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        any::<u32>().prop_map(|count| Request::whole(count.into())),
        (1..=u64::MAX).prop_map(|parts| Request::Some(Amount::of_parts(parts))),
        Just(Request::All),
    ]
}

fn profile() -> impl Strategy<Value = Profile> {
    let needs = || {
        (any::<u32>(), any::<u64>(), vec((name(), request()), 0..2), vec(name(), 0..2)).prop_map(
            |(slots, memory, mut resources, tags)| {
                resources.sort();
                Needs { slots, memory, resources, tags, ..Needs::default() }
            },
        )
    };
    let needs = (needs(), vec(needs(), 0..3), prop_oneof![Just(0), any::<u32>()])
        .prop_map(|(needs, variants, nodes)| Needs { variants, nodes, ..needs });
    let tries = (any::<u16>(), any::<u16>(), any::<u64>(), any::<u64>(), vec(any::<i32>(), 0..2));
    let times = (of(any::<u64>()), of(any::<u64>()));
    let odd = (needs, any::<i32>(), tries, times, any::<bool>()).prop_map(
        |(needs, priority, tries, (time_limit_ms, time_request_ms), runs_anyway)| {
            let (attempts, lost_max, first_ms, most_ms, retry_on) = tries;
            let backoff = Backoff { first_ms, most_ms };
            Profile {
                needs,
                priority,
                attempts,
                lost_max,
                backoff,
                retry_on,
                time_limit_ms,
                time_request_ms,
                runs_anyway,
            }
        },
    );
    prop_oneof![Just(Profile::default()), odd]
}

fn job_options() -> impl Strategy<Value = JobOptions> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let on_end = vec(".{0,20}".prop_map(Box::<str>::from), 0..3).prop_map(Vec::into_boxed_slice);
    (
        name(),
        flags,
        of(any::<u32>()),
        of(any::<u32>()),
        of(bytes()),
        of(name()),
        (on_end, of(time())),
    )
        .prop_map(
            |(
                name,
                (open, held, own_names),
                max_running,
                max_fails,
                key,
                owner,
                (on_end, begin),
            )| JobOptions {
                begin,
                name,
                open,
                held,
                max_running,
                max_fails,
                key,
                own_names,
                owner,
                on_end,
            },
        )
}

fn share() -> impl Strategy<Value = Share> {
    let shared = of((0u8..128, 0u16..=10_000));
    let portion = (any::<u128>(), shared, any::<u64>()).prop_map(|(items, shared, parts)| {
        Portion { items, shared, amount: Amount::of_parts(parts) }
    });
    let items = vec((name(), any::<u128>()), 0..3).prop_map(Share::of_items);
    let nodes = vec(any::<u32>().prop_map(WorkerId), 0..3);
    let full = (vec((name(), portion), 0..3), any::<u8>(), nodes)
        .prop_map(|(portions, variant, nodes)| Share { portions, variant, nodes });
    prop_oneof![items, full]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => Just(Outcome::Success),
        1 => any::<i32>().prop_map(Outcome::Exit),
        1 => any::<i32>().prop_map(Outcome::Signal),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Error),
        1 => Just(Outcome::Lost),
    ]
}

fn then() -> impl Strategy<Value = Then> {
    prop_oneof![4 => Just(Then::Done), 1 => Just(Then::Failed), 1 => time().prop_map(Then::Again)]
}

fn back() -> impl Strategy<Value = ReturnReason> {
    prop_oneof![
        Just(ReturnReason::Lapsed),
        Just(ReturnReason::Left),
        Just(ReturnReason::Handed),
        Just(ReturnReason::Revoked)
    ]
}

fn standing() -> impl Strategy<Value = Standing> {
    let all = [Standing::Good, Standing::OnHold, Standing::Probation, Standing::Ejected];
    proptest::sample::select(all.to_vec())
}

fn state() -> impl Strategy<Value = State> {
    proptest::sample::select(State::ALL.to_vec())
}

fn demand() -> impl Strategy<Value = Demand> {
    let all =
        [WorkKind::Named, WorkKind::Command, WorkKind::Script, WorkKind::Indexed, WorkKind::Call];
    let fields =
        vec(0_u32..64, 0..3).prop_map(|tags| tags.into_iter().fold(Fields::NONE, Fields::with));
    (proptest::sample::select(all.to_vec()), fields)
        .prop_map(|(kind, fields)| Demand { kind, fields })
}

fn ranges() -> impl Strategy<Value = Ranges> {
    vec((small(), small()), 0..5)
}

/// Mostly neighbours, now and then from anywhere.
fn small() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0_u32..6, 1 => any::<u32>()]
}

fn task() -> impl Strategy<Value = TaskId> {
    (job(), small()).prop_map(|(job, index)| TaskId::new(job, index))
}

fn job() -> impl Strategy<Value = JobId> {
    small().prop_map(JobId)
}

fn group() -> impl Strategy<Value = GroupId> {
    small().prop_map(GroupId)
}

fn worker() -> impl Strategy<Value = WorkerId> {
    small().prop_map(WorkerId)
}

fn lease() -> impl Strategy<Value = LeaseNo> {
    prop_oneof![4 => 0_u64..6, 1 => any::<u64>()].prop_map(LeaseNo)
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => 1_700_000_000_000_u64..1_700_000_000_009,
        1 => any::<u64>(),
        1 => Just(u64::MAX)
    ]
    .prop_map(Time)
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        Just(Name::default()),
        (0_u32..99).prop_map(|number| Name::from(format!("task-{number:08}"))),
        (60_usize..70, 0_u32..9)
            .prop_map(|(length, number)| { Name::from(format!("{}{number}", "n".repeat(length))) }),
        bytes().prop_map(|bytes| Name::new(&bytes)),
    ]
}

fn text() -> impl Strategy<Value = Box<str>> {
    "[ -~äß]{0,9}".prop_map(String::into_boxed_str)
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    vec(any::<u8>(), 0..9).prop_map(Vec::into_boxed_slice)
}
