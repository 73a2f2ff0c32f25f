//! The manual as pages for a browser: what is in `docs`, `spec` and the READMEs of `examples`, made when the program is
//! built, so that a hub shows the manual of its own version and the same files can be written to a directory. Images
//! that are not drawings are left out, for the size of the program. Serving them is not done here.
#![forbid(unsafe_code)]

use std::io::Read;

/// Names as in links, such as `run.html`, with what is in the file, compressed with gzip. `index.html` is the first page.
pub static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// What a file holds.
///
/// # Panics
/// If it is not one of [`FILES`].
pub fn unpack(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(gzip)
        .read_to_end(&mut bytes)
        .expect("it was compressed when the program was built");
    bytes
}
