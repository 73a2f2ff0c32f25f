//! Job files, JSON tasks and directories of runs.

use std::ffi::OsStr;
use std::fs;
use std::io::Cursor;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::expanded;
use crate::{JsonTasks, Part, Plan, Stdin, find_runs, parse_jsonl, parse_lines, read_runs};

fn lines(text: &[u8]) -> Result<Plan, String> {
    parse_lines("jobs.txt", text).map_err(|error| error.to_string())
}

#[test]
fn a_job_file_is_one_command_a_line() {
    let text = b"\xef\xbb\xbf#!/bin/laboro\n\n  # a comment \\\necho {} 'a' # kept\r\nlong \\\n  # not a comment\n\techo \\\\\necho last";
    let expected = [
        "1: $ echo {} 'a' # kept",
        "2: $ long   # not a comment",
        "3: $ \techo \\\\",
        "4: $ echo last",
    ];
    assert_eq!(expanded(&lines(text).unwrap()), expected);
}

#[test]
fn a_job_file_that_makes_no_sense_is_refused_with_its_line() {
    assert_eq!(lines(b"# only\n").unwrap_err(), "jobs.txt: there is no command in it");
    assert_eq!(
        lines(b"a\nb \\\n").unwrap_err(),
        "jobs.txt:2: the file ends in the middle of this command, after a `\\`"
    );
    assert_eq!(
        lines(b"a\nb\0c\n").unwrap_err(),
        "jobs.txt:2: a value holds a zero byte, which no program argument can carry"
    );
    let long = [b"a\n".as_slice(), &vec![b'x'; 200_000]].concat();
    assert_eq!(
        lines(&long).unwrap_err(),
        "jobs.txt:2: longer than the 131071 bytes an argument may have"
    );
}

#[test]
fn a_hundred_thousand_lines_are_read_at_once_and_stay_packed() {
    let text: String =
        (0..100_000).map(|i| format!("./simulate --seed {i} --out out/{i}.csv\n")).collect();
    let start = Instant::now();
    let plan = lines(text.as_bytes()).unwrap();
    // A hundredth of this is usual; the bound only tells linear from quadratic on a busy machine.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(plan.task_count(), 100_000);
    let Part::Array(array) = &plan.parts[0] else { panic!("lines are an array") };
    let crate::Items::List(list) = &array.values.columns()[0].items else { panic!("it is a list") };
    assert!(list.memory_bytes() < 3 * text.len(), "{}", list.memory_bytes());
    assert_eq!(array.element(99_999).unwrap().name, "100000");
}

fn jsonl(text: &str) -> Result<Plan, String> {
    parse_jsonl("tasks.jsonl", Path::new(""), Cursor::new(text)).map_err(|error| error.to_string())
}

#[test]
fn json_lines_have_the_keys_of_a_flow() {
    let plan = jsonl(concat!(
        r#"{"name":"a","command":["echo",1,"x"],"env":{"B":"2","A":1},"timeout":1.5}"#,
        "\n\n",
        r#"{"name":"b","foreach":"1-2","command":"echo {}","after":["a"],"stdin":{"file":"{}.in"}}"#,
        "\n",
    ));
    let plan = plan.unwrap();
    assert_eq!(expanded(&plan), ["a: [echo][1][x]", "b.1: $ echo 1", "b.2: $ echo 2"]);
    let Part::Task(task) = &plan.parts[0] else { panic!("a is a task") };
    assert_eq!(task.settings.env, [("B".to_owned(), "2".into()), ("A".to_owned(), "1".into())]);
    assert_eq!(task.settings.timeout, Some(Duration::from_millis(1500)));
    let Part::Array(array) = &plan.parts[1] else { panic!("b is an array") };
    assert_eq!(array.element(1).unwrap().settings.stdin, Some(Stdin::File("2.in".into())));
}

#[test]
fn each_wrong_json_line_is_named() {
    let text = concat!(
        r#"{"name":"a","comand":"x"}"#,
        "\n",
        "{oops\n",
        r#"{"name":"b","command":"x","command":"y"}"#,
        "\n[1]\n",
        r#"{"name":"c","command":"x","slots":"two"}"#,
        "\n",
        "{\"name\":\"d\",\"command\":\"a\\u0000b\"}\n",
    );
    assert_eq!(
        jsonl(text).unwrap_err(),
        "tasks.jsonl:1: unknown key `comand` (did you mean `command`?)\n\
                  tasks.jsonl:2:2: not a JSON task: key must be a string\n\
         tasks.jsonl:3:40: not a JSON task: key `command` is given twice\n\
         tasks.jsonl:4: a task is a table of keys, found a list\n\
         tasks.jsonl:5: `slots` is a whole number, found a string\n\
         tasks.jsonl:6: `command` holds a zero byte"
    );
    let unknown = "{\"name\":\"a\",\"command\":\"x\",\"after\":\"b\"}\n";
    assert_eq!(jsonl(unknown).unwrap_err(), "tasks.jsonl:1: unknown task `b` in `after`");
    assert_eq!(jsonl("\n").unwrap_err(), "tasks.jsonl: there is no task in it");
    let deep = format!("{}\n", "[".repeat(100_000));
    assert!(jsonl(&deep).unwrap_err().contains("recursion limit"));
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let mut tasks = JsonTasks::new("t", Path::new(""), endless);
    let error = tasks.next().unwrap().unwrap_err().to_string();
    assert_eq!(error, "t:1: the line is longer than 4194304 bytes");
    assert!(tasks.next().is_none());
}

#[test]
fn a_directory_of_runs_is_one_script_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "echo $1\n").unwrap();
    };
    ["b.sh", "a/x.y.m", "a/b.sh", "notes.txt", "a/z.sh.bak"].into_iter().for_each(write);
    std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
    std::os::unix::fs::symlink(dir.path().join("b.sh"), dir.path().join("link.sh")).unwrap();
    let plan = read_runs(dir.path()).unwrap();
    let expected = [
        "a/b: bash script ",
        "a/x.y: matlab or octave script ",
        "b: bash script ",
        "link: bash script ",
    ];
    assert_eq!(expanded(&plan), expected);
    assert_eq!(Plan::open(dir.path()).unwrap(), plan);
    let before = plan.fingerprint();
    fs::write(dir.path().join("b.sh"), "echo 2\n").unwrap();
    assert_ne!(read_runs(dir.path()).unwrap().fingerprint(), before);
}

#[test]
fn links_to_directories_of_runs_are_followed_but_not_in_circles() {
    let [dir, data] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let link = |to: &Path, name: &Path| std::os::unix::fs::symlink(to, name).unwrap();
    fs::create_dir(data.path().join("deep")).unwrap();
    fs::write(data.path().join("deep/x.sh"), "").unwrap();
    link(data.path(), &data.path().join("deep/back"));
    link(data.path(), &dir.path().join("one"));
    link(data.path(), &dir.path().join("two"));
    link(Path::new("nowhere"), &dir.path().join("gone.sh"));
    link(Path::new("itself"), &dir.path().join("itself"));
    let plan = read_runs(dir.path()).unwrap();
    assert_eq!(expanded(&plan), ["one/deep/x: bash script ", "two/deep/x: bash script "]);
}

#[test]
fn links_that_lead_to_each_other_without_end_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..9).map(|number| format!("d{number}")).collect();
    for from in &names {
        fs::create_dir(dir.path().join(from)).unwrap();
        for to in names.iter().filter(|to| *to != from) {
            let link = dir.path().join(from).join(to);
            std::os::unix::fs::symlink(dir.path().join(to), link).unwrap();
        }
    }
    let error = read_runs(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("more than 100000 links to directories: do they lead to each other?"));
}

#[test]
fn runs_may_have_names_of_any_bytes_but_tasks_of_a_plan_may_not() {
    let dir = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"caf\xe9");
    fs::write(dir.path().join(OsStr::from_bytes(b"caf\xe9.sh")), "echo\n").unwrap();
    let runs = find_runs(dir.path()).unwrap();
    assert_eq!(runs.iter().map(|run| &*run.name).collect::<Vec<_>>(), [name]);
    let error = read_runs(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("caf\u{fffd}: the name is not UTF-8"), "{error}");
}

#[test]
fn runs_whose_names_cannot_be_are_refused_together() {
    let dir = tempfile::tempdir().unwrap();
    let shown = dir.path().display();
    assert_eq!(
        read_runs(dir.path()).unwrap_err().to_string(),
        format!("{shown}: no file below it ends in .sh or .m")
    );
    let deep = ["d".repeat(250), "e".repeat(250), "f".repeat(250), "g".repeat(230)].join("/");
    fs::create_dir_all(dir.path().join(&deep)).unwrap();
    for file in ["a.sh", "a.m", "new\nline.sh", ".sh", &format!("{deep}/x.m")] {
        fs::write(dir.path().join(file), "").unwrap();
    }
    let error = read_runs(dir.path()).unwrap_err().to_string();
    let mut lines: Vec<&str> = error.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), 4, "{error}");
    assert!(
        error.contains(&format!(
            "{shown}/a.m and {shown}/a.sh would both be the task `a`: rename one"
        ))
    );
    assert!(
        error.contains(&format!("{shown}: .sh: nothing but an extension is not a name")),
        "{error}"
    );
    assert!(error.contains("new\\nline.sh: the name holds a new line"), "{error}");
    assert!(error.contains("x.m: the name has 985 bytes, more than 980"), "{error}");
}
