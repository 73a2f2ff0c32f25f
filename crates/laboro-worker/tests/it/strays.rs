//! Processes that a task leaves behind.

use std::fs;
use std::time::{Duration, Instant};

use laboro_worker::{Ending, Launch};

use crate::rig::{Dir, Life, Rig, shell, until};

/// A script that starts `how` something in the background, lets it write its number to the file
/// `stray`, and ends once `gone` exists.
fn leaves_behind(dir: &Dir, how: &str) -> Launch {
    fs::write(dir.at("stray.sh"), "echo $$ > tmp; mv tmp stray; exec /bin/sleep 1000").unwrap();
    let script = format!("{how}\nuntil [ -e gone ]; do sleep 0.01; done; echo done");
    Launch { dir: Some(dir.0.clone()), ..shell(1, &script) }
}

fn stray_of(dir: &Dir) -> Life {
    until("the stray is there", || dir.at("stray").exists());
    Life::of(&fs::read_to_string(dir.at("stray")).unwrap())
}

fn is_killed_with_its_task(name: &str, how: &str) {
    let dir = Dir::new(name);
    let mut rig = Rig::new();
    rig.runner.launch(leaves_behind(&dir, how));
    let stray = stray_of(&dir);
    assert!(!stray.is_over());
    fs::write(dir.at("gone"), "").unwrap();
    let ended = rig.finish(1);
    assert_eq!((ended.ending.clone(), ended.text()), (Ending::Exited(0), "done"));
    until("the stray is gone", || stray.is_over());
    assert!(ended.usage.wall < Duration::from_secs(50));
}

#[test]
fn what_stays_in_the_group_goes_with_the_task() {
    is_killed_with_its_task("group", "sh stray.sh &");
}

#[test]
fn what_has_its_own_session_goes_with_the_task() {
    is_killed_with_its_task("session", "setsid sh stray.sh &");
}

#[test]
fn what_forked_twice_goes_with_the_task() {
    is_killed_with_its_task("twice", "setsid sh -c 'setsid sh stray.sh & exit' &");
}

#[test]
fn what_hides_behind_a_living_parent_goes_with_the_task() {
    is_killed_with_its_task(
        "parent",
        "setsid sh -c 'env -i setsid /bin/sh stray.sh & sleep 1000' &",
    );
}

#[test]
fn what_cleared_its_environment_goes_with_the_task() {
    is_killed_with_its_task("cleared", "env -i setsid /bin/sh stray.sh &");
}

#[test]
fn what_cannot_be_told_from_another_tasks_stays_until_that_ends() {
    let dir = Dir::new("doubt");
    let mut rig = Rig::new();
    rig.runner.launch(shell(7, "echo here; exec sleep 1000"));
    rig.said(7, 1);
    rig.runner.launch(leaves_behind(&dir, "env -i setsid /bin/sh stray.sh > /dev/null 2>&1 &"));
    let stray = stray_of(&dir);
    fs::write(dir.at("gone"), "").unwrap();
    assert_eq!(rig.finish(1).ending, Ending::Exited(0));
    rig.runner.stop(7, Duration::ZERO);
    rig.finish(7);
    until("the stray is gone", || stray.is_over());
}

#[test]
fn a_stray_of_one_task_does_not_cost_another_its_own() {
    let dir = Dir::new("own");
    let mut rig = Rig::new();
    rig.runner.launch(leaves_behind(&dir, "setsid sh stray.sh &"));
    let stray = stray_of(&dir);
    for id in 2..20 {
        assert_eq!(rig.run(shell(id, "setsid sleep 1000 & exit 0")).ending, Ending::Exited(0));
    }
    assert!(!stray.is_over());
    fs::write(dir.at("gone"), "").unwrap();
    rig.finish(1);
    until("the stray is gone", || stray.is_over());
}

#[test]
fn one_that_moved_to_another_group_is_stopped_all_the_same() {
    let mut rig = Rig::new();
    let python = "import os, time\n\
                  child = os.fork()\n\
                  if child == 0:\n    time.sleep(1000)\n\
                  os.setpgid(child, child); os.setpgid(0, child)\n\
                  print('moved', flush=True)\n\
                  time.sleep(1000)";
    rig.runner.launch(crate::rig::command(1, &["python3", "-c", python]));
    rig.said(1, 1);
    rig.runner.stop(1, Duration::from_secs(100));
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: false });
}

/// Its number changes all the time, so that every list of processes is too old.
#[test]
fn one_that_forks_without_end_is_caught() {
    let dir = Dir::new("comet");
    let comet = "import os\n\
                 os.setsid()\n\
                 while os.path.exists('.'):\n    \
                     if os.fork(): os._exit(0)\n    \
                     open('alive', 'w').close()\n";
    fs::write(dir.at("comet.py"), comet).unwrap();
    let script = "python3 comet.py & until [ -e alive ]; do sleep 0.01; done";
    let mut rig = Rig::new();
    let ended = rig.run(Launch { dir: Some(dir.0.clone()), ..shell(1, script) });
    assert_eq!(ended.ending, Ending::Exited(0));
    until("nobody says any more that he is alive", || {
        let _ = fs::remove_file(dir.at("alive"));
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(300) {
            if dir.at("alive").exists() {
                return false;
            }
            std::thread::yield_now();
        }
        true
    });
}
