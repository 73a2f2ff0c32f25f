//! Standard output, where data goes. If it was closed when the program began, writing to it is an error like a full disk:
//! the standard library opens /dev/null in its place, and nobody would notice that everything is lost.

use std::io::{Error, Result, Stdout, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Runs before the standard library looks at the descriptors: afterwards nobody can tell any more.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = {
    extern "C" fn look() {
        let out = rustix::stdio::stdout();
        IS_CLOSED.store(rustix::io::fcntl_getfd(out).is_err(), Ordering::Relaxed);
    }
    look
};

pub(crate) struct Data(Stdout);

pub(crate) fn data() -> Data {
    Data(stdout())
}

impl Data {
    /// For who has much to do before there is something to write.
    pub(crate) fn check(&self) -> Result<()> {
        match IS_CLOSED.load(Ordering::Relaxed) {
            true => Err(Error::other("standard output is closed")),
            false => Ok(()),
        }
    }
}

impl Write for Data {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.check()?;
        self.0.write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        self.0.write_all(bytes)
    }

    fn write_fmt(&mut self, words: std::fmt::Arguments<'_>) -> Result<()> {
        self.check()?;
        self.0.write_fmt(words)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}
