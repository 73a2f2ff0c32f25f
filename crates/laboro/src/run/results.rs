//! Result files of scripts, as the runexp programs write them: `outputs/NAME.res` and the table
//! `outputs/runexp.am`. And their rule for what a good result is.

use anyhow::Context;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use laboro_journal::outputs::{Key, Reader, Stream, Streams};
use laboro_worker::{Ending, Usage};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    let at = line.windows(4).rposition(|window| window == b"RES:")?;
    // Any `RES:` of the line may say so.
    let failed = line.windows(4).enumerate().any(|(at, window)| {
        window == b"RES:" && {
            let rest = &line[at + 4..];
            let word = rest.trim_ascii_start();
            word.len() >= 6 && word[..6].eq_ignore_ascii_case(b"failed")
        }
    });
    let _ = at;
    Some(!failed)
}

/// Writes result files and the table.
pub(crate) struct ResultFile {
    dir: PathBuf,
    host: String,
    table: BTreeMap<String, bool>,
}

impl ResultFile {
    pub(crate) fn new(dir: PathBuf) -> anyhow::Result<ResultFile> {
        std::fs::create_dir_all(&dir)
            .with_context(|| format!("{} cannot be made", dir.display()))?;
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let table = read_table(&dir.join(TABLE));
        Ok(ResultFile { dir, host: host.trim().to_owned(), table })
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of the file")]
    pub(crate) fn write(
        &mut self,
        outputs: &Path,
        key: Key,
        name: &str,
        good: bool,
        ending: &Ending,
        started: SystemTime,
        usage: &Usage,
    ) -> anyhow::Result<()> {
        let path = self.dir.join(format!("{name}.res"));
        let wrong = || format!("{} cannot be written", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(wrong)?;
        }
        // A reader must never find half a result: written beside, then put in place.
        let draft = path.with_extension("res.new");
        let mut file = BufWriter::new(File::create(&draft).with_context(wrong)?);
        let status = if good { "success" } else { "failure" };
        let host = &self.host;
        write!(file, "runexp summary: {status}\n\n{} -- [{host}] Running {name}\n", date(started))?;
        write!(file, "> bash '{name}'\n{} -- Finished running\n", date(started + usage.wall))?;
        write!(
            file,
            "Program exited with status {}\nProgram output follows\n\n",
            wait_status(ending)
        )?;
        let reader = Reader::open(outputs)?;
        for streams in [Streams::Stdout, Streams::Stderr] {
            for chunk in reader.read(key, streams) {
                let (_, bytes): (Stream, Vec<u8>) = chunk?;
                file.write_all(&bytes).with_context(wrong)?;
            }
        }
        file.into_inner().map_err(|error| error.into_error()).with_context(wrong)?;
        std::fs::rename(&draft, &path).with_context(wrong)?;
        self.table.insert(name.to_owned(), good);
        self.write_table()
    }

    fn write_table(&self) -> anyhow::Result<()> {
        let path = self.dir.join(TABLE);
        let lines: String = self
            .table
            .iter()
            .map(|(name, good)| format!("{name}\n{}\n", u8::from(*good)))
            .collect();
        let draft = self.dir.join("runexp.am.new");
        std::fs::write(&draft, lines)
            .and_then(|()| std::fs::rename(&draft, &path))
            .with_context(|| format!("{} cannot be written", path.display()))
    }
}

const TABLE: &str = "runexp.am";

fn read_table(path: &Path) -> BTreeMap<String, bool> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1] == "1")).collect()
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
mod tests {
    use super::*;

    fn good(pieces: &[&str]) -> bool {
        let mut line = ResLine::default();
        pieces.iter().for_each(|piece| line.take(piece.as_bytes()));
        line.is_good()
    }

    #[test]
    fn the_last_res_line_decides() {
        assert!(good(&["RES:done\n"]));
        assert!(good(&["x RES: fine"]));
        assert!(good(&["RES: failed\nRES: ok\nbye\n"]));
        assert!(!good(&["RES: ok\nRES:  FAILED\n"]));
        assert!(!good(&["nothing\n"]));
        assert!(good(&["R", "ES", ":", "done", "\nmore"]));
    }
}
