//! What a body may cost, whatever is in it: memory, and the time of others. One test in a program of its own, for
//! memory is counted over all threads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod meter;

use laboro_api::access::client_config;
use laboro_hub::config::{Durability, Settings};
use laboro_hub::process::{RunningHub, start};
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a hub may take beside: buffers of connections, of the journal and of the log.
const BESIDE: usize = 2 << 20;
const BODY: usize = 1 << 20;

#[test]
fn a_body_of_any_shape_costs_little_memory_and_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let settings = Settings { durability: Durability::Os, ..Settings::in_dir(dir.path()) };
    let hub = start(&settings).unwrap();
    // What is made once is there.
    post(&hub, "jobs", r#"{"tasks":[{"command":"true"}]}"#);
    let mut wrong = String::new();
    for (name, path, body) in shapes() {
        let begin = meter::begin();
        let began = Instant::now();
        let (answer, slowest) = std::thread::scope(|scope| {
            let sent = scope.spawn(|| post(&hub, path, &body));
            let mut slowest = Duration::ZERO;
            while !sent.is_finished() {
                let asked = Instant::now();
                ask(&hub, "GET", "groups", "");
                slowest = slowest.max(asked.elapsed());
            }
            (sent.join().unwrap(), slowest)
        });
        let (peak, took) = (meter::peak_since(begin), began.elapsed());
        let accepted = accepted(&answer);
        let allowed = 8 * body.len() + 200 * accepted + BESIDE;
        let line = format!(
            "{name}: {} bytes, {accepted} tasks, peak {peak} of {allowed}, {:.1} times; {took:?}, \
             others waited {slowest:?}: {}",
            body.len(),
            peak as f64 / body.len() as f64,
            answer.lines().last().unwrap_or_default().chars().take(120).collect::<String>()
        );
        println!("{line}");
        // Ten times what a program made for speed needs.
        if peak > allowed || slowest > Duration::from_secs(1) {
            writeln!(wrong, "{line}").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    hub.stop();
    hub.wait().unwrap();
}

fn shapes() -> Vec<(&'static str, &'static str, String)> {
    let list = |item: &str| vec![item; BODY / (item.len() + 1)].join(",");
    let tasks = |item: &str| format!(r#"{{"tasks":[{}]}}"#, list(item));
    let one = |field: &str| {
        let name: String = field.chars().take_while(|c| *c != ':').filter(|c| *c != '"').collect();
        format!(r#"{{"tasks":[{{"name":"{name}-{}",{field}}}]}}"#, field.len())
    };
    let numbered = |make: &dyn Fn(usize) -> String| {
        let mut all = String::from(r#"{"tasks":["#);
        for number in 0.. {
            let task = make(number);
            if all.len() + task.len() > BODY {
                break;
            }
            all.push_str(if number == 0 { "" } else { "," });
            all.push_str(&task);
        }
        all + "]}"
    };
    let entries = |make: &dyn Fn(usize) -> String| {
        let all: Vec<String> = (0..BODY / 12).map(make).collect();
        all.join(",")
    };
    let heavy = entries(&|n| format!(r#""v{n}":"{n}""#));
    let few = (0..2000).map(|n| format!(r#""v{n}":"{n}""#)).collect::<Vec<_>>().join(",");
    let some = (0..40_000).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect::<Vec<_>>().join(",");
    let scripts = vec![r#"{"script":{"kind":".sh","body":"x"}}"#; 20_000].join(",");
    vec![
        ("empty tasks", "jobs", tasks("{}")),
        ("too many tasks", "jobs", tasks(r#"{"command":""}"#)),
        ("many tasks", "jobs", format!(r#"{{"tasks":[{some}]}}"#)),
        ("many scripts", "jobs", format!(r#"{{"tasks":[{scripts}]}}"#)),
        (
            "tasks of their own",
            "jobs",
            numbered(&|n| {
                format!(
                    r#"{{"name":"own{n}","command":["echo","{n}"],"env":{{"A":"{n}"}},"dir":"/{n}"}}"#
                )
            }),
        ),
        ("profiles", "jobs", numbered(&|n| format!(r#"{{"name":"p{n}","priority":{n}}}"#))),
        (
            "tagged",
            "jobs",
            numbered(&|n| {
                format!(r#"{{"name":"g{n}","tags":["a","b","c","d","e{n}"],"retry_on":[1,2,3]}}"#)
            }),
        ),
        ("no values", "jobs", one(&format!(r#""values":[{}]"#, list("\"\"")))),
        ("short values", "jobs", one(&format!(r#""values":[{}]"#, list("\"a\"")))),
        ("base64 values", "jobs", one(&format!(r#""values":[{}]"#, list(r#"{"base64":""}"#)))),
        ("words", "jobs", one(&format!(r#""command":[{}]"#, list("\"\"")))),
        ("predecessors", "jobs", one(&format!(r#""after":[{}]"#, list("\"a\"")))),
        (
            "numbered predecessors",
            "jobs",
            one(&format!(r#""after":[{}]"#, list(r#"{"job":1,"task":1}"#))),
        ),
        ("each", "jobs", one(&format!(r#""count":3,"each":[{}]"#, list("\"a\"")))),
        ("variables", "jobs", one(&format!(r#""command":"a","env":{{{heavy}}}"#))),
        (
            "resources",
            "jobs",
            one(&format!(r#""resources":{{{}}}"#, entries(&|n| format!(r#""r{n}":1"#)))),
        ),
        ("tags", "jobs", one(&format!(r#""tags":[{}]"#, list("\"a\"")))),
        ("exit codes", "jobs", one(&format!(r#""retry_on":[{}]"#, list("1")))),
        (
            "a script",
            "jobs",
            one(&format!(r#""script":{{"kind":".sh","body":"{}"}}"#, "x".repeat(BODY))),
        ),
        ("escapes", "jobs", one(&format!(r#""command":"{}""#, r"\u0001".repeat(BODY / 6)))),
        (
            "defaults",
            "jobs",
            format!(
                r#"{{"defaults":{{"env":{{{few}}}}},"tasks":[{}]}}"#,
                vec![r#"{"command":"a","dir":"b"}"#; 20_000].join(",")
            ),
        ),
        (
            "late defaults",
            "jobs",
            format!(
                r#"{{"tasks":[{}],"defaults":{{"env":{{{few}}}}}}}"#,
                vec![r#"{"command":"a"}"#; 20_000].join(",")
            ),
        ),
        ("deep", "jobs", format!(r#"{{"tasks":{}"#, "[".repeat(BODY))),
        ("unknown", "jobs", one(&format!(r#""nonsense":[{}]"#, list("0")))),
        ("spaces", "jobs", format!("{}{{}}", " ".repeat(BODY))),
        ("a selection", "jobs/1/hold", format!(r#"{{"tasks":"{}"}}"#, "1,".repeat(BODY / 2))),
        (
            "stream: many",
            "jobs/stream",
            format!("{{}}\n{}", "{\"command\":\"\"}\n".repeat(BODY / 15)),
        ),
        (
            "stream: values",
            "jobs/stream",
            format!("{{}}\n{{\"values\":[{}],\"command\":\"a\"}}\n", list("\"\"")),
        ),
        ("stream: blank", "jobs/stream", format!("{{}}\n{}", "\n".repeat(BODY))),
        ("stream: a head", "jobs/stream", format!("{{\"defaults\":{{\"env\":{{{heavy}}}}}}}\n")),
    ]
}

fn accepted(answer: &str) -> usize {
    let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    json["count"].as_u64().map_or(0, |count| usize::try_from(count).unwrap())
}

fn post(hub: &RunningHub, path: &str, body: &str) -> String {
    ask(hub, "POST", path, body)
}

/// As it stands over TLS, so that little memory is taken on this side.
fn ask(hub: &RunningHub, method: &str, path: &str, body: &str) -> String {
    let stream = TcpStream::connect(hub.http.unwrap()).unwrap();
    let name = rustls::pki_types::ServerName::try_from("hub.invalid").unwrap();
    let config = Arc::new(client_config(&hub.access).unwrap());
    let connection = rustls::ClientConnection::new(config, name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let (token, length) = (hub.access.token.expose(), body.len());
    let head = format!(
        "{method} /api/v1/{path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\
         authorization: Bearer {token}\r\ncontent-length: {length}\r\n\r\n"
    );
    // A refusal may come before all is said.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
