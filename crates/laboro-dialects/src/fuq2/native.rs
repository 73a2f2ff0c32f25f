//! Laboro's own fields: a map under the key `Laboro` beside what the originals know. Tasks of one array share
//! one description and are small tuples; so are results. Keys may be added, tuples may grow at their end:
//! what a reader does not know it skips, what is missing is zero.

mod hello;
mod job;
mod update;
mod work;

pub(super) use hello::NativeHello;
pub(super) use job::{Batch, Given, write_job};
pub(super) use update::{Back, Facts, Item, Update, Wishes, write_update};
pub(super) use work::{read_work, write_work};

use super::pack::{PackError, PackReader, write_array, write_uint};
use bytes::BytesMut;
use laboro_core::{JobId, LeaseNo, TaskId};

/// What workers offer in their TLS handshake (ALPN): this conversation, and to be told in a line where the hub
/// that leads is, `host:port` or nothing, by one that only follows.
pub const WORKER_PROTOCOL: &[u8] = b"laboro-worker/1";
/// The redirect of a standby: one line, then the connection ends.
pub const STANDBY_REDIRECT_PROTOCOL: &[u8] = b"laboro-signpost/1";

/// The key of the map.
const LABORO: &str = "Laboro";

/// A task and its lease: `[job, index, lease]`.
fn write_lease(to: &mut BytesMut, (task, lease): (TaskId, LeaseNo)) {
    write_array(to, 3);
    write_uint(to, task.job.0.into());
    write_uint(to, task.index.into());
    write_uint(to, lease.0);
}

fn read_lease(from: &mut PackReader<'_>) -> Result<(TaskId, LeaseNo), PackError> {
    let (mut task, mut lease) = (TaskId::default(), LeaseNo(0));
    from.tuple(3, |at, from| {
        match at {
            0 => task.job = JobId(from.small()?),
            1 => task.index = from.small()?,
            _ => lease = LeaseNo(from.uint()?),
        }
        Ok(())
    })?;
    Ok((task, lease))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
