//! How times, sizes and foreign text are shown.

use super::*;

#[test]
fn times_and_sizes_read_well() {
    assert_eq!(duration(Duration::from_millis(1234)), "1.23s");
    assert_eq!(duration(Duration::from_secs(75)), "1m15s");
    assert_eq!(duration(Duration::from_secs(7384)), "2h03m");
    assert_eq!(bytes(17), "17 B");
    assert_eq!(bytes(1536), "1.5 KiB");
    assert_eq!([0, 1, 2].map(|n| counted(n, "task")), ["0 tasks", "1 task", "2 tasks"]);
}

#[test]
fn words_are_quoted_when_a_shell_would_not_take_them_as_they_are() {
    assert_eq!(shell_word("fit.3"), "fit.3");
    assert_eq!(shell_word("it's"), "'it'\\''s'");
    assert_eq!(shell_word(""), "''");
    assert_eq!(shell_word("out/{}-{#}"), "out/{}-{#}");
    assert_eq!(
        ["{a,b}", "{1..3}", "#x", "{"].map(shell_word),
        ["'{a,b}'", "'{1..3}'", "'#x'", "'{'"]
    );
}

#[test]
fn terminal_escapes_are_not_passed_on() {
    assert_eq!(safe("a\u{1b}[2Jb\tc\n"), "a\\u{1b}[2Jb\tc\\n");
}
