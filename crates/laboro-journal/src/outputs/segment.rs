//! The files of a store: their names, the head of a segment, and reading one record of it.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Error;
use super::index::Entry;
use super::record::{self, HEADER_BYTES, Header};

/// Magic and version, number, salt, checksum.
pub(super) const HEAD_BYTES: usize = 24;

const MAGIC: &[u8; 8] = b"LABOUT\x00\x01";

pub(super) fn path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:010}.out"))
}

pub(super) fn index_path(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{number:010}.idx"))
}

/// A stray file with a higher number is not ours, and must not use up the numbers.
const NUMBER_MAX: u32 = u32::MAX / 2;

/// The numbers of all files with this extension, ascending.
pub(super) fn numbers(dir: &Path, extension: &str) -> Result<Vec<u32>, Error> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::at(dir))? {
        let name = entry.map_err(Error::at(dir))?.file_name();
        let parts = name.to_str().and_then(|name| name.split_once('.'));
        if let Some((stem, found)) = parts
            && found == extension
            && let Ok(number) = stem.parse()
            && number < NUMBER_MAX
        {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// From the randomness std seeds its hash maps with; enough for what a salt is here to tell apart.
pub(super) fn new_salt() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(super) fn head(number: u32, salt: u64) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[0..8].copy_from_slice(MAGIC);
    head[8..12].copy_from_slice(&number.to_le_bytes());
    head[12..20].copy_from_slice(&salt.to_le_bytes());
    let crc = crc32c::crc32c(&head[..20]);
    head[20..24].copy_from_slice(&crc.to_le_bytes());
    head
}

/// Opens a segment for reading and finds its salt.
pub(super) fn open(dir: &Path, number: u32) -> Result<(File, u64), Error> {
    let path = path(dir, number);
    let file = File::open(&path).map_err(Error::at(&path))?;
    let mut found = [0; HEAD_BYTES];
    let whole = read_up_to(&file, &mut found, 0).map_err(Error::at(&path))? == HEAD_BYTES;
    let salt = record::u64_at(&found, 12);
    if !whole || found != head(number, salt) {
        return Err(Error::Damaged { file: path, offset: 0, what: "no segment head" });
    }
    Ok((file, salt))
}

/// What tasks print is their owner's business, as the journal is.
pub(super) const FILE_MODE: u32 = 0o600;

/// Makes a whole file appear under its name at once, also after a power cut.
pub(super) fn place(dir: &Path, path: &Path, bytes: &[u8]) -> Result<File, Error> {
    let draft = path.with_extension("tmp");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(&draft)
        .map_err(Error::at(&draft))?;
    file.write_all(bytes).and_then(|()| file.sync_data()).map_err(Error::at(&draft))?;
    fs::rename(&draft, path).map_err(Error::at(path))?;
    sync_dir(dir)?;
    Ok(file)
}

pub(super) fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::at(dir))
}

/// Removes a file that may be gone already.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::at(path)(error)),
        _ => Ok(()),
    }
}

/// What is wrong with a record, and whether its header can be trusted all the same.
pub(super) struct Broken {
    pub error: Error,
    pub header: Option<Header>,
}

/// Reads the record of an entry, checking everything.
pub(super) fn read_record(
    file: &File,
    salt: u64,
    dir: &Path,
    number: u32,
    entry: &Entry,
) -> Result<(Header, Vec<u8>), Broken> {
    // One call serves a short record whole.
    const GUESS_BYTES: usize = 4096;
    let offset = u64::from(entry.offset);
    let at = |error| Error::at(&path(dir, number))(error);
    let damaged = |what| Error::Damaged { file: path(dir, number), offset, what };

    let mut bytes = [0; GUESS_BYTES];
    let got = read_up_to(file, &mut bytes, offset)
        .map_err(|error| Broken { error: at(error), header: None })?;
    let header = bytes[..got]
        .first_chunk::<HEADER_BYTES>()
        .and_then(|header| Header::decode(header, salt, offset))
        .ok_or_else(|| Broken { error: damaged("no record"), header: None })?;
    if header.key != entry.key() || header.kind != entry.kind {
        let error = damaged("a record that is not the one in the index");
        return Err(Broken { error, header: None });
    }

    let length = header.length as usize;
    let early = &bytes[HEADER_BYTES..got.min(HEADER_BYTES + length)];
    let mut body = Vec::with_capacity(length);
    body.extend_from_slice(early);
    body.resize(length, 0);
    let broken = |error| Broken { error, header: Some(header) };
    let rest =
        read_up_to(file, &mut body[early.len()..], offset + (HEADER_BYTES + early.len()) as u64)
            .map_err(|error| broken(at(error)))?;
    if early.len() + rest < length {
        return Err(broken(damaged("record cut short")));
    }
    if !header.fits(&body) {
        return Err(broken(damaged("checksum mismatch in the record")));
    }
    Ok((header, body))
}

/// Fills as much of `bytes` as the file has.
pub(super) fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match file.read_at(&mut bytes[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}
