//! `kill -9` at any moment: what was recorded stays recorded, what was not runs again, and no process of the
//! job is left behind.

use crate::rig::{Life, Rig, events, until};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const TASKS: usize = 3000;
const KILLS: usize = 40;
const SLOTS: usize = 4;
/// Tasks on loan beyond the slots of a run with few slots.
const AHEAD: usize = 64;

#[test]
fn slow_forty_kills_lose_nothing_and_repeat_nothing_that_was_recorded() {
    let rig = Rig::new();
    // `>>` is O_APPEND, and one short write is one line.
    rig.write("jobs.txt", "echo $LABORO_TASK >> ran\n".repeat(TASKS));
    let mut recorded: BTreeSet<String> = BTreeSet::new();
    // Where the file stood when a task was known to be recorded: nothing of it may come later.
    let mut recorded_at: BTreeMap<String, usize> = BTreeMap::new();
    let mut random = Random(0x5eed);
    for round in 0..KILLS {
        let live = rig.laboro(["run", "--json", "-j4", "jobs.txt"]).start();
        // After some number of ends and some spinning, so that every stage is hit, the opening too.
        let (ends, spins) = (random.below(20), random.below(400_000));
        until("enough has ended", || count_ends(&live.out()) >= ends);
        (0..spins).for_each(|i| {
            std::hint::black_box(i);
        });
        live.signal(Signal::KILL);
        let ran = live.wait();
        let out = ran.out();
        // The last line may be cut short.
        let whole = &out[..out.rfind('\n').map_or(0, |end| end + 1)];
        let ended = events(whole).into_iter().filter(|event| event["event"] == "end");
        let ended: Vec<String> =
            ended.map(|end| end["name"].as_str().unwrap().to_owned()).collect();
        let lines = rig.lines("ran");
        for task in ended {
            assert!(recorded.insert(task.clone()), "round {round}: {task} ended twice");
            recorded_at.insert(task, lines.len());
        }
        let done = rig.journal()["tasks"]["done"].as_u64().unwrap_or(0) as usize;
        assert!(done >= recorded.len(), "round {round}: {done} recorded of {}", recorded.len());
    }
    rig.run(["-j4", "jobs.txt"]).expect(0).says(&format!("{TASKS} of {TASKS} tasks done in"));
    let lines = rig.lines("ran");
    let ran: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(ran.len(), TASKS, "every task has left its mark");
    for (task, at) in recorded_at {
        assert!(!lines[at..].contains(&task), "task {task} ran again after it was recorded");
    }
    // Only what was on loan at a kill may have run twice: all of it can have ended while the journal was
    // still saving the ends before.
    assert!(lines.len() <= TASKS + KILLS * (SLOTS + AHEAD), "{} lines", lines.len());
}

fn count_ends(out: &str) -> usize {
    out.matches("\"event\":\"end\"").count()
}

/// Enough for choosing moments.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn with_less_durability_a_kill_costs_repeats_and_nothing_else() {
    for durability in ["os", "none"] {
        let rig = Rig::new();
        rig.write("jobs.txt", "echo $LABORO_TASK >> ran; echo out $LABORO_TASK\n".repeat(600));
        let run = ["run", "--json", "-j2", "--durability", durability, "jobs.txt"];
        for _ in 0..3 {
            let live = rig.laboro(run).start();
            until("some have ended", || count_ends(&live.out()) >= 4);
            live.signal(Signal::KILL);
            live.wait();
        }
        rig.laboro(run).run().expect(0);
        let ran: BTreeSet<String> = rig.lines("ran").into_iter().collect();
        assert_eq!(ran.len(), 600, "{durability}");
        for task in ["1", "20", "600"] {
            let logs = rig.laboro(["logs", task]).run();
            assert_eq!(logs.expect(0).out(), format!("out {task}\n"), "{durability}");
        }
    }
}

#[test]
fn a_killed_guardian_is_replaced_and_its_tasks_run_again() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "echo $PPID >> begun; until [ -e go ]; do sleep 0.01; done; echo end\n".repeat(2),
    );
    let live = rig.laboro(["run", "-k", "-j2", "jobs.txt"]).start();
    until("both run", || rig.lines("begun").len() == 2);
    let guardian = rig.lines("begun")[0].parse().unwrap();
    kill_process(Pid::from_raw(guardian).unwrap(), Signal::KILL).unwrap();
    until("both run again", || rig.lines("begun").len() == 4);
    rig.write("go", "");
    assert_eq!(live.wait().expect(0).out(), "end\nend\n");
}

#[test]
fn no_process_of_the_job_survives_its_run() {
    let rig = Rig::new();
    // One that hears nothing but SIGKILL, one below it, one in a session of its own, and one of that kind
    // with nothing in its environment.
    let family = "trap '' TERM HUP INT; echo $$ >> pids; \
        sh -c 'echo $$ >> pids; while :; do sleep 1; done' & \
        setsid sh -c 'echo $$ >> pids; while :; do sleep 1; done' & \
        env -i setsid /bin/sh -c 'echo $$ >> pids; while :; do /bin/sleep 1; done' & \
        while :; do sleep 1; done\n";
    rig.write("jobs.txt", family.repeat(3));
    let live = rig.laboro(["run", "-j3", "jobs.txt"]).start();
    until("all processes run", || rig.lines("pids").len() == 12);
    let lives: Vec<Life> = rig.lines("pids").iter().map(|pid| Life::of(pid)).collect();
    live.signal(Signal::KILL);
    live.wait();
    for life in &lives {
        until("it is gone", || life.is_over());
    }
}

/// The program, its guardian and the guardian's keeper in one moment, so that none of them can end the tasks.
pub(crate) fn kill_with_all_that_watches(program: u32, guardian: &str) {
    let keeper = Life::of(guardian).parent();
    let pids = [program.to_string(), guardian.to_owned(), keeper.to_string()];
    for signal in ["-STOP", "-KILL"] {
        assert!(Command::new("kill").arg(signal).args(&pids).status().unwrap().success());
    }
}

#[test]
fn what_a_run_left_that_was_killed_with_all_that_watches_it_is_ended_before_the_next_begins() {
    let rig = Rig::new();
    let line = "test -s pids && grep -qs 'State:.[RSDT]' /proc/$(head -n 1 pids)/status && echo $$ >> beside; \
                echo $PPID > guardian; echo $$ >> pids; until [ -e go ]; do sleep 0.01; done\n";
    rig.write("jobs.txt", line);
    for again in [&["run", "jobs.txt"][..], &["run", "--fresh", "jobs.txt"]] {
        let _ = std::fs::remove_file(rig.at("pids"));
        let _ = std::fs::remove_file(rig.at("go"));
        let live = rig.laboro(["run", "--fresh", "jobs.txt"]).start();
        until("it runs", || rig.lines("pids").len() == 1);
        let first = Life::of(&rig.lines("pids")[0]);
        kill_with_all_that_watches(live.pid(), &rig.lines("guardian")[0]);
        live.wait();
        assert!(!first.is_over(), "nobody was there to end it");
        let live = rig.laboro(again).start();
        until("it runs again", || rig.lines("pids").len() == 2);
        assert!(first.is_over());
        rig.write("go", "");
        live.wait().expect(0).says("that a killed run of this job left");
        assert_eq!(rig.lines("beside"), [""; 0]);
    }
    rig.run(["--fresh", "jobs.txt"]).expect(0);
    assert!(!rig.run_dir().join("runner").exists(), "a run that ended well has left nothing");
}

#[test]
fn a_killed_task_runs_again_and_its_outputs_are_kept_apart() {
    let rig = Rig::new();
    rig.write(
        "jobs.txt",
        "echo attempt $LABORO_ATTEMPT; touch begun; until [ -e go ]; do sleep 0.01; done; echo end\n",
    );
    for round in 1..=3 {
        let live = rig.laboro(["run", "jobs.txt"]).start();
        until("it runs", || rig.at("begun").exists());
        let said = format!("attempt {round}\n");
        until("what it said is kept", || rig.laboro(["logs", "1"]).run().out() == said);
        live.signal(Signal::KILL);
        live.wait();
        std::fs::remove_file(rig.at("begun")).unwrap();
    }
    rig.write("go", "");
    rig.run(["jobs.txt"]).expect(0);
    assert_eq!(rig.laboro(["logs", "1"]).run().out(), "attempt 4\nend\n");
    assert_eq!(rig.laboro(["logs", "--attempt", "2", "1"]).run().out(), "attempt 2\n");
}

#[test]
fn scripts_killed_after_their_result_was_written_are_in_the_table() {
    let rig = Rig::new();
    for i in 0..30 {
        rig.write(&format!("runs/{i}.sh"), "echo RES: fine\n");
    }
    let live = rig.laboro(["run", "--json", "-j2", "--runs", "runs"]).start();
    until("some have ended", || count_ends(&live.out()) > 5);
    live.signal(Signal::KILL);
    live.wait();
    rig.run(["--runs", "runs"]).expect(0);
    assert_eq!(rig.lines("outputs/runexp.am").len(), 60);
    assert!(rig.lines("outputs/runexp.am").iter().skip(1).step_by(2).all(|line| line == "1"));
}
