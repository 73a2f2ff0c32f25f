//! Tasks that take several whole workers, at a real hub with workers of the real program.

use super::hub::HubRig;
use crate::rig::{Life, until};
use laboro_core::{Needs, Profile, State};
use laboro_hub::config::Listen;

fn wide(nodes: u32) -> Profile {
    Profile { needs: Needs { nodes, ..Needs::default() }, ..Profile::default() }
}

#[test]
fn a_task_runs_on_the_first_of_its_workers_and_knows_them_all() {
    let hub = HubRig::with(|settings| settings.http = Listen::At("127.0.0.1:0".parse().unwrap()));
    let _workers = [hub.worker("b", &["-j", "2"]), hub.worker("a", &["-j", "2"])];
    let access = hub.access();
    let line = "cat $LABORO_NODE_FILE >hosts; echo $LABORO_NODE_FILE >file; echo $LABORO_WORKER $LABORO_NODES $LABORO_NODELIST >who; \
                test -e go || until test -e go; do sleep 0.02; done";
    let words = ["submit", "--access", &access, "--nodes", "2", "--", "sh", "-c", line];
    hub.rig.laboro(words).run().expect(0);
    until("it runs", || hub.rig.at("who").exists() && hub.rig.lines("who").len() == 1);
    assert_eq!(hub.rig.lines("hosts").len(), 2);
    let who = hub.rig.read("who");
    assert!(who.starts_with("a 2 "), "{who}");

    // Both are whole workers: nothing else runs on them.
    let small = hub.submit(1, "touch small", Profile::default());
    let printed = |words: &[&str], expected: &str| {
        let ran = hub.rig.laboro(words.iter().chain(&["--access", &access])).run();
        let out = ran.expect(0).out();
        assert!(out.contains(expected), "{out}");
    };
    printed(&["show", "1/1"], "2 whole workers, each with 1 slot");
    printed(&["show", "1/1"], "kept for it");
    printed(&["workers"], "kept");
    assert_eq!(hub.counts(small).of(State::Ready), 1);
    let three = ["submit", "--access", &access, "--nodes", "3", "--", "true"];
    hub.rig.laboro(three).run().expect(0);
    printed(&["explain", "3/1"], "takes 3 workers at once, and group default has 2");

    hub.rig.write("go", "");
    hub.until_done(small);
    let file = hub.rig.read("file");
    until("its file is gone", || !std::path::Path::new(file.trim()).exists());
}

#[test]
fn a_lost_worker_ends_the_attempt_on_all_and_the_task_runs_again() {
    let hub = HubRig::new();
    let first = hub.worker("a", &["--lease", "2s"]);
    let mut kept = hub.worker("b", &["--lease", "2s"]);
    let line = "echo $$ >>pids; test $LABORO_ATTEMPT -gt 1 || sleep 1000";
    let job = hub.submit(1, line, wide(2));
    until("it runs", || hub.rig.at("pids").exists() && hub.rig.lines("pids").len() == 1);
    let process = Life::of(&hub.rig.lines("pids")[0]);
    kept.signal(rustix::process::Signal::KILL);
    until("it is killed", || kept.has_ended());
    until("its process on the other worker is ended", || process.is_over());
    assert_eq!(hub.counts(job).of(State::Ready), 1, "one worker is too few");
    let _again = hub.worker("c", &[]);
    hub.until_done(job);
    assert_eq!(hub.rig.lines("pids").len(), 2);
    drop(first);
}

#[test]
fn a_run_has_one_worker() {
    let hub = HubRig::new();
    let ran = hub.rig.run(["--nodes", "2", "--", "true"]);
    ran.expect(2).says("takes 2 workers at once and a run has one");
    hub.rig.run(["-j", "2", "--nodes", "1", "--", "true"]).expect(0);
}
