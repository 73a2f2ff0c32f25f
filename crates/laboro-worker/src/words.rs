//! From what a person wrote to the words of a program: shell lines, scripts and who reads them. The same for
//! every way of running tasks. Starts nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use laboro_dialects::runexp::{MATLAB_OPTIONS, matlab_statement};
use laboro_plan::ScriptKind;

/// What every system has.
pub const DEFAULT_SHELL: &str = "/bin/sh";

/// Where this program lies; a newer one may have taken its place since it was started.
fn this_program() -> Option<OsString> {
    let path = std::env::current_exe().ok()?.into_os_string().into_vec();
    let path = path.strip_suffix(b" (deleted)").unwrap_or(&path).to_vec();
    Some(OsString::from_vec(path)).filter(|path| Path::new(path).exists())
}

/// Shells to which a line without any shell syntax means the same: a program and its arguments.
const ALIKE: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// What these do themselves, or read otherwise, when it is the first word of a line.
const BUILTINS: &str = " . : [ [[ ! alias autoload bg bind break builtin bye caller case cd chdir command compgen complete \
    compopt continue coproc declare dirs disown do done echo elif else emulate enable esac eval exec exit export false fc \
    fg fi float for function functions getopts hash help history if in integer jobs kill let limit local log logout \
    mapfile newgrp nocorrect noglob popd print printf pushd pwd read readarray readonly rehash repeat return select set \
    setopt shift shopt source suspend test then time times trap true type typeset ulimit umask unalias unfunction unlimit \
    unset unsetopt until vared wait whence where which while zmodload ";

/// Who reads the lines of a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shell<'a> {
    pub program: &'a Path,
    /// The task finds programs where this process does.
    pub has_our_path: bool,
}

impl Shell<'_> {
    /// The words that run a line in this shell, or without one where that means the same.
    pub fn words(self, line: OsString) -> Vec<OsString> {
        let name = self.program.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let plain = ALIKE.contains(&name).then(|| plain_words(&line, self.has_our_path)).flatten();
        plain.unwrap_or_else(|| vec![self.program.into(), "-c".into(), line])
    }
}

/// The words that run a script from this file.
pub(crate) fn script_words(kind: &ScriptKind, script: &Path) -> Vec<OsString> {
    match kind {
        ScriptKind::Bash => vec!["bash".into(), script.into()],
        ScriptKind::Program(words) => {
            let mut argv: Vec<OsString> = words.iter().map(OsString::from).collect();
            // It need not be on the path of a worker.
            if let [program, ..] = &mut argv[..]
                && program == "laboro"
                && let Some(this) = this_program()
            {
                *program = this;
            }
            argv.push(script.into());
            argv
        }
        ScriptKind::Matlab => match matlab_program() {
            program @ "matlab" => {
                let options = MATLAB_OPTIONS.iter().map(OsString::from);
                [program.into()].into_iter().chain(options).chain([matlab_call(script)]).collect()
            }
            program => vec![program.into(), "-qf".into(), script.into()],
        },
    }
}

/// A statement that runs the script where the worker is: functions in its directory are found.
fn matlab_call(script: &Path) -> OsString {
    let dir = script.parent().unwrap_or(Path::new(".")).as_os_str().as_bytes();
    let dir: Vec<u8> =
        dir.iter().flat_map(|&byte| [byte].repeat(1 + usize::from(byte == b'\''))).collect();
    let name = script.file_stem().unwrap_or_default().to_string_lossy();
    OsString::from_vec(matlab_statement(&dir, &name))
}

/// What reads MATLAB scripts here.
fn matlab_program() -> &'static str {
    if on_path("matlab") { "matlab" } else { "octave" }
}

/// A name for a script's file. Octave wants one that could be a function's.
pub(crate) fn script_file(id: u64, kind: &ScriptKind) -> String {
    let extension = if *kind == ScriptKind::Matlab { "m" } else { "sh" };
    format!("script_{id}.{extension}")
}

/// Whether there is a program of this name here.
pub fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// The words of a line that a shell would run as they are: a program and words without any character that means
/// something to a shell. Spares the shell, which costs as much as the program.
fn plain_words(line: &OsStr, finds_programs: bool) -> Option<Vec<OsString>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" _./:,@%+-=".contains(&byte);
    let bytes = line.as_bytes();
    if !bytes.iter().all(|&byte| plain(byte)) {
        return None;
    }
    let words: Vec<OsString> = (bytes.split(|&byte| byte == b' '))
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect();
    let program = words.first()?.to_str()?;
    let is_program = match program.contains('/') {
        true => !program.contains('='),
        false => finds_programs && is_plain_program(program),
    };
    is_program.then_some(words)
}

/// A shell would find a program by this name, and nothing else: no word of its own, and no function that bash passes
/// on to the shells it starts (`export -f`).
fn is_plain_program(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte));
    is_word
        && !BUILTINS.contains(&format!(" {name} "))
        && std::env::var_os(format!("BASH_FUNC_{name}%%")).is_none()
        && on_path(name)
}

#[cfg(test)]
mod tests;
