//! Turns a launch into the packet for the guardian and the files that go with it.
//! Refuses what cannot be said to exec. Pipes are made later, when the packet leaves.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf, absolute};

use laboro_core::EXEC_BYTES_MAX;
use rustix::fs::{MemfdFlags, Mode, OFlags, fcntl_getfl, fcntl_setfl, memfd_create};

use crate::ending::Reason;
use crate::launch::{Capture, Launch, Stdin, TASK_ID_VAR, Until, WriteMode};
use crate::sys;
use crate::wire::{Body, LaunchHead, PACKET_BYTES_MAX, launch_packet};

/// A launch ready to be sent.
#[derive(Debug)]
pub(super) struct Prepared {
    pub id: u64,
    pub seq: u64,
    pub packet: Vec<u8>,
    /// For stdin, stdout and stderr.
    pub stdio: [End; 3],
    /// The text of a launch too large for a packet.
    pub body: Option<OwnedFd>,
    /// How often there was no room to start it.
    pub refusals: u32,
}

/// What one of the three standard descriptors will be.
#[derive(Debug)]
pub(super) enum End {
    Null,
    File(OwnedFd),
    Pipe,
}

/// A launch on its way.
#[derive(Debug)]
pub(super) enum Unsent {
    Ready(Box<Prepared>),
    /// There was no room for its files.
    Bare(Box<Launch>, u64),
}

impl Unsent {
    pub fn id(&self) -> u64 {
        match self {
            Unsent::Ready(launch) => launch.id,
            Unsent::Bare(launch, _) => launch.id,
        }
    }

    pub fn seq(&self) -> u64 {
        match self {
            Unsent::Ready(launch) => launch.seq,
            Unsent::Bare(_, seq) => *seq,
        }
    }
}

type NotStarted = (Reason, String);

/// Room in a packet for all that is not text.
const HEAD_BYTES_MAX: usize = 256;

pub(super) fn prepare(launch: &Launch, seq: u64, nonce: &str) -> Result<Prepared, NotStarted> {
    let dir = launch.dir.as_deref().map(absolute).transpose().map_err(|error| {
        (Reason::Directory, format!("directory {:?}: {error}", launch.dir.as_deref()))
    })?;
    let mark = (TASK_ID_VAR.into(), format!("{nonce}.{seq}").into());
    let env = launch.env.iter().filter(|(name, _)| name != TASK_ID_VAR).chain([&mark]);
    let text = text(dir.as_deref(), &launch.argv, env.clone())?;
    let stdin = input(&launch.stdin, dir.as_deref())?;
    let both = matches!(launch.stdout, Capture::File(..)) && launch.stdout == launch.stderr;
    let stdout = output(&launch.stdout, dir.as_deref(), launch.umask)?;
    let stderr = match &stdout {
        End::File(file) if both => {
            let same = file.try_clone();
            End::File(same.map_err(|error| (Reason::Resources, format!("stderr: {error}")))?)
        }
        _ => output(&launch.stderr, dir.as_deref(), launch.umask)?,
    };
    let stdio = [stdin, stdout, stderr];
    let head = LaunchHead {
        seq,
        timeout: launch.timeout,
        warning: launch.warning,
        grace: launch.grace,
        nice: launch.nice,
        umask: launch.umask,
        cpus: launch.cpus.clone(),
        limits: launch.limits,
        passed: stdio.each_ref().map(|end| !matches!(end, End::Null)),
        has_dir: dir.is_some(),
        awaits_release: launch.until == Until::OutputEnds,
        argc: launch.argv.len() as u32,
        envc: env.count() as u32,
    };
    let head_max = HEAD_BYTES_MAX + 8 * head.cpus.len();
    let (packet, body) = if text.len() + head_max <= PACKET_BYTES_MAX {
        (launch_packet(&head, &Body::Inline(&text)), None)
    } else {
        let body = file_of(&text).map_err(|error| no_room("its arguments", &error))?;
        (launch_packet(&head, &Body::InMemory(text.len() as u64)), Some(body))
    };
    Ok(Prepared { id: launch.id, seq, packet, stdio, body, refusals: 0 })
}

fn text<'a>(
    dir: Option<&Path>,
    argv: &[OsString],
    env: impl Iterator<Item = &'a (OsString, OsString)>,
) -> Result<Vec<u8>, NotStarted> {
    if argv.is_empty() {
        return Err((Reason::Invalid, "the command is empty".into()));
    }
    let mut text = Vec::with_capacity(2048);
    if let Some(dir) = dir {
        put(&mut text, &[dir.as_os_str()], "directory")?;
    }
    for (at, argument) in argv.iter().enumerate() {
        put(&mut text, &[argument], &format_args!("argument {at}"))?;
    }
    for (name, value) in env {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') {
            let message = format!("environment variable {name:?} has no name that can be set");
            return Err((Reason::Invalid, message));
        }
        put(&mut text, &[name, OsStr::new("="), value], &format_args!("variable {name:?}"))?;
    }
    Ok(text)
}

/// One string and its NUL.
fn put(
    text: &mut Vec<u8>,
    parts: &[&OsStr],
    what: &(impl std::fmt::Display + ?Sized),
) -> Result<(), NotStarted> {
    for part in parts.iter().map(|part| part.as_bytes()) {
        if part.contains(&0) {
            return Err((Reason::Invalid, format!("{what} has a NUL byte in it")));
        }
        if text.len() + part.len() >= EXEC_BYTES_MAX {
            let message = format!(
                "arguments and environment are too large (over {EXEC_BYTES_MAX} bytes): put them \
                 in a file"
            );
            return Err((Reason::TooLarge, message));
        }
        text.extend_from_slice(part);
    }
    text.push(0);
    Ok(())
}

fn input(stdin: &Stdin, dir: Option<&Path>) -> Result<End, NotStarted> {
    match stdin {
        Stdin::Null => Ok(End::Null),
        Stdin::File(path) => open(path, dir, "stdin", OpenOptions::new().read(true)),
        Stdin::Bytes(bytes) => {
            file_of(bytes).map(End::File).map_err(|error| no_room("its stdin", &error))
        }
    }
}

fn output(capture: &Capture, dir: Option<&Path>, umask: Option<u32>) -> Result<End, NotStarted> {
    let mut options = OpenOptions::new();
    options.create(true);
    let path = match capture {
        Capture::Null => return Ok(End::Null),
        Capture::Pipe => return Ok(End::Pipe),
        Capture::File(path, WriteMode::Append) => {
            options.append(true);
            path
        }
        Capture::File(path, WriteMode::Truncate) => {
            options.write(true).truncate(true);
            path
        }
    };
    let Some(umask) = umask else { return open(path, dir, "output file", &mut options) };
    let mode = 0o666 & !umask;
    let is_new = !dir.map_or_else(|| path.to_owned(), |dir| dir.join(path)).exists();
    let opened = open(path, dir, "output file", options.mode(mode))?;
    if let End::File(file) = &opened
        && is_new
    {
        // The umask of this program may have taken more away.
        let _ = rustix::fs::fchmod(file, Mode::from_raw_mode(mode));
    }
    Ok(opened)
}

/// Without waiting, in case it is a named pipe nobody has at the other end; the task then has it
/// as any program would.
fn open(
    path: &Path,
    dir: Option<&Path>,
    what: &str,
    options: &mut OpenOptions,
) -> Result<End, NotStarted> {
    let path: PathBuf = dir.map_or_else(|| path.to_owned(), |dir| dir.join(path));
    let refusal = |error: io::Error| {
        let reason = match sys::is_shortage(&error) {
            true => Reason::Resources,
            false => Reason::Redirect,
        };
        (reason, format!("{what} {}: {error}", path.display()))
    };
    let file = options.custom_flags(libc::O_NONBLOCK).open(&path).map_err(refusal)?;
    let file = OwnedFd::from(file);
    let blocking =
        fcntl_getfl(&file).and_then(|flags| fcntl_setfl(&file, flags - OFlags::NONBLOCK));
    blocking.map_err(|error| refusal(error.into()))?;
    Ok(End::File(file))
}

/// An unnamed file in memory, to be read from its start.
fn file_of(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = memfd_create(c"laboro", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(0))?;
    Ok(file.into())
}

fn no_room(what: &str, error: &io::Error) -> NotStarted {
    let is_passing = sys::is_shortage(error) || error.kind() == io::ErrorKind::StorageFull;
    let reason = if is_passing { Reason::Resources } else { Reason::Invalid };
    (reason, format!("no room in memory for {what}: {error}"))
}
