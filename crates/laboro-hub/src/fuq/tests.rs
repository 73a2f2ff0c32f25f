//! The parts of the door that need no connection. Whole conversations are tried from outside.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::message::Message;
use super::register::{Login, Node, NodeRegister};
use laboro_core::Time;
use laboro_net::secret_file::password_in;
use laboro_net::websocket::accept_of;
use tempfile::TempDir;

const NOW: Time = Time(1_000_000);
const LIFE_MS: u64 = 1000;

fn node() -> Node {
    Node { host: "vm".into(), pid: 7, slots: 2, ..Node::default() }
}

#[test]
fn a_password_stands_alone_or_among_the_originals_settings() {
    assert_eq!(password_in("secret\n"), Some("secret"));
    assert_eq!(password_in("two words"), Some("two words"));
    assert_eq!(
        password_in("# made by fuq\nforeman localhost\nport 5429\nauth s3c/ret\n"),
        Some("s3c/ret")
    );
    assert_eq!(password_in("auth\tx # it is this\n"), Some("x"));
    assert_eq!(password_in("author\n"), Some("author"));
    for none in ["", "\n", "a\nb\n", "foreman x\nport 1\n"] {
        assert_eq!(password_in(none), None, "{none:?}");
    }
}

#[test]
fn a_websocket_is_accepted_as_in_the_standards_example() {
    assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[test]
fn no_two_nodes_have_a_name_and_each_keeps_its_own() {
    let dir = TempDir::new().unwrap();
    let mut register = NodeRegister::open(&dir.path().join("nodes"), LIFE_MS).unwrap();
    let first = register.log_in(NOW, node()).unwrap().node;
    let second = register.log_in(NOW, node()).unwrap().node;
    assert_eq!((first.name.as_str(), second.name.as_str()), ("vm:7:1", "vm:7:2"));
    let again = register.log_in(NOW, first.clone()).unwrap().node;
    assert_eq!(again, first, "who knows its session has its name back");
    let thief = Node { session: "guess".into(), ..first.clone() };
    assert!(register.has_wrong_session(&thief) && !register.has_wrong_session(&first));
    let twin = Node { session: String::new(), ..first };
    assert!(!register.has_wrong_session(&twin), "it only says how it is called");
    assert_eq!(register.log_in(NOW, twin).unwrap().node.name, "vm:7:3");
    let odd = Node { name: "worker-of-another-kind".into(), ..node() };
    assert_eq!(register.log_in(NOW, odd).unwrap().node.name, "vm:7:4");
}

#[test]
fn logins_outlive_the_hub_but_not_their_time() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("nodes");
    let mut register = NodeRegister::open(&path, LIFE_MS).unwrap();
    let Login { cookie, node: first } = register.log_in(NOW, node()).unwrap();
    let second = register.log_in(NOW, node()).unwrap();
    register.send_away(&first.name);
    let newer = register.renew(NOW, second.node).unwrap();
    drop(register);
    assert!(!std::fs::read_to_string(&path).unwrap().contains(&cookie), "only its hash is kept");
    let register = NodeRegister::open(&path, LIFE_MS).unwrap();
    assert_eq!(register.find(NOW, &cookie), Some(&first));
    assert!(register.leaves("vm:7:1") && !register.leaves("vm:7:2"));
    assert_eq!(register.find(NOW, &second.cookie), None, "a new cookie takes the old one's place");
    assert!(register.find(NOW, &newer.cookie).is_some());
    assert_eq!(register.nodes(NOW).len(), 2);
    let later = NOW.after_ms(LIFE_MS);
    assert_eq!(register.find(later, &cookie), None);
    assert!(register.find_stale(&cookie).is_some(), "it can be renewed");
}

#[test]
fn a_cookie_is_one_nodes_and_one_hubs() {
    let dir = TempDir::new().unwrap();
    let mut here = NodeRegister::open(&dir.path().join("here"), LIFE_MS).unwrap();
    let mut there = NodeRegister::open(&dir.path().join("there"), LIFE_MS).unwrap();
    let (one, other) = (here.log_in(NOW, node()).unwrap(), here.log_in(NOW, node()).unwrap());
    let elsewhere = there.log_in(NOW, node()).unwrap();
    assert_eq!(here.find(NOW, &one.cookie).unwrap().name, one.node.name);
    assert_eq!(here.find(NOW, &other.cookie).unwrap().name, other.node.name);
    assert_eq!(here.find(NOW, &elsewhere.cookie), None);
    assert_eq!(there.find(NOW, &one.cookie), None);
    for near in [&one.cookie[1..], &one.cookie.to_lowercase(), &format!("{} ", one.cookie), ""] {
        assert_eq!(here.find(NOW, near), None, "{near}");
    }
}

#[test]
fn a_node_that_logs_in_all_the_time_does_not_fill_the_disk() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("nodes");
    let mut register = NodeRegister::open(&path, LIFE_MS).unwrap();
    let node = register.log_in(NOW, node()).unwrap().node;
    for _ in 0..3000 {
        register.renew(NOW, node.clone()).unwrap();
    }
    assert!(std::fs::read_to_string(&path).unwrap().lines().count() < 1100);
    let last = register.renew(NOW, node.clone()).unwrap().cookie;
    drop(register);
    assert_eq!(NodeRegister::open(&path, LIFE_MS).unwrap().find(NOW, &last), Some(&node));
}

#[test]
fn json_is_read_as_the_original_reads_it() {
    let said = |text: &str| Message::parse(text.as_bytes());
    let job =
        said(r#"{"Job_ID": 7, "NAME": "x", "tags": null, "more": [1], "msg": {"A": 1}} rubbish"#);
    let job = job.unwrap();
    assert_eq!((job.job("job_id").unwrap(), job.text("name").unwrap()), (7, "x".into()));
    assert_eq!((job.texts("tags").unwrap(), job.number("none").unwrap()), (vec![], 0));
    assert_eq!(job.inner("msg").unwrap().number("a").unwrap(), 1);
    assert!(
        job.text("job_id").is_err() && job.number("name").is_err() && job.flag("name").is_err()
    );
    assert_eq!(said(r#"{"a": 1, "A": 2}"#).unwrap().number("A").unwrap(), 2);
    assert_eq!(said(r#"{"j": 18446744073709551615}"#).unwrap().job("j").unwrap(), u64::MAX);
    for wrong in ["", "[", "3", "\"x\"", "{\"a\":}", &"[".repeat(100_000)] {
        assert!(said(wrong).is_err());
    }
}
