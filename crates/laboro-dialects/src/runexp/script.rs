//! Work as a runner can take it: a script of a kind that it knows. Commands become bash scripts, with their
//! directory, variables and input in them. Fills no placeholders.

use bytes::Bytes;
use laboro_core::{CommandWork, Program, Setting, Work};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The extension with its dot.
    pub kind: String,
    pub body: Bytes,
}

/// `Err` says in words why no runner can take it.
pub fn render(work: &Work) -> Result<Script, String> {
    match work {
        Work::Script { kind, body, setting } if is_kind(kind) => {
            let plain = **setting == Setting::default();
            if plain {
                return Ok(Script { kind: kind.to_string(), body: Bytes::copy_from_slice(body) });
            }
            if &**kind != ".sh" {
                return Err(format!(
                    "a {kind} script cannot be given a directory, variables or input"
                ));
            }
            // The script is read from a pipe, so that it keeps its own standard input.
            let mut text = head(setting)?;
            text.extend_from_slice(b"exec bash <(");
            print(body, &mut text);
            text.extend_from_slice(b")\n");
            Ok(bash(text))
        }
        Work::Script { kind, body, setting } => {
            let mut text = head(setting)?;
            text.extend_from_slice(b"exec ");
            for word in kind.split_ascii_whitespace() {
                quote(word.as_bytes(), &mut text)?;
                text.push(b' ');
            }
            text.extend_from_slice(b"<(");
            print(body, &mut text);
            text.extend_from_slice(b")\n");
            Ok(bash(text))
        }
        Work::Command(CommandWork { program, setting }) => {
            let mut text = head(setting)?;
            text.extend_from_slice(b"exec");
            let shell: [&[u8]; 2] = [b"/bin/sh", b"-c"];
            let words: Vec<&[u8]> = match program {
                Program::Argv(argv) => argv.iter().map(|word| &**word).collect(),
                Program::Shell(line) => shell.into_iter().chain([&**line]).collect(),
            };
            if words.is_empty() {
                return Err("the command has no words".into());
            }
            // Else bash would look for options of its own in the first one.
            text.extend_from_slice(b" --");
            for word in words {
                text.push(b' ');
                quote(word, &mut text)?;
            }
            text.push(b'\n');
            Ok(bash(text))
        }
        Work::Named => Err("the task is only a name".into()),
        Work::Indexed { .. } => Err("the task is an element of a fuq job".into()),
    }
}

fn is_kind(kind: &str) -> bool {
    matches!(kind, ".sh" | ".m")
}

fn bash(text: Vec<u8>) -> Script {
    Script { kind: ".sh".into(), body: text.into() }
}

/// What a process finds around it, as bash makes it.
fn head(setting: &Setting) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    if let Some(dir) = &setting.dir {
        text.extend_from_slice(b"cd -- ");
        quote(dir, &mut text)?;
        text.extend_from_slice(b" || exit 126\n");
    }
    for (name, value) in &setting.env {
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
    if let Some(stdin) = &setting.stdin {
        text.extend_from_slice(b"exec < <(");
        print(stdin, &mut text);
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
