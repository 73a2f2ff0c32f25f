//! An array that is filled in elsewhere runs what it would have run here.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use proptest::prelude::*;

use super::{flow, words};
use crate::{
    ArgumentForm, ArgumentOptions, Array, Column, Element, Filler, Part, Plan, ScriptKind,
    Settings, Stdin, Work, parse_lines,
};

fn array(plan: &Plan) -> &Array {
    let Part::Array(array) = plan.parts.last().unwrap() else {
        panic!("the last part is an array")
    };
    array
}

fn arguments(words: &[OsString], array: Option<&str>, name: &str) -> Plan {
    let options = ArgumentOptions {
        array: array.map(|range| Column::parse_numbers(range).unwrap()),
        name: name.to_owned(),
        literal_braces: true,
        ..Default::default()
    };
    ArgumentForm::parse(words).unwrap().plan(&options, None).unwrap()
}

/// Element `i` as a worker would make it from what was carried to it.
fn filled(array: &Array, i: u64) -> (Work, Settings) {
    let name = array.element_name(i);
    let value = match array.range() {
        Some(numbers) => (numbers.first() + i * numbers.step()).to_string().into_bytes(),
        None => array.carried_value(i).unwrap().into_owned(),
    };
    let filler = Filler::new(&name, i, &value).unwrap();
    let filler = match array.carried_placeholders() {
        None => filler,
        Some(_) => filler.in_slot(1),
    };
    let all = |texts: &[Vec<u8>]| {
        let mut arguments = Vec::new();
        texts.iter().for_each(|text| filler.argument(text, &mut arguments));
        arguments
    };
    let work = match array.carried_work() {
        Work::Shell { line } => Work::Shell { line: filler.line(&line).unwrap() },
        Work::Argv(texts) => Work::Argv(all(&texts)),
        Work::Script(script) => Work::Script(crate::Script {
            kind: script.kind,
            body: script.body,
            arguments: all(&script.arguments),
        }),
    };
    (work, array.carried_settings().map(|text, _| filler.text(text)))
}

#[track_caller]
fn check(array: &Array) {
    for (i, Element { work, settings, .. }) in array.elements().enumerate() {
        assert_eq!(filled(array, i as u64), (work, settings), "{:?}", array.carried_work());
    }
}

#[test]
fn every_placeholder_means_the_same_elsewhere() {
    for command in [
        "p {} {/} {//} {.} {/.} {ext} {1} {2} {1/} {2//} {1.} {2/.} {1:ext} {#} {index} {seq} {name}",
        "p x{} {{}} {{1}} {{name}} {{{1}}} {3} {a,b} ${1} ${} {print} {{.Names}} {}}} {{{}",
    ] {
        for values in ["::: a/b.c d.tar.gz", "::: /x/y.z é ::: 1 22"] {
            let plan = arguments(&words(&format!("{command} {values}")), None, "sim");
            check(array(&plan));
            check(array(&arguments(&words(&format!("{command} {values}")), None, "")));
        }
    }
}

#[test]
fn a_range_is_carried_as_a_range_and_its_numbers_may_stand_anywhere() {
    let line = [OsString::from("echo $(( {} + 1 )) {seq} {#} 'it{}'")];
    let plan = arguments(&line, Some("5-11:3"), "sim");
    let array = array(&plan);
    let numbers = array.range().unwrap();
    assert_eq!((numbers.first(), numbers.step(), array.count()), (5, 3, 3));
    check(array);
}

#[test]
fn an_element_without_a_name_is_called_by_its_index() {
    let plan = arguments(&words("p {name} ::: a b"), None, "");
    assert_eq!(array(&plan).carried_work(), Work::Argv(vec![b"p".to_vec(), b"{#}".to_vec()]));
}

#[test]
fn lines_of_a_file_are_arguments_of_a_shell_and_never_quoted() {
    let plan = parse_lines("jobs", &b"echo {} | wc\nfor i in 1 2; do echo $i; done\n"[..]).unwrap();
    let (work, _) = filled(array(&plan), 1);
    let line = "for i in 1 2; do echo $i; done";
    assert_eq!(work, Work::Argv(["/bin/sh", "-c", line].map(OsString::from).to_vec()));
    let (work, _) = filled(array(&plan), 0);
    assert_eq!(work, Work::Argv(["/bin/sh", "-c", "echo {} | wc"].map(OsString::from).to_vec()));
}

#[test]
fn keys_of_a_matrix_become_columns_in_commands_and_settings() {
    let plan = flow(
        r#"
        [[task]]
        name = "fit"
        matrix = { model = ["small one", "large"], seed = "1-2" }
        dir = "out/{model}"
        env = { SEED = "{seed}", RAW = "{{seed}} {{model}}" }
        stdin = "{name}"
        command = "fit --model {model} '{model/}' {{model}} {2} --seed $(( {seed} * 2 ))"
        "#,
    );
    let array = array(&plan);
    let Work::Shell { line } = array.carried_work() else { panic!("it is a shell line") };
    let line = String::from_utf8(line).unwrap();
    assert_eq!(line, "fit --model {1} '{1/}' {model} {2} --seed $(( {2} * 2 ))");
    assert_eq!(*array.carried_value(1).unwrap(), *b"small one\x1f2");
    let settings = array.carried_settings();
    assert_eq!(settings.stdin, Some(Stdin::Text(b"{name}".to_vec())));
    check(array);
}

#[test]
fn text_that_is_no_template_arrives_as_it_is() {
    let plan = arguments(&words("p ::: a b"), None, "sim");
    let array = array(&plan);
    for text in ["awk '{print $1}' {} {{}} {{{}}} {1} {2} {name} ${1} {#}", "", "{", "{}", "{{{{}"]
    {
        let carried = array.carried_text(text.as_bytes());
        let filler = Filler::new("sim.1", 0, b"a").unwrap();
        assert_eq!(filler.text(&carried), OsString::from(text), "{carried:?}");
    }
}

#[test]
fn later_placeholders_are_carried_only_to_those_who_know_them() {
    let words = ["p", "{..}", "{1/...}-{2+..}", "{-1}", "{0#}", ":::", "a.b.c", ":::", "d.e.f"];
    let plan = arguments(&words.map(OsString::from), None, "");
    let found = array(&plan);
    assert_eq!(found.carried_placeholders(), Some(Filler::VERSION));
    check(found);
    let slots = arguments(&words_of_slots(), None, "");
    let mut filled = Vec::new();
    Filler::new("1", 0, b"a").unwrap().in_slot(7).argument(b"s{%}", &mut filled);
    assert_eq!((filled, array(&slots).says_slot()), (vec![OsString::from("s7")], true));
}

fn words_of_slots() -> Vec<OsString> {
    words("p {%} ::: a")
}

#[test]
fn what_was_text_before_there_were_more_placeholders_stays_text() {
    let plan = arguments(&words("p {.} ::: a.b"), None, "");
    assert_eq!(array(&plan).carried_placeholders(), None);
    let text = b"{%} {..} {/...} {-1} {{..}}";
    let filler = Filler::new("1", 0, b"a.b").unwrap();
    assert_eq!(filler.text(text).as_bytes(), text);
    assert_eq!(filler.text(&array(&plan).carried_text(text)).as_bytes(), text);
}

#[test]
fn who_reads_a_script_travels_as_one_word() {
    for kind in [ScriptKind::Bash, ScriptKind::Matlab, program("python3 -u"), program("perl")] {
        assert_eq!(ScriptKind::from_kind(&kind.kind()), kind);
    }
    assert_eq!(ScriptKind::from_kind("octave"), ScriptKind::Matlab);
    assert_eq!(ScriptKind::from_kind(" "), ScriptKind::Bash);
}

fn program(words: &str) -> ScriptKind {
    ScriptKind::Program(words.split(' ').map(str::to_owned).collect())
}

/// Any bytes, and often those that mean something here.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![1u8.., 0x1eu8..0x20, b'{'..b'~'], 0..6)
}

proptest! {
    #[test]
    fn arguments_made_of_braces_and_values_made_of_anything_arrive(
        texts in prop::collection::vec("[{}1a$#./]{1,12}", 1..4),
        first in prop::collection::vec(value(), 1..4),
        second in prop::collection::vec(value(), 0..3),
    ) {
        let mut words: Vec<OsString> = vec!["p".into()];
        words.extend(texts.into_iter().map(OsString::from));
        for list in [first, second].iter().filter(|list| !list.is_empty()) {
            words.push(":::".into());
            let values = list.iter().map(|value| OsString::from_vec(value.clone()));
            words.extend(values.filter(|value| !value.as_bytes().starts_with(b":::")));
        }
        let Ok(form) = ArgumentForm::parse(&words) else { return Ok(()) };
        let options = ArgumentOptions { literal_braces: true, ..Default::default() };
        let Ok(plan) = form.plan(&options, None) else { return Ok(()) };
        check(array(&plan));
    }
}
