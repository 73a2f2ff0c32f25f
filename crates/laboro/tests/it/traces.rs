//! Spans of jobs and attempts, as a receiver made of OpenTelemetry's own messages gets them.

use crate::rig::{Live, Rig, python, until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A receiver, a hub that sends there, and a worker.
struct Traced {
    rig: Rig,
    receiver: Live,
    hub: Live,
    worker: Live,
}

impl Traced {
    fn start() -> Traced {
        let rig = Rig::new();
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/traces/receiver.py");
        let mut command = Command::new(python());
        command.arg(script);
        let receiver = rig.call(command).env("PYTHONDONTWRITEBYTECODE", "1").start();
        until("the receiver listens", || receiver.out().contains('\n'));
        let endpoint = receiver.out().trim().to_owned();
        rig.write("hub.toml", format!("[traces]\nendpoint = \"{endpoint}\"\n"));
        let words = ["hub", "--dir=hub", "--config=hub.toml"];
        let hub =
            rig.laboro(words.into_iter().chain(["--http=127.0.0.1:0", "--native=127.0.0.1:0"]));
        let hub = hub.start();
        until("the hub listens", || hub.out().contains("native on"));
        let worker = rig.laboro(["worker", "hub", "-j2"]).start();
        Traced { rig, receiver, hub, worker }
    }

    fn spans(&self) -> Vec<Value> {
        let out = self.receiver.out();
        let lines = out.split_inclusive('\n').skip(1).filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn metric(&self, name: &str) -> u64 {
        let access = self.rig.read("hub/access.toml");
        let value = |key: &str| {
            let found = access.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
            found.unwrap().trim_end_matches('"').to_owned()
        };
        let url = format!("https://{}/api/v1/metrics", value("http"));
        let bearer = format!("Authorization: Bearer {}", value("token"));
        let asked = Command::new("curl").args(["-sk", "-H", &bearer, &url]).output().unwrap();
        let text = String::from_utf8(asked.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("there is no {name} in {text}")).parse().unwrap()
    }

    fn end(self) {
        for live in [self.worker, self.hub, self.receiver] {
            live.signal(Signal::TERM);
            live.wait();
        }
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

#[test]
fn a_job_and_its_attempts_are_spans_of_the_trace_of_who_submits() {
    let all = Traced::start();
    let line = "echo $TRACEPARENT; [ {} != 2 ]";
    let submit = ["submit", "--dir=hub", "--name=fit", "--wait", "-k", "--env=TOKEN=top-secret"];
    let call = all.rig.laboro(submit.into_iter().chain(["--", "sh", "-c", line, ":::", "1", "2"]));
    let ran = call.env("TRACEPARENT", &format!("00-{TRACE}-{PARENT}-01")).run();
    until("all spans have come", || all.spans().len() >= 3);
    let spans = all.spans();
    let job = spans.iter().find(|span| span["parent"] == PARENT).expect("the job's span");
    assert_eq!((&job["name"], &job["service"]), (&"fit".into(), &"laboro".into()), "{job}");
    assert_eq!(job["attributes"]["laboro.tasks.done"], 1);
    assert_eq!(job["error"], "1 not done");
    let attempts: Vec<&Value> = spans.iter().filter(|span| span["parent"] == job["span"]).collect();
    assert_eq!(attempts.len(), 2, "{spans:?}");
    for attempt in attempts {
        assert_eq!(attempt["trace"], TRACE);
        // What the task was told is the very span that came here.
        let told = format!("00-{TRACE}-{}-01", attempt["span"].as_str().unwrap());
        assert!(ran.out().contains(&told), "{told} in {}", ran.out());
        let outcome = &attempt["attributes"]["laboro.outcome"];
        let is_second = attempt["attributes"]["laboro.task"] == 2;
        assert_eq!(outcome, if is_second { "exit code 1" } else { "success" });
    }
    assert!(!all.receiver.out().contains("secret") && !all.receiver.out().contains("TOKEN"));
    all.end();
}

#[test]
fn a_receiver_that_is_away_gets_its_spans_later() {
    let all = Traced::start();
    all.rig.write("down", "");
    all.rig.laboro(["submit", "--dir=hub", "--wait", "--", "true"]).run().expect(0);
    until("it was tried", || all.metric("laboro_trace_requests_failed_total") > 0);
    until("it is said", || all.hub.err().contains("event=\"traces_failed\""));
    std::fs::remove_file(all.rig.at("down")).unwrap();
    until("all spans have come", || all.spans().len() == 2);
    until("they are counted", || all.metric("laboro_trace_spans_sent_total") == 2);
    assert_eq!(all.metric("laboro_trace_spans_dropped_total"), 0);
    // Nobody gave a trace: the job began one.
    let spans = all.spans();
    assert_eq!(spans[0]["trace"], spans[1]["trace"]);
    assert!(spans.iter().any(|span| span["parent"] == ""), "{spans:?}");
    all.end();
}

#[test]
fn without_a_receiver_tasks_get_the_trace_as_it_was_given() {
    let rig = Rig::new();
    let hub =
        rig.laboro(["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"]).start();
    until("the hub listens", || hub.out().contains("native on"));
    let worker = rig.laboro(["worker", "hub"]).start();
    let given = format!("00-{TRACE}-{PARENT}-01");
    let words = ["submit", "--dir=hub", "--wait", "-k", "--", "sh", "-c", "echo $TRACEPARENT"];
    let ran = rig.laboro(words).env("TRACEPARENT", &given).run();
    assert!(ran.expect(0).out().contains(&given), "{}", ran.out());
    let bare = rig.laboro(["submit", "--dir=hub", "--wait", "-k", "--", "env"]).run();
    assert!(!bare.expect(0).out().contains("TRACEPARENT"), "{}", bare.out());
    for live in [worker, hub] {
        live.signal(Signal::TERM);
        live.wait();
    }
}
