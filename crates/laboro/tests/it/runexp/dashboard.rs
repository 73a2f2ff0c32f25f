//! The dashboard of a manager: what those see who have its link, in a browser too, and that nobody else does.

use super::port;
use crate::rig::{Live, Rig, python, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

struct Page {
    link: String,
    address: String,
    token: String,
}

impl Page {
    fn of(manager: &Live) -> Page {
        let found = || {
            let said = manager.err();
            let link = said.lines().find_map(|line| line.strip_prefix("dashboard: "))?;
            let (address, token) = link.strip_prefix("http://")?.split_once("/#token=")?;
            let [link, address, token] = [link, address, token].map(str::to_owned);
            Some(Page { link, address, token })
        };
        until("the dashboard is open", || found().is_some());
        found().unwrap()
    }

    /// The status and what was answered.
    fn ask(&self, method: &str, path: &str, token: &str) -> (u16, Value) {
        let mut line = TcpStream::connect(&self.address).unwrap();
        let host = &self.address;
        let head =
            format!("{method} /api/v1/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        let rest = format!("Authorization: Bearer {token}\r\nContent-Length: 0\r\n\r\n");
        line.write_all((head + &rest).as_bytes()).unwrap();
        let mut answer = String::new();
        line.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask("GET", path, &self.token);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }
}

const ONE_WAITS: &str = "while [ ! -e go ]; do sleep 0.02; done; echo RES:ok\n";

#[test]
fn whoever_has_the_link_sees_what_becomes_of_the_jobs() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    rig.write("runs/b.sh", ONE_WAITS);
    let manager = rig.manage(&["--dashboard"]);
    let page = Page::of(&manager);
    let runner = rig.runner(&port(&manager), "2");
    let counts = || page.get("jobs/1")["counts"].clone();
    until("one is done", || counts()["done"] == 1 && counts()["running"] == 1);
    let workers = page.get("workers");
    assert_eq!(workers["workers"][0]["name"], "r1@127.0.0.1", "{workers}");
    let (status, refused) = page.ask("GET", "jobs/1/tasks/1/output", &page.token);
    assert_eq!(status, 404);
    assert!(refused["detail"].as_str().unwrap().contains("/outputs"), "{refused}");

    assert_eq!(page.ask("GET", "jobs", "laboro_wrong").0, 401);
    assert_eq!(page.ask("POST", "jobs/1/cancel", &page.token).0, 403, "it is for looking on");

    let mut browser = Command::new(python());
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    browser.arg(tests.join("dashboard/manager.py")).args([&page.link, "50%"]);
    rig.call(browser).env("PYTHONDONTWRITEBYTECODE", "1").run().expect(0);

    rig.write("go", "");
    runner.wait().expect(0);
    manager.wait().expect(0);
    TcpStream::connect(&page.address).unwrap_err();
}

#[test]
fn a_runner_that_was_sent_away_is_shown_with_the_reason() {
    let rig = Rig::new();
    for number in 10..30 {
        rig.write(&format!("runs/{number}.sh"), "echo RES:failed\n");
    }
    let manager = rig.manage(&["--dashboard", "--ban"]);
    let page = Page::of(&manager);
    rig.runner(&port(&manager), "1").wait().expect(3);
    let conduct = page.get("workers")["workers"][0]["conduct"].clone();
    assert_eq!(conduct["standing"], "ejected", "{conduct}");
    assert!(conduct["reason"].as_str().unwrap().contains("of its results were good"), "{conduct}");
    manager.signal(rustix::process::Signal::INT);
    manager.wait().expect(130);
}

#[test]
fn the_page_is_for_this_machine_only() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "");
    let call = rig.manage(&["--dashboard=0.0.0.0:0"]).wait();
    call.expect(2).says("it is open to this machine only").says("ssh -L");
    rig.manage(&["--dashboard=nowhere"]).wait().expect(2).says("neither a port nor ADDRESS:PORT");
}
