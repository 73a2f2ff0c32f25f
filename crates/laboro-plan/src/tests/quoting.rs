//! A value means itself in a shell line, wherever its placeholder stands and whatever it holds.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::Command;

use proptest::prelude::*;

use crate::template::{ShellError, Template, Vocabulary};
use crate::{ArgumentForm, ArgumentOptions, Column, List, Numbers, Part, Values, Work};

/// Each place prints the value, with a dot behind it so that `$( )` cannot eat its new lines.
const PLACES: &str = r#"x=v; printf '%s.\0' {} "{}" '{}' a{}b "$x{}" $x{} "$x"{} "$(printf '%s.' {})" "$(printf '%s.' "a{}")" "`echo q`{}" "${x}{}" ${x}'{}' # it's {}
printf '%s.\0' {}>&1; (printf '%s.\0' {}; printf '%s.\0' "$((1+1)){}" \
 # don't {}
 )
# "it's
printf '%s.\0' {}"#;

fn expected(value: &[u8]) -> Vec<Vec<u8>> {
    let around = |before: &[u8], after: &[u8]| [before, value, after, b"."].concat();
    vec![
        around(b"", b""),
        around(b"", b""),
        around(b"", b""),
        around(b"a", b"b"),
        around(b"v", b""),
        around(b"v", b""),
        around(b"v", b""),
        around(b"", b"."),
        around(b"a", b"."),
        around(b"q", b""),
        around(b"v", b""),
        around(b"v", b""),
        around(b"", b""),
        around(b"", b""),
        around(b"2", b""),
        around(b"", b""),
    ]
}

fn line_for(template: &str, value: &[u8]) -> OsString {
    let words = [template, ":::"].map(OsString::from).into_iter();
    let words: Vec<_> = words.chain([OsString::from_vec(value.to_vec())]).collect();
    let plan =
        ArgumentForm::parse(&words).unwrap().plan(&ArgumentOptions::default(), None).unwrap();
    let Part::Array(array) = &plan.parts[0] else { panic!("one value makes an array") };
    let Work::Shell { line } = array.element(0).unwrap().work else { panic!("it is a shell line") };
    line
}

fn check(shell: &str, value: &[u8]) {
    let line = line_for(PLACES, value);
    let output = Command::new(shell).arg("-c").arg(&line).output().unwrap();
    let printed: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
    let (last, printed) = printed.split_last().unwrap();
    assert!(last.is_empty() && output.stderr.is_empty(), "{shell}: {line:?}: {output:?}");
    assert_eq!(printed, expected(value), "{shell}: {line:?}");
}

#[test]
fn values_made_to_break_out_stay_values() {
    let hostile: [&[u8]; 14] = [
        b"",
        b" ",
        b"'",
        b"\"; echo out; \"",
        b"'; echo out; '",
        b"$(echo out)",
        b"`echo out`",
        b"${HOME}$HOME",
        b"a\nb\n\n",
        b"\\",
        b"-n",
        b"* ? [a-z] ~ # {a,b}",
        b"2",
        b"\xff\xfe not utf-8 \xc3",
    ];
    for value in hostile {
        check("sh", value);
        check("bash", value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn any_value_prints_back_exactly(value in proptest::collection::vec(1_u8.., 0..40)) {
        check("sh", &value);
    }

    #[test]
    fn any_mix_of_shell_syntax_prints_back_exactly(value in "[\\\\'\"$`(){}\\[\\];|&<>#~*?! \n\té=a1]{0,24}") {
        check("bash", value.as_bytes());
    }

    /// The rest of the line may be anything: no value may run, whatever surrounds its place.
    #[test]
    fn no_value_runs_whatever_stands_around_it(
        before in "[a \\\\'\"$`(){}#<;\n]{0,12}",
        after in "[a \\\\'\"$`(){}#<;\n]{0,12}",
    ) {
        let dir = tempfile::tempdir().unwrap();
        let template = format!("{before}{{}}{after}");
        for bait in ["$(touch ran)", "`touch ran`", "';touch ran;'", "\";touch ran;\"", "\ntouch ran\n", ";touch ran;"] {
            let mut list = List::default();
            list.push(bait.as_bytes()).unwrap();
            let values = Values::list(list).unwrap();
            let Ok(line) = Template::shell(template.as_bytes(), Vocabulary::Values(&values)) else { continue };
            let row = values.row(0).unwrap();
            let line = line.fill(&crate::template::Filling { name: "t", index: 1, row, is_range: false, slot: None });
            for shell in ["sh", "bash"] {
                Command::new(shell).arg("-c").arg(&line).current_dir(dir.path()).output().unwrap();
                prop_assert!(!dir.path().join("ran").exists(), "{} ran {:?}", shell, line);
            }
        }
    }
}

fn refused(line: &str) -> String {
    let mut list = List::default();
    list.push(b"v").unwrap();
    let values = Values::list(list).unwrap();
    match Template::shell(line.as_bytes(), Vocabulary::Values(&values)) {
        Err(ShellError::Unquotable { place, .. }) => place.to_owned(),
        Err(ShellError::Unfinished(place)) => format!("unfinished {place}"),
        Ok(_) => "accepted".to_owned(),
    }
}

#[test]
fn places_that_cannot_be_quoted_are_refused_with_a_way_out() {
    let cases = [
        ("cat <<EOF\n{}\nEOF", "in or after a here-document"),
        ("echo `echo {}`", "in or after backquotes"),
        ("echo $(( {} + 1 ))", "in or after arithmetic"),
        ("(( x = {} ))", "in or after arithmetic"),
        ("echo ${x:-{}}", "in or after `${…}` with quotes in it"),
        ("echo $'a' {}", "in or after `$'…'`"),
        ("echo \"$(case a in a) echo {};; esac)\"", "after `case` inside `$(…)`"),
        ("echo 'a {}", "unfinished single quotes"),
        ("echo \"a {}", "unfinished double quotes"),
        ("echo $(a {}", "unfinished `$(`"),
        ("case {} in a) echo {};; esac", "accepted"),
        ("cat <<<{}", "accepted"),
        ("for f in a; do echo \"${f%.gz}\" {}; done", "accepted"),
    ];
    for (line, place) in cases {
        assert_eq!(refused(line), place, "{line}");
    }
    let words = ["cat <<E\n{}\nE", ":::", "a"].map(OsString::from);
    let error =
        ArgumentForm::parse(&words).unwrap().plan(&ArgumentOptions::default(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`{}` in or after a here-document cannot be quoted safely: set a variable first, as in `v={}; … \"$v\"`"
    );
}

#[test]
fn a_number_of_a_range_goes_where_only_numbers_may() {
    let form = ArgumentForm::parse(&["echo $(( {} * 2 )) {1..{}} \"$x{}\" {}>&1".into()]).unwrap();
    let options = ArgumentOptions {
        array: Some(Column::numbers(Numbers::parse("3").unwrap())),
        ..Default::default()
    };
    let error = form.plan(&options, None).unwrap_err().to_string();
    assert!(error.contains("in or after arithmetic"), "{error}");
    let form =
        ArgumentForm::parse(&["echo \"$x{}\" {1..{}} {}>&1; echo $(( {} * 2 ))".into()]).unwrap();
    let plan = form.plan(&options, None).unwrap();
    let line = "1: $ echo \"$x\"'3'\"\" {1..3} '3'>&1; echo $(( 3 * 2 ))";
    assert_eq!(super::expanded(&plan), [line]);
}
