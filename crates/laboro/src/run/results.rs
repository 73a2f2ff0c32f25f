//! Result files of scripts, as the runexp programs write them: `outputs/NAME.res` and the table
//! `outputs/runexp.am`. What a result looks like and when it is good is the dialect's affair.

use super::attempt::Attempt;
use crate::exit::usage;
use crate::files::make_dir;
use anyhow::Context;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use laboro_core::Outcome;
use laboro_dialects::runexp::result::{ResLine, ResultHeader, summary, to_wait_status};
use laboro_journal::outputs::{Reader, Stream, Streams};
use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Writes result files and the table.
pub(crate) struct ResultFiles {
    dir: PathBuf,
    host: String,
    outputs: Reader,
    table: ResultTable,
}

/// Which runs were good so far: the file `runexp.am`, and the result files that it does not know yet. Names are
/// bytes, as those of files are.
pub(crate) struct ResultTable {
    dir: PathBuf,
    good: BTreeMap<OsString, bool>,
    /// There was nothing here before: neither a table nor a result.
    is_new: bool,
    /// Further results are added at its end; the last line about a name counts. `None` until it was written anew.
    file: Option<File>,
}

impl ResultFiles {
    pub(crate) fn open(dir: &Path, outputs: &Path) -> anyhow::Result<ResultFiles> {
        make_dir(dir)?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let table = ResultTable::open(dir)?;
        let outputs = Reader::open(outputs)?;
        let host = host.trim().to_owned();
        Ok(ResultFiles { dir: dir.to_owned(), host, outputs, table })
    }

    /// The attempt's output was flushed before.
    pub(crate) fn write(
        &mut self,
        attempt: &Attempt,
        good: bool,
        outcome: Outcome,
        (started, took): (SystemTime, Duration),
    ) -> anyhow::Result<()> {
        self.outputs.refresh()?;
        let name = &attempt.name;
        let path = self.dir.join(format!("{name}.res"));
        let wrong = || format!("{} cannot be written", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(wrong)?;
        }
        // A reader must never find half a result: written beside, then put in place.
        let draft = path.with_extension("res.new");
        let mut file = BufWriter::new(File::create(&draft).with_context(wrong)?);
        let mut head = Vec::new();
        let header = ResultHeader {
            is_good: good,
            began: &date(started),
            host: &self.host,
            name: name.as_bytes(),
            command: &attempt.command,
            ended: &date(started + took),
            wait_status: to_wait_status(outcome),
        };
        header.write(&mut head);
        file.write_all(&head).with_context(wrong)?;
        for streams in [Streams::Stdout, Streams::Stderr] {
            for chunk in self.outputs.read(attempt.key(), streams) {
                let (_, bytes): (Stream, Vec<u8>) = chunk?;
                file.write_all(&bytes).with_context(wrong)?;
            }
        }
        file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(wrong)?;
        std::fs::rename(&draft, &path).with_context(wrong)?;
        self.table.put(OsStr::new(name), good)
    }

    /// Writes the table.
    pub(crate) fn close(&mut self) -> anyhow::Result<()> {
        self.table.save()
    }
}

impl ResultTable {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<ResultTable> {
        let path = dir.join(TABLE);
        let mut good =
            read_table(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        add_missing(&mut good, dir, Path::new(""))?;
        let is_new = match std::fs::read_dir(dir) {
            Ok(mut found) => found.next().is_none(),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        Ok(ResultTable { dir: dir.to_owned(), good, is_new, file: None })
    }

    /// Somebody kept one here before.
    pub(crate) fn was_there(&self) -> bool {
        self.dir.join(TABLE).exists()
    }

    /// Whether it says anything of this name.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        self.good.contains_key(name)
    }

    /// Its result file is there, and it was good.
    pub(crate) fn is_done(&self, name: &OsStr) -> bool {
        if self.is_new {
            return false;
        }
        let file = self.dir.join(result_file(name));
        match self.good.get(name) {
            Some(good) => *good && file.is_file(),
            // It may lie where a link leads.
            None => file.is_file() && verdict(&file).is_ok_and(|good| good == Some(true)),
        }
    }

    /// What it says of results whose files are gone counts no more: a manager that is killed while it makes such a
    /// file anew must not leave one that is taken for good.
    pub(crate) fn forget_the_lost(&mut self) {
        self.good.retain(|name, _| self.dir.join(result_file(name)).is_file());
    }

    pub(crate) fn put(&mut self, name: &OsStr, good: bool) -> anyhow::Result<()> {
        self.good.insert(name.to_owned(), good);
        self.is_new = false;
        match &mut self.file {
            // In one piece, so that a program that is killed leaves no half of it.
            Some(file) => file
                .write_all(&line(name, good))
                .with_context(|| format!("{} cannot be written", self.dir.join(TABLE).display())),
            None => self.save(),
        }
    }

    /// Each name once, in order.
    pub(crate) fn save(&mut self) -> anyhow::Result<()> {
        let path = self.dir.join(TABLE);
        let lines: Vec<u8> = self.good.iter().flat_map(|(name, good)| line(name, *good)).collect();
        let draft = self.dir.join("runexp.am.new");
        let written = std::fs::write(&draft, lines)
            .and_then(|()| std::fs::rename(&draft, &path))
            .and_then(|()| File::options().append(true).open(&path));
        self.file = Some(written.with_context(|| format!("{} cannot be written", path.display()))?);
        Ok(())
    }
}

fn line(name: &OsStr, good: bool) -> Vec<u8> {
    [name.as_bytes(), if good { b"\n1\n" } else { b"\n0\n" }].concat()
}

/// The name of a result file, below its directory.
pub(crate) fn result_file(name: &OsStr) -> PathBuf {
    let mut file = name.to_owned();
    file.push(".res");
    file.into()
}

const TABLE: &str = "runexp.am";

/// On every file system that scripts are likely to lie on.
const FILE_NAME_MAX: usize = 255;

/// Results have the names of their scripts, with another ending: where one of them is to be a file, none can lie.
pub(crate) fn check_names<'a>(
    names: impl Iterator<Item = &'a OsStr> + Clone,
) -> anyhow::Result<()> {
    let mut files: HashSet<PathBuf> = HashSet::new();
    // Where nothing lies below anything, nothing can clash.
    if names.clone().any(|name| name.as_bytes().contains(&b'/')) {
        files.extend(names.clone().map(result_file));
        files.insert(TABLE.into());
    }
    let clash = |name: &OsStr| {
        let length = Path::new(name).file_name().map_or(0, OsStr::len) + ".res".len();
        if length > FILE_NAME_MAX {
            let name = name.display();
            return Some(format!(
                "{name}: its result would have a name of {length} bytes, and a file has at most {FILE_NAME_MAX}: shorten it"
            ));
        }
        let file = Path::new(name).ancestors().skip(1).find(|above| files.contains(*above))?;
        let (name, file) = (name.display(), file.display());
        Some(format!(
            "{name}: its result would lie below `{file}`, which is a file among the results: rename it"
        ))
    };
    let clashes: Vec<String> = names.filter_map(clash).collect();
    if clashes.is_empty() { Ok(()) } else { Err(usage(clashes.join("\n"))) }
}

fn read_table(path: &Path) -> std::io::Result<BTreeMap<OsString, bool>> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        text => text?,
    };
    let text = text.strip_suffix(b"\n").unwrap_or(&text);
    let lines = text.split(|&byte| byte == b'\n');
    let lines: Vec<&[u8]> = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect();
    let name = |line| OsStr::from_bytes(line).to_owned();
    Ok(lines.chunks_exact(2).map(|pair| (name(pair[0]), pair[1] == b"1")).collect())
}

/// Results that a killed run wrote after its last table.
fn add_missing(
    table: &mut BTreeMap<OsString, bool>,
    dir: &Path,
    below: &Path,
) -> anyhow::Result<()> {
    let wrong = || format!("{} cannot be read", dir.display());
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(wrong)?,
    };
    for entry in entries {
        let entry = entry.with_context(wrong)?;
        let file = entry.file_name();
        let kind = entry.file_type().with_context(wrong)?;
        if kind.is_dir() {
            add_missing(table, &entry.path(), &below.join(&file))?;
        } else if let Some(name) = file.as_bytes().strip_suffix(b".res").filter(|_| kind.is_file())
        {
            let name = below.join(OsStr::from_bytes(name)).into_os_string();
            if table.contains_key(&name) {
                continue;
            }
            let path = entry.path();
            let good =
                verdict(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            if let Some(good) = good {
                table.insert(name, good);
            }
        }
    }
    Ok(())
}

/// What the first line of a result file says, else its last line with `RES:`.
fn verdict(path: &Path) -> std::io::Result<Option<bool>> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; 64 * 1024];
    let mut lines = ResLine::default();
    let mut is_first = true;
    loop {
        let count = file.read(&mut bytes)?;
        if count == 0 {
            return Ok(lines.said());
        }
        if let (true, Some(good)) = (is_first, summary(&bytes[..count])) {
            return Ok(Some(good));
        }
        is_first = false;
        lines.take(&bytes[..count]);
    }
}

/// As `date` prints it.
fn date(time: SystemTime) -> String {
    let stamp = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    Zoned::new(stamp, TimeZone::system()).strftime("%a %b %e %H:%M:%S %Z %Y").to_string()
}
