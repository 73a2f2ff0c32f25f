//! `laboro hub` and `laboro access` as a person uses them: lines, files, signals, exit statuses.

use crate::rig::{Live, Rig, until};
use rustix::process::{Resource, Rlimit, Signal};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const FREE_PORTS: [&str; 5] =
    ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0", "--durability=os"];

/// Started, and listening at its native door.
fn start(rig: &Rig, more: &[&str]) -> Live {
    let hub = rig.laboro(FREE_PORTS.iter().chain(more)).start();
    until("it listens", || hub.out().contains("native on 127.0.0.1:"));
    hub
}

fn address(hub: &Live, door: &str) -> String {
    let out = hub.out();
    let line = out.lines().find_map(|line| line.strip_prefix(&format!("{door} on ")));
    line.unwrap().split(',').next().unwrap().to_owned()
}

#[test]
fn a_hub_without_any_door_is_not_started() {
    let rig = Rig::new();
    let hub = rig.laboro(["hub", "--dir=hub", "--http=off", "--native=off"]).run();
    hub.expect(2).says("every door is off");
}

#[test]
fn it_says_where_it_listens_and_a_signal_ends_it_in_order() {
    let rig = Rig::new();
    let hub = start(
        &rig,
        &[
            "--door=dwork=127.0.0.1:0,group=exp",
            "--door=fuq1=127.0.0.1:0",
            "--door=fuq2=127.0.0.1:0",
        ],
    );
    until("all doors are told", || hub.out().contains("fuq2 on "));
    assert!(hub.out().contains(", group exp\n"), "{}", hub.out());
    assert!(hub.out().contains(", group default\n"), "{}", hub.out());
    assert!(rig.read("hub/access.toml").contains(&address(&hub, "native")));
    for door in ["native", "dwork", "fuq1", "fuq2"] {
        TcpStream::connect(address(&hub, door)).unwrap();
    }
    hub.signal(Signal::TERM);
    let ran = hub.wait();
    ran.expect(0);
    assert!(!ran.err().contains("ERROR"), "{}", ran.err());
}

#[test]
fn a_hub_that_was_killed_starts_again_in_the_same_place() {
    let rig = Rig::new();
    let first = start(&rig, &[]);
    first.signal(Signal::KILL);
    first.wait();
    let second = start(&rig, &[]);
    second.signal(Signal::INT);
    second.wait().expect(0);
}

#[test]
fn a_second_hub_on_the_same_directory_says_so_and_fails() {
    let rig = Rig::new();
    let first = start(&rig, &[]);
    let second = rig.laboro(FREE_PORTS).run();
    second.expect(3).says(&format!("is in use by process {}", first.pid()));
    first.signal(Signal::TERM);
    first.wait().expect(0);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let rig = Rig::new();
    let hub = start(&rig, &["--door=fuq2=127.0.0.1:0"]);
    until("all doors are told", || hub.out().contains("fuq2 on "));
    // Someone in the middle of a TLS handshake keeps the first stop waiting for some seconds.
    let http = address(&hub, "http");
    let _half = TcpStream::connect(http.strip_prefix("https://").unwrap()).unwrap();
    let mut guest = TcpStream::connect(address(&hub, "fuq2")).unwrap();
    guest.read_exact(&mut [0; 1]).unwrap();
    hub.signal(Signal::TERM);
    guest.read_to_end(&mut Vec::new()).unwrap();
    hub.signal(Signal::INT);
    hub.wait().expect(130);
}

#[test]
fn settings_come_from_a_file_and_the_command_line_counts_more() {
    let rig = Rig::new();
    rig.write("hub.toml", "durability = \"os\"\ngroup = \"file\"\n[limits]\nconnections = 7\n");
    let printed = rig.laboro(["hub", "--config=hub.toml", "--group=line", "--print-config"]).run();
    printed.expect(0);
    for line in [
        "durability = \"os\"",
        "group = \"line\"",
        "connections = 7",
        "native = \"127.0.0.1:7911\"",
    ] {
        assert!(printed.out().lines().any(|printed| printed == line), "{line}\n{}", printed.out());
    }
    rig.write("again.toml", printed.out());
    let again = rig.laboro(["hub", "--config=again.toml", "--print-config"]).run();
    assert_eq!(again.expect(0).out(), printed.out());
}

#[test]
fn the_directory_is_where_the_environment_says() {
    let rig = Rig::new();
    let printed = |name: &str, value: &str| {
        rig.laboro(["hub", "--print-config"]).env(name, value).run().expect(0).out()
    };
    assert!(printed("LABORO_DIR", "/x/y").contains("dir = \"/x/y\"\n"));
    assert!(printed("XDG_STATE_HOME", "/x").contains("dir = \"/x/laboro/hub\"\n"));
}

#[test]
fn mistakes_are_told_and_nothing_is_made() {
    let rig = Rig::new();
    rig.write("wrong.toml", "\ncolour = 3\n");
    let told = |arguments: &[&str], words: &str| {
        rig.laboro(FREE_PORTS.iter().chain(arguments)).run().expect(2).says(words);
    };
    told(&["--config=wrong.toml"], "wrong.toml: line 2: unknown field `colour`");
    told(&["--config=missing.toml"], "missing.toml: cannot read it");
    told(&["--door=latin=127.0.0.1:0"], "no dialect latin");
    told(&["--door=dwork=0.0.0.0:0"], "add `,insecure`");
    assert!(!rig.at("hub").exists());
}

#[test]
fn access_is_made_listed_and_revoked() {
    let rig = Rig::new();
    rig.laboro(["access", "--dir=hub"]).run().expect(2).says("no hub was started in hub");
    let hub = start(&rig, &[]);
    let access = |arguments: &[&str]| {
        let words = ["access", "--dir=hub"].iter().chain(arguments);
        rig.laboro(words.copied().collect::<Vec<_>>()).run()
    };
    let made = access(&[
        "--role=work",
        "--group=night",
        "--expires=30d",
        "--name=ci",
        "--hub-address=hub.example",
    ]);
    let file = made.expect(0).out();
    let port = address(&hub, "native").split(':').next_back().unwrap().to_owned();
    for words in [
        &format!("native = \"hub.example:{port}\""),
        "role = \"work\"",
        "group = \"night\"",
        "BEGIN CERTIFICATE",
    ] {
        assert!(file.contains(words), "{words}\n{file}");
    }
    access(&["--name=ci"]).expect(2).says("there is a token named ci already");
    access(&[]).expect(0).says("--hub-address");

    let listed = access(&["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.expect(0).out()).unwrap();
    assert_eq!(listed[1]["name"], "ci");
    assert_eq!(listed[1]["group"], "night");
    let secret = file.lines().find_map(|line| line.strip_prefix("token = \"")).unwrap();
    let secret = secret.trim_end_matches('"').rsplit('_').next().unwrap().to_owned();
    assert!(!access(&["list"]).expect(0).out().contains(&secret));

    access(&["--role=admin", "list"]).expect(2).says("for making a token");
    access(&["revoke", "ci"]).expect(0).says("revoked ci (work)");
    access(&["revoke", "ci"]).expect(2).says("there is no token ci");
    hub.signal(Signal::TERM);
    let ran = hub.wait();
    ran.expect(0);
    assert!(!ran.err().contains(&secret), "the log holds no secrets");
}

#[test]
fn a_peer_that_connects_and_says_rubbish_is_told_of_once_and_harms_nobody() {
    use std::io::Write;
    let rig = Rig::new();
    let hub = start(&rig, &["--door=dwork=127.0.0.1:0"]);
    let mut peer = TcpStream::connect(address(&hub, "dwork")).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\nHost: hub\r\n\r\n").unwrap();
    let _ = peer.read_to_end(&mut Vec::new());
    until("it is told", || hub.err().contains("sent malformed data"));
    assert_eq!(hub.err().matches("sent malformed data").count(), 1);
    TcpStream::connect(address(&hub, "dwork")).unwrap();
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn a_journal_that_cannot_be_written_ends_the_hub_and_says_what_to_do() {
    let rig = Rig::new();
    // A write that is too far into a file shall be an error and not a signal.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh", crate::rig::LABORO]).args(FREE_PORTS);
    let hub = rig.call(shell).start();
    until("it listens", || hub.out().contains("native on 127.0.0.1:"));
    let pid = rustix::process::Pid::from_raw(hub.pid().cast_signed());
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    rustix::process::prlimit(pid, Resource::Fsize, none).unwrap();
    let submit = rig.laboro(["submit", "--dir", "hub", "--", "true"]).run();
    assert!(!submit.status.success(), "nobody is told that it is safe");
    let ran = hub.wait();
    ran.expect(3);
    // The audit log may complain after it.
    let says_why = |line: &str| line.starts_with("laboro: ") && line.contains("hub/journal/");
    assert!(ran.err().lines().any(says_why), "{}", ran.err());
    // With room again it goes on where it was.
    let hub = start(&rig, &[]);
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn a_crowd_that_says_rubbish_does_not_fill_the_log() {
    let rig = Rig::new();
    let hub = start(&rig, &["--door=fuq2=127.0.0.1:0"]);
    until("all doors are told", || hub.out().contains("fuq2 on "));
    let address = address(&hub, "fuq2");
    for _ in 0..200 {
        let mut guest = TcpStream::connect(&address).unwrap();
        guest.write_all(b"GET / HTTP/1.1\r\nhost: hub\r\n\r\n").unwrap();
        // Read to its end, so that the hub has had its say.
        let _ = guest.read_to_end(&mut Vec::new());
    }
    hub.signal(Signal::TERM);
    let ran = hub.wait();
    ran.expect(0);
    let complaints = ran.err().matches("sent malformed data").count();
    assert!((1..=10).contains(&complaints), "{complaints}:\n{}", ran.err());
}

#[test]
fn what_strangers_say_never_begins_a_line_of_the_log() {
    const FORGED: &str = "x\n2026-01-01T00:00:00.000000Z ERROR forged\u{1b}[2J";
    let rig = Rig::new();
    let doors =
        ["dwork", "runexp", "fuq1", "fuq2"].map(|door| format!("--door={door}=127.0.0.1:0"));
    let doors: Vec<&str> = doors.iter().map(String::as_str).chain(["--log-level=debug"]).collect();
    let hub = start(&rig, &doors);
    until("all doors are told", || hub.out().contains("fuq2 on "));
    for door in ["dwork", "runexp", "fuq1", "fuq2", "native"] {
        for words in [FORGED.to_owned(), format!("SALUTON; MI {FORGED}"), format!("\u{1}{FORGED}")]
        {
            let mut guest = TcpStream::connect(address(&hub, door)).unwrap();
            guest.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            guest.write_all(words.as_bytes()).unwrap();
            let _ = guest.read_to_end(&mut Vec::new());
        }
    }
    let dwork = address(&hub, "dwork");
    for words in [&["create", FORGED][..], &["steal", FORGED], &["complete", FORGED]] {
        rig.laboro(["dwork", "-s", &dwork].iter().chain(words)).run();
    }
    for words in [
        &["submit", "--name", FORGED, "--", "true"][..],
        &["show", FORGED],
        &["workers", "eject", FORGED, "--reason", FORGED],
    ] {
        let call = rig.laboro(words.iter().copied());
        call.env("LABORO_DIR", rig.at("hub").to_str().unwrap()).run();
    }
    let access = rig.at("hub/access.toml").to_str().unwrap().to_owned();
    let worker = rig.laboro(["worker", "--access", &access, "--name", FORGED, "--idle", "10ms"]);
    worker.run();
    hub.signal(Signal::TERM);
    let ran = hub.wait();
    ran.expect(0);
    assert!(ran.err().lines().count() > 5, "{}", ran.err());
    for line in ran.err().lines() {
        assert!(!line.starts_with("2026-01-01"), "a line is forged: {}", ran.err());
        assert!(line.starts_with("20"), "a line begins with its time: {line:?}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

#[test]
fn a_directory_that_anybody_can_write_to_is_no_place_for_a_hub() {
    let rig = Rig::new();
    rig.write("hub/.keep", "");
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(rig.at("hub"), mode(0o777)).unwrap();
    let ran = rig.laboro(FREE_PORTS).run();
    ran.expect(3).says("other users can write to it (mode 777)").says("chmod 700");
    assert!(!rig.at("hub/access.toml").exists());
    std::fs::set_permissions(rig.at("hub"), mode(0o775)).unwrap();
    let hub = start(&rig, &[]);
    assert!(hub.err().contains("its group can write to it"), "{}", hub.err());
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn an_access_file_that_others_can_read_is_used_with_a_warning() {
    let rig = Rig::new();
    let hub = start(&rig, &[]);
    let made = rig.laboro(["access", "--dir=hub", "--role=watch"]).run();
    rig.write("watch.toml", made.expect(0).out());
    let jobs = || rig.laboro(["jobs", "--access=watch.toml"]).run();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    for open in [0o644, 0o604, 0o620] {
        std::fs::set_permissions(rig.at("watch.toml"), mode(open)).unwrap();
        jobs().expect(0).says(&format!("(mode {open:03o}): run `chmod 600 watch.toml`"));
    }
    for closed in [0o600, 0o640] {
        std::fs::set_permissions(rig.at("watch.toml"), mode(closed)).unwrap();
        assert!(!jobs().expect(0).err().contains("warning"), "mode {closed:o}");
    }
    hub.signal(Signal::TERM);
    hub.wait().expect(0);
}

#[test]
fn a_worker_that_is_told_dir_asks_what_is_meant() {
    let rig = Rig::new();
    let ran = rig.laboro(["worker", "--dir", "x"]).run();
    ran.expect(2).says("`laboro worker x`").says("--workdir x");
}
