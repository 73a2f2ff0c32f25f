//! Looking at a hub in other ways than lists: a page about a job, a full screen, a link for a browser.

use super::place::Place;
use crate::rig::{LABORO, until};
use crate::terminal::TERMINAL;
use std::io::Write;
use std::process::Command;

#[test]
fn a_report_is_one_page_that_needs_nothing_else() {
    let place = Place::new();
    let job = place.out(&[
        "submit",
        "-q",
        "--name",
        "<script>alert(1)</script>",
        "--array",
        "1-8",
        "--",
        "x",
    ]);
    place.worker("w", 8).work_off(&[3]);
    place.prints(1, 3, "", "what went wrong & why\n");
    let page = || {
        place.out(&["report", &job, "-o", "page.html"]);
        place.rig.read("page.html")
    };
    until("the hub has noted all of it", || page().contains("90% within"));
    let page = page();
    assert_eq!(page.matches("<svg").count(), 3, "{page}");
    for words in ["&lt;script&gt;alert(1)", "exit code 3", "what went wrong &amp; why", ">w</td>"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    for bad in ["<script", "http://", "https://", "src=", "href="] {
        assert!(!page.contains(bad), "{bad} is in {page}");
    }
    place.run(&["report", "99"]).expect(4).says("there is no job 99");
}

#[test]
fn a_report_goes_to_standard_output_if_no_file_is_named() {
    let place = Place::new();
    place.rig.write("two.toml", "[[task]]\nname = \"a\"\ncommand = \"x\"\n");
    let job = place.out(&["submit", "-q", "two.toml"]);
    place.worker("w", 1).work_off(&[1]);
    let page = place.out(&["report", &job]);
    assert_eq!(place.out(&["report", &job, "-o", "-"]).lines().next(), page.lines().next());
    assert!(!place.rig.at("-").exists());
    assert!(page.contains("exit code 3") && page.ends_with("</html>"), "{page}");
}

#[test]
fn top_shows_jobs_opens_one_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    place.out(&["submit", "-q", "--name", "treasure", "--array", "1-3", "--", "x"]);
    assert!(Command::new("mkfifo").arg(place.rig.at("keyboard")).status().unwrap().success());
    let mut shell = Command::new("sh");
    shell.args(["-c", "exec python3 -c \"$0\" \"$@\" < keyboard", TERMINAL, LABORO, "top"]);
    shell.args(["--dir", place.rig.at("hub").to_str().unwrap(), "--every", "100ms"]);
    let live = place.rig.call(shell).env("TERM", "xterm-256color").start();
    let path = place.rig.at("keyboard");
    let mut keyboard = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    until("the job is listed", || live.out().contains("treasure"));
    keyboard.write_all(b"\r").unwrap();
    until("its tasks are listed", || live.out().contains("tasks:"));
    keyboard.write_all(b"h").unwrap();
    until("it is held", || place.out(&["jobs"]).contains("held"));
    keyboard.write_all(b"q").unwrap();
    let ran = live.wait();
    ran.expect(0);
    assert!(ran.out().contains("\u{1b}[?1049l"), "{}", ran.out());
}

#[test]
fn top_without_a_terminal_says_what_to_do_instead() {
    let place = Place::new();
    place.run(&["top"]).expect(2).says("laboro status");
}

#[test]
fn a_link_to_the_dashboard_has_the_token_where_browsers_keep_it() {
    let place = Place::new();
    let link = place.out(&["dashboard"]);
    assert!(link.starts_with("https://127.0.0.1:") && link.contains("/#token=laboro_"), "{link}");
}
