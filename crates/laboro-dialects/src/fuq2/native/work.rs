//! What there is to run, as a tuple: `[kind, ...]`, the kind being a number.

use super::super::pack::{
    PackError, PackReader, write_array, write_bin, write_nil, write_str, write_uint,
};
use super::text;
use bytes::BytesMut;
use laboro_core::{
    CallWork, CommandWork, FieldError, IndexedWork, Program, ScriptWork, Setting, Stdin,
    VARIABLES_MAX, WORDS_MAX, Work,
};
use std::sync::Arc;

const NAMED: u64 = 0;
const ARGV: u64 = 1;
const SHELL: u64 = 2;
const SCRIPT: u64 = 3;
const INDEXED: u64 = 4;
const CALL: u64 = 5;

/// `None` is work that has only a name.
pub(in super::super) fn write_work(to: &mut BytesMut, work: Option<&Work>) {
    match work {
        None | Some(Work::Named) => {
            write_array(to, 1);
            write_uint(to, NAMED);
        }
        Some(Work::Command(CommandWork { program, setting })) => {
            let tail = tail(setting);
            write_array(to, 6 + tail.iter().len());
            match program {
                Program::Argv(words) => {
                    write_uint(to, ARGV);
                    write_array(to, words.len());
                    words.iter().for_each(|word| write_bin(to, word));
                }
                Program::Shell(line) => {
                    write_uint(to, SHELL);
                    write_bin(to, line);
                }
            }
            write_setting(to, setting, tail.as_deref());
        }
        Some(Work::Script(script)) => {
            let ScriptWork { kind, body, setting } = &**script;
            let tail = tail(setting);
            write_array(to, 7 + tail.iter().len());
            write_uint(to, SCRIPT);
            write_str(to, kind.as_bytes());
            write_bin(to, body);
            write_setting(to, setting, tail.as_deref());
        }
        Some(Work::Indexed(indexed)) => {
            let IndexedWork { program, dir, log_dir } = &**indexed;
            write_array(to, 4);
            write_uint(to, INDEXED);
            [program, dir, log_dir].into_iter().for_each(|bytes| write_bin(to, bytes));
        }
        Some(Work::Call(CallWork { payload, setting })) => {
            let tail = tail(setting);
            write_array(to, 6 + tail.iter().len());
            write_uint(to, CALL);
            write_bin(to, payload);
            write_setting(to, setting, tail.as_deref());
        }
    }
}

/// Tagged fields, where there are any that have no place of their own.
fn tail(setting: &Setting) -> Option<Vec<u8>> {
    let mut tail = Vec::new();
    setting.encode_tail(&mut tail);
    (!tail.is_empty()).then_some(tail)
}

/// Directory, environment, a text as input, one file for both streams, and the others.
fn write_setting(to: &mut BytesMut, setting: &Setting, tail: Option<&[u8]>) {
    write_optional(to, setting.dir.as_deref());
    write_array(to, setting.env.len());
    for (name, value) in &setting.env {
        write_array(to, 2);
        write_bin(to, name);
        write_bin(to, value);
    }
    let text = if let Stdin::Text(text) = &setting.stdin { Some(&**text) } else { None };
    write_optional(to, text);
    write_optional(to, setting.both_streams());
    if let Some(tail) = tail {
        write_bin(to, tail);
    }
}

fn write_optional(to: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => write_nil(to),
        Some(bytes) => write_bin(to, bytes),
    }
}

/// `None`: a kind that this version does not know, or a field that it must understand and does not.
pub(in super::super) fn read_work(from: &mut PackReader<'_>) -> Result<Option<Work>, PackError> {
    let mut is_understood = true;
    let mut kind = NAMED;
    let mut words: Vec<Box<[u8]>> = Vec::new();
    let mut body: Arc<[u8]> = Arc::from([]);
    let mut setting = Setting::default();
    from.tuple(8, |at, from| {
        match (at, kind) {
            (0, _) => kind = from.uint()?,
            (1, ARGV) => words = from.list(WORDS_MAX, read_box)?,
            (1, SHELL | SCRIPT) | (1..=3, INDEXED) => words.push(read_box(from)?),
            (2, SCRIPT) | (1, CALL) => body = Arc::from(from.bytes()?),
            (2..=5, ARGV | SHELL | CALL) => read_setting(&mut setting, at - 2, from)?,
            (3..=6, SCRIPT) => read_setting(&mut setting, at - 3, from)?,
            (6, ARGV | SHELL | CALL) | (7, SCRIPT) => match setting.decode(from.bytes()?) {
                Ok(()) => {}
                Err(FieldError::Unknown(_)) => is_understood = false,
                Err(FieldError::Malformed(wanted)) => return Err(PackError::Range { wanted }),
            },
            _ => from.skip()?,
        }
        Ok(())
    })?;
    if !is_understood {
        return Ok(None);
    }
    let setting = Arc::new(setting);
    let mut words = words.into_iter();
    let mut next = || words.next().unwrap_or_default();
    Ok(Some(match kind {
        NAMED => Work::Named,
        ARGV => Work::Command(CommandWork { program: Program::Argv(words.collect()), setting }),
        SHELL => Work::Command(CommandWork { program: Program::Shell(next()), setting }),
        SCRIPT => Work::script(text(&next()), body, setting),
        INDEXED => Work::indexed(next(), next(), next()),
        CALL => Work::Call(CallWork { payload: body, setting }),
        _ => return Ok(None),
    }))
}

fn read_setting(
    setting: &mut Setting,
    at: usize,
    from: &mut PackReader<'_>,
) -> Result<(), PackError> {
    match at {
        0 => setting.dir = read_optional(from)?,
        1 => {
            setting.env = from.list(VARIABLES_MAX, |from| {
                let mut variable = (Box::default(), Box::default());
                from.tuple(2, |at, from| {
                    let word = read_box(from)?;
                    *(if at == 0 { &mut variable.0 } else { &mut variable.1 }) = word;
                    Ok(())
                })?;
                Ok(variable)
            })?;
        }
        2 => setting.stdin = read_optional(from)?.map_or(Stdin::Null, Stdin::Text),
        _ => setting.set_both_streams(read_optional(from)?),
    }
    Ok(())
}

fn read_box(from: &mut PackReader<'_>) -> Result<Box<[u8]>, PackError> {
    from.bytes().map(Box::from)
}

fn read_optional(from: &mut PackReader<'_>) -> Result<Option<Box<[u8]>>, PackError> {
    if from.nil() { Ok(None) } else { read_box(from).map(Some) }
}
