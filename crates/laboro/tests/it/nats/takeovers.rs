//! A hub that leads dies or stands still, and another one goes on.

use super::cluster::Cluster;
use super::pair::Pair;
use crate::hub::Receiver;
use crate::rig::until;
use rustix::process::Signal;

#[test]
fn a_hub_that_is_killed_is_replaced_and_the_work_goes_on() {
    let mut pair = Pair::new(1);
    let _worker = pair.worker();
    let line = "sleep 0.02; echo $1 >> ran";
    let submit = ["submit", "--quiet", "--array", "1-300", "--", "sh", "-c", line, "x", "{}"];
    pair.call(&submit).expect(0);
    until("some have run", || pair.rig.lines("ran").len() > 30);
    pair.signal(0, Signal::KILL);
    drop(pair.hubs[0].take());
    pair.call(&["wait", "last", "--timeout", "40s", "--quiet"]).expect(0);
    assert!(pair.leads(1));
    let mut ran = pair.rig.sorted_lines("ran");
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), 300);
    // Only what ran when the hub died may run again.
    assert!(all <= 300 + 8, "{all} runs");
    let status = pair.status();
    assert!(status[0]["leads"] == true && status[0]["life"] == 2, "{status:?}");

    // The dead one comes back, follows, and is handed the lead.
    pair.start(0);
    until("it follows", || pair.status().iter().any(|hub| hub["leads"] == false));
    let told = pair.hand_over();
    assert!(told.expect(0).out().contains("is the leader now"));
    until("the first leads again", || pair.leads(0));
    pair.hubs[1].take().unwrap().wait().expect(0);
    pair.call(&["submit", "--wait", "--", "true", "{}", ":::", "1"]).expect(0);
}

#[test]
fn a_hub_that_was_stopped_for_too_long_acknowledges_nothing_when_it_goes_on() {
    let mut pair = Pair::new(1);
    pair.call(&["submit", "--quiet", "--", "true", "{}", ":::", "1"]).expect(0);
    pair.signal(0, Signal::STOP);
    until("the other leads", || pair.leads(1));
    // Asked while it is stopped, it would answer when it goes on.
    let old = pair.rig.laboro(["submit", "--quiet", "--", "true", "{}", ":::", "1"]);
    let old = old.env("LABORO_DIR", pair.rig.at("a").to_str().unwrap()).start();
    pair.call(&["submit", "--quiet", "--", "true", "{}", ":::", "1"]).expect(0);
    pair.signal(0, Signal::CONT);
    let ended = pair.hubs[0].take().unwrap().wait();
    ended.expect(3).says("another hub has taken over");
    assert_ne!(old.wait().status.code(), Some(0));
    let jobs = pair.call(&["jobs", "--json"]).events().len();
    assert_eq!(jobs, 2, "what the stopped one was asked for is not there");
}

#[test]
fn what_tasks_printed_is_there_after_the_machine_of_their_hub_is_gone() {
    let mut pair = Pair::with(Cluster::start(1), "[outputs]\nin_nats = true\n");
    let _worker = pair.worker();
    let submit = ["submit", "--quiet", "--wait", "--", "echo", "said {}", ":::", "before", "more"];
    pair.call(&submit).expect(0);
    let is_copied = || pair.rig.read("b/outputs/0000000001.out").contains("said more");
    until("it is copied", is_copied);
    pair.signal(0, Signal::KILL);
    drop(pair.hubs[0].take());
    std::fs::remove_dir_all(pair.rig.at("a")).unwrap();
    until("the other leads", || pair.leads(1));
    assert!(pair.call(&["logs", "1/1"]).expect(0).out().contains("said before"));
    // And a hub on an empty disk gets all of it, the last moment before a hand-over included.
    pair.start(0);
    until("it follows", || pair.status().iter().any(|hub| hub["leads"] == false));
    pair.call(&["submit", "--quiet", "--wait", "--", "echo", "said {}", ":::", "after"]).expect(0);
    pair.hand_over().expect(0);
    until("the first leads again", || pair.leads(0));
    assert!(pair.call(&["logs", "1/2"]).expect(0).out().contains("said more"));
    assert!(pair.call(&["logs", "2/1"]).expect(0).out().contains("said after"));
}

#[test]
fn pools_schedules_and_deliveries_pass_to_the_hub_that_takes_over() {
    let receiver = Receiver::start(&[500, 200]);
    let job = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
    std::fs::write(job.path(), "true\n").unwrap();
    let schedule = format!("name = \"night\"\nfile = {:?}\ncron = \"0 0 1 1 *\"\n", job.path());
    let settings = format!("[hooks]\nretry_ms = 6000\n[[schedule]]\n{schedule}");
    let mut pair = Pair::with(Cluster::start(1), &settings);
    pair.call(&["schedule", "run-now", "night"]).expect(0);
    let add = ["pool", "add", "lab", "-j", "1", "--kind", "command", "--list", "echo 77 queued"];
    pair.call(&[&add[..], &["--cancel", "true", "--", "echo", "77"]].concat()).expect(0);
    let pool =
        |pair: &Pair| pair.call(&["pool", "show", "lab", "--json"]).expect(0).events()[0].clone();
    until("an allocation is queued", || pool(&pair)["allocations"][0]["id"] == "77");
    let url = receiver.url("told");
    pair.call(&["submit", "--quiet", "--on-end", &url, "--", "true"]).expect(0);
    pair.call(&["cancel", "2"]).expect(0);
    until("the first try failed", || receiver.all().len() == 1);
    pair.signal(0, Signal::KILL);
    drop(pair.hubs[0].take());
    until("the other leads", || pair.leads(1));

    until("the other one delivers", || receiver.all().len() == 2);
    let [first, second] = [&receiver.all()[0], &receiver.all()[1]];
    assert_eq!(
        (&first.body, first.header("laboro-signature")),
        (&second.body, second.header("laboro-signature"))
    );
    let schedule = pair.call(&["schedule", "show", "night", "--json"]).expect(0).events();
    assert_eq!(schedule[0]["last"]["job"], 1);
    let pool = pool(&pair);
    assert_eq!(
        (&pool["allocations"][0]["id"], &pool["submitted_total"]),
        (&"77".into(), &1.into()),
        "{pool}"
    );
}
