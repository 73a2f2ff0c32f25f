//! How much of each file is in the stream, as of one of its messages. Kept beside the files; if it is gone or old,
//! what follows is read from the stream again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The last message that counts here.
    pub sequence: u64,
    /// By the number of the file.
    pub files: BTreeMap<u32, u64>,
}

impl Known {
    pub fn read(dir: &Path) -> Known {
        let text = std::fs::read_to_string(place(dir)).unwrap_or_default();
        Known::parse(&text).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Known> {
        let mut lines = text.lines();
        let sequence = lines.next()?.parse().ok()?;
        let file = |line: &str| {
            let (number, bytes) = line.split_once(' ')?;
            Some((number.parse().ok()?, bytes.parse().ok()?))
        };
        Some(Known { sequence, files: lines.map(file).collect::<Option<_>>()? })
    }

    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let files = self.files.iter().map(|(number, bytes)| format!("{number} {bytes}\n"));
        let text = format!("{}\n{}", self.sequence, files.collect::<String>());
        let draft = place(dir).with_extension("tmp");
        let mut options = File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(draft, place(dir))
    }
}

fn place(dir: &Path) -> PathBuf {
    dir.join("copied")
}
