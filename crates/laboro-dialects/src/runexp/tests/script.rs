//! Commands as bash scripts, run by bash.

use crate::runexp::{Extra, Script};
use laboro_core::{CommandWork, Program, Setting, Stdin, Work};
use std::io::Write;
use std::process::Command;
use std::sync::Arc;

fn render(work: &Work) -> Result<Script, String> {
    crate::runexp::render(work, &Extra::default())
}

fn bash(work: &Work) -> (Vec<u8>, Option<i32>) {
    run(&render(work).unwrap())
}

fn run(script: &Script) -> (Vec<u8>, Option<i32>) {
    assert_eq!(script.kind, ".sh");
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&script.body).unwrap();
    let output = Command::new("bash").arg(file.path()).env_clear().output().unwrap();
    (output.stdout, output.status.code())
}

fn argv(words: &[&[u8]], setting: Setting) -> Work {
    let words = words.iter().collect();
    Work::Command(CommandWork { program: Program::Argv(words), setting: Arc::new(setting) })
}

#[test]
fn a_command_gets_its_words_byte_by_byte() {
    let all: Vec<u8> = (1..=255).collect();
    let words: [&[u8]; 9] = [
        b"/usr/bin/printf",
        b"%s|",
        b"",
        b"it's",
        b"$HOME `x` \"q\"",
        b"-n",
        b"a\nb\\",
        b"*",
        &all,
    ];
    let mut expected = Vec::new();
    for word in &words[2..] {
        expected.extend_from_slice(word);
        expected.push(b'|');
    }
    assert_eq!(bash(&argv(&words, Setting::default())), (expected, Some(0)));
}

#[test]
fn a_command_finds_its_directory_variables_and_input() {
    let dir = tempfile::Builder::new().prefix("it's a $dir").tempdir().unwrap();
    let path = dir.path().as_os_str().as_encoded_bytes();
    let input: Vec<u8> = (0..=255).chain(*b"-%d \\n 'end'").collect();
    let setting = Setting {
        dir: Some(Box::from(path)),
        env: vec![(Box::from(&b"X_1"[..]), Box::from(&b"a 'b'\n$c"[..]))],
        stdin: Stdin::Text(input.clone().into()),
        ..Setting::default()
    };
    let line = b"pwd; echo \"$X_1\"; cat; exit 7";
    let program = Program::Shell(Box::from(&line[..]));
    let work = Work::Command(CommandWork { program, setting: Arc::new(setting) });
    let expected = [path, b"\na 'b'\n$c\n", &input].concat();
    assert_eq!(bash(&work), (expected, Some(7)));
}

#[test]
fn input_may_begin_with_a_dash() {
    let setting = Setting { stdin: Stdin::Text(Box::from(&b"-v x"[..])), ..Setting::default() };
    assert_eq!(bash(&argv(&[b"cat"], setting)), (b"-v x".to_vec(), Some(0)));
}

#[test]
fn a_missing_directory_is_a_failure() {
    let setting = Setting { dir: Some(Box::from(&b"/nowhere/at/all"[..])), ..Setting::default() };
    assert_eq!(bash(&argv(&[b"echo", b"x"], setting)), (Vec::new(), Some(126)));
}

#[test]
fn scripts_of_the_dialects_own_kinds_travel_as_they_are() {
    for kind in [".sh", ".m"] {
        let body: Arc<[u8]> = Arc::from(&b"\0any'thing"[..]);
        let work = Work::script(kind, body, Arc::new(Setting::default()));
        let script = render(&work).unwrap();
        assert_eq!((script.kind.as_str(), &script.body[..]), (kind, &b"\0any'thing"[..]));
    }
}

#[test]
fn a_script_with_a_setting_or_another_interpreter_is_wrapped() {
    let env = vec![(Box::from(&b"X"[..]), Box::from(&b"1"[..]))];
    let setting = Arc::new(Setting { env, ..Setting::default() });
    let body: Arc<[u8]> = Arc::from(&b"echo \"got $X 100%\"\nexit 3\n"[..]);
    let work = Work::script(".sh", body, setting);
    assert_eq!(bash(&work), (b"got 1 100%\n".to_vec(), Some(3)));
    let body: Arc<[u8]> = Arc::from(&b"/o/ { print $0 \"\\\\\" }"[..]);
    let stdin = Stdin::Text(Box::from(&b"one\ntree\n"[..]));
    let setting = Arc::new(Setting { stdin, ..Setting::default() });
    let work = Work::script("awk -f", body, setting);
    assert_eq!(bash(&work), (b"one\\\n".to_vec(), Some(0)));
}

#[test]
fn a_script_gets_its_arguments_and_a_command_knows_its_task() {
    let arguments = vec![Box::from(&b"it's 1"[..]), Box::from(&b"-n"[..])];
    let extra = Extra { arguments, facts: vec![("LABORO_INDEX", "7".into())] };
    let body: Arc<[u8]> = Arc::from(&b"echo $#,$1,$2,$LABORO_INDEX"[..]);
    for kind in [".sh", "bash"] {
        let (body, setting) = (Arc::clone(&body), Arc::new(Setting::default()));
        let work = Work::script(kind, body, setting);
        let script = crate::runexp::render(&work, &extra).unwrap();
        assert_eq!(run(&script), (b"2,it's 1,-n,7\n".to_vec(), Some(0)), "{kind}");
    }
}

/// Where neither interpreter is, a program of that name stands in for one.
#[test]
fn a_matlab_script_with_a_setting_is_wrapped_too() {
    let dir = tempfile::tempdir().unwrap();
    let octave = dir.path().join("octave");
    std::fs::write(&octave, "#!/bin/sh\necho \"$1 $X\"; cat \"$2\"; exit 5\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&octave, mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.path().display()).into_bytes();
    let env =
        vec![(Box::from(&b"PATH"[..]), path.into()), (Box::from(&b"X"[..]), Box::from(&b"1"[..]))];
    let setting = Arc::new(Setting { env, ..Setting::default() });
    let body: Arc<[u8]> = Arc::from(&b"disp('RES:ok')\n"[..]);
    let work = Work::script(".m", body, setting);
    assert_eq!(bash(&work), (b"-qf 1\ndisp('RES:ok')\n".to_vec(), Some(5)));
}

#[test]
fn a_wrapped_script_is_called_by_matlab_where_it_is_installed() {
    let dir = tempfile::tempdir().unwrap();
    let matlab = dir.path().join("matlab");
    std::fs::write(&matlab, "#!/bin/sh\nprintf '%s\\n' \"$1 $2 $3 $4 $5\" \"$6\"\nexit 5\n")
        .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&matlab, mode).unwrap();
    let path = format!("{}:/usr/bin:/bin", dir.path().display()).into_bytes();
    let env = vec![(Box::from(&b"PATH"[..]), path.into())];
    let setting = Arc::new(Setting { env, ..Setting::default() });
    let work = Work::script(".m", Arc::from(&b"disp('RES:ok')\n"[..]), setting);
    let (said, status) = bash(&work);
    let said = String::from_utf8(said).unwrap();
    let options = "-singleCompThread -nodisplay -nodesktop -nosplash -r\ntry, addpath('/";
    assert!(said.starts_with(options), "{said}");
    assert!(said.contains("'); script; catch e, fprintf(2, 'Failed: %s\\n'"), "{said}");
    assert_eq!(status, Some(5));
}

#[test]
fn what_no_runner_can_take_is_said_in_words() {
    let named = render(&Work::Named).unwrap_err();
    assert_eq!(named, "the task is only a name");
    let env = vec![(Box::from(&b"a-b"[..]), Box::from(&b"1"[..]))];
    let setting = Setting { env, ..Setting::default() };
    assert_eq!(render(&argv(&[b"x"], setting)).unwrap_err(), "a shell has no variable a-b");
    assert!(render(&argv(&[b"a\0b"], Setting::default())).is_err());
    assert!(render(&argv(&[], Setting::default())).is_err());
}
