//! All of it as people have it: `laboro hub`, `laboro worker` and commands, each a process of its own.

mod confined;

use crate::rig::{Call, Live, Ran, Rig, until};
use rustix::process::Signal;

pub(super) struct Whole {
    pub(super) rig: Rig,
    hub: Option<Live>,
    _worker: Live,
}

impl Whole {
    pub(super) fn new() -> Whole {
        Whole::at(Rig::new())
    }

    /// The hub's directory may be there already, and settings in hub.toml.
    pub(super) fn at(rig: Rig) -> Whole {
        let dir = rig.at("hub");
        let dir = dir.to_str().unwrap();
        let hub = hub_call(&rig, "127.0.0.1:0", "127.0.0.1:0").start();
        until("the hub has left its access file", || rig.read("hub/access.toml").contains("http"));
        let worker = rig.laboro(["worker", dir, "-j", "2", "--scratch", "."]).start();
        let whole = Whole { rig, hub: Some(hub), _worker: worker };
        until("the worker is there", || whole.run(&["workers", "--json"]).out().contains("true"));
        whole
    }

    pub(super) fn run(&self, words: &[&str]) -> Ran {
        self.laboro(words).run()
    }

    fn laboro(&self, words: &[&str]) -> Call {
        let dir = self.rig.at("hub");
        self.rig.laboro(words.iter().copied()).env("LABORO_DIR", dir.to_str().unwrap())
    }

    pub(super) fn kill_hub(&mut self) {
        let hub = self.hub.take().unwrap();
        hub.signal(Signal::KILL);
        hub.wait();
    }

    /// Where it was before.
    pub(super) fn start_hub(&mut self) {
        let access = self.rig.read("hub/access.toml");
        let [http, native] = ["http", "native"].map(|door| {
            let line = access.lines().find(|line| line.starts_with(&format!("{door} = "))).unwrap();
            line.split('"').nth(1).unwrap().to_owned()
        });
        self.hub = Some(hub_call(&self.rig, &http, &native).start());
    }
}

fn hub_call(rig: &Rig, http: &str, native: &str) -> Call {
    let dir = rig.at("hub");
    let dir = dir.to_str().unwrap();
    let mut words = vec!["hub", "--dir", dir, "--http", http, "--native", native];
    if rig.at("hub.toml").exists() {
        words.extend(["--config", "hub.toml"]);
    }
    let call = rig.laboro(words);
    match rig.at("ca.pem").exists() {
        true => call.env("SSL_CERT_FILE", rig.at("ca.pem").to_str().unwrap()),
        false => call,
    }
}

#[test]
fn a_flow_runs_at_a_worker_and_its_output_comes_back() {
    let whole = Whole::new();
    whole.rig.write("in.txt", "read\n");
    whole.rig.write(
        "flow.toml",
        r#"
        [job]
        name = "study"
        [[task]]
        name = "prepare"
        command = "mkdir -p out"
        [[task]]
        name = "fit"
        after = "prepare"
        matrix = { model = ["a b", "it's {1}"], seed = "1-2" }
        env = { MODEL = "{model}" }
        command = "echo {model} $(( {seed} * 10 )) \"$MODEL\" > out/{#}.txt"
        [[task]]
        name = "copy"
        after = "each:fit"
        foreach = "1-4"
        stdin = { file = "out/{}.txt" }
        command = ["tee", "out/copy-{}.txt"]
        [[task]]
        name = "script"
        after = "copy"
        foreach = ["x y"]
        script = "echo \"got $1 in {}\""
        "#,
    );
    whole.run(&["submit", "--wait", "flow.toml"]).expect(0).says("job 1: ");
    let texts: Vec<String> =
        (1..=4).map(|n| whole.rig.read(&format!("out/copy-{n}.txt"))).collect();
    let expected =
        ["a b 10 a b\n", "a b 20 a b\n", "it's {1} 10 it's {1}\n", "it's {1} 20 it's {1}\n"];
    assert_eq!(texts, expected);
    assert_eq!(whole.run(&["logs", "script.1"]).expect(0).out(), "got x y in {}\n");
    assert_eq!(whole.run(&["logs", "copy.2"]).expect(0).out(), "a b 20 a b\n");
}

#[test]
fn lines_of_a_file_and_values_run_as_they_would_here() {
    let whole = Whole::new();
    let lines = "echo one > 1.txt\nfor i in a b; do echo $i; done > 2.txt\necho {} '{1}' > 3.txt\n";
    whole.rig.write("jobs.txt", lines);
    whole.run(&["submit", "--wait", "jobs.txt"]).expect(0);
    let read = |name: &str| whole.rig.read(name);
    assert_eq!([read("1.txt"), read("2.txt"), read("3.txt")], ["one\n", "a\nb\n", "{} {1}\n"]);
    let hostile = "$(touch broken); 'x'";
    whole.run(&["submit", "--wait", "--", "echo {} > {#}.out", ":::", hostile, "b"]).expect(0);
    assert_eq!(read("1.out"), format!("{hostile}\n"));
    assert!(!whole.rig.at("broken").exists());
    whole
        .run(&["submit", "--wait", "--", "sh", "-c", "echo no >&2; exit {}", ":::", "3"])
        .expect(1);
    let shown = whole.run(&["show"]).expect(0).out();
    assert!(shown.contains("exit code 3") && shown.contains("no"), "{shown}");
}

#[test]
fn nobody_waits_for_the_output_of_what_never_runs() {
    let whole = Whole::new();
    let flow = "[[task]]\nname = \"prep\"\ncommand = \"echo no; false\"\n\
                [[task]]\nname = \"join\"\nafter = \"prep\"\ncommand = \"echo never\"\n\
                [[task]]\nname = \"word\"\nafter = \"join\"\neven_if_failed = true\n\
                command = \"echo last word\"\n";
    whole.rig.write("flow.toml", flow);
    let ran = whole.run(&["submit", "--wait", "-k", "flow.toml"]);
    assert_eq!(ran.expect(1).out(), "job 1: 3 tasks\nno\nlast word\n");
    let ran = whole.run(&["submit", "--wait", "--tee", "flow.toml"]);
    let out = ran.expect(1).out();
    // Streams of different tasks may overtake each other.
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["job 2: 3 tasks", "prep: no", "word: last word"]);
    whole.run(&["submit", "--wait", "--output-dir=out", "flow.toml"]).expect(1);
    assert_eq!(
        (whole.rig.read("out/join.out"), whole.rig.read("out/word.out")),
        (String::new(), "last word\n".to_owned())
    );
    // One that is ready and does not start any more.
    let line = "echo {}; exit 1";
    let words =
        ["submit", "--wait", "-k", "--max-fails=0", "--max-running=1", "--", line, ":::", "a", "b"];
    assert_eq!(whole.run(&words).expect(1).says("stopped").out(), "job 4: 2 tasks\na\n");
}

#[test]
fn lines_of_all_tasks_are_shown_as_they_come() {
    let whole = Whole::new();
    let line = "echo begun; until test -e go; do sleep 0.05; done; echo end >&2; echo over; : {}; test $LABORO_ATTEMPT = 2";
    let words = ["submit", "--wait", "--tee", "--attempts=2", "--", line, ":::", "a", "b"];
    let live = whole.laboro(&words).start();
    until("both have begun", || {
        live.out().contains("a: begun\n") && live.out().contains("b: begun\n")
    });
    whole.rig.write("go", "");
    let ran = live.wait();
    let all = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let twice = |task: &str| {
        [
            format!("{task}: begun"),
            format!("{task}: begun"),
            format!("{task}: over"),
            format!("{task}: over"),
        ]
    };
    let expected: Vec<String> = twice("a").into_iter().chain(twice("b")).collect();
    assert_eq!(all(&ran.expect(0).out())[..8], expected);
    assert_eq!(ran.err().matches(": end\n").count(), 4, "{}", ran.err());
    // More than are followed at once, and too quick for events.
    let ran = whole.run(&["submit", "-q", "--wait", "--tee", "--array=1-300", "--", "echo x{}"]);
    assert_eq!(ran.expect(0).out().lines().filter(|line| line.contains(": x")).count(), 300);
}

#[test]
fn a_running_task_can_be_followed_and_cancelled() {
    let whole = Whole::new();
    whole.run(&["submit", "--", "echo begun; sleep 600"]).expect(0);
    let dir = whole.rig.at("hub");
    let follow = whole.rig.laboro(["logs", "--hub", "--follow", "last/1"]);
    let follow = follow.env("LABORO_DIR", dir.to_str().unwrap()).start();
    until("its first words are here", || follow.out().contains("begun"));
    assert_eq!(whole.run(&["cancel", "last"]).expect(0).out(), "job 1: 1 task cancelled\n");
    whole.run(&["wait"]).expect(1).says("job 1 cancelled");
    follow.wait().expect(0);
}

#[test]
fn what_each_attempt_used_is_told_for_one_task_and_for_many() {
    let whole = Whole::new();
    let line = "test {} != 2 || exit 7; sleep 0.1; head -c 30m /dev/zero | tail -c 30m >/dev/null";
    whole.run(&["submit", "--wait", "--attempts", "2", "--", line, ":::", "1", "2"]).expect(1);
    let tasks = whole.run(&["tasks", "--json", "last"]).expect(0).events();
    let good = &tasks[0]["attempts"][0];
    assert_eq!((&good["attempt"], &good["outcome"]["kind"]), (&1.into(), &"success".into()));
    assert!(good["used"]["wall_us"].as_u64().unwrap() >= 100_000, "{good}");
    assert!(
        good["used"]["user_us"].as_u64().unwrap() + good["used"]["system_us"].as_u64().unwrap() > 0
    );
    assert!(good["used"]["peak_memory_bytes"].as_u64().unwrap() > 20 << 20, "{good}");
    let (started, ended) = (&good["started_ms"], &good["ended_ms"]);
    assert!(started.as_u64().unwrap() + 100 <= ended.as_u64().unwrap(), "{good}");
    let name = whole.run(&["workers", "--json"]).expect(0).events()[0]["name"].clone();
    assert_eq!(good["worker_name"], name);
    let bad = tasks[1]["attempts"].as_array().unwrap();
    assert_eq!(bad.len(), 2);
    assert_eq!((&bad[1]["attempt"], &bad[1]["outcome"]["code"]), (&2.into(), &7.into()));
    let shown = whole.run(&["show", "last/1"]).expect(0).out();
    for words in [name.as_str().unwrap(), "memory", "MiB", "success"] {
        assert!(shown.contains(words), "{words} is not in\n{shown}");
    }
}

#[test]
fn what_a_task_printed_can_be_read_as_soon_as_it_is_done() {
    let whole = Whole::new();
    for round in 1..=8 {
        let text = format!("words of round {round}");
        whole.run(&["submit", "--wait", "--quiet", "--", "echo", &text]).expect(0);
        assert_eq!(whole.run(&["logs", "last/1"]).expect(0).out(), format!("{text}\n"));
    }
}

#[test]
fn a_task_that_is_tried_again_by_request_shows_what_it_printed_last() {
    let whole = Whole::new();
    whole.run(&["submit", "--wait", "--", "echo try {}; test -e ok", ":::", "1"]).expect(1);
    whole.rig.write("ok", "");
    whole.run(&["retry", "last"]).expect(0);
    whole.run(&["wait", "last"]).expect(0);
    assert_eq!(whole.run(&["logs", "last/1"]).expect(0).out(), "try 1\n");
    let task = &whole.run(&["show", "--json", "last/1"]).expect(0).events()[0];
    assert_eq!(task["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(task["attempts"][0]["outcome"]["kind"], "success");
}

#[test]
fn who_waits_or_follows_waits_for_a_hub_that_starts_again() {
    let mut whole = Whole::new();
    let line = "echo one; until test -e go; do sleep 0.05; done; echo two";
    whole.run(&["submit", "--", line]).expect(0);
    let follow = whole.laboro(&["logs", "--hub", "--follow", "--stdout", "last/1"]).start();
    // By its number, for which nobody is asked: it may come too late to meet the hub that is killed.
    let wait = whole.laboro(&["wait", "1"]).start();
    until("its first words are here", || follow.out().contains("one"));
    whole.kill_hub();
    for live in [&follow, &wait] {
        until("it has noticed", || live.err().contains("waiting for it to come back"));
    }
    whole.start_hub();
    whole.rig.write("go", "");
    wait.wait().expect(0).says("the hub is back").says("done in ");
    let followed = follow.wait();
    assert_eq!(followed.expect(0).out(), "one\ntwo\n");
    assert!(!followed.err().contains("://docs"), "{}", followed.err());
}

#[test]
fn who_made_and_revoked_tokens_is_in_the_audit_log() {
    let whole = Whole::new();
    whole.run(&["access", "--role", "watch", "--name", "viewer", "--expires", "1d"]).expect(0);
    whole.run(&["access", "revoke", "viewer"]).expect(0);
    whole.run(&["submit", "--", "true"]).expect(0);
    let log: Vec<serde_json::Value> = whole
        .rig
        .lines("hub/audit.jsonl")
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told = |at: usize| (log[at]["number"].as_u64(), log[at]["action"].as_str().unwrap());
    assert_eq!(told(0), (Some(1), "token made"));
    assert_eq!(told(1), (Some(2), "token revoked"));
    assert_eq!(told(2).0, Some(3));
    assert!(log[0]["detail"].as_str().unwrap().starts_with("viewer (watch, every group, until "));
    for (wrong, words) in [
        (["--group", ""], "a group has a name"),
        (["--expires", "0"], "would never be valid"),
        (["--hub-address", "ho st"], "is not a host"),
    ] {
        whole.run(&["access", wrong[0], wrong[1]]).expect(2).says(words);
    }
}

const STREAMS: &str = r#"
[[task]]
name = "script"
stdin = { file = "in.txt" }
output = { stdout = "s.out", stderr = "s.err" }
script = "cat; echo wrong >&2"
[[task]]
name = "line"
output = "both.log"
command = "echo 1; echo 2 >&2; echo 3"
[[task]]
name = "words"
foreach = ["a b", "c"]
dir = "{//}sub"
output = { stdout = "{#}.out" }
command = ["echo", "{}"]
"#;

#[test]
fn the_streams_of_a_flow_are_the_same_files_here_and_at_a_worker_and_are_shown_as_typed() {
    let whole = Whole::new();
    whole.rig.write("flow.toml", STREAMS);
    whole.rig.write("in.txt", "given\n");
    whole.rig.write(".sub/.keep", "");
    let files = ["s.out", "s.err", "both.log", ".sub/1.out", ".sub/2.out"];
    let written = |words: &[&str]| {
        files.iter().for_each(|file| whole.rig.write(file, "old"));
        whole.run(words).expect(0);
        files.map(|file| whole.rig.read(file))
    };
    let here = written(&["run", "flow.toml"]);
    assert_eq!(here, ["given\n", "wrong\n", "1\n2\n3\n", "a b\n", "c\n"]);
    assert_eq!(written(&["submit", "--wait", "flow.toml"]), here);
    let shown = |task: &str| whole.run(&["show", task]).expect(0).out();
    let expect = |task: &str, lines: &[&str]| {
        let shown = shown(task);
        lines.iter().for_each(|line| assert!(shown.contains(line), "{line} in {shown}"));
    };
    let script =
        ["runs       bash script\n", "    | cat; echo", "files      < in.txt > s.out 2> s.err\n"];
    expect("script", &script);
    expect("line", &["runs       echo 1; echo 2 >&2; echo 3\n", "files      > both.log 2>&1\n"]);
    expect("words.1", &["runs       echo {}\n", "value a b\n", "files      > {#}.out\n"]);
    whole.rig.write("jobs.txt", "echo $((1 + 1))\n");
    whole.run(&["submit", "--wait", "jobs.txt"]).expect(0);
    expect("last/1", &["runs       echo $((1 + 1))\n", "element    1\n"]);
}

#[test]
fn a_working_directory_may_have_placeholders_here_and_at_a_worker() {
    let whole = Whole::new();
    ["a", "b"].iter().for_each(|dir| whole.rig.write(&format!("d{dir}/.keep"), ""));
    for command in [&["run"][..], &["submit", "--wait"]] {
        let words = ["--workdir", "d{}", "--", "touch", "{}.txt", ":::", "a", "b"];
        whole.run(&[command, &words].concat()).expect(0);
        for file in ["da/a.txt", "db/b.txt"] {
            std::fs::remove_file(whole.rig.at(file)).expect("the task was there");
        }
    }
}

#[test]
fn a_umask_holds_here_and_at_a_worker_and_for_the_files_of_streams() {
    let whole = Whole::new();
    let flow = "[[task]]\nname = \"t\"\numask = \"077\"\noutput = \"out\"\ncommand = \": > own\"\n";
    whole.rig.write("flow.toml", flow);
    let modes = || {
        ["out", "own"].map(|file| {
            let mode = std::fs::metadata(whole.rig.at(file)).expect(file).permissions();
            std::fs::remove_file(whole.rig.at(file)).unwrap();
            std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777
        })
    };
    for command in [&["run", "--umask", "002"][..], &["submit", "--wait"]] {
        whole.run(&[command, &["flow.toml"]].concat()).expect(0);
        assert_eq!(modes(), [0o600, 0o600], "{command:?}");
    }
    assert!(whole.run(&["show", "t"]).expect(0).out().contains("umask      077\n"));
    for command in [&["run"][..], &["submit", "--wait"]] {
        let words = ["--umask", "007", "--", "echo x > out; : > own"];
        whole.run(&[command, &words].concat()).expect(0);
        assert_eq!(modes()[1], 0o660, "{command:?}");
    }
    whole.run(&["run", "--umask", "9", "--", "true"]).expect(2).says("octal digits such as 027");
    whole.rig.write("wrong.toml", flow.replace("\"077\"", "77"));
    whole.run(&["run", "wrong.toml"]).expect(2).says("a string of octal digits");
}

#[test]
fn a_hub_directory_from_before_fields_had_tags_opens_and_goes_on() {
    let rig = Rig::new();
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/before-fields/journal");
    std::fs::create_dir_all(rig.at("hub/journal")).unwrap();
    for file in std::fs::read_dir(log).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), rig.at("hub/journal").join(file.file_name())).unwrap();
    }
    let whole = Whole::at(rig);
    let shown = whole.run(&["show", "first"]).expect(0).out();
    for words in ["first done", "runs       cat; echo \" $KEPT\"", "input      9 B of text", "KEPT"]
    {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    let shown = whole.run(&["show", "numbers.2"]).expect(0).out();
    for words in ["runs       echo {}", "> {name}.log 2>&1", "1 gpu, tag none-such", "value 2"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    whole.run(&["release", "2"]).expect(0);
    whole.run(&["wait", "2", "4"]).expect(0);
    assert_eq!(whole.run(&["logs", "--hub", "4/2"]).expect(0).out(), "later y\n");
}

#[test]
fn a_job_begins_at_its_time_also_after_the_hub_was_killed() {
    let mut whole = Whole::new();
    let told = whole.run(&["submit", "--begin", "+1h", "--name", "late", "--", "true"]);
    assert!(told.out().starts_with("job 1: 1 task, begins "), "{}", told.out());
    whole.run(&["submit", "--begin", "+2s", "--", "true"]).expect(0);
    whole.kill_hub();
    whole.start_hub();
    whole.run(&["wait", "2"]).expect(0);
    assert!(whole.run(&["jobs"]).out().contains("begins "));
    assert!(whole.run(&["explain", "1/1"]).out().contains("job 1 begins in 59 min"));
    assert!(whole.run(&["show", "1"]).out().contains("`laboro release 1` begins it now"));
    whole.run(&["release", "1"]).expect(0);
    whole.run(&["wait", "1"]).expect(0);
    let past = whole.run(&["submit", "--wait", "--begin", "2020-01-01", "--", "true"]);
    past.expect(0);
    assert!(past.err().contains("is past: the job begins now"), "{}", past.err());
    for line in ["2h", "18", "6pm"] {
        let refused = whole.run(&["submit", "--begin", line, "--", "true"]);
        refused.expect(2);
    }
    whole
        .rig
        .write("flow.toml", "[job]\nbegin = \"+3h\"\n[[task]]\nname = \"a\"\ncommand = \"true\"\n");
    assert!(whole.run(&["submit", "flow.toml"]).out().contains("begins "));
    let run = whole.rig.laboro(["run", "flow.toml"]).run();
    run.expect(2);
    assert!(run.err().contains("laboro submit"), "{}", run.err());
}
