//! Who is told when a job ends: by a real hub, to a real receiver, with the hub killed in between.

use super::whole::Whole;
use crate::rig::{Rig, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One POST as it came.
#[derive(Clone, Debug, Default)]
struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Request {
    fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// An HTTP server that answers with these statuses in turn, the last one for ever; 0 says nothing at all.
struct Receiver {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Receiver {
    fn start(statuses: &'static [u16]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let taken = requests.clone();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                let mut taken = taken.lock().unwrap();
                let status = statuses[taken.len().min(statuses.len() - 1)];
                taken.push(request);
                drop(taken);
                if status == 0 {
                    silent.push(stream);
                    continue;
                }
                let _ = write!(stream, "HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
            }
        });
        Receiver { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    fn all(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Request {
    let mut lines = BufReader::new(stream);
    let mut request = Request::default();
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    request.path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        lines.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        request.headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = request.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    request.body = String::from_utf8(body).unwrap();
    request
}

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
