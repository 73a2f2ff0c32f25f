//! What is redirected reaches the files that were named, by a real shell.

use super::Redirect;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

fn redirect() -> Redirect {
    Redirect {
        stdin: Some(b"it's in".to_vec()),
        stdout: Some(b"out $HOME".to_vec()),
        stderr: Some(b"err".to_vec()),
        columns: 0,
    }
}

fn files(words: &[Vec<u8>]) -> [String; 2] {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("it's in"), "given").unwrap();
    let words: Vec<&OsStr> = words.iter().map(|word| OsStr::from_bytes(word)).collect();
    let output = Command::new(words[0]).args(&words[1..]).current_dir(&dir).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    ["out $HOME", "err"].map(|name| std::fs::read_to_string(dir.path().join(name)).unwrap())
}

fn bytes(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn a_shell_line_and_a_program_read_and_write_the_files() {
    let line = redirect().line(b"cat; echo wrong >&2".to_vec());
    let shell = [b"/bin/sh".to_vec(), b"-c".to_vec(), line];
    assert_eq!(files(&shell), ["given", "wrong\n"]);
    let program = bytes(&["/bin/sh", "-c", "cat; echo wrong >&2"]);
    assert_eq!(files(&redirect().words(program)), ["given", "wrong\n"]);
}

#[test]
fn nothing_is_done_where_nothing_is_redirected() {
    let none = Redirect::default();
    assert!(none.is_empty());
    assert_eq!(none.line(b"ls".to_vec()), b"ls");
    assert_eq!(none.words(bytes(&["ls", "-l"])), bytes(&["ls", "-l"]));
}

#[test]
fn a_path_made_of_all_values_stays_one_argument() {
    let stdout = Some(b"{/}".to_vec());
    let words = Redirect { stdout, columns: 2, ..Redirect::default() }.words(bytes(&["p", "{}"]));
    assert_eq!(words[4..], bytes(&["{1/} {2/}", "p", "{}"]));
}
