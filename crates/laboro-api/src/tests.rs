//! The words of the API: what is taken, what is refused and by which words, and what an older or newer client
//! makes of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::*;
use laboro_core::{JobId, Values, Which, Work};

fn spec(json: &str) -> TaskSpec {
    serde_json::from_str(json).unwrap()
}

fn converted(json: &str) -> Result<Batch, BadTask> {
    let mut converter = Converter::new(None)?;
    converter.push(spec(json))?;
    Ok(converter.take())
}

#[test]
fn bytes_that_are_text_are_a_string_and_others_base64() {
    let text = Text::from("grüße");
    assert_eq!(serde_json::to_string(&text).unwrap(), "\"grüße\"");
    let bytes = Text::new([0xff, 0x00, b'a']);
    let json = serde_json::to_string(&bytes).unwrap();
    assert_eq!(json, r#"{"base64":"/wBh"}"#);
    assert_eq!(serde_json::from_str::<Text>(&json).unwrap(), bytes);
    assert_eq!(serde_json::from_str::<Text>(r#"{"base64":"YQ=="}"#).unwrap(), "a");
}

#[test]
fn wrong_bytes_are_refused_with_what_is_wrong() {
    let wrong = |json: &str| serde_json::from_str::<Text>(json).unwrap_err().to_string();
    assert!(wrong("7").contains("a string or"), "{}", wrong("7"));
    assert!(wrong(r#"{"base64":"%"}"#).contains("not base64"));
    assert!(wrong(r#"{"base46":"YQ=="}"#).contains("base46"));
    assert!(wrong(r#"{"base64":"YQ==","more":1}"#).contains("`more`"));
    assert!(wrong("{}").contains("base64"));
}

#[test]
fn an_unknown_field_is_refused_by_its_name() {
    let wrong = serde_json::from_str::<SubmitJob>(r#"{"tasks":[{"comand":"true"}]}"#).unwrap_err();
    assert!(wrong.to_string().contains("unknown field `comand`"), "{wrong}");
    let wrong = serde_json::from_str::<Selection>(r#"{"task":"1"}"#).unwrap_err();
    assert!(wrong.to_string().contains("unknown field `task`"), "{wrong}");
}

#[test]
fn a_command_is_a_line_or_words() {
    assert_eq!(spec(r#"{"command":"ls | wc"}"#).command, Some(Line::Shell("ls | wc".into())));
    let words = spec(r#"{"command":["ls",{"base64":"/w=="}]}"#).command;
    assert_eq!(words, Some(Line::Argv(vec!["ls".into(), Text::new([0xff])].into())));
    for json in [r#"{"command":"ls | wc"}"#, r#"{"command":["ls",{"base64":"/w=="}]}"#] {
        assert_eq!(serde_json::to_string(&spec(json)).unwrap(), json);
    }
}

#[test]
fn a_predecessor_is_a_name_or_a_number() {
    let json = r#"{"after":["a",{"job":3,"task":7},{"job":3,"array":1},{"base64":"/w=="}]}"#;
    let after = spec(json).after;
    assert_eq!(
        after,
        [
            After::Name("a".into()),
            After::Task { job: 3, task: 7 },
            After::Array { job: 3, first: 1 },
            After::Name(Text::new([0xff])),
        ]
    );
    assert_eq!(serde_json::to_string(&spec(json)).unwrap(), json);
    for wrong in [
        r#"{"job":3}"#,
        r#"{"task":3}"#,
        r#"{"job":3,"task":0}"#,
        r#"{"job":3,"task":2147483648}"#,
        r#"{"job":3,"task":1,"array":1}"#,
        r#"{"job":3,"tusk":1}"#,
    ] {
        assert!(serde_json::from_str::<After>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn ranges_and_counts_become_arrays_of_constant_size() {
    let batch = converted(r#"{"command":"echo {}","count":10000000}"#).unwrap();
    assert_eq!(batch.arrays[0].count, 10_000_000);
    let batch = converted(r#"{"command":"x","range":{"first":10,"last":1,"step":-3}}"#).unwrap();
    assert_eq!(batch.arrays[0].count, 4);
    assert_eq!(batch.arrays[0].values, Values::Numbers { first: 10, step: -3 });
    let batch = converted(r#"{"command":"x","range":{"first":5,"last":5}}"#).unwrap();
    assert_eq!(batch.arrays[0].count, 1);
    let batch = converted(r#"{"command":"x","values":["a","b"]}"#).unwrap();
    assert_eq!(batch.arrays[0].count, 2);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_tasks_name() {
    for (json, words) in [
        (r#"{"name":"x","command":"a","script":{"kind":".sh","body":""}}"#, "give one of"),
        (r#"{"name":"x","command":[]}"#, "empty list"),
        (r#"{"name":"x","script":{"kind":"","body":""}}"#, "empty `kind`"),
        (r#"{"name":"x","count":3,"values":["a"]}"#, "one of `count`"),
        (r#"{"name":"x","count":0}"#, "without elements"),
        (r#"{"name":"x","values":[]}"#, "without elements"),
        (r#"{"name":"x","range":{"first":1,"last":5,"step":0}}"#, "never reaches"),
        (r#"{"name":"x","range":{"first":1,"last":5,"step":-1}}"#, "never reaches"),
        (r#"{"name":"x","range":{"first":1,"last":9999999999}}"#, "more elements"),
        (
            r#"{"name":"x","range":{"first":-9223372036854775808,"last":9223372036854775807}}"#,
            "more elements",
        ),
        (r#"{"name":"x","each":["y"]}"#, "say `after`"),
        (r#"{"name":"x","command":"a\u0000"}"#, "zero byte"),
        (r#"{"name":"x","command":"a","env":{"A=B":"c"}}"#, "`A=B`"),
        (r#"{"name":"x","command":"a","env":{"":"c"}}"#, "not the name"),
        (r#"{"name":"x","command":"a","umask":"8"}"#, "octal"),
        (r#"{"name":"x","command":"a","umask":"1777"}"#, "octal"),
        (r#"{"name":"x","command":"a","nice":20}"#, "from -20 to 19"),
        (r#"{"name":"x","command":"a","stdin":{"file":"\u0000"}}"#, "zero byte"),
        (r#"{"name":"x","command":"a","output":{"stderr":"\u0000"}}"#, "zero byte"),
    ] {
        let refused = converted(json).unwrap_err().to_string();
        assert!(refused.contains(words), "{json}: {refused}");
        assert!(refused.contains("task x"), "{json}: {refused}");
    }
    let refused = Converter::new(Some(Box::new(spec(r#"{"name":"x"}"#)))).unwrap_err();
    assert_eq!(refused, BadTask::NotADefault("name"));
}

#[test]
fn streams_are_written_as_in_a_job_file() {
    let setting = |json: &str| {
        let work = converted(json).unwrap().tasks.remove(0).work.unwrap();
        laboro_core::Setting::clone(work.setting().unwrap())
    };
    let path = |path: &str| Some(path.as_bytes().into());
    let both = setting(r#"{"command":"a","stdin":"text","output":"f"}"#);
    assert_eq!(both.stdin, laboro_core::Stdin::Text(b"text".as_slice().into()));
    assert_eq!((both.stdout.clone(), both.stderr), (path("f"), path("f")));
    let json = r#"{"command":"a","stdin":{"file":"in"},"output":{"stderr":"e"},"umask":"027"}"#;
    let each = setting(json);
    assert_eq!(each.stdin, laboro_core::Stdin::File(b"in".as_slice().into()));
    assert_eq!((each.stdout, each.stderr, each.umask), (None, path("e"), Some(0o27)));
    assert_eq!(serde_json::to_string(&spec(json)).unwrap(), json);
    for (wrong, words) in [
        (r#"{"command":"a","stdin":{"path":"in"}}"#, "`stdin` is a text or"),
        (r#"{"command":"a","output":{"stdout":"o","both":"b"}}"#, "`output` is a file or"),
    ] {
        let error = serde_json::from_str::<TaskSpec>(wrong).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn tasks_with_the_same_settings_share_them() {
    let defaults = spec(r#"{"dir":"/data","env":{"A":"1","B":"2"},"attempts":3,"slots":2}"#);
    let mut converter = Converter::new(Some(Box::new(defaults))).unwrap();
    for line in ["a", "b"] {
        converter.push(spec(&format!(r#"{{"command":"{line}","env":{{"B":"3"}}}}"#))).unwrap();
    }
    let batch = converter.take();
    let setting = |at: usize| match batch.tasks[at].work.as_deref() {
        Some(Work::Command(command)) => command.setting.clone(),
        other => panic!("{other:?}"),
    };
    assert!(std::sync::Arc::ptr_eq(&setting(0), &setting(1)));
    assert_eq!(setting(0).dir.as_deref(), Some(&b"/data"[..]));
    let variable = |name: &str, value: &str| (name.as_bytes().into(), value.as_bytes().into());
    assert_eq!(setting(0).env, [variable("A", "1"), variable("B", "3")]);
    assert_eq!(batch.profiles.len(), 1);
    assert_eq!((batch.profiles[0].attempts, batch.profiles[0].needs.slots), (3, 2));
}

#[test]
fn a_selection_is_numbers_or_a_state_or_the_job() {
    let which = |json: &str| {
        let selection: Selection = serde_json::from_str(json).unwrap();
        selection.to_core(JobId(1)).map(|selection| selection.which)
    };
    assert_eq!(which("{}"), Ok(Which::Job));
    assert_eq!(which(r#"{"tasks":"1-100, 200"}"#), Ok(Which::Ranges(vec![(1, 100), (200, 200)])));
    assert_eq!(which(r#"{"state":"failed"}"#), Ok(Which::InState(laboro_core::State::Failed)));
    assert_eq!(which(r#"{"tasks":"1","state":"failed"}"#), Err(BadSelection::Both));
    assert_eq!(which(r#"{"state":"tired"}"#), Err(BadSelection::NotAState));
    for wrong in ["", "0", "5-1", "a", "1,,2", "-3", "1-2-3", "2147483648"] {
        let json = format!(r#"{{"tasks":"{wrong}"}}"#);
        assert!(matches!(which(&json), Err(BadSelection::NotNumbers(_))), "{wrong}");
    }
    let many = vec!["1"; 10_001].join(",");
    assert_eq!(which(&format!(r#"{{"tasks":"{many}"}}"#)), Err(BadSelection::TooMany));
}

#[test]
fn a_limit_tells_null_from_nothing() {
    let limit: Limit = serde_json::from_str(r#"{"max_running":null}"#).unwrap();
    assert_eq!(limit, Limit { max_running: Some(None), max_fails: None });
    assert_eq!(serde_json::to_string(&limit).unwrap(), r#"{"max_running":null}"#);
    let limit: Limit = serde_json::from_str(r#"{"max_fails":3}"#).unwrap();
    assert_eq!(limit, Limit { max_running: None, max_fails: Some(Some(3)) });
}

#[test]
fn a_client_takes_what_a_newer_hub_says() {
    let job: Job = serde_json::from_str(
        r#"{"job":1,"group":"g","state":"dreaming","tasks":1,"submitted_ms":5,"mood":"fine"}"#,
    )
    .unwrap();
    assert_eq!(job.state, JobState::Unknown);
    let event: Event = serde_json::from_str(r#"{"kind":"eclipse","moon":true}"#).unwrap();
    assert_eq!(event.kind, EventKind::Unknown);
    let task: Task = serde_json::from_str(r#"{"job":1,"task":2,"state":"ready"}"#).unwrap();
    assert_eq!(task.state, TaskState::Ready);
}

#[test]
fn words_of_version_0_1_are_understood() {
    assert_eq!(TaskState::from_word("leased"), Some(TaskState::Running));
    assert_eq!(serde_json::from_str::<TaskState>("\"leased\"").unwrap(), TaskState::Running);
    assert_eq!(serde_json::to_string(&TaskState::Running).unwrap(), "\"running\"");
    let counts: Counts = serde_json::from_str(r#"{"ready":1,"leased":2}"#).unwrap();
    assert_eq!((counts.ready, counts.running), (1, 2));
    let old = spec(r#"{"command":"true","lost_max":3,"backoff_most_ms":9}"#);
    assert_eq!((old.max_lost, old.max_backoff_ms), (Some(3), Some(9)));
}

#[test]
fn what_is_not_given_is_not_written() {
    let job = SubmitJob {
        tasks: vec![TaskSpec { command: Some(Line::Shell("true".into())), ..TaskSpec::default() }],
        ..SubmitJob::default()
    };
    assert_eq!(serde_json::to_string(&job).unwrap(), r#"{"tasks":[{"command":"true"}]}"#);
}
