//! A hub as a service: what it tells its service manager, what a reload does, and the unit that starts it.

use crate::rig::{Live, Rig, until};
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The manager's end: what it was told, one message after the other.
struct Manager(UnixDatagram);

impl Manager {
    fn new(rig: &Rig) -> Manager {
        let socket = UnixDatagram::bind(rig.at("notify")).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Manager(socket)
    }

    /// Until a message that begins so.
    fn hears(&self, beginning: &str) {
        let mut text = [0; 4096];
        loop {
            let length = self.0.recv(&mut text).expect(beginning);
            if text[..length].starts_with(beginning.as_bytes()) {
                return;
            }
        }
    }
}

fn hub(rig: &Rig, more: &[&str]) -> Live {
    let words = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
    let call = rig.laboro(words.iter().chain(more));
    let socket = rig.at("notify");
    call.env("NOTIFY_SOCKET", socket.to_str().unwrap()).env("WATCHDOG_USEC", "600000").start()
}

#[test]
fn the_service_manager_is_told_what_a_hub_does() {
    let rig = Rig::new();
    let manager = Manager::new(&rig);
    let hub = hub(&rig, &[]);
    manager.hears("READY=1");
    manager.hears("WATCHDOG=1");
    hub.signal(Signal::HUP);
    manager.hears("RELOADING=1\nMONOTONIC_USEC=");
    manager.hears("READY=1");
    hub.signal(Signal::TERM);
    manager.hears("STOPPING=1");
    hub.wait().expect(0).says("event=\"hub_stopped\"");
}

#[test]
fn a_reload_rereads_the_log_level_and_the_certificate() {
    let rig = Rig::new();
    let manager = Manager::new(&rig);
    rig.write("hub.toml", "log_level = \"warn\"\n");
    let hub = hub(&rig, &["--config=hub.toml"]);
    manager.hears("READY=1");
    std::fs::copy(rig.at("hub/access.toml"), rig.at("old.toml")).unwrap();
    rig.laboro(["status", "--dir=hub"]).run().expect(0);
    assert!(!hub.err().contains("hub_starting"), "{}", hub.err());

    // A hub without a certificate makes one.
    std::fs::remove_file(rig.at("hub/tls.pem")).unwrap();
    rig.write("hub.toml", "log_level = \"info\"\n");
    hub.signal(Signal::HUP);
    manager.hears("RELOADING=1");
    manager.hears("READY=1");
    until("it says so", || hub.err().contains("event=\"reloaded\""));
    rig.laboro(["status", "--dir=hub"]).run().expect(0);
    // The socket of the old certificate still leads there; the address does not.
    let old = rig.read("old.toml");
    let without: String = old
        .lines()
        .filter(|line| !line.starts_with("socket"))
        .map(|line| format!("{line}\n"))
        .collect();
    rig.write("old.toml", without);
    let stranger = rig.laboro(["status", "--access=old.toml"]).run();
    stranger.expect(3).says("is not the hub of the access file");

    // What makes no sense changes nothing.
    rig.write("hub.toml", "log_level = 7\n");
    hub.signal(Signal::HUP);
    until("it complains", || hub.err().contains("event=\"reload_failed\""));
    rig.laboro(["status", "--dir=hub"]).run().expect(0);
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn a_log_file_that_was_moved_away_is_opened_again_by_a_signal() {
    let rig = Rig::new();
    let manager = Manager::new(&rig);
    let hub = hub(&rig, &["--log-file=hub.log"]);
    manager.hears("READY=1");
    assert!(rig.read("hub.log").contains("event=\"hub_starting\""), "{}", rig.read("hub.log"));
    let reopened = |name: &str| rig.read(name).matches("event=\"log_reopened\"").count();
    for (signal, moved, before) in [(Signal::USR1, "hub.log.1", 0), (Signal::HUP, "hub.log.2", 1)] {
        std::fs::rename(rig.at("hub.log"), rig.at(moved)).unwrap();
        hub.signal(signal);
        until("the new file is written", || rig.at("hub.log").exists() && reopened("hub.log") == 1);
        assert_eq!(reopened(moved), before, "{}", rig.read(moved));
    }
    hub.signal(Signal::TERM);
    let ended = hub.wait();
    ended.expect(0);
    assert_eq!(ended.err(), "");
    assert!(rig.read("hub.log").contains("event=\"hub_stopped\""), "{}", rig.read("hub.log"));

    let nowhere = rig.laboro(["hub", "--dir=hub", "--http=off", "--log-file=no/such/hub.log"]);
    nowhere.run().expect(3).says("no/such/hub.log: the log cannot be written");
}

#[test]
fn an_idle_hub_sleeps_and_is_small() {
    let rig = Rig::new();
    let words = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
    let hub = rig.laboro(words).start();
    until("it listens", || hub.out().contains("native on"));
    // What the start needed is given back after 2 s.
    std::thread::sleep(Duration::from_secs(3));
    let (before, time) = (switches(hub.pid()), Duration::from_secs(5));
    std::thread::sleep(time);
    let wakes = switches(hub.pid()) - before;
    assert!(wakes < 2 * time.as_secs(), "{wakes} wake-ups in {time:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.pid())).unwrap();
    let private = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let private: u64 = private.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(private < 16 << 10, "{private} KiB of its own");
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

/// How often threads of a process went to sleep.
fn switches(process: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let slept = threads.map(|thread| {
        let status = std::fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        count.unwrap().trim().parse::<u64>().unwrap()
    });
    slept.sum()
}

#[test]
fn the_log_tells_of_jobs_and_workers() {
    let rig = Rig::new();
    let manager = Manager::new(&rig);
    let hub = hub(&rig, &["--log-format=json"]);
    manager.hears("READY=1");
    let worker = rig.laboro(["worker", "hub", "--name=w1", "--no-op"]).start();
    rig.laboro(["submit", "--dir=hub", "--name=mine", "--wait", "--", "true"]).run().expect(0);
    let has = |event: &str, more: &str| {
        let log = hub.err();
        log.lines()
            .any(|line| line.contains(&format!("\"event\":\"{event}\"")) && line.contains(more))
    };
    until("the worker is told of", || has("worker_joined", "\"name\":\"w1\""));
    until("the job is told of", || has("job_submitted", "\"name\":\"mine\""));
    assert!(has("hub_starting", "\"version\":") && has("door_open", "\"door\":\"native\""));
    for live in [worker, hub] {
        live.signal(Signal::TERM);
        live.wait();
    }
}

#[test]
fn a_unit_can_be_made_for_the_system_and_for_a_user() {
    let rig = Rig::new();
    let system = rig.laboro(["hub", "install-service", "--print", "--config=my hub.toml"]).run();
    let unit = system.expect(0).out();
    for line in ["Type=notify", "User=laboro", "WantedBy=multi-user.target"] {
        assert!(unit.lines().any(|there| there == line), "{line}: {unit}");
    }
    let start = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    assert!(start.contains(" hub --dir /var/lib/laboro --config \"/"), "{start}");

    let home = rig.at("home");
    let config = home.to_str().unwrap();
    let install =
        || rig.laboro(["hub", "install-service", "--user"]).env("XDG_CONFIG_HOME", config);
    install().run().expect(0).says("is written");
    let path = home.join("systemd/user/laboro-hub.service");
    let unit = std::fs::read_to_string(&path).unwrap();
    assert!(unit.contains("WantedBy=default.target") && !unit.contains("User="), "{unit}");
    install().run().expect(0);
    std::fs::write(&path, "[Unit]\n").unwrap();
    install().run().expect(3).says("--replace");
}

#[test]
fn a_doctor_says_what_is_wrong() {
    let rig = Rig::new();
    let doctor = |more: &[&str]| {
        let words = ["doctor", "--dir=hub", "--json"];
        rig.laboro(words.iter().chain(more)).run()
    };
    let verdict = |ran: &crate::rig::Ran, check: &str| {
        let found = ran.events().into_iter().find(|finding| finding["check"] == check);
        found.map(|finding| finding["verdict"].as_str().unwrap().to_owned())
    };
    // Nobody is there, and one port is taken.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    rig.write("hub.toml", format!("http = \"{address}\"\nnative = \"127.0.0.1:0\"\n"));
    let ran = doctor(&["--config=hub.toml"]);
    ran.expect(3);
    assert_eq!(verdict(&ran, "http port").as_deref(), Some("bad"), "{}", ran.out());
    assert_eq!(verdict(&ran, "native port").as_deref(), Some("good"));

    let manager = Manager::new(&rig);
    let hub = hub(&rig, &[]);
    manager.hears("READY=1");
    let ran = doctor(&[]);
    ran.expect(0);
    for check in ["program", "disk", "access file", "hub", "token", "clock"] {
        assert_eq!(verdict(&ran, check).as_deref(), Some("good"), "{check}: {}", ran.out());
    }
    hub.signal(Signal::TERM);
    hub.wait();
    let ran = doctor(&[]);
    ran.expect(3);
    assert!(ran.out().contains("start it: laboro hub --dir"), "{}", ran.out());
}
