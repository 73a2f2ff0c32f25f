//! The states and steps of the runner's side.

use crate::runexp::result::{HEADER_BYTES_MAX, wait_status};
use crate::runexp::{Runner, RunnerOptions, Success};
use crate::session::Stream;
use crate::worker::{Assignment, Key, News, Order, Orders, Parting, TaskEnd, Used, WorkerSide};
use bytes::{Bytes, BytesMut};
use laboro_core::{Outcome, Time, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Rig {
    now: Time,
    runner: Runner,
    said: Vec<String>,
    started: Vec<Assignment>,
    /// For people.
    words: Vec<String>,
    parting: Option<Parting>,
}

impl Rig {
    fn new(slots: u32) -> Rig {
        Rig::with(RunnerOptions::new("r1.example.org", slots))
    }

    fn with(options: RunnerOptions) -> Rig {
        Rig::of(Runner::new(options))
    }

    fn of(runner: Runner) -> Rig {
        let mut rig = Rig {
            now: Time(1_763_232_404_000),
            runner,
            said: Vec::new(),
            started: Vec::new(),
            words: Vec::new(),
            parting: None,
        };
        rig.open();
        rig
    }

    fn open(&mut self) {
        let mut out = Orders::default();
        self.runner.open(self.now, &mut out);
        self.take(out);
    }

    /// Greeted, and past the pause before the first request.
    fn greeted(slots: u32) -> Rig {
        let mut rig = Rig::new(slots);
        rig.greet();
        rig
    }

    fn greet(&mut self) {
        assert_eq!(self.heard(), ["SALUTON; MI r1"]);
        assert_eq!(self.says("VERSIO 1.3"), ["KOMPRENAS"]);
        assert_eq!(self.says("ALIGI __defaulte__"), ["JES"]);
        self.pass(55);
    }

    fn says(&mut self, bytes: impl AsRef<[u8]>) -> Vec<String> {
        let mut out = Orders::default();
        self.runner.receive(self.now, &mut BytesMut::from(bytes.as_ref()), &mut out);
        self.take(out);
        self.heard()
    }

    fn tell(&mut self, news: News) -> Vec<String> {
        let mut out = Orders::default();
        self.runner.tell(self.now, news, &mut out);
        self.take(out);
        self.heard()
    }

    fn ends(&mut self, key: u64, outcome: Outcome) -> Vec<String> {
        let how = TaskEnd { outcome, message: None, used: Used::default() };
        self.tell(News::Ended { key: Key(key), how })
    }

    fn writes(&mut self, key: u64, stream: Stream, text: &str) {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        self.tell(News::Wrote { key: Key(key), stream, bytes });
    }

    fn pass(&mut self, ms: u64) {
        let end = self.now.after_ms(ms);
        while let Some(next) = self.runner.deadline().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            let mut out = Orders::default();
            self.runner.tick(self.now, &mut out);
            self.take(out);
            assert!(self.runner.deadline().is_none_or(|next| next > self.now), "no tick in vain");
        }
        self.now = end;
    }

    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    fn take(&mut self, mut out: Orders) {
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned();
        self.said.extend(out.take_messages().into_iter().map(text));
        for order in out.orders {
            match order {
                Order::Start(assignment) => self.started.push(*assignment),
                Order::Welcome { name } => assert_eq!(name, "r1"),
                Order::Say(words) => self.words.push(words),
                other => panic!("{other:?}"),
            }
        }
        self.parting = self.parting.take().or(out.hang_up);
    }

    /// Is asked, gives this job; gives what is said after.
    fn gives(&mut self, name: &str, body: &str) -> Vec<String> {
        let size = body.len();
        assert_eq!(self.says(format!("LABORO {name} .sh {size}")), ["PRETA"]);
        if body.is_empty() { Vec::new() } else { self.says(body) }
    }
}

const NOTHING: [&str; 0] = [];

#[test]
fn the_first_request_comes_after_a_pause() {
    let mut rig = Rig::new(1);
    assert_eq!(rig.heard(), ["SALUTON; MI r1"]);
    assert_eq!(rig.says("VERSIO 1.3"), ["KOMPRENAS"]);
    assert_eq!(rig.says("ALIGI __defaulte__"), ["JES"]);
    rig.pass(49);
    assert_eq!(rig.heard(), NOTHING);
    rig.pass(51);
    assert_eq!(rig.heard(), ["PETO"]);
}

#[test]
fn a_job_is_run_and_handed_in_with_a_header() {
    let mut rig = Rig::greeted(1);
    assert_eq!(rig.heard(), ["PETO"]);
    assert_eq!(rig.gives("dir/it's a", "echo RES:ok\n"), NOTHING, "its slot is taken");
    let Work::Script(script) = &*rig.started[0].work else { panic!() };
    assert_eq!((&*script.kind, &*script.body), (".sh", &b"echo RES:ok\n"[..]));
    rig.runner.launching(Key(1), &["bash".into(), "/tmp/it's/script_1.sh".into()]);
    rig.writes(1, Stream::Err, "warning");
    rig.writes(1, Stream::Out, "RES:ok");
    rig.pass(2000);
    let body = "runexp summary: success\n\n\
        Sat Nov 15 18:46:44 UTC 2025 -- [r1] Running dir/it's a\n\
        > bash '/tmp/it'\\''s/script_1.sh'\n\
        Sat Nov 15 18:46:46 UTC 2025 -- Finished running\n\
        Program exited with status 768\n\
        Program output follows\n\nRES:ok\nwarning";
    assert_eq!(
        rig.ends(1, Outcome::Exit(3)),
        [format!("REZULTO dir/it's a success {}", body.len())]
    );
    assert_eq!(rig.says("PRETA"), [body]);
    assert!(!rig.runner.is_settled());
    assert_eq!(rig.says("RICEVIS"), ["PETO"]);
    assert!(rig.runner.is_settled());
}

#[test]
fn the_command_stands_on_one_line_as_it_could_be_typed() {
    let shown = |words: &[&str]| {
        let mut rig = Rig::greeted(1);
        rig.heard();
        rig.gives("a", "x");
        let words: Vec<_> = words.iter().map(Into::into).collect();
        rig.runner.launching(Key(1), &words);
        rig.ends(1, Outcome::Success);
        let body = rig.says("PRETA").remove(0);
        assert_eq!(wait_status(body.as_bytes()), Some(0), "{body}");
        body.lines().nth(3).unwrap().to_owned()
    };
    assert_eq!(shown(&["octave", "-qf", "/t/x.m"]), "> octave -qf '/t/x.m'");
    assert_eq!(
        shown(&["matlab", "-batch", "run('/x.m')"]),
        "> matlab -batch 'run('\\''/x.m'\\'')'"
    );
    assert_eq!(shown(&["a", "", "b\nc"]), "> a '' 'b?c'");
    assert_eq!(shown(&[]), "> ", "it was never begun");
    assert!(shown(&["bash", &"'".repeat(5000)]).len() < HEADER_BYTES_MAX / 2 + 3);
}

#[test]
fn exit_statuses_decide_if_so_told() {
    let mut options = RunnerOptions::new("r1", 1);
    options.success = Success::ExitCode;
    let mut rig = Rig::with(options);
    rig.greet();
    rig.heard();
    rig.gives("a", "x");
    assert!(rig.ends(1, Outcome::Success)[0].starts_with("REZULTO a success "));
    rig.says("PRETA");
    rig.says("RICEVIS");
    rig.gives("b", "x");
    rig.writes(2, Stream::Out, "RES:ok\n");
    assert!(rig.ends(2, Outcome::Exit(1))[0].starts_with("REZULTO b failure "));
}

#[test]
fn one_exchange_at_a_time_and_results_before_requests() {
    let mut rig = Rig::greeted(3);
    rig.heard();
    assert_eq!(rig.gives("a", "x"), ["PETO"]);
    assert_eq!(rig.ends(1, Outcome::Success), NOTHING, "a question is open");
    let after = rig.gives("b", "x");
    assert!(after[0].starts_with("REZULTO a failure "), "{after:?}");
    assert_eq!(rig.ends(2, Outcome::Success), NOTHING);
    rig.says("PRETA");
    assert!(rig.says("RICEVIS")[0].starts_with("REZULTO b "));
}

#[test]
fn no_job_is_asked_for_that_would_have_to_wait() {
    let mut rig = Rig::greeted(1);
    rig.heard();
    assert_eq!(rig.gives("a", "x"), NOTHING, "there is one slot");
    assert_eq!(rig.tell(News::Ahead(20)), NOTHING, "however short jobs are");
}

#[test]
fn after_an_empty_job_there_is_a_pause() {
    let mut rig = Rig::greeted(2);
    rig.heard();
    assert_eq!(rig.gives("a", ""), NOTHING);
    assert_eq!(rig.started.len(), 1);
    assert_eq!(rig.ends(1, Outcome::Success), NOTHING, "nor is a result told before");
    rig.pass(20);
    assert!(rig.heard()[0].starts_with("REZULTO a failure "));
}

#[test]
fn a_hold_lasts_ten_seconds_or_until_a_job_is_handed_in() {
    let mut rig = Rig::greeted(2);
    rig.heard();
    rig.gives("a", "x");
    assert_eq!(rig.says("ATENDI"), NOTHING);
    rig.pass(9_999);
    assert_eq!(rig.heard(), NOTHING);
    rig.pass(1);
    assert_eq!(rig.heard(), ["PETO"]);
    assert_eq!(rig.says("ATENDI"), NOTHING);
    rig.ends(1, Outcome::Success);
    rig.says("PRETA");
    assert_eq!(rig.says("RICEVIS"), ["PETO"]);
}

#[test]
fn whoever_may_not_ask_looks_again_every_second() {
    let looks = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&looks);
    let may_ask = move || seen.fetch_add(1, Ordering::Relaxed) == 2;
    let mut rig = Rig::of(Runner::new(RunnerOptions::new("r1", 2)).asking_if(may_ask));
    rig.greet();
    assert_eq!(rig.heard(), NOTHING);
    rig.pass(1999);
    assert_eq!((rig.heard(), looks.load(Ordering::Relaxed)), (Vec::new(), 2));
    rig.pass(1);
    assert_eq!(rig.heard(), ["PETO"]);
    assert_eq!(rig.gives("a", "x"), NOTHING, "not for the second slot");
    assert!(rig.ends(1, Outcome::Success)[0].starts_with("REZULTO a "), "results go on");
}

#[test]
fn fino_is_answered_when_the_last_job_is_handed_in() {
    let mut rig = Rig::greeted(2);
    rig.heard();
    rig.gives("a", "x");
    assert_eq!(rig.says("FINO"), NOTHING);
    rig.ends(1, Outcome::Success);
    rig.says("PRETA");
    assert_eq!(rig.says("RICEVIS"), ["FINO ANKAU"]);
    assert_eq!(rig.parting, Some(Parting::Finished));
}

#[test]
fn eliri_means_do_not_come_back() {
    let mut rig = Rig::greeted(1);
    rig.heard();
    assert_eq!(rig.says("ELIRI"), ["FINO ANKAU"]);
    assert!(matches!(&rig.parting, Some(Parting::Refused(why)) if why.contains("ejected")));
}

#[test]
fn another_version_or_group_is_left_without_a_word() {
    let mut rig = Rig::new(1);
    rig.heard();
    assert_eq!(rig.says("VERSIO 1.4"), NOTHING);
    let why = "the manager speaks version 1.4, this runner 1.3";
    assert_eq!(rig.parting, Some(Parting::Refused(why.into())));
    let mut rig = Rig::new(1);
    rig.heard();
    rig.says("VERSIO 1.3");
    assert_eq!(rig.says("ALIGI exp-7"), NOTHING);
    let why = "the manager's group is exp-7, this runner's __defaulte__";
    assert_eq!(rig.parting, Some(Parting::Refused(why.into())));
}

#[test]
fn whoever_drains_asks_no_more_and_says_goodbye() {
    let mut rig = Rig::greeted(2);
    rig.heard();
    rig.gives("a", "x");
    rig.tell(News::Draining);
    assert_eq!(rig.gives("b", "x"), NOTHING, "it was on its way");
    assert_eq!(rig.tell(News::Returned(Key(2))), NOTHING, "the manager gives it to another");
    rig.ends(1, Outcome::Success);
    rig.says("PRETA");
    assert_eq!(rig.says("RICEVIS"), ["FINO ANKAU"]);
    assert_eq!(rig.parting, Some(Parting::Finished));
}

#[test]
fn what_has_not_begun_is_begun_again() {
    let mut rig = Rig::greeted(2);
    rig.heard();
    rig.gives("a", "x");
    assert_eq!(rig.tell(News::Returned(Key(1))), NOTHING, "there is no word to give it back");
    assert_eq!(rig.says("FINO"), NOTHING);
    assert_eq!(rig.tell(News::Returned(Key(2))), NOTHING, "nor after FINO");
    let names: Vec<_> = rig.started.iter().map(|job| (job.key.0, job.name.as_str())).collect();
    assert_eq!(names, [(1, "a"), (2, "a"), (3, "a")]);
    rig.writes(3, Stream::Out, "RES:ok\n");
    assert!(rig.ends(3, Outcome::Success)[0].starts_with("REZULTO a success "));
}

#[test]
fn a_result_is_told_again_over_the_next_connection_but_not_for_ever() {
    let mut rig = Rig::greeted(1);
    rig.heard();
    rig.gives("a", "x");
    assert_eq!(rig.ends(1, Outcome::Success).len(), 1);
    for _ in 0..2 {
        rig.runner.lost(rig.now);
        assert!(!rig.runner.is_settled());
        rig.open();
        rig.greet();
        assert!(rig.heard()[0].starts_with("REZULTO a "));
    }
    rig.runner.lost(rig.now);
    assert!(rig.runner.is_settled(), "three managers hung up over it");
    rig.open();
    assert!(rig.words[0].contains("over the result of `a`: given up after 3 tries"));
    rig.greet();
    assert_eq!(rig.heard(), ["PETO"]);
    assert_eq!(rig.says("FINO"), ["FINO ANKAU"]);
    assert_eq!(
        rig.parting,
        Some(Parting::Refused("the manager did not accept 1 result".into())),
        "which is no good end"
    );
}

#[test]
fn a_job_goes_on_while_the_connection_is_away() {
    let mut rig = Rig::greeted(1);
    rig.heard();
    rig.gives("a", "x");
    rig.runner.lost(rig.now);
    assert_eq!(rig.ends(1, Outcome::Success), NOTHING);
    rig.open();
    rig.greet();
    assert!(rig.heard()[0].starts_with("REZULTO a "));
}

#[test]
fn a_manager_that_does_not_answer_is_left() {
    let mut rig = Rig::greeted(2);
    assert_eq!(rig.heard(), ["PETO"]);
    assert_eq!(rig.gives("a", "x"), ["PETO"]);
    rig.pass(60_000);
    assert!(matches!(rig.parting, Some(Parting::Again(_))));
    let mut rig = Rig::greeted(2);
    rig.heard();
    rig.gives("a", "x");
    rig.pass(1_000);
    assert_eq!(rig.ends(1, Outcome::Success), NOTHING);
    rig.pass(4_999);
    assert_eq!(rig.parting, None);
    rig.pass(1);
    assert!(matches!(rig.parting, Some(Parting::Again(_))), "it does not know that we have jobs");
}

#[test]
fn without_anything_to_do_the_answer_may_take_its_time() {
    let mut rig = Rig::greeted(1);
    assert_eq!(rig.heard(), ["PETO"]);
    rig.pass(3_600_000);
    assert_eq!(rig.parting, None);
    assert_eq!(rig.gives("a", "x"), NOTHING);
    assert_eq!(rig.started.len(), 1);
    let mut rig = Rig::greeted(1);
    rig.heard();
    assert_eq!(rig.tell(News::Draining), NOTHING, "the answer may be on its way");
    rig.pass(1_000);
    assert_eq!(rig.heard(), ["FINO ANKAU"]);
    assert_eq!(rig.parting, Some(Parting::Finished));
}

#[test]
fn a_manager_that_talks_out_of_turn_is_left() {
    for words in ["RICEVIS", "PRETA", "hello", "LABORO a .sh 99999999999", "VERSIO 1.3"] {
        let mut rig = Rig::greeted(1);
        rig.heard();
        rig.says(words);
        assert!(matches!(rig.parting, Some(Parting::Malformed(_))), "{words}");
    }
}

#[test]
fn each_state_takes_its_own_words_and_no_others() {
    const WORDS: [&str; 9] = [
        "VERSIO 1.3",
        "ALIGI __defaulte__",
        "LABORO b .sh 3",
        "PRETA",
        "RICEVIS",
        "FINO",
        "ATENDI",
        "ELIRI",
        "PETO",
    ];
    // What is heard; `-` lets the pause pass, `!` ends the job.
    let states: [(&str, &[&str], &[&str]); 6] = [
        ("version", &[], &["VERSIO 1.3"]),
        ("group", &["VERSIO 1.3"], &["ALIGI __defaulte__"]),
        ("pause", &["VERSIO 1.3", "ALIGI __defaulte__"], &[]),
        (
            "asked",
            &["VERSIO 1.3", "ALIGI __defaulte__", "-"],
            &["LABORO b .sh 3", "FINO", "ATENDI", "ELIRI"],
        ),
        (
            "announced",
            &["VERSIO 1.3", "ALIGI __defaulte__", "-", "LABORO a .sh 1", "x", "!"],
            &["PRETA"],
        ),
        (
            "handing",
            &["VERSIO 1.3", "ALIGI __defaulte__", "-", "LABORO a .sh 1", "x", "!", "PRETA"],
            &["RICEVIS"],
        ),
    ];
    for (state, before, taken) in states {
        for word in WORDS {
            let mut rig = Rig::new(1);
            for word in before {
                match *word {
                    "-" => rig.pass(55),
                    "!" => drop(rig.ends(1, Outcome::Success)),
                    word => drop(rig.says(word)),
                }
            }
            assert_eq!(rig.parting, None, "{state}");
            rig.says(word);
            let is_refused = matches!(rig.parting, Some(Parting::Malformed(_)));
            assert_eq!(is_refused, !taken.contains(&word), "{word} in {state}");
        }
    }
}

#[test]
fn endless_output_is_cut_and_its_last_res_line_still_counts() {
    let mut options = RunnerOptions::new("r1", 1);
    options.output_bytes_max = 100;
    let mut rig = Rig::with(options);
    rig.greet();
    rig.heard();
    rig.gives("a", "x");
    for _ in 0..1000 {
        rig.writes(1, Stream::Out, "0123456789");
    }
    rig.writes(1, Stream::Out, "\nRES:ok\n");
    assert_eq!(rig.runner.unsaid(), 0, "its pipe is read on");
    assert!(rig.ends(1, Outcome::Success)[0].starts_with("REZULTO a success "));
    let body = rig.says("PRETA").remove(0);
    assert!(body.ends_with("789\n[9908 more bytes left out]\n"), "{body}");
    assert!(body.len() < 400);
}

#[test]
fn a_host_name_is_made_sayable() {
    assert_eq!(RunnerOptions::new("node-1.cluster.example", 0).host, "node-1");
    assert_eq!(RunnerOptions::new("höst", 1).host, "hst");
    assert_eq!(RunnerOptions::new("...", 1).host, "laboro");
}
