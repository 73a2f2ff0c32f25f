//! `--results`: what tasks print and how they ended, in GNU parallel's form: a directory for each task's values, or a
//! table with a row for each task. The table is made from what the run keeps, so after any interruption it has
//! every task that has ended, once.

use super::kept::{Kept, Place, key};
use super::layout::Layout;
use anyhow::Context;
use laboro_core::Outcome;
use laboro_journal::outputs::{End, Reader, Stream, Streams};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Where `--results` goes.
#[derive(Debug, Clone)]
pub(crate) enum ResultsPlace {
    Dir(PathBuf),
    /// With this byte between columns.
    Table(PathBuf, u8),
}

impl ResultsPlace {
    pub(crate) fn parse(path: &Path) -> Result<ResultsPlace, String> {
        let text = path.to_string_lossy();
        if text.contains('{') {
            return Err(
                "a directory, or a file that ends in .csv or .tsv: placeholders in it are \
                        not known (a flow has `output` for a file per task)"
                    .to_owned(),
            );
        }
        let ending = path.extension().map(OsStr::to_ascii_lowercase);
        Ok(match ending.as_deref().and_then(OsStr::to_str) {
            Some("csv") => ResultsPlace::Table(path.to_owned(), b','),
            Some("tsv") => ResultsPlace::Table(path.to_owned(), b'\t'),
            Some("json") => {
                return Err("for JSON use --json: one event per line on standard output".to_owned());
            }
            _ => ResultsPlace::Dir(path.to_owned()),
        })
    }

    pub(crate) fn dir(&self) -> Option<&Path> {
        match self {
            ResultsPlace::Dir(dir) => Some(dir),
            ResultsPlace::Table(..) => None,
        }
    }
}

/// Makes the directory of a task, and the file in it that has its number.
pub(crate) fn task_dir(dir: &Path, layout: &Layout, index: u32) -> anyhow::Result<PathBuf> {
    let words = layout.path_words(index);
    let mut path = dir.to_owned();
    path.extend(words.iter().map(|word| dir_name(word, index)));
    // Equal values twice: the second has a directory of its own.
    let known = std::fs::read_to_string(path.join(SEQ)).ok();
    let other =
        known.and_then(|known| known.trim().parse().ok()).filter(|&other: &u32| other < index);
    if other.is_some_and(|other| layout.path_words(other) == words) {
        let mut last = path.file_name().unwrap_or_default().to_owned();
        last.push(format!("~{index}"));
        path.set_file_name(last);
    }
    let made = std::fs::create_dir_all(&path)
        .and_then(|()| std::fs::write(path.join(SEQ), format!("{index}\n")));
    made.with_context(|| format!("--results: {} cannot be written", path.display()))?;
    Ok(path)
}

/// The directory of a task that ran elsewhere, from what is kept of it. What it printed was flushed before.
pub(crate) fn write_dir(
    dir: &Path,
    layout: &Layout,
    kept: &mut Kept,
    index: u32,
) -> anyhow::Result<()> {
    let Some(attempt) = kept.last_attempt(index)? else { return Ok(()) };
    let Place::Here(reader, there) = kept.place(index) else { return Ok(()) };
    let dir = task_dir(dir, layout, index)?;
    for (name, streams) in [("stdout", Streams::Stdout), ("stderr", Streams::Stderr)] {
        let path = dir.join(name);
        let trouble = || format!("--results: {} cannot be written", path.display());
        let mut file = File::create(&path).with_context(trouble)?;
        for chunk in reader.read(key(there, attempt), streams) {
            file.write_all(&chunk?.1).with_context(trouble)?;
        }
    }
    Ok(())
}

const SEQ: &str = "seq";

/// A file system takes no longer names than 255 bytes.
const DIR_NAME_BYTES_MAX: usize = 230;

/// As GNU parallel writes a value that is to be one directory, and nothing that leads elsewhere.
fn dir_name(word: &[u8], index: u32) -> OsString {
    let mut name: Vec<u8> = Vec::with_capacity(word.len());
    for &byte in word {
        match byte {
            b'\\' => name.extend(b"\\\\"),
            b'\t' => name.extend(b"\\t"),
            b'/' => name.extend(b"\\_"),
            byte => name.push(byte),
        }
    }
    if matches!(name.as_slice(), b"" | b"." | b"..") {
        name.insert(0, b'\\');
    }
    if name.len() > DIR_NAME_BYTES_MAX {
        name.truncate(DIR_NAME_BYTES_MAX);
        name.extend(format!("~{index}").bytes());
    }
    OsString::from_vec(name)
}

/// A table that is being written.
pub(crate) struct ValueTable {
    path: PathBuf,
    file: BufWriter<File>,
    separator: u8,
    columns: usize,
    kept: Kept,
}

impl ValueTable {
    /// Written anew, with what ended before.
    pub(crate) fn open(
        path: &Path,
        separator: u8,
        layout: &Layout,
        outputs: &Path,
    ) -> anyhow::Result<ValueTable> {
        let trouble = || format!("--results {} cannot be written", path.display());
        let file = BufWriter::new(File::create(path).with_context(trouble)?);
        let values = layout.value_columns();
        let (columns, kept) = (values.len(), Kept::open(outputs)?);
        let mut table = ValueTable { path: path.to_owned(), file, separator, columns, kept };
        const BEFORE: [&str; 9] = [
            "Seq",
            "Host",
            "Starttime",
            "JobRuntime",
            "Send",
            "Receive",
            "Exitval",
            "Signal",
            "Command",
        ];
        let names = BEFORE.into_iter().chain(values.iter().map(String::as_str));
        let names = names.chain(["Stdout", "Stderr"]);
        table.line(|line| names.into_iter().try_for_each(|name| line.text(name.as_bytes())))?;
        Ok(table)
    }

    /// A task has ended for good, in this run or an earlier one. What it printed was flushed before.
    pub(crate) fn add(&mut self, layout: &Layout, index: u32) -> anyhow::Result<()> {
        self.kept.refresh()?;
        let Some(attempt) = self.kept.last_attempt(index)? else { return Ok(()) };
        let ValueTable { path, file, separator, columns, kept } = self;
        let Place::Here(reader, there) = kept.place(index) else { return Ok(()) };
        let key = key(there, attempt);
        let Some(end) = reader.end(key)? else { return Ok(()) };
        let values = layout.values(index);
        let mut line = Line { file, separator: *separator, is_begun: false };
        let mut write = || -> anyhow::Result<()> {
            for field in Numbers::of(&end).fields(index) {
                line.text(field.as_bytes())?;
            }
            line.text(layout.command(index).as_bytes())?;
            for at in 0..*columns {
                line.text(values.get(at).map_or(&b""[..], |(_, value)| value))?;
            }
            line.stream(reader, key, Streams::Stdout)?;
            line.stream(reader, key, Streams::Stderr)?;
            Ok(line.end()?)
        };
        write().with_context(|| format!("--results {} cannot be written", path.display()))
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        let path = &self.path;
        self.file.flush().with_context(|| format!("--results {} cannot be written", path.display()))
    }

    fn line(
        &mut self,
        write: impl FnOnce(&mut Line<'_>) -> std::io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut line = Line { file: &mut self.file, separator: self.separator, is_begun: false };
        let written = write(&mut line).and_then(|()| line.end());
        written.with_context(|| format!("--results {} cannot be written", self.path.display()))
    }
}

/// What the columns before the command say.
pub(super) struct Numbers {
    started_ms: u64,
    wall_us: u64,
    printed: u64,
    outcome: Outcome,
}

impl Numbers {
    fn of(end: &End) -> Numbers {
        Numbers {
            started_ms: end.ending.started_ms,
            wall_us: end.ending.wall_us,
            printed: end.stdout.heard(),
            outcome: end.ending.outcome(),
        }
    }

    pub(super) fn new(started_ms: u64, wall_us: u64, printed: u64, outcome: Outcome) -> Numbers {
        Numbers { started_ms, wall_us, printed, outcome }
    }

    /// Seq, Host, Starttime, JobRuntime, Send, Receive, Exitval, Signal.
    pub(super) fn fields(&self, index: u32) -> [String; 8] {
        let (exit, signal) = match self.outcome {
            Outcome::Success => (0, 0),
            Outcome::Exit(code) => (code, 0),
            Outcome::Signal(signal) => (0, signal),
            // As parallel has it for what it ended itself.
            Outcome::TimedOut => (-1, 15),
            Outcome::Memory => (-1, 9),
            Outcome::Error | Outcome::Lost => (-1, 0),
        };
        [
            index.to_string(),
            ":".to_owned(),
            format!("{:.3}", self.started_ms as f64 / 1000.0),
            format!("{:.3}", self.wall_us as f64 / 1e6),
            "0".to_owned(),
            self.printed.to_string(),
            exit.to_string(),
            signal.to_string(),
        ]
    }
}

/// One row. A field may be larger than memory: it is quoted as it passes.
struct Line<'a> {
    file: &'a mut BufWriter<File>,
    separator: u8,
    is_begun: bool,
}

impl Line<'_> {
    fn begin(&mut self) -> std::io::Result<()> {
        if std::mem::replace(&mut self.is_begun, true) {
            self.file.write_all(&[self.separator])?;
        }
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> std::io::Result<()> {
        self.begin()?;
        let is_plain =
            |byte: &u8| !byte.is_ascii_whitespace() && *byte != b'"' && *byte != self.separator;
        if text.iter().all(is_plain) {
            return self.file.write_all(text);
        }
        self.file.write_all(b"\"")?;
        self.quoted(text)?;
        self.file.write_all(b"\"")
    }

    fn stream(
        &mut self,
        reader: &Reader,
        key: laboro_journal::outputs::Key,
        streams: Streams,
    ) -> anyhow::Result<()> {
        self.begin()?;
        let mut is_open = false;
        for chunk in reader.read(key, streams) {
            let (stream, bytes) = chunk?;
            if stream == Stream::Result || bytes.is_empty() {
                continue;
            }
            if !std::mem::replace(&mut is_open, true) {
                self.file.write_all(b"\"")?;
            }
            self.quoted(&bytes)?;
        }
        if is_open {
            self.file.write_all(b"\"")?;
        }
        Ok(())
    }

    fn quoted(&mut self, text: &[u8]) -> std::io::Result<()> {
        for piece in text.split_inclusive(|&byte| byte == b'"') {
            self.file.write_all(piece)?;
            if piece.ends_with(b"\"") {
                self.file.write_all(b"\"")?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<()> {
        self.file.write_all(b"\n")
    }
}
