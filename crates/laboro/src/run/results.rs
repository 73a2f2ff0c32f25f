//! Result files of scripts, as the runexp programs write them: `outputs/NAME.res` and the table
//! `outputs/runexp.am`. And their rule for what a good result is.

use super::running::Running;
use anyhow::Context;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use laboro_journal::outputs::{Reader, Stream, Streams};
use laboro_worker::{Ending, Usage};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The last line with `RES:` in it decides: `RES: failed` is failure, any other success, none failure.
#[derive(Default)]
pub(crate) struct ResLine {
    begun: Vec<u8>,
    good: bool,
}

const LINE_BYTES_MAX: usize = 64 * 1024;

impl ResLine {
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_BYTES_MAX.saturating_sub(self.begun.len());
            self.begun.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.good = verdict(&self.begun).unwrap_or(self.good);
                self.begun.clear();
            }
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        verdict(&self.begun).unwrap_or(self.good)
    }
}

fn verdict(line: &[u8]) -> Option<bool> {
    let mut says = line.windows(4).enumerate().filter(|(_, window)| *window == b"RES:").peekable();
    says.peek()?;
    // Any `RES:` of the line may say so.
    let failed = says.any(|(at, _)| {
        let word = line[at + 4..].trim_ascii_start();
        word.len() >= 6 && word[..6].eq_ignore_ascii_case(b"failed")
    });
    Some(!failed)
}

/// Writes result files and the table.
pub(crate) struct Results {
    dir: PathBuf,
    host: String,
    outputs: Reader,
    table: BTreeMap<String, bool>,
    table_written: Option<Instant>,
}

/// The table is written as a whole, so not for every one of many results: the files say the same.
const TABLE_EVERY: Duration = Duration::from_secs(1);

impl Results {
    pub(crate) fn open(dir: &Path, outputs: &Path) -> anyhow::Result<Results> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("{} cannot be made", dir.display()))?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let mut table = read_table(&dir.join(TABLE));
        add_missing(&mut table, dir, "")
            .with_context(|| format!("{} cannot be read", dir.display()))?;
        let outputs = Reader::open(outputs)?;
        let host = host.trim().to_owned();
        Ok(Results { dir: dir.to_owned(), host, outputs, table, table_written: None })
    }

    /// The attempt's output was flushed before.
    pub(crate) fn write(
        &mut self,
        running: &Running,
        good: bool,
        ending: &Ending,
        started: SystemTime,
        usage: &Usage,
    ) -> anyhow::Result<()> {
        self.outputs.refresh()?;
        let name = &running.name;
        let path = self.dir.join(format!("{name}.res"));
        let wrong = || format!("{} cannot be written", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(wrong)?;
        }
        // A reader must never find half a result: written beside, then put in place.
        let draft = path.with_extension("res.new");
        let mut file = BufWriter::new(File::create(&draft).with_context(wrong)?);
        let status = if good { "success" } else { "failure" };
        let (begun, over) = (date(started), date(started + usage.wall));
        let (host, command) = (&self.host, &running.command);
        let head = format!(
            "{SUMMARY}{status}\n\n{begun} -- [{host}] Running {name}\n> {command}\n\
             {over} -- Finished running\nProgram exited with status {}\n\
             Program output follows\n\n",
            wait_status(ending)
        );
        file.write_all(head.as_bytes()).with_context(wrong)?;
        for streams in [Streams::Stdout, Streams::Stderr] {
            for chunk in self.outputs.read(running.key(), streams) {
                let (_, bytes): (Stream, Vec<u8>) = chunk?;
                file.write_all(&bytes).with_context(wrong)?;
            }
        }
        file.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(wrong)?;
        std::fs::rename(&draft, &path).with_context(wrong)?;
        self.table.insert(name.to_owned(), good);
        match self.table_written {
            Some(when) if when.elapsed() < TABLE_EVERY => Ok(()),
            _ => self.close(),
        }
    }

    /// Writes the table.
    pub(crate) fn close(&mut self) -> anyhow::Result<()> {
        let path = self.dir.join(TABLE);
        let lines: String = self
            .table
            .iter()
            .map(|(name, good)| format!("{name}\n{}\n", u8::from(*good)))
            .collect();
        let draft = self.dir.join("runexp.am.new");
        std::fs::write(&draft, lines)
            .and_then(|()| std::fs::rename(&draft, &path))
            .with_context(|| format!("{} cannot be written", path.display()))?;
        self.table_written = Some(Instant::now());
        Ok(())
    }
}

const SUMMARY: &str = "runexp summary: ";
const TABLE: &str = "runexp.am";

fn read_table(path: &Path) -> BTreeMap<String, bool> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1] == "1")).collect()
}

/// Results that a killed run wrote after its last table.
fn add_missing(table: &mut BTreeMap<String, bool>, dir: &Path, below: &str) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(file) = entry.file_name().into_string() else { continue };
        let kind = entry.file_type()?;
        if kind.is_dir() {
            add_missing(table, &entry.path(), &format!("{below}{file}/"))?;
        } else if let Some(name) = file.strip_suffix(".res").filter(|_| kind.is_file()) {
            let name = format!("{below}{name}");
            if !table.contains_key(&name)
                && let Some(good) = summary(&entry.path())?
            {
                table.insert(name, good);
            }
        }
    }
    Ok(())
}

/// What the first line of a result file says.
fn summary(path: &Path) -> std::io::Result<Option<bool>> {
    let mut head = Vec::new();
    File::open(path)?.take(64).read_to_end(&mut head)?;
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    Ok(match line.strip_prefix(SUMMARY.as_bytes()) {
        Some(b"success") => Some(true),
        Some(b"failure") => Some(false),
        _ => None,
    })
}

/// As `date` prints it.
fn date(time: SystemTime) -> String {
    let stamp = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    Zoned::new(stamp, TimeZone::system()).strftime("%a %b %e %H:%M:%S %Z %Y").to_string()
}

/// The number that wait(2) gives.
fn wait_status(ending: &Ending) -> i32 {
    match ending {
        Ending::Exited(code) => code << 8,
        Ending::Signalled(signal) => *signal,
        other => other.exit_code() << 8,
    }
}

#[cfg(test)]
mod tests;
