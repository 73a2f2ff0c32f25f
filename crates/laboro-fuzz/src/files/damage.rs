//! Files as they were, and what becomes of them: bytes changed, cut off, put in, swapped. Checksums make most
//! of it vain for a fuzzer that only has bytes, so an input says where a sound file is damaged.

use crate::steps::{Deed, number, read};
use std::path::Path;

/// Names and contents, in the order of the names.
pub(super) type Files = Vec<(String, Vec<u8>)>;

/// A file does not grow beyond this, whatever is put in.
const FILE_BYTES_MAX: usize = 256 << 10;

pub(super) fn load(dir: &Path) -> Files {
    let mut files: Files = std::fs::read_dir(dir)
        .expect("the directory was just made")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.is_file())
        .map(|path| {
            let name = path.file_name().expect("it is a file").to_string_lossy().into_owned();
            (name, std::fs::read(&path).expect("it was just written"))
        })
        .collect();
    files.sort();
    files
}

pub(super) fn store(files: &Files, dir: &Path) {
    for (name, bytes) in files {
        std::fs::write(dir.join(name), bytes).expect("a temporary directory can be written");
    }
}

/// Where nothing is ever synced to a disk.
pub(super) fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a temporary directory can be made")
}

/// The first bytes of a payload say where; the rest is what is put there.
pub(super) fn damage(files: &mut Files, bytes: &[u8]) {
    for step in read(bytes).take(64) {
        let count = files.len();
        if count == 0 {
            return;
        }
        let file = &mut files[usize::from(step.which) % count].1;
        let (at, payload) = step.payload.split_at(step.payload.len().min(3));
        let at = number(at) as usize % (file.len() + 1);
        match step.deed {
            Deed::Say => {
                let end = (at + payload.len()).min(file.len());
                file[at..end].copy_from_slice(&payload[..end - at]);
            }
            Deed::SayInPieces if file.len() + payload.len() <= FILE_BYTES_MAX => {
                file.splice(at..at, payload.iter().copied());
            }
            Deed::SayMessage if file.len() + payload.len() <= FILE_BYTES_MAX => {
                file.extend_from_slice(payload);
            }
            Deed::Act => {
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= payload.first().copied().unwrap_or(1);
                }
            }
            Deed::Reconnect => file.truncate(at),
            Deed::Stop => {
                let end = (at + payload.len() * 16).min(file.len());
                file[at..end].fill(0);
            }
            Deed::Greet => *file = payload.to_vec(),
            Deed::Wait => {
                let other = at % count;
                let this = usize::from(step.which) % count;
                let swapped = std::mem::take(&mut files[this].1);
                files[this].1 = std::mem::replace(&mut files[other].1, swapped);
            }
            Deed::SayInPieces | Deed::SayMessage => {}
        }
    }
}
