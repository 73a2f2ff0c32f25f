//! Which lines go without a shell.

use super::*;

#[test]
fn only_lines_that_mean_the_same_without_a_shell_go_without_one() {
    let words = |line: &str| plain_words(OsStr::new(line), true).map(|words| words.len());
    assert_eq!(words("/bin/true"), Some(1));
    assert_eq!(words("  ./run.sh --seed=3  out/x.csv "), Some(3));
    assert_eq!(words("sleep 0.1"), Some(2));
    assert_eq!(plain_words(OsStr::new("sleep 0.1"), false), None);
    for line in [
        "true",
        "echo a",
        "time sleep 1",
        ". ./file",
        "no-such-program-anywhere a",
        "sleep:x 1",
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

#[test]
fn a_shell_of_another_kind_sees_every_line() {
    let words = |shell: &str, line: &str| {
        Shell { program: Path::new(shell), has_our_path: true }.words(line.into())
    };
    assert_eq!(words("bash", "sleep 1"), ["sleep", "1"]);
    assert_eq!(words("/opt/bin/zsh", "/bin/sleep 1"), ["/bin/sleep", "1"]);
    assert_eq!(words("fish", "sleep 1"), ["fish", "-c", "sleep 1"]);
    assert_eq!(words("bash", "sleep 1 &"), ["bash", "-c", "sleep 1 &"]);
}
