//! Who is told when a job ends: by a real hub, to a real receiver, with the hub killed in between.

use super::receiver::{Authority, Receiver};
use super::whole::Whole;
use crate::rig::{Rig, until};
use std::process::Command;

fn hub_with(settings: &str) -> Whole {
    let rig = Rig::new();
    rig.write("hub.toml", settings);
    Whole::at(rig)
}

fn restart(hub: &mut Whole) {
    hub.kill_hub();
    hub.start_hub();
    until("the hub is there again", || hub.run(&["jobs"]).status.success());
}

fn deliveries(hub: &Whole) -> Vec<serde_json::Value> {
    hub.run(&["hooks", "--json"]).expect(0).events()
}

#[test]
fn the_end_of_a_job_is_posted_with_a_signature() {
    let receiver = Receiver::start(&[200]);
    let hub =
        hub_with(&format!("[[hook]]\non = [\"job_failed\"]\nto = \"{}\"\n", receiver.url("team")));
    let own = receiver.url("own?key=abc");
    hub.run(&["submit", "--wait", "--name=night", "--on-end", &own, "--", "false"]).expect(1);
    hub.run(&["submit", "--wait", "--", "true"]).expect(0);
    until("both are told", || receiver.all().len() >= 2);
    let mut all = receiver.all();
    all.sort_by(|a, b| a.path.cmp(&b.path));
    assert_eq!(
        all.iter().map(|one| one.path.as_str()).collect::<Vec<_>>(),
        ["/own?key=abc", "/team"]
    );
    let body = all[0].json();
    assert_eq!(body["event"], "job_failed");
    assert_eq!((&body["job"]["name"], &body["job"]["state"]), (&"night".into(), &"failed".into()));
    assert_eq!(body["text"], "job 1 (night) failed: 1 of 1 task failed");
    assert_eq!(body["id"], all[0].header("laboro-delivery"));
    assert_eq!(all[0].header("laboro-event"), "job_failed");
    let secret = hub.rig.read("hub/hook.secret");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.trim().as_bytes());
    let tag = ring::hmac::sign(&key, all[0].body.as_bytes());
    let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(all[0].header("laboro-signature"), format!("sha256={hex}"));

    // What stands behind the host is nobody's business.
    until("both are known as delivered", || {
        deliveries(&hub).iter().filter(|one| one["state"] == "delivered").count() == 2
    });
    let shown = hub.run(&["hooks"]).expect(0).out() + &hub.run(&["show", "1"]).expect(0).out();
    assert!(shown.contains("http://127.0.0.1") && !shown.contains("abc"), "{shown}");
    assert_eq!(receiver.all().len(), 2, "nothing is told of the job that is done");
}

#[test]
fn what_fails_is_tried_again_and_the_same_delivery_is_known_by_its_id() {
    let receiver = Receiver::start(&[500, 503, 302, 204]);
    let hub = hub_with("[hooks]\nretry_ms = 20\n");
    hub.run(&["submit", "--wait", "--on-end", &receiver.url("x"), "--", "true"]).expect(0);
    until("it was taken", || deliveries(&hub).iter().any(|one| one["state"] == "delivered"));
    let all = receiver.all();
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|one| one.body == all[0].body && !one.body.is_empty()));
    assert_eq!(deliveries(&hub)[0]["attempts"], 4);
}

#[test]
fn a_receiver_that_never_answers_holds_up_nobody_and_is_given_up() {
    let silent = Receiver::start(&[0]);
    let good = Receiver::start(&[200]);
    let hub = hub_with("[hooks]\nretry_ms = 20\ntime_limit_ms = 300\nmax_tries = 2\n");
    for _ in 0..3 {
        hub.run(&["submit", "--wait", "--on-end", &silent.url(""), "--", "true"]).expect(0);
    }
    let hangs = "sleep 600 & echo $! > hook.pid; wait";
    let hangs = format!("cd {}; {hangs}", hub.rig.dir().display());
    hub.run(&["submit", "--wait", "--on-end", &hangs, "--", "true"]).expect(0);
    hub.run(&["submit", "--wait", "--on-end", &good.url(""), "--", "true"]).expect(0);
    until("the good one is told", || good.all().len() == 1);
    until("the others are given up", || {
        deliveries(&hub).iter().filter(|one| one["state"] == "failed").count() == 4
    });
    let failed = hub.run(&["hooks", "--state=failed"]).expect(0).out();
    assert!(failed.contains("no answer within 0 s") && failed.contains("did not end"), "{failed}");
    let pid = hub.rig.read("hook.pid");
    until("what a hook started is ended with it", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    hub.run(&["hooks", "retry", "5"]).expect(4).says("has not failed");
    hub.run(&["hooks", "retry", "1"]).expect(0);
    until("it was tried again", || silent.all().len() >= 8);
}

#[test]
fn a_delivery_that_is_due_survives_the_hub_that_was_killed() {
    let receiver = Receiver::start(&[500, 200]);
    let mut hub = hub_with("[hooks]\nretry_ms = 1500\n");
    hub.run(&["submit", "--wait", "--on-end", &receiver.url("a"), "--", "true"]).expect(0);
    until("the first try failed", || receiver.all().len() == 1);
    restart(&mut hub);
    until("the second is taken", || receiver.all().len() == 2);
    assert_eq!(receiver.all()[0].body, receiver.all()[1].body);

    // Killed as soon as the end of the job is durable: nobody may have looked at it yet.
    hub.run(&["submit", "--wait", "--on-end", &receiver.url("b"), "--", "true"]).expect(0);
    restart(&mut hub);
    until("its end is told", || receiver.all().iter().any(|one| one.path == "/b"));
    until("the hub knows it", || {
        deliveries(&hub).iter().filter(|one| one["state"] == "delivered").count() == 2
    });
    restart(&mut hub);
    hub.run(&["submit", "--wait", "--on-end", &receiver.url("c"), "--", "true"]).expect(0);
    until("a later one is told", || receiver.all().iter().any(|one| one.path == "/c"));
    let told = receiver.all().iter().filter(|one| one.path == "/b").count();
    assert!(
        (1..=2).contains(&told),
        "at least once, and again only if the hub was killed meanwhile: {told}"
    );
}

#[test]
fn who_submits_from_elsewhere_cannot_run_commands_as_the_hub_nor_reach_what_it_reaches() {
    let receiver = Receiver::start(&[200]);
    let hub = hub_with(&format!("[hooks]\nallow_urls = [\"{}\"]\n", receiver.url("ok")));
    hub.run(&["access", "--name=ann", "-o", "ann.toml"]).expect(0);
    hub.run(&["access", "--name=boss", "--role=admin", "-o", "boss.toml"]).expect(0);
    // As on another machine, which has no socket of the hub.
    for name in ["ann.toml", "boss.toml"] {
        let access = hub.rig.read(name);
        let lines = access.lines().filter(|line| !line.starts_with("socket"));
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        std::fs::write(hub.rig.at(name), text).unwrap();
    }
    let by = |name: &str, target: &str| {
        let access = format!("--access={name}.toml");
        hub.run(&["submit", &access, "--on-end", target, "--", "true"])
    };
    by("ann", "touch stolen").expect(4).says("would run as the hub's user");
    by("boss", "touch stolen").expect(4).says("would run as the hub's user");
    by("ann", "http://169.254.169.254/latest").expect(4).says("hooks.allow_urls");
    by("ann", "mail:all@example.org").expect(4).says("hooks.allow_mail");
    by("ann", &receiver.url("ok/1")).expect(0);
    by("boss", &receiver.url("elsewhere")).expect(0);
    until("both are told", || receiver.all().len() == 2);
    // Each sees what is about the own jobs; nobody else's.
    let seen = hub.run(&["hooks", "--json", "--access=ann.toml"]).expect(0).events();
    assert_eq!(seen.iter().map(|one| one["owner"].as_str()).collect::<Vec<_>>(), [Some("ann")]);
    assert!(!hub.rig.at("stolen").exists() && !hub.rig.at("hub/stolen").exists());
}

#[test]
fn an_ejected_worker_is_told_and_mail_goes_through_sendmail() {
    let rig = Rig::new();
    let sendmail = rig.at("sendmail");
    rig.write(
        "sendmail",
        "#!/bin/sh\n{ echo \"args: $*\"; cat; } > \"$(dirname \"$0\")/mail.txt\"\n",
    );
    std::fs::set_permissions(&sendmail, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    rig.write(
        "hub.toml",
        format!(
            "[hooks]\nsendmail = {:?}\n[[hook]]\non = [\"worker_lost\", \"worker_ejected\"]\nto = \"mail:ops@example.org\"\n",
            sendmail.to_str().unwrap()
        ),
    );
    let hub = Whole::at(rig);
    let workers = hub.run(&["workers", "--json"]).expect(0).events();
    hub.run(&["workers", "eject", "--reason=smoke", workers[0]["name"].as_str().unwrap()])
        .expect(0);
    until("the mail is there", || hub.rig.read("mail.txt").contains("worker_ejected"));
    let mail = hub.rig.read("mail.txt");
    assert!(
        mail.starts_with(
            "args: -i -- ops@example.org\nTo: ops@example.org\nSubject: [laboro] worker"
        ),
        "{mail}"
    );
}

#[test]
fn a_run_calls_when_it_has_ended() {
    let rig = Rig::new();
    let receiver = Receiver::start(&[500, 200]);
    rig.run(["--on-end", &receiver.url("run"), "--on-end", "cat > told.json", "--", "false"])
        .expect(1);
    assert_eq!(receiver.all().len(), 2, "tried again");
    let told: serde_json::Value = serde_json::from_str(&rig.read("told.json")).unwrap();
    assert_eq!((&told["event"], &told["job"]["state"]), (&"job_failed".into(), &"failed".into()));
    rig.run(["--on-end", "exit 3", "--fresh", "--", "true"]).expect(0).says("--on-end exit 3");
    rig.run(["--on-end", "mail:nobody", "--", "true"]).expect(2).says("not a mail address");
}

#[test]
fn a_receiver_with_a_certificate_that_the_machine_trusts_is_told_and_no_other() {
    let rig = Rig::new();
    let (known, stranger) = (Authority::new(), Authority::new());
    rig.write("ca.pem", known.pem());
    let good = Receiver::start_tls(&[200], known.certificate("localhost"));
    let fraud = Receiver::start_tls(&[200], stranger.certificate("localhost"));
    let elsewhere = Receiver::start_tls(&[200], known.certificate("other.example"));
    let bad = [&fraud, &elsewhere].map(|one| one.url("x"));
    rig.write("hub.toml", "[hooks]\nmax_tries = 1\n");
    let hub = Whole::at(rig);
    let url = good.url("secure?key=1");
    let on_end = ["--on-end", &bad[0], "--on-end", &bad[1], "--on-end", &url];
    hub.run(&[&["submit", "--wait"], &on_end[..], &["--", "true"]].concat()).expect(0);
    until("all are over", || {
        let all = deliveries(&hub);
        all.len() == 3 && all.iter().all(|one| one["state"] != "pending")
    });
    let all = deliveries(&hub);
    let is_refused = |one: &&serde_json::Value| {
        one["state"] == "failed" && one["error"].as_str().unwrap().contains("peer certificate")
    };
    assert_eq!(all.iter().filter(is_refused).count(), 2, "{all:?}");
    let told = good.all();
    assert_eq!((told.len(), told[0].path.as_str()), (1, "/secure?key=1"));
    assert_eq!(told[0].json()["event"], "job_done");
    assert!(fraud.all().is_empty() && elsewhere.all().is_empty());
}

/// A disk of its own.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_disk_that_is_nearly_full_is_told_once() {
    let receiver = Receiver::start(&[200]);
    let rig = Rig::new();
    let disk = rig.at("hub");
    std::fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=200m,mode=700", "tmpfs"]).arg(&disk);
    if !mount.output().is_ok_and(|done| done.status.success()) {
        eprintln!("not tried: no disk can be mounted here");
        return;
    }
    let mounted = Mounted(disk);
    let to = receiver.url("disk");
    rig.write("hub.toml", format!("[[hook]]\non = [\"disk_low\"]\nto = \"{to}\"\n"));
    let hub = Whole::at(rig);
    // It is taken away before the directory that it is in.
    let _mounted = mounted;
    until("it is told", || !receiver.all().is_empty());
    let told = receiver.all().remove(0).json();
    assert_eq!(told["event"], "disk_low");
    let total = told["disk"]["total_bytes"].as_u64().unwrap();
    assert_eq!(total, 200 << 20, "{told}");
    assert!(told["text"].as_str().unwrap().contains("MiB are free"), "{told}");
    hub.run(&["submit", "--wait", "--", "true"]).expect(0);
    assert_eq!(receiver.all().len(), 1, "it lasts, and is not told again");
}

#[test]
fn a_pool_in_trouble_is_told_with_the_words_of_its_command() {
    let receiver = Receiver::start(&[200]);
    let to = receiver.url("pool");
    let hub = hub_with(&format!("[[hook]]\non = [\"pool_trouble\"]\nto = \"{to}\"\n"));
    let list = ["--list", "true", "--cancel", "true", "--"];
    let add = ["pool", "add", "lab", "-j", "3", "--kind", "command"];
    let command = ["sh", "-c", "echo quota is used up >&2; exit 1"];
    hub.run(&[&add[..], &list[..], &command[..]].concat()).expect(0);
    // The worker that is there has too few slots.
    hub.run(&["submit", "--slots", "3", "--", "true"]).expect(0);
    until("it is told", || !receiver.all().is_empty());
    let told = receiver.all().remove(0).json();
    assert_eq!((&told["event"], &told["pool"]["name"]), (&"pool_trouble".into(), &"lab".into()));
    assert!(told["pool"]["reason"].as_str().unwrap().contains("quota is used up"), "{told}");
}

#[test]
fn a_target_for_failures_hears_of_nothing_else() {
    let receiver = Receiver::start(&[200]);
    let hub = hub_with("");
    let target = format!("if-failed:{}", receiver.url("bad?key=abc"));
    hub.run(&["submit", "--wait", "--on-end", &target, "--", "true"]).expect(0);
    hub.run(&["submit", "--wait", "--on-end", &target, "--", "false"]).expect(1);
    until("the failure is told", || receiver.all().len() == 1);
    assert_eq!(receiver.all()[0].json()["job"]["job"], 2);
    assert_eq!(deliveries(&hub).len(), 1);
    let shown = hub.run(&["show", "1"]).expect(0).out();
    assert!(shown.contains("if-failed:http://127.0.0.1") && !shown.contains("abc"), "{shown}");
}
