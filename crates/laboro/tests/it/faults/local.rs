//! Commands on the hub's own machine go over its unix socket, and over its address where that cannot be.

use super::Hub;
use crate::rig::{LABORO, Rig, not_tried};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

/// A copy of the access file of the hub in `dir`, line by line as this says.
fn copy(rig: &Rig, dir: &str, change: impl Fn(&str) -> Option<String>) -> String {
    let text = rig.read(&format!("{dir}/access.toml"));
    let lines: Vec<String> = text.lines().filter_map(change).collect();
    rig.write("copy.toml", lines.join("\n"));
    std::fs::set_permissions(rig.at("copy.toml"), PermissionsExt::from_mode(0o600)).unwrap();
    "copy.toml".to_owned()
}

fn asks(rig: &Rig, access: &str) -> bool {
    rig.laboro(["jobs", "--access", access]).run().status.success()
}

fn socket(rig: &Rig, dir: &str) -> PathBuf {
    let text = rig.read(&format!("{dir}/access.toml"));
    let line = text.lines().find_map(|line| line.strip_prefix("socket = \"")).expect("a socket");
    line.trim_end_matches('"').into()
}

/// Nobody is there.
fn elsewhere(line: &str) -> Option<String> {
    Some(if line.starts_with("http = ") { "http = \"127.0.0.1:1\"".into() } else { line.into() })
}

#[test]
fn commands_go_over_the_socket_and_without_it_over_the_address() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    let path = socket(&rig, "hub");
    assert_eq!(path.parent(), Some(&*rig.at("hub").canonicalize().unwrap()));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(asks(&rig, &copy(&rig, "hub", elsewhere)), "over the socket");
    let old = |line: &str| (!line.starts_with("socket")).then(|| line.to_owned());
    assert!(asks(&rig, &copy(&rig, "hub", old)), "with a file of an earlier version");
    let neither = |line: &str| old(line).and_then(|line| elsewhere(&line));
    assert!(!asks(&rig, &copy(&rig, "hub", neither)));
    let moved = |line: &str| Some(line.replace(".sock", "0.sock"));
    assert!(asks(&rig, &copy(&rig, "hub", moved)), "the socket is not there");
    let other = |line: &str| moved(line).and_then(|line| elsewhere(&line));
    std::fs::hard_link(&path, path.to_str().unwrap().replace(".sock", "0.sock")).unwrap();
    assert!(!asks(&rig, &copy(&rig, "hub", other)), "a socket of a hub with another certificate");
    // A token counts there too.
    let wrong = |line: &str| {
        let line = elsewhere(line)?;
        Some(if line.starts_with("token") { "token = \"laboro_no\"".into() } else { line })
    };
    rig.laboro(["jobs", "--access", &copy(&rig, "hub", wrong)]).run().expect(4).says("token");
    hub.stop();
    assert!(!path.exists());
}

#[test]
fn a_hub_that_was_killed_makes_its_socket_anew() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    hub.kill();
    assert!(socket(&rig, "hub").exists());
    let hub = Hub::start(&rig, &[], "");
    assert!(asks(&rig, &copy(&rig, "hub", elsewhere)));
    hub.stop();
}

#[test]
fn a_directory_with_a_long_path_has_its_socket_in_the_runtime_directory() {
    let rig = Rig::new();
    let deep = format!("{}/hub", "d".repeat(100));
    let run = rig.at("run");
    std::fs::create_dir(&run).unwrap();
    let start = |mode| {
        std::fs::set_permissions(&run, PermissionsExt::from_mode(mode)).unwrap();
        let words = ["hub", "--dir", &deep, "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
        let hub = rig.laboro(words).env("XDG_RUNTIME_DIR", run.to_str().unwrap()).start();
        crate::rig::until("it listens", || hub.out().contains("http on"));
        hub
    };
    let hub = start(0o700);
    assert_eq!(socket(&rig, &deep).parent(), Some(&*run));
    assert!(asks(&rig, &copy(&rig, &deep, elsewhere)));
    hub.signal(rustix::process::Signal::TERM);
    hub.wait().expect(0);
    // Others could put a socket of their own there.
    let hub = start(0o777);
    assert!(!rig.read(&format!("{deep}/access.toml")).contains("socket ="));
    assert!(asks(&rig, &format!("{deep}/access.toml")));
    hub.signal(rustix::process::Signal::TERM);
    hub.wait().expect(0).says("no local socket");
}

#[test]
fn another_user_is_not_served_at_the_socket_whatever_its_mode() {
    let rig = Rig::new();
    let hub = Hub::start(&rig, &[], "");
    let path = socket(&rig, "hub");
    let ask = |program: &str, before: &[&str]| {
        let line = format!(
            "import socket; s = socket.socket(socket.AF_UNIX); s.connect('{}'); \
             s.sendall(b'GET /api/v1/health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(15))",
            path.display()
        );
        Command::new(program).args(before).args(["python3", "-c", &line]).output().unwrap()
    };
    let answered = |done: &std::process::Output| done.stdout.starts_with(b"b'HTTP/1.1 200");
    assert!(answered(&ask("env", &[])), "its own user is");
    let nobody = ["--reuid", "65533", "--regid", "65533", "--clear-groups"];
    let may = Command::new("setpriv").args(nobody).args([LABORO, "--version"]).output();
    if !may.is_ok_and(|tried| tried.status.success()) {
        not_tried("no other user can be had, or the program is closed to him");
        return hub.stop();
    }
    for path in [rig.dir(), &rig.at("hub"), &path] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
    }
    let done = ask("setpriv", &nobody);
    assert!(!answered(&done), "{done:?}");
    hub.stop();
}
