//! Writes the first inputs of every target from what the original programs said (`spec/`) and from the examples.
//! `cargo run -p laboro-fuzz --example seeds`; what is there already stays.

use laboro_fuzz::{Deed, write_steps};
use serde_json::Value;
use std::path::{Path, PathBuf};

type Steps<'a> = &'a [(Deed, u8, &'a [u8])];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let spec = root.join("spec");
    let seeds = Seeds { corpus: root.join("fuzz/corpus") };
    dwork(&seeds, &spec);
    fuq(&seeds, &spec);
    native(&seeds, &spec);
    runexp(&seeds, &spec);
    rrmq(&seeds, &spec);
    files(&seeds, &root);
    damage(&seeds);
}

struct Seeds {
    corpus: PathBuf,
}

/// A seed is small: large ones make a fuzzer slow.
const SEED_BYTES_MAX: usize = 4096;

impl Seeds {
    fn put(&self, target: &str, name: &str, bytes: &[u8]) {
        let dir = self.corpus.join(target);
        std::fs::create_dir_all(&dir).expect("the corpus can be written");
        if bytes.len() <= SEED_BYTES_MAX {
            let path = dir.join(format!("seed-{name}"));
            std::fs::write(path, bytes).expect("the corpus can be written");
        }
    }

    /// A conversation after a byte of settings.
    fn talk(&self, target: &str, name: &str, first: &[u8], steps: Steps<'_>) {
        self.put(target, name, &[first, &write_steps(steps)].concat());
    }
}

fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the golden data is there");
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("digits are text");
        u8::from_str_radix(pair, 16).expect("these are digits")
    };
    digits.chunks_exact(2).map(pair).collect()
}

fn field(row: &Value, name: &str) -> Vec<u8> {
    row[name].as_str().map(hex).unwrap_or_default()
}

fn dwork(seeds: &Seeds, spec: &Path) {
    let rows = rows(&spec.join("golden/dwork.jsonl"));
    for (at, row) in rows.iter().enumerate().step_by(9) {
        seeds.put("dwork", &format!("request-{at}"), &field(row, "request_hex"));
        seeds.put("dwork", &format!("reply-{at}"), &field(row, "reply_hex"));
    }
    let requests: Vec<Vec<u8>> = rows.iter().map(|row| field(row, "request_hex")).collect();
    let replies: Vec<Vec<u8>> = rows.iter().map(|row| field(row, "reply_hex")).collect();
    for (at, chunk) in requests.chunks(24).enumerate() {
        let mut steps: Vec<(Deed, u8, &[u8])> = vec![(Deed::Greet, 0, &[])];
        steps.extend(chunk.iter().map(|request| (Deed::SayMessage, 0, &request[..])));
        steps.push((Deed::Wait, 0, &[0, 16]));
        seeds.talk("session-dwork", &format!("{at}"), &[at as u8], &steps);
    }
    for (at, chunk) in replies.chunks(24).enumerate() {
        let mut steps: Vec<(Deed, u8, &[u8])> = vec![(Deed::Greet, 0, &[])];
        for reply in chunk {
            steps.push((Deed::SayMessage, 0, reply));
            steps.push((Deed::Act, 3, &[0]));
        }
        seeds.talk("worker-dwork", &format!("{at}"), &[at as u8], &steps);
    }
}

fn fuq(seeds: &Seeds, spec: &Path) {
    let rows = rows(&spec.join("golden/fuq.jsonl"));
    let of = |proto: &str| -> Vec<Vec<u8>> {
        let mine = rows.iter().filter(|row| row["proto"] == proto);
        mine.map(|row| field(row, "hex")).filter(|hex| !hex.is_empty()).collect()
    };
    for (at, message) in of("v1").iter().enumerate() {
        seeds.put("fuq1", &format!("{at}"), message);
    }
    for (at, message) in of("v2").iter().enumerate() {
        seeds.put("fuq2-frames", &format!("{at}"), message);
        if message.len() > 16 {
            seeds.put("fuq2-bodies", &format!("{at}"), &message[16..]);
        }
    }
    talks(seeds, "session-fuq1", "worker-fuq1", &[], &of("v1"), Deed::Say);
    talks(seeds, "session-fuq2", "worker-fuq2", &[0], &of("v2"), Deed::Say);
    talks(seeds, "session-websocket", "worker-websocket", &[0], &of("v2"), Deed::SayMessage);
}

/// Every message alone, then all in a few conversations.
fn talks(
    seeds: &Seeds,
    session: &str,
    worker: &str,
    first: &[u8],
    messages: &[Vec<u8>],
    deed: Deed,
) {
    for (at, chunk) in messages.chunks(12).enumerate() {
        let mut steps: Vec<(Deed, u8, &[u8])> = Vec::new();
        for message in chunk {
            steps.push((deed, 0, message));
            steps.push((Deed::Act, 3, &[0]));
        }
        steps.push((Deed::Wait, 0, &[0, 0, 1]));
        steps.push((Deed::Reconnect, 0, &[]));
        seeds.talk(session, &format!("{at}"), first, &steps);
        seeds.talk(worker, &format!("{at}"), first, &steps);
    }
}

fn native(seeds: &Seeds, spec: &Path) {
    let recorded = |name: &str| -> Vec<Vec<u8>> {
        let text = std::fs::read_to_string(spec.join(format!("golden/native/{name}.hex")))
            .expect("the golden data is there");
        let lines = text.lines().filter(|line| !line.starts_with('#')).map(hex);
        lines.filter(|line| line.len() >= 16).collect()
    };
    for name in ["worker-0.1", "worker-newer"] {
        let said = recorded(name);
        let steps: Vec<(Deed, u8, &[u8])> =
            said.iter().map(|message| (Deed::Say, 0, &message[..])).collect();
        seeds.talk("session-native", name, &[], &steps);
        seeds.talk("worker-native", name, &[], &steps);
        for (at, message) in said.iter().enumerate().filter(|(_, message)| message.len() > 16) {
            seeds.put("native", &format!("{name}-{at}"), &message[16..]);
        }
    }
    // What a hub says, and between its words what becomes of the tasks that it gives.
    let mut steps: Vec<(Deed, u8, &[u8])> = Vec::new();
    let said = recorded("hub-0.1");
    for message in &said {
        steps.push((Deed::Say, 0, message));
        steps.push((Deed::Act, 0, &[0]));
        steps.push((Deed::Act, 1, b"words"));
        steps.extend([(Deed::Act, 3, &[0][..]), (Deed::Act, 4, &[0])]);
        steps.push((Deed::Wait, 0, &[100]));
    }
    seeds.talk("worker-native", "hub-0.1", &[], &steps);
    // The connection is lost with tasks at the worker, and comes back.
    let given: Vec<(Deed, u8, &[u8])> =
        said.iter().take(2).map(|message| (Deed::Say, 0, &message[..])).collect();
    let back: Steps<'_> = &[(Deed::Act, 3, &[0]), (Deed::Reconnect, 0, &[])];
    let again = [&given[..], back, &given[..1], &[(Deed::Stop, 1, &[])]].concat();
    seeds.talk("worker-native", "hub-again", &[], &again);
    for (at, message) in said.iter().enumerate().filter(|(_, message)| message.len() > 16) {
        seeds.put("native", &format!("hub-0.1-{at}"), &message[16..]);
    }
}

fn runexp(seeds: &Seeds, spec: &Path) {
    let scripts = std::fs::read_dir(spec.join("golden/runexp")).expect("the golden data is there");
    for path in scripts.map(|entry| entry.expect("it can be read").path()) {
        let name = path.file_stem().expect("it is a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let (mut runner, mut manager) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let mut words = line.splitn(5, char::is_whitespace).filter(|word| !word.is_empty());
            let side = words.nth(1);
            let Some(said) = line.split_once('"').and_then(|(_, said)| said.rsplit_once('"'))
            else {
                continue;
            };
            let said = said.0.replace("\\n", "\n").into_bytes();
            let said = said[..said.len().min(400)].to_vec();
            match side {
                Some(">") => runner.push(said),
                Some("<") => manager.push(said),
                _ => {}
            }
        }
        let words = |said: &[Vec<u8>]| said.iter().take(12).flatten().copied().collect::<Vec<u8>>();
        seeds.put("runexp", &format!("runner-{name}"), &[&[3], &words(&runner)[..]].concat());
        seeds.put("runexp", &format!("manager-{name}"), &[&[3], &words(&manager)[..]].concat());
        let steps: Vec<(Deed, u8, &[u8])> =
            runner.iter().take(20).map(|said| (Deed::Say, 0, &said[..])).collect();
        seeds.talk("session-runexp", &name, &[0], &steps);
        let mut steps: Vec<(Deed, u8, &[u8])> = Vec::new();
        for said in manager.iter().take(20) {
            steps.push((Deed::Say, 0, said));
            steps.push((Deed::Act, 1, b"RES: done\n"));
            steps.push((Deed::Act, 3, &[0]));
            steps.push((Deed::Wait, 0, &[100]));
        }
        seeds.talk("worker-runexp", &name, &[], &steps);
    }
}

fn rrmq(seeds: &Seeds, spec: &Path) {
    let mut conversation: Vec<Vec<u8>> = Vec::new();
    let mut stream = Vec::new();
    for (at, row) in rows(&spec.join("golden/rrmq.jsonl")).iter().enumerate() {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        let frames: Vec<Vec<u8>> = (row["frames_hex"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .map(hex)
            .collect();
        if name.starts_with("zmtp.greeting") || name.starts_with("zmtp.ready") {
            for frame in &frames {
                if name.contains("ready") {
                    stream.extend_from_slice(&[4, frame.len() as u8]);
                }
                stream.extend_from_slice(frame);
            }
            seeds.put("zmtp", &name, &[&[0], &stream[..]].concat());
            if name.contains("ready") {
                stream.clear();
            }
            continue;
        }
        let mut packed = Vec::new();
        for frame in frames.iter().filter(|frame| frame.len() < 600) {
            packed.extend_from_slice(&(frame.len() as u16).to_le_bytes());
            packed.extend_from_slice(frame);
        }
        seeds.put("rrmq", &format!("{at}"), &packed);
        conversation.push(packed);
    }
    for (at, chunk) in conversation.chunks(10).enumerate() {
        let mut steps: Vec<(Deed, u8, &[u8])> =
            vec![(Deed::Greet, 0, b"client"), (Deed::Greet, 1, b"worker")];
        for (turn, message) in chunk.iter().enumerate() {
            steps.push((Deed::Say, (turn % 2) as u8, message));
        }
        steps.push((Deed::Wait, 0, &[0, 0, 1]));
        seeds.talk("session-rrmq", &format!("{at}"), &[at as u8], &steps);
    }
    // A whole conversation of a REQ socket: greeting, READY, a message of two frames, a PING.
    let mut req = vec![8, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    req.extend_from_slice(b"NULL");
    req.resize(65, 0);
    let ready = b"\x05READY\x0bSocket-Type\0\0\0\x03REQ\x08Identity\0\0\0\0";
    req.extend_from_slice(&[4, ready.len() as u8]);
    req.extend_from_slice(ready);
    req.extend_from_slice(b"\x01\x00\x00\x05hello\x04\x07\x04PING\0\x0a\x02\0\0\0\0\0\0\0\x03abc");
    seeds.put("zmtp", "req", &req);
    let sealed: Steps<'_> = &[
        (Deed::Wait, 0, &[]),
        (Deed::Wait, 0, &[]),
        (Deed::Wait, 0, &[]),
        (Deed::Wait, 0, &[]),
        (Deed::Say, 0, b"hello"),
        (Deed::Say, 0, b"world"),
        (Deed::Wait, 0, &[]),
        (Deed::Say, 0, b"again"),
        (Deed::Act, 3, &[20]),
        (Deed::Wait, 0, &[]),
    ];
    seeds.talk("curve", "talk", &[], sealed);
    seeds.talk("curve", "repeat", &[], &[sealed, &[(Deed::Stop, 0, &[])], sealed].concat());
}

fn files(seeds: &Seeds, root: &Path) {
    let text = |path: &str| std::fs::read(root.join(path)).expect("the example is there");
    let hello = text("examples/hello.txt");
    seeds.put("job-lines", "hello", &hello[..hello.len().min(SEED_BYTES_MAX / 8)]);
    seeds.put(
        "job-lines",
        "odd",
        b"\n\n# words\n  echo \"a b\" | tr a b \r\necho \xff\xfe\n\techo",
    );
    seeds.put("job-flow", "pipeline", &text("examples/pipeline.toml"));
    seeds.put("job-flow", "sweep", &text("examples/sweep.toml"));
    seeds.put("job-jsonl", "tasks", &text("examples/tasks.jsonl"));
    let hub = laboro_hub::config::Settings::default();
    seeds.put("hub-toml", "default", hub.text().as_bytes());
    seeds.put(
        "hub-toml",
        "door",
        b"group = \"exp\"\n[[door]]\ndialect = \"dwork\"\nlisten = \"127.0.0.1:0\"\n",
    );
    let access = "role = \"admin\"\ntoken = \"laboro_0f0e0d0c_5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\"\nhttp = \"127.0.0.1:7910\"\ncertificate = \"\"\"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n\"\"\"\n";
    seeds.put("access", "one", access.as_bytes());
    for (first, name) in ["hooks.jsonl", "schedules.json", "pools.json"].iter().enumerate() {
        let old = text(&format!("crates/laboro/tests/it/hub/old_files/{name}"));
        seeds.put("kept", name, &[&[first as u8], &old[..]].concat());
    }
    let documents = b"\x03\x00place {\"cursor\":[5,1],\"dropped\":2}\n\x02night {\"decided_ms\":5}\n\x03numbers {\"last_number\":1,\"order\":[\"a\"]}\n";
    seeds.put("kept", "documents", documents);
    for (name, line) in
        [("step", "*/20 8-9 * * 1-5"), ("names", "0 12 * jan,JUL 7"), ("word", "@daily")]
    {
        seeds.put("cron", name, line.as_bytes());
    }
    for (name, line) in [
        ("wait", "+2h"),
        ("time", "18:00"),
        ("slurm", "now+1hour"),
        ("date", "2027-01-02T03:04Z"),
        ("day", "tomorrow 18:00"),
    ] {
        seeds.put("begin", name, line.as_bytes());
    }
    let records = std::fs::read_dir(root.join("spec/journal/v1")).expect("the records are there");
    for path in records.map(|entry| entry.expect("it can be read").path()) {
        let golden = std::fs::read_to_string(&path).expect("it is text");
        let name = path.file_stem().expect("it is a file").to_string_lossy().into_owned();
        let bytes = golden.rsplit_once("\n\n").map(|(_, bytes)| hex(bytes)).unwrap_or_default();
        seeds.put("journal-record", &name, &bytes);
    }
    for (name, body) in [
        (
            "list",
            r#"{"tasks":[{"command":["true"],"after":[1,"a"]},{"name":"a","script":{"kind":".sh","body":"echo"}}]}"#,
        ),
        (
            "array",
            r#"{"name":"n","key":"k","defaults":{"env":{"A":"b"},"slots":2},"tasks":[{"name":"x","count":10,"command":"echo {}"},{"name":"y","range":{"first":1,"last":9,"step":2},"each":["x"]},{"values":["p","q"]}]}"#,
        ),
        ("select", r#"{"tasks":"1-3,5","state":"failed"}"#),
        ("limit", r#"{"max_running":3,"max_fails":null}"#),
        ("eject", r#"{"reason":"broken disk"}"#),
        ("slots", r#"{"slots":3}"#),
        ("problem", r#"{"code":"bad_value","detail":"d","hint":"h"}"#),
        ("priority", r#"{"priority":-7,"tasks":"1"}"#),
    ] {
        seeds.put("api", name, body.as_bytes());
    }
}

/// Damage of every kind, near the beginning, in the middle and at the end.
fn damage(seeds: &Seeds) {
    let deeds = [
        Deed::Say,
        Deed::SayInPieces,
        Deed::SayMessage,
        Deed::Act,
        Deed::Reconnect,
        Deed::Stop,
        Deed::Greet,
        Deed::Wait,
    ];
    for target in ["journal-log", "journal-snapshot", "outputs"] {
        seeds.put(target, "sound", &[]);
        for (at, deed) in deeds.into_iter().enumerate() {
            for (file, place) in [(0, [9, 0, 0]), (1, [80, 2, 0]), (2, [250, 255, 255])] {
                let payload = [&place[..], b"damaged"].concat();
                let name = format!("{at}-{file}");
                seeds.talk(target, &name, &[], &[(deed, file, &payload)]);
            }
        }
    }
}
