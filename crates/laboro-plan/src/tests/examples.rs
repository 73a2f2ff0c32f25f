//! The files in `examples/` run as they are, with nothing but a shell and coreutils. The runner here is the
//! plainest there is: one task after the other, in an order that respects what they wait for.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Element, On, Part, Plan, ScriptKind, Settings, Stdin, Work};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn tasks(part: &Part) -> Vec<Element> {
    match part {
        Part::Task(task) => {
            let (name, work, settings) =
                (task.name.clone(), task.work.clone(), Settings::clone(&task.settings));
            vec![Element { name, work, settings }]
        }
        Part::Array(array) => array.elements().collect(),
    }
}

/// The output of all tasks in the order they ran.
fn run(plan: &Plan, dir: &Path) -> String {
    let mut output = String::new();
    let mut done: Vec<&str> = Vec::new();
    while done.len() < plan.parts.len() {
        let ready = plan.parts.iter().find(|part| {
            let waits = |on: &On| !done.contains(&on.name());
            !done.contains(&part.name()) && !part.after().iter().any(|after| waits(&after.on))
        });
        let part = ready.expect("a valid plan always has a next task");
        for task in tasks(part) {
            output += &run_task(&task, dir);
        }
        done.push(part.name());
    }
    output
}

fn run_task(task: &Element, dir: &Path) -> String {
    let mut said = String::new();
    for attempt in 1..=task.settings.attempts.unwrap_or(1) {
        let output = run_once(task, dir);
        said += &String::from_utf8_lossy(&output.stdout);
        let code = output.status.code().expect("no task is killed");
        if code == 0 {
            return said;
        }
        assert!(
            task.settings.retry_on.contains(&code),
            "{} attempt {attempt}: {output:?}",
            task.name
        );
    }
    panic!("{} has no attempts left", task.name);
}

fn run_once(task: &Element, dir: &Path) -> std::process::Output {
    let mut command = match &task.work {
        Work::Shell { line } => shell("sh", line),
        Work::Argv(words) => {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]);
            command
        }
        Work::Script(script) => {
            assert_eq!(script.kind, ScriptKind::Bash);
            let mut command =
                shell("bash", String::from_utf8_lossy(&script.body).as_ref().as_ref());
            command.arg("script").args(&script.arguments);
            command
        }
    };
    let settings = &task.settings;
    command.current_dir(dir).envs(settings.env.iter().map(|(name, value)| (name, value)));
    match &settings.stdin {
        Some(Stdin::File(path)) => command.stdin(File::open(dir.join(path)).unwrap()),
        Some(Stdin::Text(_)) => panic!("no example feeds text"),
        None => command.stdin(Stdio::null()),
    };
    let output = command.output().unwrap();
    if let Some(path) = &settings.output.stdout {
        File::create(dir.join(path)).unwrap().write_all(&output.stdout).unwrap();
    }
    output
}

fn shell(program: &str, line: &std::ffi::OsStr) -> Command {
    let mut command = Command::new(program);
    command.arg("-c").arg(line);
    command
}

fn run_example(name: &str) -> (String, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan::open(&example(name)).unwrap_or_else(|error| panic!("{error}"));
    (run(&plan, dir.path()), dir)
}

#[test]
fn hello_draws_its_picture() {
    let (output, _dir) = run_example("hello.txt");
    let rows: Vec<&str> = output.lines().collect();
    assert_eq!(rows.len(), 24);
    assert!(rows.iter().all(|row| row.len() == 78), "{output}");
    assert!(output.matches('@').count() > 300, "{output}");
}

#[test]
fn sweep_sums_up_all_its_estimates() {
    let (output, dir) = run_example("sweep.toml");
    assert_eq!(output.matches("over 4 seeds").count(), 3, "{output}");
    assert_eq!(fs::read_dir(dir.path().join("sweep-out/error")).unwrap().count(), 12);
}

#[test]
fn pipeline_reports_after_its_retry() {
    let (output, _dir) = run_example("pipeline.toml");
    assert!(output.contains("multiples of seven among them: "), "{output}");
    assert!(output.ends_with("files\n"), "{output}");
}

#[test]
fn json_tasks_count_their_words() {
    let (output, dir) = run_example("tasks.jsonl");
    assert!(output.ends_with("done, 6 words\n"), "{output}");
    assert_eq!(fs::read_to_string(dir.path().join("sorted.txt")).unwrap(), "be\nnot\nor\nto\n");
}
