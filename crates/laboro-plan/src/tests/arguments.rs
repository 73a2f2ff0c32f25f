//! The form after `--`, as GNU parallel has it.

use std::ffi::OsString;
use std::io::BufRead;
use std::os::unix::ffi::OsStringExt;

use super::{expanded, words};
use crate::{
    ArgumentForm, ArgumentOptions, Column, Ending, Numbers, Pairing, Part, Plan, Source,
    ValueSource, Work,
};

fn plan(text: &str) -> Plan {
    with(text, &ArgumentOptions::default())
}

fn with(text: &str, options: &ArgumentOptions) -> Plan {
    ArgumentForm::parse(&words(text)).unwrap().plan(options, None).unwrap()
}

fn piped(text: &str, mut pipe: &[u8], ending: Ending) -> Plan {
    let options = ArgumentOptions { ending, ..Default::default() };
    let pipe: &mut dyn BufRead = &mut pipe;
    ArgumentForm::parse(&words(text)).unwrap().plan(&options, Some(pipe)).unwrap()
}

fn error(text: &str, options: &ArgumentOptions) -> String {
    let form = ArgumentForm::parse(&words(text));
    form.and_then(|form| form.plan(options, None)).unwrap_err().to_string()
}

#[test]
fn each_value_becomes_an_argument() {
    assert_eq!(expanded(&plan("gzip -k {} ::: a b")), ["1: [gzip][-k][a]", "2: [gzip][-k][b]"]);
    assert_eq!(expanded(&plan("gzip -k ::: a b")), ["1: [gzip][-k][a]", "2: [gzip][-k][b]"]);
    assert_eq!(expanded(&plan("gzip ::: a")), ["1: [gzip][a]"]);
    assert_eq!(expanded(&plan("cp {} {}.bak ::: a")), ["1: [cp][a][a.bak]"]);
}

#[test]
fn several_lists_are_combined_with_the_first_slowest() {
    let all = ["1: [p][a][1]", "2: [p][a][2]", "3: [p][b][1]", "4: [p][b][2]"];
    assert_eq!(expanded(&plan("p ::: a b ::: 1 2")), all);
    assert_eq!(expanded(&plan("p {} ::: a b ::: 1 2")), all);
    assert_eq!(expanded(&plan("p {1} {2} ::: a b ::: 1 2")), all);
    assert_eq!(expanded(&plan("p {2}-{1} ::: a ::: 1 2")), ["1: [p][1-a]", "2: [p][2-a]"]);
    assert_eq!(expanded(&plan("p x{} ::: a ::: 1")), ["1: [p][xa 1]"]);
}

#[test]
fn zipped_lists_go_side_by_side_and_must_be_equal() {
    let zip = ArgumentOptions { pairing: Pairing::Zip, ..Default::default() };
    assert_eq!(expanded(&with("p ::: a b ::: 1 2", &zip)), ["1: [p][a][1]", "2: [p][b][2]"]);
    let message =
        "lists of 2 and 1 values cannot be paired one to one: give each list the same number";
    assert_eq!(error("p ::: a b ::: 1", &zip), message);
    let shortest = ArgumentOptions { pairing: Pairing::ZipShortest, ..Default::default() };
    assert_eq!(expanded(&with("p ::: a b ::: 1", &shortest)), ["1: [p][a][1]"]);
}

#[test]
fn a_range_gives_its_numbers() {
    let array = |range: &str| ArgumentOptions {
        array: Some(Column::parse_numbers(range).unwrap()),
        name: "sim".into(),
        ..Default::default()
    };
    let plan = with("run {} {seq} {#} {index} {name}", &array("5-9:2"));
    assert_eq!(
        expanded(&plan),
        [
            "sim.1: [run][5][5][1][1][sim.1]",
            "sim.2: [run][7][7][2][2][sim.2]",
            "sim.3: [run][9][9][3][3][sim.3]"
        ]
    );
    // The number is passed on where the command says so.
    assert_eq!(expanded(&with("sleep 1", &array("7"))), ["sim.1: [sleep][1]"]);
    let message = "values come from the range and from `:::`: keep one of them";
    assert_eq!(error("run ::: a", &array("1-2")), message);
}

#[test]
fn paths_come_apart_as_in_parallel() {
    let plan = plan("p {/} {+/} {.} {/.} {+.} {1/} {1:ext} ::: a/b.tar.gz c /d/.rc e/ / x.d/y");
    assert_eq!(
        expanded(&plan),
        [
            "1: [p][b.tar.gz][a][a/b.tar][b.tar][gz][b.tar.gz][gz]",
            "2: [p][c][.][c][c][][c][]",
            "3: [p][.rc][/d][/d/.rc][.rc][][.rc][]",
            "4: [p][e][.][e/][e][][e][]",
            "5: [p][/][/][/][/][][/][]",
            "6: [p][y][x.d][x.d/y][y][][y][]",
        ]
    );
}

#[test]
fn braces_that_are_no_placeholders_stay() {
    let kept = "p {a,b} ${HOME} ${1} {print} [0-9]{3} {01} {:ext} {{.Names}} x{ } }{ {/x} %{code}";
    assert_eq!(
        expanded(&plan(&format!("{kept} {{}} ::: v"))),
        [
            "1: [p][{a,b}][${HOME}][${1}][{print}][[0-9]{3}][{01}][{:ext}][{{.Names}}][x{][}][}{][{/x}][%{code}][v]"
        ]
    );
    assert_eq!(
        expanded(&plan("p {{}} {{1}} {{name}} {{{}}} {} ::: v")),
        ["1: [p][{}][{1}][{name}][{{}}][v]"]
    );
}

#[test]
fn one_word_with_shell_syntax_is_a_shell_line_with_quoted_values() {
    let line = |line: &str, values: &[&str]| {
        let all = [line, ":::"].into_iter().chain(values.iter().copied()).map(OsString::from);
        let form = ArgumentForm::parse(&all.collect::<Vec<_>>()).unwrap();
        expanded(&form.plan(&ArgumentOptions::default(), None).unwrap())
    };
    assert_eq!(
        line("echo {} | wc", &["a b", "c.d"]),
        ["1: $ echo 'a b' | wc", "2: $ echo c.d | wc"]
    );
    assert_eq!(line("echo x", &["it's"]), ["1: $ echo x 'it'\\''s'"]);
    assert_eq!(line("awk '{print $1}' {}", &["f"]), ["1: $ awk '{print $1}' 'f'"]);
    assert_eq!(
        line("echo \"<{}>\" '{}'", &["a$b'c"]),
        ["1: $ echo \"<\"'a$b'\\''c'\">\" 'a$b'\\''c'"]
    );
}

#[test]
fn what_looks_like_a_placeholder_and_is_none_is_refused() {
    let none = ArgumentOptions::default();
    let refused = [
        ("{3} ::: a ::: b", "`{3}` is not a placeholder here: there are 2 lists of values"),
        ("x-{2/.} ::: a", "`{2/.}` is not a placeholder here: there is one list of values"),
        ("{2:ext} ::: a", "`{2:ext}` is not a placeholder here: there is one list of values"),
        ("{0%} ::: a", "`{0%}` is not a placeholder here: use {#} or {%}, and printf %05d"),
        ("{##} ::: a", "`{##}` is not a placeholder here: say how many there are yourself"),
        ("{-2} ::: a", "`{-2}` is not a placeholder here: there is one list of values"),
        ("{=s/a/b/=} ::: a", "`{=s/a/b/=}` is not a placeholder here: expressions of perl"),
    ];
    for (words, message) in refused {
        let found = error(&format!("p {words}"), &none);
        assert!(found.starts_with(message), "{words}: {found}");
        let literal = ArgumentOptions { literal_braces: true, ..Default::default() };
        with(&format!("p {words}"), &literal);
    }
    let mut options = ArgumentOptions::default();
    options.settings.dir = Some("out/{2}".into());
    assert!(error("p ::: a", &options).starts_with("`{2}` is not a placeholder here"));
}

#[test]
fn without_values_a_command_is_one_task_run_as_written() {
    let literal = ArgumentOptions { literal_braces: true, ..Default::default() };
    let found = with("find . -exec echo {} +", &literal);
    assert_eq!(expanded(&found), ["1: [find][.][-exec][echo][{}][+]"]);
    assert_eq!(expanded(&plan("p {name} {x}")), ["1: [p][{name}][{x}]"]);
    let message = "the command has a placeholder for values, and there are none";
    assert!(error("find . -exec echo {} +", &ArgumentOptions::default()).starts_with(message));
    let form = ArgumentForm::parse(&["echo {} | wc".into()]).unwrap();
    assert!(form.takes_values() && form.sources.is_empty());
    assert_eq!(expanded(&form.plan(&literal, None).unwrap()), ["1: $ echo {} | wc"]);
}

#[test]
fn linked_lists_go_side_by_side_with_the_one_before() {
    assert_eq!(expanded(&plan("p {1} {2} ::: a b :::+ 1 2")), ["1: [p][a][1]", "2: [p][b][2]"]);
    assert_eq!(
        expanded(&plan("p ::: x y ::: a b :::+ 1 2")),
        ["1: [p][x][a][1]", "2: [p][x][b][2]", "3: [p][y][a][1]", "4: [p][y][b][2]"]
    );
    assert_eq!(expanded(&plan("p ::: a b :::+ 1 2 ::: x")), ["1: [p][a][1][x]", "2: [p][b][2][x]"]);
    // One value in a group, and lists of unequal length: the shorter one decides.
    assert_eq!(expanded(&plan("p ::: a :::+ 1 2 ::: x y")), ["1: [p][a][1][x]", "2: [p][a][1][y]"]);
    let Part::Array(array) = &plan("p ::: a :::+ 1 2 3").parts[0] else { panic!("it is an array") };
    assert_eq!(array.values.unused().collect::<Vec<_>>(), [(1, 2)]);
    let none = ArgumentOptions::default();
    assert_eq!(
        error("p :::+ a", &none),
        "`:::+` comes first: there is no list before it to go with"
    );
    let message = "`::::+x` could mean two things: write `::::+ x` or `:::: ./+x`";
    assert_eq!(error("p ::: a ::::+x", &none), message);
}

#[test]
fn values_without_a_command_are_the_commands() {
    let form = ArgumentForm::parse(&[":::", "echo {} a", "ls"].map(OsString::from)).unwrap();
    let plan = form.plan(&ArgumentOptions::default(), None).unwrap();
    assert_eq!(expanded(&plan), ["1: $ echo {} a", "2: $ ls"]);
}

#[test]
fn values_come_from_pipes_and_files() {
    assert_eq!(
        expanded(&piped("gzip {}", b"a b\r\n\nc", Ending::Line)),
        ["1: [gzip][a b]", "2: [gzip][c]"]
    );
    assert_eq!(
        expanded(&piped("gzip", b"a\nb\0\0c\0", Ending::Zero)),
        ["1: [gzip][a\nb]", "2: [gzip][]", "3: [gzip][c]"]
    );
    assert_eq!(expanded(&piped("p :::: - ::: x", b"a\n", Ending::Line)), ["1: [p][a][x]"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("list");
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let glued = format!("p ::::{0} :::: {0}", file.display());
    let form = ArgumentForm::parse(&words(&glued)).unwrap();
    let source = Source { from: ValueSource::File(file), is_linked: false };
    assert_eq!(form.sources, [source.clone(), source]);
    let plan = form.plan(&ArgumentOptions::default(), None).unwrap();
    assert_eq!(expanded(&plan)[1], "2: [p][one][two]");
}

#[test]
fn bytes_that_are_no_utf8_pass_through() {
    let value = OsString::from_vec(b"a\xff/b\xfe.c".to_vec());
    let form = ArgumentForm::parse(&["p".into(), "{/.}".into(), ":::".into(), value]).unwrap();
    let plan = form.plan(&ArgumentOptions::default(), None).unwrap();
    let Part::Array(array) = &plan.parts[0] else { panic!("it is an array") };
    let expected = vec![OsString::from("p"), OsString::from_vec(b"b\xfe".to_vec())];
    assert_eq!(array.element(0).unwrap().work, Work::Argv(expected));
}

#[test]
fn settings_take_placeholders_too() {
    let mut options = ArgumentOptions { name: "t".into(), ..Default::default() };
    options.settings.output.stdout = Some("logs/{name}-{/}.out".into());
    options.settings.env = vec![("V".into(), "{}".into())];
    let Part::Array(array) = &with("p ::: a/b", &options).parts[0] else {
        panic!("it is an array")
    };
    let settings = array.element(0).unwrap().settings;
    assert_eq!(settings.output.stdout, Some("logs/t.1-b.out".into()));
    assert_eq!(settings.env, [("V".to_owned(), "a/b".into())]);
    let plan = with("p {name}", &options);
    let Part::Task(task) = &plan.parts[0] else { panic!("it is a task") };
    assert_eq!(task.settings.output.stdout, Some("logs/t-{/}.out".into()));
    assert_eq!(task.work, Work::Argv(words("p {name}")));
}

#[test]
fn what_is_missing_is_said() {
    let none = ArgumentOptions::default();
    assert_eq!(
        ArgumentForm::parse(&[]).unwrap_err().to_string(),
        "no command: write what to run after `--`"
    );
    assert_eq!(error("p :::", &none), "`:::` is followed by no values");
    assert_eq!(
        error("p ::: a ::::", &none),
        "`::::` needs the name of a file with one value per line"
    );
    assert_eq!(
        error("p :::: -", &none),
        "values from a pipe were asked for, but there is no pipe to read or it was read before"
    );
    assert!(
        error("p ::::/no/such/file", &none)
            .starts_with("/no/such/file: cannot be read: No such file")
    );
    let mut empty: &[u8] = b"\n \n";
    let form = ArgumentForm::parse(&words("p {}")).unwrap();
    assert_eq!(
        form.plan(&none, Some(&mut empty)).unwrap_err().to_string(),
        "no values came from the pipe"
    );
    let ranges =
        ["", "-", "a", "1-", "1-b", "5-1", "1-9:0", "1:", "+1-2", "0-18446744073709551615"];
    let sets = ["1,", ",", "1,5-1", "1-3,2", "1,2,x", "1-20000000,30000000"];
    for set in sets {
        assert!(Column::parse_numbers(set).is_err(), "{set}");
    }
    let messages = ranges.map(|range| Numbers::parse(range).unwrap_err().to_string());
    assert_eq!(messages[5], "range 5-1: the last number is below the first");
    assert_eq!(messages[6], "range 1-9:0: the step is zero");
    assert_eq!(
        messages[9],
        "18446744073709551616 elements are more than the 1000000000 an array may have"
    );
}

#[test]
fn an_array_may_be_several_ranges() {
    let set = Column::parse_numbers("7, 1-3,10-14:2").unwrap();
    let numbers: Vec<String> =
        (0..set.count()).map(|i| String::from_utf8_lossy(&set.item(i)).into_owned()).collect();
    assert_eq!(numbers, ["7", "1", "2", "3", "10", "12", "14"]);
    assert_eq!(
        Column::parse_numbers("4-9").unwrap(),
        Column::numbers(Numbers::parse("4-9").unwrap())
    );
}
