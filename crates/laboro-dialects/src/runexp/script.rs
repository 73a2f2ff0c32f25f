//! Work as a runner can take it: a script of a kind that it knows. Commands become bash scripts, with their
//! directory, variables and input in them. Fills no placeholders.

use bytes::Bytes;
use laboro_core::{CommandWork, Program, ScriptWork, Setting, Stdin, Work};

/// A script as it travels to a runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The extension with its dot.
    pub kind: String,
    /// To the byte.
    pub body: Bytes,
}

/// What is told to a program beside its work.
#[derive(Clone, Debug, Default)]
pub struct Extra {
    /// For a script: the values of its element.
    pub arguments: Vec<Box<[u8]>>,
    /// Variables that a script as it was found does not get: it travels to the byte.
    pub facts: Vec<(&'static str, String)>,
}

/// `Err` says in words why no runner can take it.
pub fn render(work: &Work, extra: &Extra) -> Result<Script, String> {
    match work {
        Work::Script(script) => {
            let ScriptWork { kind, body, setting } = &**script;
            let is_plain = **setting == Setting::default() && extra.arguments.is_empty();
            if is_kind(kind) && is_plain {
                return Ok(Script { kind: kind.to_string(), body: Bytes::copy_from_slice(body) });
            }
            let mut text = head(setting, extra)?;
            match &**kind {
                ".m" => matlab(body, extra, &mut text)?,
                ".sh" => interpreted(&["bash"], body, extra, &mut text)?,
                kind => {
                    let words: Vec<&str> = kind.split_ascii_whitespace().collect();
                    interpreted(&words, body, extra, &mut text)?;
                }
            }
            Ok(bash(text))
        }
        Work::Command(CommandWork { program, setting }) => {
            let mut text = head(setting, extra)?;
            let shell: [&[u8]; 2] = [b"/bin/sh", b"-c"];
            let words: Vec<&[u8]> = match program {
                Program::Argv(argv) => argv.iter().collect(),
                Program::Shell(line) => shell.into_iter().chain([&**line]).collect(),
            };
            if words.is_empty() {
                return Err("the command has no words".into());
            }
            // Else bash would look for options of its own in the first one.
            text.extend_from_slice(b"exec --");
            quote_all(words, &mut text)?;
            text.push(b'\n');
            Ok(bash(text))
        }
        Work::Named => Err("the task is only a name".into()),
        Work::Indexed(_) => Err("the task is an element of a fuq job".into()),
        Work::Call(_) => Err("the task is a call".into()),
    }
}

/// The script is read from a pipe, so that it keeps its own standard input.
fn interpreted(
    words: &[&str],
    body: &[u8],
    extra: &Extra,
    text: &mut Vec<u8>,
) -> Result<(), String> {
    text.extend_from_slice(b"exec --");
    quote_all(words.iter().map(|word| word.as_bytes()), text)?;
    text.extend_from_slice(b" <(");
    print(body, text);
    text.push(b')');
    quote_all(extra.arguments.iter().map(|argument| &**argument), text)?;
    text.push(b'\n');
    Ok(())
}

/// Taken by every MATLAB, also those that have no `-batch`. The last one is followed by a statement.
pub const MATLAB_OPTIONS: [&str; 5] =
    ["-singleCompThread", "-nodisplay", "-nodesktop", "-nosplash", "-r"];

/// Calls the script of this name in this directory, where `'` is doubled. `run` would change to the script's directory,
/// and functions beside the runner would not be found. An error is told with its stack, and is the exit status.
/// Without anything that means something to a shell within double quotes.
pub fn matlab_statement(dir: &[u8], name: &str) -> Vec<u8> {
    let at =
        "fprintf(2, 'in %s at %s line %d\\n', e.stack(k).name, e.stack(k).file, e.stack(k).line)";
    let after = format!(
        "'); {name}; catch e, fprintf(2, 'Failed: %s\\n', e.message); \
         for k = 1:numel(e.stack), {at}; end; exit(1); end; exit(0)"
    );
    [b"try, addpath('", dir, after.as_bytes()].concat()
}

/// Both of its interpreters want a file with a name that could be a function's.
fn matlab(body: &[u8], extra: &Extra, text: &mut Vec<u8>) -> Result<(), String> {
    text.extend_from_slice(b"d=$(mktemp -d) || exit 126\ntrap 'rm -rf \"$d\"' EXIT\n");
    print(body, text);
    text.extend_from_slice(b" > \"$d/script.m\"\nif command -v matlab > /dev/null\n");
    text.extend_from_slice(format!("then matlab {} \"", MATLAB_OPTIONS.join(" ")).as_bytes());
    text.extend_from_slice(&matlab_statement(b"$d", "script"));
    text.extend_from_slice(b"\"\n");
    text.extend_from_slice(b"else octave -qf \"$d/script.m\"");
    quote_all(extra.arguments.iter().map(|argument| &**argument), text)?;
    text.extend_from_slice(b"\nfi\n");
    Ok(())
}

fn is_kind(kind: &str) -> bool {
    matches!(kind, ".sh" | ".m")
}

fn bash(text: Vec<u8>) -> Script {
    Script { kind: ".sh".into(), body: text.into() }
}

/// What a process finds around it, as bash makes it.
fn head(setting: &Setting, extra: &Extra) -> Result<Vec<u8>, String> {
    if let Some(word) = setting.must_understand().words().next() {
        return Err(format!("a runexp runner has no support for a {word}"));
    }
    let mut text = Vec::new();
    if let Some(dir) = &setting.dir {
        text.extend_from_slice(b"cd -- ");
        quote(dir, &mut text)?;
        text.extend_from_slice(b" || exit 126\n");
    }
    let facts = extra.facts.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let asked_for = setting.env.iter().map(|(name, value)| (&**name, &**value));
    for (name, value) in asked_for.chain(facts) {
        if !is_variable(name) {
            let name = name.escape_ascii();
            return Err(format!("a shell has no variable {name}"));
        }
        text.extend_from_slice(b"export ");
        text.extend_from_slice(name);
        text.push(b'=');
        quote(value, &mut text)?;
        text.push(b'\n');
    }
    if let Stdin::Text(words) = &setting.stdin {
        text.extend_from_slice(b"exec < <(");
        print(words, &mut text);
        text.extend_from_slice(b")\n");
    }
    Ok(text)
}

fn is_variable(name: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    name.first().is_some_and(is_letter)
        && name.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

/// One word of a shell, whatever bytes it has.
fn quote(word: &[u8], text: &mut Vec<u8>) -> Result<(), String> {
    if word.contains(&0) {
        return Err("a word of the command holds a zero byte".into());
    }
    text.push(b'\'');
    for &byte in word {
        match byte {
            b'\'' => text.extend_from_slice(b"'\\''"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
    Ok(())
}

/// Each with a space before it.
fn quote_all<'a>(
    words: impl IntoIterator<Item = &'a [u8]>,
    text: &mut Vec<u8>,
) -> Result<(), String> {
    words.into_iter().try_for_each(|word| {
        text.push(b' ');
        quote(word, text)
    })
}

/// A command that prints exactly these bytes, zero bytes too.
fn print(bytes: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(b"printf '");
    for &byte in bytes {
        match byte {
            0 => text.extend_from_slice(b"\\000"),
            b'\'' => text.extend_from_slice(b"\\047"),
            b'\\' => text.extend_from_slice(b"\\\\"),
            b'%' => text.extend_from_slice(b"%%"),
            b'-' if text.ends_with(b"printf '") => text.extend_from_slice(b"\\055"),
            byte => text.push(byte),
        }
    }
    text.push(b'\'');
}
