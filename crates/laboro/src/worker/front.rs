//! Whoever started this worker by ssh and stays in front of it: the access text comes from there on standard
//! input, then one line each time somebody wants an end to it. That the input ends says the same.

use anyhow::Context;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, read};
use std::os::fd::{AsFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// No access text has this line.
pub(crate) const END_OF_ACCESS: &str = "# end of access";

/// More than any access file can need.
const ACCESS_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Front {
    /// Lines that came with the access text.
    asked: usize,
}

impl Front {
    /// Reads the access text. Nobody is in front of a worker whose input is just that text.
    pub(crate) fn open() -> anyhow::Result<(String, Option<Front>)> {
        let mut text = Vec::new();
        let mut buffer = [0; 4096];
        let end = format!("\n{END_OF_ACCESS}\n");
        loop {
            let count = match read(std::io::stdin().as_fd(), &mut buffer) {
                Err(Errno::INTR) => continue,
                count => count.context("standard input cannot be read")?,
            };
            text.extend_from_slice(&buffer[..count]);
            anyhow::ensure!(
                text.len() <= ACCESS_BYTES_MAX,
                "standard input does not hold an access text"
            );
            let found = text.windows(end.len()).position(|window| window == end.as_bytes());
            if let Some(at) = found {
                let asked = lines(&text[at + end.len()..]);
                text.truncate(at + 1);
                return Ok((utf8(text)?, Some(Front { asked })));
            }
            if count == 0 {
                return Ok((utf8(text)?, None));
            }
        }
    }

    /// Only within a runtime.
    pub(crate) fn listen(self) -> anyhow::Result<Listening> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned()?;
        let flags = fcntl_getfl(&stdin)?;
        fcntl_setfl(&stdin, flags | OFlags::NONBLOCK)?;
        // SAFETY: an `OwnedFd` is open and stays the same until it is dropped, which `AsyncFd` does last.
        let stdin = unsafe { AsyncFd::register(stdin) }.map_err(|error| error.into_parts().1);
        let stdin = stdin.context("standard input cannot be waited for")?;
        Ok(Listening { stdin, asked: self.asked, is_over: false })
    }
}

fn utf8(text: Vec<u8>) -> anyhow::Result<String> {
    String::from_utf8(text).context("the access text on standard input is not UTF-8")
}

fn lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[derive(Debug)]
pub(crate) struct Listening {
    stdin: AsyncFd<OwnedFd>,
    asked: usize,
    is_over: bool,
}

/// Ready each time the one in front wants an end to it; never if nobody is there.
pub(crate) async fn asked(front: &mut Option<Listening>) {
    match front {
        Some(front) => front.asked().await,
        None => std::future::pending().await,
    }
}

impl Listening {
    async fn asked(&mut self) {
        loop {
            if let Some(left) = self.asked.checked_sub(1) {
                self.asked = left;
                return;
            }
            if self.is_over {
                return std::future::pending().await;
            }
            let Ok(mut ready) = self.stdin.readable().await else {
                self.is_over = true;
                return;
            };
            let mut buffer = [0; 256];
            match read(self.stdin.get_ref(), &mut buffer) {
                Err(Errno::AGAIN | Errno::INTR) => ready.clear_ready(),
                Ok(count @ 1..) => self.asked += lines(&buffer[..count]),
                Ok(0) | Err(_) => {
                    self.is_over = true;
                    return;
                }
            }
        }
    }
}
