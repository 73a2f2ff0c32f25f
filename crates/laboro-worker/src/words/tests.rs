//! Which lines go without a shell.

use super::*;

#[test]
fn only_lines_that_mean_the_same_without_a_shell_go_without_one() {
    let words = |line: &str| plain_words(OsStr::new(line)).map(|words| words.len());
    assert_eq!(words("/bin/true"), Some(1));
    assert_eq!(words("  ./run.sh --seed=3  out/x.csv "), Some(3));
    for line in [
        "true",
        "echo a",
        "/bin/echo *",
        "/bin/echo $HOME",
        "A=/x /bin/y",
        "/a=b c",
        "/bin/echo a\tb",
        "/bin/echo 'a b'",
        "/x;/y",
        "",
        "/bin/echo ~",
    ] {
        assert_eq!(words(line), None, "{line}");
    }
}

#[test]
fn matlab_calls_a_script_by_its_name_wherever_it_is() {
    let call = matlab_call(Path::new("/tmp/it's/script_7.m")).into_string().unwrap();
    assert!(call.starts_with("try, addpath('/tmp/it''s'); script_7; catch e, "), "{call}");
    assert!(call.ends_with("exit(1); end; exit(0)"), "{call}");
}
