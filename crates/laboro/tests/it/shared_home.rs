//! Machines that share a home directory: the access file in it is all that they need.

use crate::rig::{Rig, until};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const EVERYWHERE: [&str; 8] =
    ["hub", "--dir", "hub", "--http", "127.0.0.1:0", "--native", "0.0.0.0:0", "--log-level=warn"];

#[test]
fn a_worker_that_is_there_before_its_hub_finds_it_when_it_starts() {
    let rig = Rig::new();
    rig.laboro(["access", "--dir", "hub", "--prepare"]).run().expect(0).says("is ready");
    let worker =
        rig.laboro(["worker", "./hub", "-j1", "--name", "early", "--scratch", "."]).start();
    until("it says what it waits for", || worker.err().contains("was not started yet"));
    let hub = rig.laboro(EVERYWHERE).start();
    until("it has come", || {
        let ran = rig.laboro(["workers", "--dir", "hub"]).run();
        ran.out().contains("early")
    });
    let access = rig.read("hub/access.toml");
    let native = access.lines().find(|line| line.starts_with("native")).unwrap();
    assert!(native.ends_with(":0\"") || native.contains(",127.0.0.1:"), "{native}");
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    assert!(access.contains(&format!("host = \"{host}\"")), "{access}");
    assert!(!access.contains("prepared"), "{access}");
    // What is there stays as it is.
    rig.laboro(["access", "--dir", "hub", "--prepare"]).run().expect(2).says("already");
    drop((worker, hub));
}

#[test]
fn a_hub_is_refused_where_one_of_another_machine_lives() {
    let rig = Rig::new();
    std::fs::create_dir(rig.at("hub")).unwrap();
    let alive = AtomicBool::new(true);
    let write = |beat: u32| {
        let text = format!("host = \"login2\"\nboot = \"another\"\npid = 7\nbeat = {beat}\n");
        rig.write("hub/alive.new", text);
        std::fs::rename(rig.at("hub/alive.new"), rig.at("hub/alive.toml")).unwrap();
    };
    write(0);
    std::thread::scope(|scope| {
        // Imitates the other machine.
        scope.spawn(|| {
            for beat in 1.. {
                if !alive.load(Ordering::Relaxed) {
                    return;
                }
                write(beat);
                std::thread::park_timeout(Duration::from_millis(50));
            }
        });
        let ran = rig.laboro(EVERYWHERE).run();
        alive.store(false, Ordering::Relaxed);
        ran.expect(3).says("runs on login2 (process 7)");
    });
    assert!(!rig.at("hub/access.toml").exists(), "nothing was touched");
}
