//! The words on the wire and how they are found in a stream that has no terminators. A fixed word is taken as
//! a prefix, so that merged input works; a word with arguments takes all that is there, since whoever said it
//! waits for an answer. Bodies are not read here.

use bytes::{Buf, Bytes, BytesMut};

/// The original takes one read of so many bytes for one message.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// Leaves room for the longest word, a status and a size.
pub const NAME_BYTES_MAX: usize = 980;

/// What a runner says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunnerWord {
    /// With its host name.
    Saluton(String),
    /// It understands the version.
    Komprenas,
    /// It takes the group.
    Jes,
    /// It asks for work, or whether there is any.
    Peto,
    /// It is ready for the body that follows.
    Preta,
    /// It has a result of this size.
    Rezulto { name: Bytes, is_good: bool, size: u64 },
    /// It leaves.
    FinoAnkau,
}

/// What a manager says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ManagerWord {
    Versio(Bytes),
    Aligi(Bytes),
    /// `kind` is the extension with its dot.
    Laboro {
        name: Bytes,
        kind: Bytes,
        size: u64,
    },
    /// It is ready for the body that follows.
    Preta,
    Ricevis,
    Fino,
    Atendi,
    Eliri,
}

/// Why bytes are not a word.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum WordError {
    #[error("`{0}` is not a word of the dialect")]
    Unknown(String),
    #[error("more than {MESSAGE_BYTES_MAX} bytes and no whole message: `{0}`…")]
    TooLong(String),
}

/// Bytes that have come and are not understood yet.
#[derive(Debug, Default)]
pub struct WordBuffer {
    bytes: BytesMut,
    /// Since the last word nothing was read but it: a newline after it may still come.
    newline_may_follow: bool,
}

impl WordBuffer {
    /// Adds what was read; `input` is empty then.
    pub fn take_in(&mut self, input: &mut BytesMut) {
        if self.bytes.is_empty() {
            // Spares a copy: nearly always everything was understood before more came.
            self.bytes = input.split();
        } else {
            self.bytes.extend_from_slice(input);
            input.clear();
        }
    }

    /// How many bytes are not understood yet.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Everything was understood.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Up to `most` bytes of a body.
    pub fn body(&mut self, most: u64) -> Option<Bytes> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(self.bytes.len());
        self.newline_may_follow = false;
        (most > 0).then(|| self.bytes.split_to(most).freeze())
    }

    /// Whether what is there is the beginning of one of these, or begins with one.
    pub fn may_become(&self, words: &[&[u8]]) -> bool {
        let half_newline = self.newline_may_follow && &self.bytes[..] == b"\r";
        let is_of = |word: &&[u8]| word.starts_with(&self.bytes) || self.bytes.starts_with(word);
        self.bytes.is_empty() || half_newline || words.iter().any(is_of)
    }

    /// The beginning of what is there, for a log.
    pub fn shown(&self) -> String {
        shown(&self.bytes)
    }

    /// Whether a runner says goodbye next.
    pub fn is_farewell(&self) -> bool {
        self.bytes.starts_with(FAREWELL)
    }

    /// The next word of a runner, if all of it is there.
    pub fn runner_word(&mut self) -> Result<Option<RunnerWord>, WordError> {
        self.word(&RUNNER)
    }

    /// The next word of a manager, if all of it is there.
    pub fn manager_word(&mut self) -> Result<Option<ManagerWord>, WordError> {
        self.word(&MANAGER)
    }

    fn word<W: Clone>(&mut self, language: &Language<W>) -> Result<Option<W>, WordError> {
        if !self.skip_newline() || self.bytes.is_empty() {
            return Ok(None);
        }
        if let Some((text, word)) =
            language.fixed.iter().find(|(text, _)| self.bytes.starts_with(text))
        {
            self.bytes.advance(text.len());
            self.newline_may_follow = true;
            return Ok(Some(word.clone()));
        }
        let could_be = |text: &[u8]| text.starts_with(&self.bytes) || self.bytes.starts_with(text);
        let whole = trim_newline(&self.bytes);
        let with_arguments = language.with_arguments.iter().find(|(text, _)| could_be(text));
        if let Some((text, arguments)) = with_arguments {
            if self.bytes.len() > MESSAGE_BYTES_MAX {
                return Err(WordError::TooLong(shown(&self.bytes)));
            }
            let Some(rest) = whole.strip_prefix(*text) else { return Ok(None) };
            return match arguments(rest) {
                Said::Whole(word) => {
                    self.newline_may_follow = whole.len() == self.bytes.len();
                    self.bytes.clear();
                    Ok(Some(word))
                }
                Said::Half => Ok(None),
                Said::Never => Err(WordError::Unknown(shown(&self.bytes))),
            };
        }
        if language.fixed.iter().any(|(text, _)| text.starts_with(&self.bytes)) {
            return Ok(None);
        }
        Err(WordError::Unknown(shown(&self.bytes)))
    }

    /// One newline after a word is no word. False: half of one is there.
    fn skip_newline(&mut self) -> bool {
        if !self.newline_may_follow {
            return true;
        }
        match &self.bytes[..] {
            [b'\n', ..] => self.bytes.advance(1),
            [b'\r', b'\n', ..] => self.bytes.advance(2),
            [b'\r'] => return false,
            [] => return true,
            _ => {}
        }
        self.newline_may_follow = false;
        true
    }
}

struct Language<W: 'static> {
    fixed: &'static [(&'static [u8], W)],
    with_arguments: &'static [(&'static [u8], Arguments<W>)],
}

/// Makes a word of what follows its name.
type Arguments<W> = fn(&[u8]) -> Said<W>;

enum Said<W> {
    Whole(W),
    Half,
    /// Whatever follows, it is no word any more.
    Never,
}

impl<W> From<Option<W>> for Said<W> {
    fn from(word: Option<W>) -> Said<W> {
        word.map_or(Said::Half, Said::Whole)
    }
}

const FAREWELL: &[u8] = b"FINO ANKAU";

const RUNNER: Language<RunnerWord> = Language {
    fixed: &[
        (b"KOMPRENAS", RunnerWord::Komprenas),
        (b"JES", RunnerWord::Jes),
        (b"PETO", RunnerWord::Peto),
        (b"PRETA", RunnerWord::Preta),
        (FAREWELL, RunnerWord::FinoAnkau),
    ],
    with_arguments: &[(b"SALUTON; MI ", saluton), (b"REZULTO ", rezulto)],
};

const MANAGER: Language<ManagerWord> = Language {
    fixed: &[
        (b"PRETA", ManagerWord::Preta),
        (b"RICEVIS", ManagerWord::Ricevis),
        (b"FINO", ManagerWord::Fino),
        (b"ATENDI", ManagerWord::Atendi),
        (b"ELIRI", ManagerWord::Eliri),
    ],
    with_arguments: &[(b"VERSIO ", versio), (b"ALIGI ", aligi), (b"LABORO ", laboro)],
};

fn saluton(host: &[u8]) -> Said<RunnerWord> {
    match host {
        // A newline may be on its way.
        [] | [.., b'\r'] => Said::Half,
        host if is_host(host) => {
            Said::Whole(RunnerWord::Saluton(String::from_utf8_lossy(host).into_owned()))
        }
        _ => Said::Never,
    }
}

/// Letters, digits, `-` and `_`, at least one.
pub fn is_host(host: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !host.is_empty() && host.len() <= NAME_BYTES_MAX && host.iter().all(allowed)
}

fn rezulto(rest: &[u8]) -> Said<RunnerWord> {
    result(rest).into()
}

fn result(rest: &[u8]) -> Option<RunnerWord> {
    let (name, status, size) = name_and_two(rest)?;
    let is_good = match status {
        b"success" => true,
        b"failure" => false,
        _ => return None,
    };
    Some(RunnerWord::Rezulto { name: Bytes::copy_from_slice(name), is_good, size })
}

fn versio(version: &[u8]) -> Said<ManagerWord> {
    one_argument(version).map(ManagerWord::Versio).into()
}

fn aligi(group: &[u8]) -> Said<ManagerWord> {
    one_argument(group).map(ManagerWord::Aligi).into()
}

fn laboro(rest: &[u8]) -> Said<ManagerWord> {
    job(rest).into()
}

fn job(rest: &[u8]) -> Option<ManagerWord> {
    let (name, kind, size) = name_and_two(rest)?;
    if kind.len() < 2 || kind[0] != b'.' {
        return None;
    }
    let (name, kind) = (Bytes::copy_from_slice(name), Bytes::copy_from_slice(kind));
    Some(ManagerWord::Laboro { name, kind, size })
}

fn one_argument(argument: &[u8]) -> Option<Bytes> {
    let whole = !argument.is_empty() && !argument.iter().any(u8::is_ascii_whitespace);
    whole.then(|| Bytes::copy_from_slice(argument))
}

/// A name, which may hold spaces, then a word, then a number: found from the right.
fn name_and_two(rest: &[u8]) -> Option<(&[u8], &[u8], u64)> {
    let space = |bytes: &[u8]| bytes.iter().rposition(|&byte| byte == b' ');
    let size_at = space(rest)?;
    let word_at = space(&rest[..size_at])?;
    let name = &rest[..word_at];
    let size = number(&rest[size_at + 1..])?;
    let fits = is_sayable(name);
    fits.then_some((name, &rest[word_at + 1..size_at], size))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Can a job of this name be spoken of?
pub fn is_sayable(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(&b'\n')
}

fn trim_newline(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\r\n").or(bytes.strip_suffix(b"\n")).unwrap_or(bytes)
}

/// The beginning of what a stranger said, for a log.
fn shown(bytes: &[u8]) -> String {
    bytes[..bytes.len().min(64)].escape_ascii().to_string()
}

/// As it was said.
impl std::fmt::Display for RunnerWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&said(|say| self.write(say)))
    }
}

/// As it was said.
impl std::fmt::Display for ManagerWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&said(|say| self.write(say)))
    }
}

fn said(write: impl FnOnce(&mut BytesMut)) -> String {
    let mut said = BytesMut::new();
    write(&mut said);
    shown(&said)
}

impl RunnerWord {
    /// As it goes out.
    pub fn write(&self, say: &mut BytesMut) {
        match self {
            RunnerWord::Saluton(host) => put(say, &[b"SALUTON; MI ", host.as_bytes()]),
            RunnerWord::Komprenas => put(say, &[b"KOMPRENAS"]),
            RunnerWord::Jes => put(say, &[b"JES"]),
            RunnerWord::Peto => put(say, &[b"PETO"]),
            RunnerWord::Preta => put(say, &[b"PRETA"]),
            RunnerWord::Rezulto { name, is_good, size } => {
                let status: &[u8] = if *is_good { b" success " } else { b" failure " };
                put(say, &[b"REZULTO ", name, status, size.to_string().as_bytes()]);
            }
            RunnerWord::FinoAnkau => put(say, &[FAREWELL]),
        }
    }
}

impl ManagerWord {
    /// As it goes out.
    pub fn write(&self, say: &mut BytesMut) {
        match self {
            ManagerWord::Versio(version) => put(say, &[b"VERSIO ", version]),
            ManagerWord::Aligi(group) => put(say, &[b"ALIGI ", group]),
            ManagerWord::Laboro { name, kind, size } => {
                put(say, &[b"LABORO ", name, b" ", kind, b" ", size.to_string().as_bytes()]);
            }
            ManagerWord::Preta => put(say, &[b"PRETA"]),
            ManagerWord::Ricevis => put(say, &[b"RICEVIS"]),
            ManagerWord::Fino => put(say, &[b"FINO"]),
            ManagerWord::Atendi => put(say, &[b"ATENDI"]),
            ManagerWord::Eliri => put(say, &[b"ELIRI"]),
        }
    }
}

fn put(say: &mut BytesMut, pieces: &[&[u8]]) {
    pieces.iter().for_each(|piece| say.extend_from_slice(piece));
}
