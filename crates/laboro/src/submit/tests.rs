//! What a hub is sent means what the plan means: it goes through the API's words and the core, and what a worker
//! is granted is filled in and compared with what a run on this machine would do.

use super::specs::specs;
use super::terms::Terms;
use crate::args::hub::Submit;
use crate::args::{Args, Command};
use clap::Parser;
use laboro_api::{Converter, LINE_BYTES_MAX, TaskSpec};
use laboro_core::{
    Archive, Ask, Capacity, Command as Asked, Config, Effect, Grant, Hub, IfTaken, JobOptions,
    Join, Kinds, Ledger, Offer, Patience, Program, Reply, Route, SessionId, SubmitTo, Time, Token,
    UnknownPred, Values, Work, WorkerRef,
};
use laboro_plan::{Element, Filler, Part, Plan, Work as PlanWork, parse_lines};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

fn args(words: &[&str]) -> Box<Submit> {
    let words = ["laboro", "submit"].iter().chain(words);
    match Args::try_parse_from(words).unwrap().command {
        Command::Submit(submit) => submit,
        other => panic!("{other:?}"),
    }
}

fn given(words: &[&str]) -> (Plan, Terms) {
    let args = args(words);
    (
        crate::input::plan(&args.input, &args.task.settings().unwrap(), "submit", 1).unwrap(),
        Terms::new(&args).unwrap(),
    )
}

fn flow(text: &str) -> (Plan, Terms) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flow.toml");
    std::fs::write(&path, text).unwrap();
    given(&["--prefix", "p-", path.to_str().unwrap()])
}

fn all(plan: &Plan, terms: &Terms) -> Vec<TaskSpec> {
    plan.parts.iter().flat_map(|part| specs(part, terms).unwrap()).collect()
}

/// What a worker with much room is given.
fn granted(plan: &Plan, terms: &Terms) -> Vec<Grant> {
    let mut converter = Converter::new(Some(Box::new(terms.defaults()))).unwrap();
    for spec in all(plan, terms) {
        let json = serde_json::to_vec(&spec).unwrap();
        converter.push(serde_json::from_slice(&json).unwrap()).unwrap();
    }
    let batch = converter.take();
    let submit = laboro_core::Submit {
        group: "default".into(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: batch.profiles,
        tasks: batch.tasks,
        arrays: batch.arrays,
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    };
    let worker = WorkerRef::Name { group: "default".into(), name: "w".into() };
    let join = Join {
        group: "default".into(),
        name: "w".into(),
        dialect: "test",
        session: SessionId(1),
        life: None,
        kinds: Kinds::ALL,
        tags: Vec::new(),
        capacity: Capacity::slots(1000),
        period_ms: None,
        running: None,
        acknowledges: false,
        host: Default::default(),
    };
    let route = Route::Answer { most: 1000, patience: Patience::None };
    let offer = Offer { worker, route, lease_ms: None };
    let (mut hub, _) = Hub::begin(Ledger::default(), Config::default(), Time(1), 1);
    let commands = [Asked::Submit(submit), Asked::Join(join), Asked::Offer(offer)];
    let asks = (1..).zip(commands).map(|(token, command)| Ask { token: Token(token), command });
    let mut grants = Vec::new();
    for effect in hub.step(Time(2), asks.collect()).release(Nowhere.receipt()) {
        match effect {
            Effect::Reply { reply: Reply::Refused(refusal), .. } => panic!("{refusal}"),
            Effect::Reply { reply: Reply::Work { grants: given, .. }, .. } => grants.extend(given),
            _ => {}
        }
    }
    grants
}

/// `dir: command`, as the worker would run it.
fn run(grant: &Grant) -> String {
    let Some(Work::Command(command)) = grant.work.as_deref() else { panic!("{:?}", grant.work) };
    let raw = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let name = format!("{}.{}", grant.name, grant.element.as_ref().map_or(0, |e| e.position + 1));
    let value = grant.element.as_ref().map(|element| match &element.values {
        Values::Numbers { first, step } => {
            (first + step * i64::from(element.position)).to_string().into_bytes()
        }
        Values::List(values) => values.get(element.position as usize).unwrap().to_vec(),
    });
    let filler = value.map(|value| {
        let position = grant.element.as_ref().map_or(0, |element| element.position);
        Filler::new(&name, u64::from(position), &value).unwrap()
    });
    let dir = command.setting.dir.as_deref().unwrap_or_default();
    let dir = filler.as_ref().map_or_else(|| raw(dir), |filler| filler.text(dir));
    let work = match (&command.program, &filler) {
        (Program::Shell(line), None) => PlanWork::Shell { line: raw(line) },
        (Program::Shell(line), Some(filler)) => {
            PlanWork::Shell { line: filler.line(line).unwrap() }
        }
        (Program::Argv(words), None) => PlanWork::Argv(words.iter().map(raw).collect()),
        (Program::Argv(words), Some(filler)) => {
            let mut argv = Vec::new();
            words.iter().for_each(|word| filler.argument(word, &mut argv));
            PlanWork::Argv(argv)
        }
    };
    format!("{}: {}", dir.to_string_lossy(), shown(&work))
}

fn shown(work: &PlanWork) -> String {
    let text = |text: &OsString| String::from_utf8_lossy(text.as_bytes()).into_owned();
    match work {
        PlanWork::Shell { line } => format!("$ {}", text(line)),
        PlanWork::Argv(words) => words.iter().map(|word| format!("[{}]", text(word))).collect(),
        PlanWork::Script(script) => format!("script {}", script.kind.label()),
    }
}

/// What a run on this machine would do, all in the directory it is typed in.
fn here(plan: &Plan) -> Vec<String> {
    let dir = std::env::current_dir().unwrap();
    let works = plan.parts.iter().flat_map(|part| match part {
        Part::Task(task) => vec![task.work.clone()],
        Part::Array(array) => array.elements().map(|Element { work, .. }| work).collect(),
    });
    works.map(|work| format!("{}: {}", dir.display(), shown(&work))).collect()
}

fn there(plan: &Plan, terms: &Terms) -> Vec<String> {
    granted(plan, terms).iter().map(run).collect()
}

#[test]
fn commands_with_values_run_there_what_they_would_run_here() {
    for words in [
        &["--", "gzip", "-k", "{}", ":::", "a b", "c'd"][..],
        &["--", "p", "{1}", "{2}", ":::", "a", "b.c", ":::", "1", "2"],
        &["--zip", "--", "p", "{}", "x{2/}", ":::", "a", "b", ":::", "/x/1", "y/2"],
        &["--array", "5-11:3", "--", "echo $(( {} + {#} ))"],
        &["--", "sort {} > {.}.sorted", ":::", "my data.csv", "$(rm x).csv"],
        &["--literal-braces", "--", "echo", "{}", "{{}}"],
    ] {
        let (plan, terms) = given(words);
        assert_eq!(there(&plan, &terms), here(&plan), "{words:?}");
    }
}

#[test]
fn a_flow_keeps_its_names_its_order_and_its_settings() {
    let (plan, terms) = flow(
        r#"
        [defaults]
        env = { LC_ALL = "C" }
        [[task]]
        name = "fit"
        matrix = { model = ["small one", "large"], seed = "1-2" }
        dir = "out/{model}"
        attempts = 3
        timeout = "90s"
        command = "fit {model} {seed} {{model}}"
        [[task]]
        name = "score"
        after = ["each:fit"]
        foreach = "1-4"
        command = ["score", "{}"]
        [[task]]
        name = "report"
        after = ["score", "fit.2"]
        slots = 2
        command = "cat *"
        "#,
    );
    let specs = all(&plan, &terms);
    let names: Vec<String> =
        specs.iter().map(|spec| spec.name.clone().unwrap().to_string()).collect();
    assert_eq!(names, ["p-fit", "p-score", "p-report"]);
    assert_eq!(specs[1].each, ["p-fit".into()]);
    assert_eq!(specs[2].after, ["p-score".into(), "p-fit.2".into()]);
    assert_eq!(
        (specs[0].attempts, specs[0].timeout_ms, specs[2].slots),
        (Some(3), Some(90_000), Some(2))
    );
    assert_eq!(specs[0].env["LC_ALL"], "C");
    let here = std::env::current_dir().unwrap();
    let there = there(&plan, &terms);
    assert_eq!(there.len(), 4, "the others wait");
    let second = format!("{}/out/small one: $ fit 'small one' 2 {{model}}", here.display());
    assert!(there.contains(&second), "{there:?}");
}

#[test]
fn ten_million_numbers_are_a_few_hundred_bytes() {
    let (plan, terms) = given(&["--array", "1-10000000", "--", "./sim", "--seed", "{}"]);
    let specs = all(&plan, &terms);
    assert_eq!(specs.len(), 1);
    let json = serde_json::to_string(&specs[0]).unwrap();
    assert_eq!(
        json,
        r#"{"command":["./sim","--seed","{}"],"range":{"first":1,"last":10000000,"step":1}}"#
    );
}

#[test]
fn a_long_file_is_cut_into_arrays_that_fit_into_a_line_each() {
    let text: String = (0..300_000).map(|n| format!("echo \u{1}{n} some more words\n")).collect();
    let plan = parse_lines("jobs.txt", text.as_bytes()).unwrap();
    let (_, terms) = given(&["--", "true"]);
    let specs = all(&plan, &terms);
    let mut n = 0;
    for spec in &specs {
        assert!(serde_json::to_vec(spec).unwrap().len() < LINE_BYTES_MAX);
        for value in spec.values.as_ref().unwrap().iter() {
            assert_eq!(value, &*format!("echo \u{1}{n} some more words"));
            n += 1;
        }
    }
    assert_eq!((n, specs.len() > 3), (300_000, true));
}

#[test]
fn an_array_that_counts_its_elements_is_not_cut() {
    let value = "x".repeat(1 << 20);
    let values = [value.as_str(); 4];
    let count = |command: &str| {
        let words: Vec<&str> = ["--", command, "{}", ":::"].into_iter().chain(values).collect();
        let (plan, terms) = given(&words);
        all(&plan, &terms).len()
    };
    assert_eq!((count("p"), count("p{#}")), (2, 1));
}

#[test]
fn a_working_directory_has_the_placeholders_of_a_flow_and_a_variable_has_none() {
    let words = ["--workdir", "/data/{}/{x}", "--env", "A={1}", "--env", "B=b"];
    let words: Vec<&str> = words.into_iter().chain(["--", "p", "{}", ":::", "v"]).collect();
    let (plan, terms) = given(&words);
    let grants = granted(&plan, &terms);
    assert_eq!(run(&grants[0]), "/data/v/{x}: [p][v]");
    let Some(Work::Command(command)) = grants[0].work.as_deref() else { panic!("a command") };
    let filler = Filler::new("1", 0, b"v").unwrap();
    let env: Vec<OsString> = command.setting.env.iter().map(|(_, v)| filler.text(v)).collect();
    assert_eq!(env, ["{1}", "b"]);
}

#[test]
fn tasks_of_a_command_have_no_names_that_the_next_submit_would_find_taken() {
    let (plan, terms) = given(&["--", "echo", "hello"]);
    assert_eq!(all(&plan, &terms)[0].name, None);
}

#[test]
fn a_variable_without_a_value_here_is_refused() {
    let wrong = Terms::new(&args(&["--env", "LABORO_NO_SUCH", "--", "true"])).unwrap_err();
    let words = "--env LABORO_NO_SUCH: it has no value here: write LABORO_NO_SUCH=VALUE";
    assert_eq!(wrong.to_string(), words);
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}
