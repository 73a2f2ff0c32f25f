//! How the writer gets what it has into its files, and what it does when there is no room: keep it, give it up, or find out
//! that there is some again.

use super::super::OnWriteError;
use super::Writing;
use laboro_journal::outputs::Error;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// On a full disk, how often it is looked whether there is room.
const TRY_EVERY: Duration = Duration::from_millis(200);

impl Writing {
    pub(super) fn flush(&mut self) {
        if !self.is_dirty && self.taken.is_empty() {
            return;
        }
        let is_written = self.write_out();
        self.is_dirty = !is_written;
        self.shared.flushed.send_modify(|count| *count += 1);
        for answer in self.taken.drain(..) {
            // The session may have gone.
            let _ = answer.send(if is_written { Ok(()) } else { Err(Vec::new()) });
        }
    }

    /// Whether everything is in its file, or counted as lost there.
    fn write_out(&mut self) -> bool {
        let Err(error) = self.writer.flush() else { return true };
        self.begin_trouble(&error);
        if self.shared.trouble.on_error != OnWriteError::Mark {
            return false;
        }
        match self.writer.discard() {
            Ok(bytes) => self.lose(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Err(_) => return false,
        }
        self.note_loss();
        self.writer.flush().is_ok() || {
            self.reserve.release();
            self.writer.flush().is_ok()
        }
    }

    pub(super) fn note(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) | Err(Error::Forgotten { .. }) => {}
            Err(error) => self.begin_trouble(&error),
        }
    }

    pub(super) fn begin_trouble(&mut self, error: &Error) {
        self.shared.trouble.begin(error);
        self.tried.get_or_insert_with(Instant::now);
    }

    /// Also where nothing is printed any more, the trouble comes to its end.
    pub(super) fn notice_room(&mut self) {
        if self.tried.is_some() {
            self.look_for_room();
        }
    }

    /// True: the trouble is over.
    pub(super) fn look_for_room(&mut self) -> bool {
        if self.tried.is_some_and(|tried| tried.elapsed() < TRY_EVERY) {
            return false;
        }
        let is_reserved =
            self.shared.trouble.on_error != OnWriteError::Mark || self.reserve.make().is_ok();
        let has_room = is_reserved && self.reserve.has_room() && self.writer.flush().is_ok();
        if has_room {
            self.shared.trouble.end();
        }
        self.tried = (!has_room).then(Instant::now);
        has_room
    }

    /// From now on, ends are waited for.
    pub(super) fn note_loss(&self) {
        if self.writer.has_lost() {
            self.shared.has_lost.store(true, Ordering::Release);
        }
    }

    pub(super) fn lose(&self, bytes: usize) {
        self.shared.lost.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}
