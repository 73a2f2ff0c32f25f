//! Nodes that have logged in, by their cookies: names that no two have, and how long a login is good. Kept in a
//! file, so that nodes need not log in again when the hub was restarted; of a cookie only the hash is there.

use crate::security::SecurityError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use laboro_core::Time;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Node {
    pub host: String,
    pub pid: i64,
    /// No other node has it.
    pub name: String,
    /// Shown again, it proves that the name is the node's own.
    pub session: String,
    pub tags: Vec<String>,
    pub slots: u32,
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Entry {
    /// Of the cookie.
    hash: String,
    made: u64,
    node: Node,
    /// Told to leave.
    #[serde(default)]
    leaves: bool,
    /// Where the numbers of its messages are noted.
    #[serde(default)]
    place: Option<u32>,
}

#[derive(Debug)]
pub(super) struct NodeRegister {
    path: PathBuf,
    /// `None`: it cannot be written any more, which was told.
    file: Option<File>,
    /// How many lines the file has.
    lines: usize,
    life_ms: u64,
    /// The first that is free.
    places: u32,
    /// By the hash of their cookie.
    entries: HashMap<String, Entry>,
    /// The hash of each name's cookie.
    names: HashMap<String, String>,
}

/// Nodes that are remembered at once.
const NODES_MAX: usize = 100_000;
/// A longer cookie is none.
pub(super) const COOKIE_BYTES_MAX: usize = 128;

/// A cookie and whose it is.
pub(super) struct Login {
    pub cookie: String,
    pub node: Node,
}

impl NodeRegister {
    pub(super) fn open(path: &Path, life_ms: u64) -> Result<NodeRegister, SecurityError> {
        let mut register = NodeRegister {
            path: path.to_owned(),
            file: None,
            lines: 0,
            life_ms,
            places: 0,
            entries: HashMap::new(),
            names: HashMap::new(),
        };
        let failed = |doing| move |source| SecurityError::Io { path: path.into(), doing, source };
        register.read().map_err(failed("read it"))?;
        register.rewrite().map_err(failed("write it"))?;
        Ok(register)
    }

    /// The last word about a cookie counts. A line that was cut by a crash is a node that logs in again.
    fn read(&mut self) -> io::Result<()> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file?,
        };
        for line in BufReader::new(file.take(FILE_BYTES_MAX)).lines() {
            if let Ok(entry) = serde_json::from_str::<Entry>(&line?) {
                self.insert(entry);
            }
        }
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let draft = self.path.with_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        for entry in self.entries.values() {
            write_line(&mut file, entry)?;
        }
        std::fs::rename(&draft, &self.path)?;
        self.file = Some(file);
        self.lines = self.entries.len();
        Ok(())
    }

    /// A name has one cookie: a new one takes the old one's place.
    fn insert(&mut self, entry: Entry) {
        self.places = self.places.max(entry.place.map_or(0, |place| place + 1));
        let before = self.names.insert(entry.node.name.clone(), entry.hash.clone());
        if let Some(before) = before.filter(|before| *before != entry.hash) {
            self.entries.remove(&before);
        }
        self.entries.insert(entry.hash.clone(), entry);
    }

    fn note(&mut self, entry: Entry) {
        let Some(file) = &mut self.file else { return self.insert(entry) };
        let mut written = write_line(file, &entry);
        self.lines += 1;
        self.insert(entry);
        // However often nodes log in, the file has not much more in it than what counts.
        if written.is_ok() && self.lines > 2 * self.entries.len() + LINES_SPARE {
            written = self.rewrite();
        }
        if let Err(error) = written {
            let path = self.path.display();
            tracing::error!("{path}: {error}: fuq nodes have to log in again after a restart");
            self.file = None;
        }
    }

    /// A node says hello. It keeps a name that is its own; else it gets one.
    pub(super) fn log_in(&mut self, now: Time, mut node: Node) -> Result<Login, SecurityError> {
        self.forget_old(now);
        let known = self.names.get(&node.name).and_then(|hash| self.entries.get(hash));
        let is_own = match known {
            Some(entry) => !node.session.is_empty() && entry.node.session == node.session,
            None => node.name.starts_with(&format!("{}:", node.host)),
        };
        if !is_own {
            node.name = self.free_name(&node);
            node.session = random()?;
        } else if node.session.is_empty() {
            node.session = random()?;
        }
        self.renew(now, node)
    }

    /// Shows a session, and not the one of its name. Without any it is just another node of that machine.
    pub(super) fn has_wrong_session(&self, node: &Node) -> bool {
        let known = self.names.get(&node.name).and_then(|hash| self.entries.get(hash));
        !node.session.is_empty() && known.is_some_and(|entry| entry.node.session != node.session)
    }

    fn free_name(&self, node: &Node) -> String {
        let name = |number: u64| format!("{}:{}:{number}", node.host, node.pid);
        let mut numbers = (1..).map(name);
        numbers.find(|name| !self.names.contains_key(name)).expect("there are more than nodes")
    }

    /// A new cookie for a name.
    pub(super) fn renew(&mut self, now: Time, node: Node) -> Result<Login, SecurityError> {
        let cookie = random()?;
        let (hash, made) = (hash(&cookie), now.0);
        let place = self.named(&node.name).and_then(|entry| entry.place);
        self.note(Entry { hash, made, node: node.clone(), leaves: false, place });
        Ok(Login { cookie, node })
    }

    /// Whose cookie it is, if it is still good.
    pub(super) fn find(&self, now: Time, cookie: &str) -> Option<&Node> {
        let entry = self.entry(cookie)?;
        (now.since_ms(Time(entry.made)) < self.life_ms).then_some(&entry.node)
    }

    /// Whose cookie it is or was.
    pub(super) fn find_stale(&self, cookie: &str) -> Option<&Node> {
        self.entry(cookie).map(|entry| &entry.node)
    }

    fn entry(&self, cookie: &str) -> Option<&Entry> {
        (cookie.len() <= COOKIE_BYTES_MAX).then(|| self.entries.get(&hash(cookie)))?
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    fn named(&self, name: &str) -> Option<&Entry> {
        self.names.get(name).and_then(|hash| self.entries.get(hash))
    }

    pub(super) fn leaves(&self, name: &str) -> bool {
        self.named(name).is_some_and(|entry| entry.leaves)
    }

    /// Where the numbers of its messages are noted, if they can be; and whether that is new.
    pub(super) fn place(&mut self, name: &str) -> Option<(u32, bool)> {
        let entry = self.named(name)?;
        if let Some(place) = entry.place {
            return Some((place, false));
        }
        let place = self.places;
        let entry = Entry { place: Some(place), ..entry.clone() };
        self.note(entry);
        Some((place, true))
    }

    /// Whenever the node asks for work, it is told to leave.
    pub(super) fn send_away(&mut self, name: &str) {
        if let Some(entry) = self.named(name).filter(|entry| !entry.leaves) {
            let entry = Entry { leaves: true, ..entry.clone() };
            self.note(entry);
        }
    }

    /// Everyone who could be renewed.
    pub(super) fn all(&self) -> Vec<Node> {
        self.entries.values().map(|entry| entry.node.clone()).collect()
    }

    /// All with a good cookie, by name.
    pub(super) fn nodes(&self, now: Time) -> Vec<Node> {
        let good = |entry: &&Entry| now.since_ms(Time(entry.made)) < self.life_ms;
        let mut nodes: Vec<Node> =
            self.entries.values().filter(good).map(|entry| entry.node.clone()).collect();
        nodes.sort_by(|one, other| one.name.cmp(&other.name));
        nodes
    }

    /// Those that could not even be renewed any more; and when there are too many, the oldest half.
    fn forget_old(&mut self, now: Time) {
        if self.entries.len() < NODES_MAX {
            return;
        }
        let mut ages: Vec<u64> = self.entries.values().map(|entry| entry.made).collect();
        ages.sort_unstable();
        let oldest = ages[ages.len() / 2].max(now.0.saturating_sub(2 * self.life_ms));
        self.entries.retain(|_, entry| entry.made > oldest);
        let entries = &self.entries;
        self.names.retain(|_, hash| entries.contains_key(hash));
        if let Err(error) = self.rewrite() {
            tracing::error!("{}: {error}", self.path.display());
        }
    }
}

const LINES_SPARE: usize = 1000;
const FILE_BYTES_MAX: u64 = 256 << 20;

fn write_line(file: &mut File, entry: &Entry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry).map_err(io::Error::other)?;
    line.push(b'\n');
    file.write_all(&line)
}

/// 22 characters, as the original's.
fn random() -> Result<String, SecurityError> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| SecurityError::NoRandom)?;
    Ok(STANDARD_NO_PAD.encode(bytes))
}

fn hash(cookie: &str) -> String {
    STANDARD_NO_PAD.encode(digest(&SHA256, cookie.as_bytes()))
}
