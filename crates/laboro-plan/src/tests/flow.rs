//! Flows that are right.

use std::time::Duration;

use super::{expanded, flow};
use crate::quantity::RequestedAmount;
use crate::{On, Output, Part, ScriptKind, Stdin, Work};

#[test]
fn a_flow_is_tasks_and_arrays_with_defaults() {
    let plan = flow(
        r#"
        [job]
        name = "study"
        group = "lab"
        max_fails = 3

        [defaults]
        dir = "work"
        env = { LANG = "C", A = 1 }
        output = "logs/{name}.out"
        attempts = 2

        [[task]]
        name = "prepare"
        command = "find . -exec echo {} {name} \\;"
        env = { A = "own" }

        [[task]]
        name = "train"
        command = ["./train", "--lr={lr}", "{seed}", 7]
        matrix = { lr = [0.10, 1e-3], seed = "1-2" }
        after = "prepare"
        timeout = "1h30m"
        memory = "1.5G"
        slots = 2
        resources = { gpu = 1 }
        tags = ["linux", "big"]
        priority = -5
        attempts = 9
        backoff = 2
        retry_on = [75, 0x4c]

        [[task]]
        name = "score"
        command = "score {}"
        foreach = "1-4"
        after = ["each:train", { task = "prepare" }]
        stdin = "value {}\n"

        [[task]]
        name = "report"
        script = "print('{}')"
        interpreter = "python3 -u"
        after = [{ all = "score" }, "train", "train.2"]
        even_if_failed = true
        output = { stderr = "err" }
        "#,
    );
    assert_eq!(
        expanded(&plan),
        [
            "prepare: $ find . -exec echo {} {name} \\;",
            "train.1: [./train][--lr=0.10][1][7]",
            "train.2: [./train][--lr=0.10][2][7]",
            "train.3: [./train][--lr=1e-3][1][7]",
            "train.4: [./train][--lr=1e-3][2][7]",
            "score.1: $ score 1",
            "score.2: $ score 2",
            "score.3: $ score 3",
            "score.4: $ score 4",
            "report: python3 -u script ",
        ]
    );
    assert_eq!((plan.job.name.as_deref(), plan.job.group.as_deref()), (Some("study"), Some("lab")));
    assert_eq!(plan.job.fails_max, Some(3));
    let Part::Task(prepare) = &plan.parts[0] else { panic!("prepare is a task") };
    assert_eq!(
        prepare.settings.env,
        [("LANG".to_owned(), "C".into()), ("A".to_owned(), "own".into())]
    );
    let log = Some("logs/prepare.out".into());
    assert_eq!(prepare.settings.output, Output { stdout: log.clone(), stderr: log });
    let Part::Array(train) = &plan.parts[1] else { panic!("train is an array") };
    let settings = train.element(3).unwrap().settings;
    assert_eq!(settings.output.stdout, Some("logs/train.4.out".into()));
    assert_eq!(settings.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(settings.backoff, Some(Duration::from_secs(2)));
    assert_eq!((settings.memory_bytes, settings.slots), (Some(3 << 29), Some(2)));
    assert_eq!((settings.priority, settings.attempts), (Some(-5), Some(9)));
    assert_eq!(
        (settings.retry_on, settings.tags),
        (vec![75, 76], vec!["linux".into(), "big".into()])
    );
    assert_eq!(settings.resources, [("gpu".to_owned(), RequestedAmount::Parts(10_000))]);
    let Part::Array(score) = &plan.parts[2] else { panic!("score is an array") };
    assert_eq!(score.element(1).unwrap().settings.stdin, Some(Stdin::Text("value 2\n".into())));
    let on: Vec<&On> = plan.parts.iter().flat_map(Part::after).map(|after| &after.on).collect();
    let [task, all, each] =
        [On::Task, On::All, On::Each].map(|on| move |name: &str| on(name.into()));
    assert_eq!(
        on,
        [
            &task("prepare"),
            &each("train"),
            &task("prepare"),
            &all("score"),
            &all("train"),
            &task("train.2")
        ]
    );
    let Part::Task(report) = &plan.parts[3] else { panic!("report is a task") };
    assert_eq!(report.settings.even_if_failed, Some(true));
    assert_eq!(report.settings.output, Output { stdout: None, stderr: Some("err".into()) });
    let Work::Script(script) = &report.work else { panic!("report is a script") };
    assert_eq!(script.kind, ScriptKind::Program(vec!["python3".into(), "-u".into()]));
    assert_eq!(&*script.body, b"print('{}')");
}

#[test]
fn an_array_may_run_over_lists_tuples_and_files() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("list"), "x y\nz\n").unwrap();
    let text = r#"
        [[task]]
        name = "list"
        foreach = ["a b", 2, true]
        command = "echo {}"
        [[task]]
        name = "tuple"
        foreach = [["a", 1], ["b", 2]]
        command = ["p", "{2}{1}"]
        [[task]]
        name = "file"
        foreach = { file = "list" }
        script = "echo {}"
        [[task]]
        name = "zip"
        matrix = { a = [1, 2], b-c = { file = "list" } }
        zip = true
        literal_braces = true
        command = ["p", "{a}", "{b-c}", "{b-c/}", "{d}"]
    "#;
    let plan = crate::parse_flow("flow.toml", text, dir.path()).unwrap();
    assert_eq!(
        expanded(&plan),
        [
            "list.1: $ echo 'a b'",
            "list.2: $ echo '2'",
            "list.3: $ echo 'true'",
            "tuple.1: [p][1a]",
            "tuple.2: [p][2b]",
            "file.1: bash script [x y]",
            "file.2: bash script [z]",
            "zip.1: [p][1][x y][x y][{d}]",
            "zip.2: [p][2][z][z][{d}]",
        ]
    );
}

#[test]
fn a_word_in_braces_that_no_list_is_called_by_is_a_mistake() {
    let text = r#"
        [[task]]
        name = "fit"
        matrix = { seed = "1-2", size = [1, 2] }
        env = { S = "{siez}" }
        command = "fit {sede} {size} '{print $1}' ${seed}"
    "#;
    let found = crate::parse_flow("flow.toml", text, std::path::Path::new("")).unwrap_err();
    let messages: Vec<_> = found.iter().map(|mistake| mistake.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("`{siez}` is not a placeholder here: did you mean `size`?"));
    assert!(messages[1].contains("`{sede}` is not a placeholder here: did you mean `seed`?"));
}
