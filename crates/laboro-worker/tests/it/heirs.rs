//! Tasks that are over when nobody has their output any more, and what they leave in the background.

use std::fs;
use std::num::NonZeroUsize;
use std::time::Duration;

use laboro_worker::{Ending, Launch, Options, Runner, Until};

use crate::rig::{Dir, Life, Rig, options, shell, until};

/// Says its number and ends, with something in the background that waits for a file named `go`.
fn leaves(id: u64, dir: &Dir, background: &str) -> Launch {
    let wait = "while [ ! -e go ]; do sleep 0.01; done";
    let script = format!("({wait}; {background}) & echo $$; exit 3");
    Launch { until: Until::OutputEnds, dir: Some(dir.0.clone()), ..shell(id, &script) }
}

impl Rig {
    /// Launches it and waits until its process has ended.
    fn leave(&mut self, launch: Launch) {
        let id = launch.id;
        self.runner.launch(launch);
        until_gone(&self.said(id, 1)[0]);
    }
}

fn until_gone(pid: &str) {
    until("it is gone", || fs::metadata(format!("/proc/{pid}")).is_err());
}

#[test]
fn what_is_left_in_the_background_prints_to_its_end() {
    let (mut rig, dir) = (Rig::new(), Dir::new("heirs"));
    rig.leave(leaves(1, &dir, "echo late; echo problem >&2; sh -c 'sleep 0.1; echo last' &"));
    fs::write(dir.at("go"), "").unwrap();
    let ended = rig.finish(1);
    assert_eq!((ended.text(), &ended.ending), ("late\nlast", &Ending::Exited(3)));
    assert_eq!(ended.stderr, b"problem\n");
    assert!(ended.usage.wall >= Duration::from_millis(100));
}

#[test]
fn whoever_has_not_the_output_is_not_waited_for_and_goes() {
    let mut rig = Rig::new();
    let script = "sleep 100 > /dev/null & echo $!";
    let ended = rig.run(Launch { until: Until::OutputEnds, ..shell(1, script) });
    assert_eq!(ended.ending, Ending::Exited(0));
    until_gone(ended.text());
}

#[test]
fn without_anything_in_the_background_nothing_is_different() {
    let mut rig = Rig::new();
    for id in 0..20 {
        let launch = Launch { until: Until::OutputEnds, ..shell(id, "echo out; exit 4") };
        let ended = rig.run(launch);
        assert_eq!((ended.text(), &ended.ending), ("out", &Ending::Exited(4)));
    }
}

#[test]
fn a_task_whose_process_has_left_can_be_stopped() {
    let (mut rig, dir) = (Rig::new(), Dir::new("heirs-stop"));
    rig.leave(leaves(1, &dir, ""));
    rig.runner.stop(1, Duration::from_secs(50));
    assert_eq!(rig.finish(1).ending, Ending::Stopped { killed: false });
    rig.leave(leaves(2, &dir, ""));
    rig.runner.stop(2, Duration::ZERO);
    assert_eq!(rig.finish(2).ending, Ending::Stopped { killed: true });
    // It hears its signal, and has the time to answer it.
    let deaf = "trap 'echo heard; exit 0' TERM; echo $$; while :; do sleep 0.01; done";
    let script = format!("sh -c \"{}\" & wait $! & exit 0", deaf.replace('$', "\\$"));
    let launch = Launch { until: Until::OutputEnds, ..shell(3, &script) };
    rig.runner.launch(launch);
    rig.said(3, 1);
    rig.runner.stop(3, Duration::from_secs(50));
    let ended = rig.finish(3);
    assert_eq!((ended.text(), &ended.ending), ("heard", &Ending::Stopped { killed: false }));
}

#[test]
fn its_time_limit_holds_for_what_is_left_of_it() {
    let (mut rig, dir) = (Rig::new(), Dir::new("heirs-limit"));
    let timeout = Some(Duration::from_millis(300));
    let ended = rig.run(Launch { timeout, ..leaves(1, &dir, "") });
    assert_eq!(ended.ending, Ending::TimedOut { killed: false });
}

#[test]
fn its_room_is_taken_until_it_is_over() {
    let at_once = NonZeroUsize::new(1);
    let (runner, events) = Runner::start(Options { at_once, ..options() }).unwrap();
    let (mut rig, dir) = (Rig { runner, events }, Dir::new("heirs-room"));
    rig.leave(leaves(1, &dir, "sleep 0.1; touch over"));
    rig.runner.launch(Launch { dir: Some(dir.0.clone()), ..shell(2, "ls over") });
    fs::write(dir.at("go"), "").unwrap();
    assert_eq!(rig.finish(2).text(), "over");
}

#[test]
fn a_runner_that_ends_takes_it_along() {
    let mut rig = Rig::new();
    let launch = Launch { until: Until::OutputEnds, ..shell(1, "sleep 100 & echo $!; echo $$") };
    rig.runner.launch(launch);
    let said = rig.said(1, 2);
    let heir = Life::of(&said[0]);
    until_gone(&said[1]);
    drop(rig);
    assert!(heir.is_over());
}
