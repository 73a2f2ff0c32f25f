//! The engine loop with its inbox and outbox: answers come, work is pushed, deadlines ring without anybody
//! asking, and one peer that does not take what it is sent holds up nobody.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use laboro_core::*;
use laboro_hub::{Delivery, Handle, ServerOptions, World};
use laboro_journal::MemoryJournal;
use laboro_net::Clock;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

/// Runs a test against a hub that lives as long as the test.
fn with_hub<F: AsyncFnOnce(Handle)>(options: ServerOptions, test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let clock = Clock::start();
        let mut journal = MemoryJournal::default();
        let (mut hub, first) = Hub::begin(Ledger::default(), Config::default(), clock.now(), 1);
        laboro_journal::Journal::commit(&mut journal, first).await.unwrap();
        let (mut server, handle) = laboro_hub::server(&options, clock);
        tokio::select! {
            () = test(handle) => {}
            ended = laboro_hub::run(&mut hub, &mut server, &mut journal) => {
                panic!("the hub ended first: {ended:?}");
            }
        }
    });
}

async fn submit(handle: &Handle, count: u32) -> JobId {
    let submit = Submit {
        group: "default".into(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![Profile::default()],
        tasks: Vec::new(),
        arrays: vec![ArraySpec::numbered("", count, Work::Named)],
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    };
    match handle.ask(Command::Submit(submit)).await.unwrap() {
        Reply::Submitted { job, .. } => job,
        other => panic!("{other:?}"),
    }
}

fn join(session: SessionId, name: &str, slots: u32) -> Command {
    Command::Join(Join {
        group: "default".into(),
        name: name.into(),
        dialect: "test",
        session,
        life: None,
        kinds: Kinds::ALL,
        tags: Vec::new(),
        capacity: Capacity::slots(slots),
        period_ms: None,
        running: None,
        acknowledges: false,
        host: Default::default(),
    })
}

fn worker(name: &str) -> WorkerRef {
    WorkerRef::Name { group: "default".into(), name: name.into() }
}

fn push(name: &str) -> Command {
    Command::Offer(Offer { worker: worker(name), route: Route::Push { ahead: 0 }, lease_ms: None })
}

fn results(grants: &[Grant]) -> Vec<TaskResult> {
    let result = |grant: &Grant| TaskResult {
        lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
        outcome: Outcome::Success,
        message: None,
        memo: None,
    };
    grants.iter().map(result).collect()
}

#[test]
fn work_is_pushed_to_a_session_and_its_results_are_answered_there() {
    with_hub(ServerOptions::default(), async |handle| {
        let job = submit(&handle, 3).await;
        let mut session = handle.open_session().await.unwrap();
        session.ask(1, join(session.session, "w", 2)).await.unwrap();
        session.ask(2, push("w")).await.unwrap();
        let mut done = 0;
        let mut tags = Vec::new();
        while done < 3 {
            match session.next().await.unwrap() {
                Delivery::Reply { tag, .. } => tags.push(tag),
                Delivery::Work { grants, .. } => {
                    done += grants.len();
                    let report = Report { worker: worker("w"), results: results(&grants) };
                    session.ask(3, Command::Report(report)).await.unwrap();
                }
                Delivery::Revoke { .. } | Delivery::Stop { .. } | Delivery::Replaced => {
                    panic!("nothing was cancelled")
                }
            }
        }
        assert_eq!(tags[..2], [1, 2], "answers come in the order of the questions");
        let Reply::Jobs(jobs) = handle.ask(Command::Query(Query::Job(job))).await.unwrap() else {
            panic!()
        };
        assert_eq!(jobs[0].counts.of(State::Done), 3);
    });
}

#[test]
fn patience_ends_by_the_clock_and_not_by_another_command() {
    with_hub(ServerOptions::default(), async |handle| {
        submit(&handle, 1).await;
        let session = handle.open_session().await.unwrap();
        for name in ["busy", "idle"] {
            handle.ask(join(session.session, name, 1)).await.unwrap();
        }
        let offer = |name, patience| {
            let route = Route::Answer { most: 1, patience };
            Command::Offer(Offer { worker: worker(name), route, lease_ms: None })
        };
        let work = handle.ask(offer("busy", Patience::None)).await.unwrap();
        assert!(matches!(work, Reply::Work { .. }), "{work:?}");
        let soon = Clock::start().now().after_ms(30);
        let nothing = handle.ask(offer("idle", Patience::Until(soon))).await.unwrap();
        assert!(matches!(nothing, Reply::Nothing(Idle::Later)), "{nothing:?}");
        assert!(Clock::start().now() >= soon, "it was not kept waiting");
    });
}

fn pull(name: &str, until: Time) -> Command {
    let route = Route::Answer { most: 1, patience: Patience::Always(until) };
    Command::Offer(Offer { worker: worker(name), route, lease_ms: None })
}

#[test]
fn a_session_withdraws_an_offer_by_the_tag_it_gave_it() {
    with_hub(ServerOptions::default(), async |handle| {
        let mut sessions = Vec::new();
        for name in ["one", "two"] {
            let session = handle.open_session().await.unwrap();
            handle.ask(join(session.session, name, 1)).await.unwrap();
            session.ask(7, pull(name, Time::NEVER)).await.unwrap();
            sessions.push(session);
        }
        sessions[1].ask(8, Command::Withdraw(Token(7))).await.unwrap();
        for expected in [7, 8] {
            let Some(Delivery::Reply { tag, reply }) = sessions[1].next().await else { panic!() };
            assert_eq!(tag, expected);
            assert!(matches!(reply, Reply::Nothing(Idle::Fresh) | Reply::Ok), "{reply:?}");
        }
        // The same tag of another session is another offer.
        submit(&handle, 1).await;
        let Some(Delivery::Reply { tag: 7, reply }) = sessions[0].next().await else { panic!() };
        assert!(matches!(reply, Reply::Work { .. }), "{reply:?}");
    });
}

#[test]
fn work_that_nobody_waits_for_any_more_goes_back_at_once() {
    with_hub(ServerOptions::default(), async |handle| {
        let session = handle.open_session().await.unwrap();
        for name in ["gone", "lost", "unread", "here"] {
            handle.ask(join(session.session, name, 1)).await.unwrap();
        }
        let unread = handle.open_session().await.unwrap();
        session.ask(1, pull("gone", Time::NEVER)).await.unwrap();
        unread.ask(1, pull("unread", Time::NEVER)).await.unwrap();
        drop(session);
        let lost =
            tokio::time::timeout(Duration::from_millis(1), handle.ask(pull("lost", Time::NEVER)));
        assert!(lost.await.is_err(), "there was nothing to do yet");
        submit(&handle, 3).await;
        // All three were given away, one of them to a queue that nobody reads.
        drop(unread);
        for _ in 0..3 {
            let work = handle.ask(pull("here", Time::NEVER)).await.unwrap();
            assert!(matches!(work, Reply::Work { .. }), "{work:?}");
        }
    });
}

#[test]
fn a_full_inbox_keeps_nobody_from_giving_back_its_work() {
    let options = ServerOptions { inbox: 1, ..ServerOptions::default() };
    with_hub(options, async |handle| {
        let unread = handle.open_session().await.unwrap();
        for name in ["unread", "here"] {
            handle.ask(join(unread.session, name, 1)).await.unwrap();
        }
        unread.ask(1, pull("unread", Time::NEVER)).await.unwrap();
        submit(&handle, 1).await;
        let mut filling = Box::pin(handle.ask(Command::Query(Query::Groups)));
        let filled = poll_fn(|context| Poll::Ready(filling.as_mut().poll(context))).await;
        assert!(filled.is_pending());
        drop(unread);
        filling.await.unwrap();
        let work = handle.ask(pull("here", Time::NEVER));
        let work = tokio::time::timeout(Duration::from_secs(10), work).await;
        assert!(matches!(work, Ok(Ok(Reply::Work { .. }))), "{work:?}");
    });
}

#[test]
fn a_session_that_does_not_take_its_work_is_cut_off_and_the_others_go_on() {
    let options = ServerOptions { session: 1, ..ServerOptions::default() };
    with_hub(options, async |handle| {
        submit(&handle, 1000).await;
        let mut deaf = handle.open_session().await.unwrap();
        handle.ask(join(deaf.session, "deaf", 1)).await.unwrap();
        // Two answers and one dispatch for a queue of one.
        deaf.ask(1, push("deaf")).await.unwrap();
        deaf.ask(2, push("deaf")).await.unwrap();
        deaf.ask(3, push("deaf")).await.unwrap();

        let mut good = handle.open_session().await.unwrap();
        handle.ask(join(good.session, "good", 4)).await.unwrap();
        handle.ask(push("good")).await.unwrap();
        let Some(Delivery::Work { grants, .. }) = good.next().await else {
            panic!("the good one waits for the deaf one");
        };
        assert_eq!(grants.len(), 4);

        let first = tokio::time::timeout(Duration::from_secs(10), deaf.next()).await.unwrap();
        assert!(first.is_some(), "what was in its queue is still there");
        let end = tokio::time::timeout(Duration::from_secs(10), deaf.next()).await.unwrap();
        assert!(end.is_none(), "then it finds itself cut off");
    });
}

#[test]
fn a_watcher_sees_changes_in_order_and_may_go_away() {
    with_hub(ServerOptions::default(), async |handle| {
        let mut changes = handle.watch(Command::Watch(Scope::All)).await.unwrap();
        let job = submit(&handle, 2).await;
        handle.ask(Command::Cancel(Selection { job, which: Which::Job })).await.unwrap();
        let mut states = Vec::new();
        while states.last() != Some(&State::Cancelled) {
            for change in changes.recv().await.unwrap().iter() {
                if let Change::Tasks { first: 1, last: 2, state, .. } = change {
                    states.push(*state);
                }
            }
        }
        assert_eq!(states, [State::Waiting, State::Ready, State::Cancelled]);
        drop(changes);
        for _ in 0..3 {
            submit(&handle, 1).await;
        }
    });
}

#[test]
fn a_hub_that_has_stopped_says_so() {
    let (server, handle) = laboro_hub::server(&ServerOptions::default(), Clock::start());
    drop(server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(handle.ask(Command::Query(Query::Groups)));
    assert_eq!(answer.unwrap_err().to_string(), "the hub has stopped");
}

/// As twenty peers that ask and never read have them: all that their queues have room for.
#[test]
fn what_a_person_asks_does_not_wait_behind_what_sessions_have_asked() {
    const EACH: u32 = 2048;
    let options = ServerOptions::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut server, handle) = laboro_hub::server(&options, Clock::start());
        let mut sessions = Vec::new();
        for number in 0..20 {
            let session = handle.open_session().await.unwrap();
            let query = |at| (u64::from(at), Command::Query(Query::Job(JobId(number * EACH + at))));
            session.ask_all((0..EACH).map(query).collect()).await.unwrap();
            sessions.push(session);
        }
        let people = handle.for_people();
        let asking = tokio::spawn(async move { people.ask(Command::Query(Query::Groups)).await });
        tokio::task::yield_now().await;
        let (_, mut asks) = server.gather(None).await.unwrap();
        assert!(matches!(asks.remove(0).command, Command::Query(Query::Groups)));
        let mut heard: Vec<u32> = Vec::new();
        loop {
            assert!(asks.len() < options.step + EACH as usize, "{} in a step", asks.len());
            heard.extend(asks.iter().map(|ask| match ask.command {
                Command::Query(Query::Job(job)) => job.0,
                ref other => panic!("{other:?}"),
            }));
            if heard.len() == 20 * EACH as usize {
                break;
            }
            (_, asks) = server.gather(None).await.unwrap();
        }
        assert!(heard.is_sorted(), "each session is heard in its order");
        asking.abort();
    });
}
