//! One door as a person asks for it: `dwork=127.0.0.1:6125,group=exp,allow=10.0.0.0/8,insecure`, or the same as a table
//! of a settings file. What only some dialects can be told is in `kind`.

mod kind;

pub use kind::{
    DoorKind, DworkDoor, Fuq1Door, Fuq2Door, FuqDoor, NativeDoor, RrmqDoor, RunexpDoor,
};

pub(crate) use kind::numbering_of;

use super::Address;
use crate::listen::{Dialect, Network};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Deserialize as Read, Serialize};
use std::net::SocketAddr;
use std::str::FromStr;
use toml::{Table, Value};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoorSettings {
    #[serde(flatten)]
    pub kind: DoorKind,
    pub address: Address,
    /// `None`: the group of the hub's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Empty: everyone who reaches it.
    pub allow: Vec<Network>,
    /// A dialect without authentication may listen beyond this machine.
    pub insecure: bool,
}

/// What every door can be told, as it is read.
#[derive(Read)]
struct Common {
    address: Address,
    group: Option<String>,
    #[serde(default)]
    allow: Vec<Network>,
    #[serde(default)]
    insecure: bool,
}

/// Its keys, in the order in which they are told.
const COMMON: [&str; 4] = ["address", "group", "allow", "insecure"];

/// May stand several times on a command line.
const LISTS: [&str; 2] = ["allow", "curve_allow"];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDoor {
    #[error("door {text}: write it as dialect=address, such as fuq2=127.0.0.1:7912")]
    Shape { text: String },
    #[error("a door has a `dialect`, one of {}", Dialect::words())]
    NoDialect,
    #[error("there is no dialect {word}; there are {}", Dialect::words())]
    Dialect { word: String },
    #[error("{text} is not an address: {why}; write host:port, port 0 for any that is free")]
    Address { text: String, why: String },
    #[error("door {dialect}: {word} is an option of {of} doors")]
    NotHere { dialect: &'static str, word: String, of: String },
    #[error("door option {word}: {dialect} doors have {has}")]
    NoOption { dialect: &'static str, word: String, has: String },
    #[error("door option {word}: {why}")]
    Value { word: String, why: String },
    #[error("door {dialect}: {why}")]
    Unreadable { dialect: &'static str, why: String },
    #[error(
        "door dwork: lease_ms=0 would take every task away at once; leave it out for leases that do not end"
    )]
    NoLease,
    #[error("door fuq: {word}=0 would {what}; leave it out for the default")]
    Zero { word: &'static str, what: &'static str },
    #[error(
        "door {dialect}: group= without a name; write group=NAME, or leave it out for the hub's own group"
    )]
    NoGroup { dialect: &'static str },
    #[error("door fuq: cert=FILE and key=FILE go together")]
    HalfCertificate,
    #[error("door {dialect}: {why}")]
    Numbering { dialect: &'static str, why: String },
    #[error(
        "door {dialect} on {address}: this dialect has no authentication, and other machines can reach \
         this address: bind it to 127.0.0.1 and let others come through `ssh -L`, or add `,insecure` if \
         anyone who reaches it may submit and run tasks, best with `,allow=NETWORK` to say who that is; dwork \
         and rrmq can be locked by `,curve_allow=KEY` for each client that may come"
    )]
    Open { dialect: &'static str, address: SocketAddr },
}

impl DoorSettings {
    pub fn native(address: SocketAddr, allow: Vec<Network>) -> DoorSettings {
        let kind = DoorKind::Native(NativeDoor::default());
        DoorSettings { kind, address: address.into(), group: None, allow, insecure: false }
    }

    pub fn dialect(&self) -> Dialect {
        self.kind.dialect()
    }

    fn read(dialect: Dialect, mut options: Table) -> Result<DoorSettings, BadDoor> {
        let unreadable = |error: toml::de::Error| BadDoor::Unreadable {
            dialect: dialect.word(),
            why: error.message().to_owned(),
        };
        let known = DoorKind::options(dialect);
        if let Some(word) = options.keys().find(|&word| !is_one_of(&COMMON, word, known)) {
            return Err(unknown(dialect, word));
        }
        let mut common = Table::new();
        for key in COMMON {
            common.extend(options.remove(key).map(|value| (key.to_owned(), value)));
        }
        let common = Value::Table(common).try_into().map_err(unreadable)?;
        let Common { address, group, allow, insecure } = common;
        let kind = DoorKind::read(dialect, options).map_err(unreadable)?;
        Ok(DoorSettings { kind, address, group, allow, insecure })
    }

    /// Whoever reaches a door without a lock can run anything here.
    pub(crate) fn check(&self) -> Result<(), BadDoor> {
        let dialect = self.dialect();
        self.kind.check()?;
        if self.group.as_deref() == Some("") {
            return Err(BadDoor::NoGroup { dialect: dialect.word() });
        }
        // A public key is no secret, so CURVE alone keeps nobody out.
        let is_locked = dialect.has_authentication()
            || self.kind.curve().is_some_and(|allowed| !allowed.is_empty());
        let address = self.address.at();
        match is_locked || address.ip().is_loopback() || self.insecure {
            true => Ok(()),
            false => Err(BadDoor::Open { dialect: dialect.word(), address }),
        }
    }
}

fn is_one_of(common: &[&str], word: &str, known: &[&str]) -> bool {
    common.contains(&word) || known.contains(&word)
}

fn unknown(dialect: Dialect, word: &str) -> BadDoor {
    let has = |other: &Dialect| DoorKind::options(*other).contains(&word);
    let others: Vec<&str> = Dialect::ALL.into_iter().filter(has).map(Dialect::word).collect();
    let (word, here) = (word.to_owned(), dialect.word());
    if others.is_empty() {
        let has: Vec<&str> =
            COMMON[1..].iter().chain(DoorKind::options(dialect)).copied().collect();
        return BadDoor::NoOption { dialect: here, word, has: listed(&has) };
    }
    BadDoor::NotHere { dialect: here, word, of: listed(&others) }
}

fn listed(words: &[&str]) -> String {
    match words {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        words => words.concat(),
    }
}

impl<'de> Deserialize<'de> for DoorSettings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<DoorSettings, D::Error> {
        let mut options = Table::deserialize(from)?;
        let dialect = options.remove("dialect").ok_or(BadDoor::NoDialect);
        let dialect = dialect.and_then(|word| word.as_str().unwrap_or_default().parse());
        let door = dialect.and_then(|dialect| DoorSettings::read(dialect, options));
        door.map_err(de::Error::custom)
    }
}

impl FromStr for DoorSettings {
    type Err = BadDoor;

    fn from_str(text: &str) -> Result<DoorSettings, BadDoor> {
        let shape = || BadDoor::Shape { text: text.to_owned() };
        let (dialect, rest) = text.split_once('=').ok_or_else(shape)?;
        let mut words = rest.split(',');
        let (dialect, address): (Dialect, _) = (dialect.parse()?, words.next().ok_or_else(shape)?);
        let address = match dialect.usual_port() {
            Some(port) => Address::with_usual_port(address, port)?,
            None => address.parse()?,
        };
        // The address is known already, and looked up once.
        let here = || ("address".to_owned(), Value::String("127.0.0.1:0".into()));
        let mut options: Table = [here()].into_iter().collect();
        for word in words {
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Value::String(value.to_owned())),
                None => (word, Value::Boolean(true)),
            };
            let value = if LISTS.contains(&key) { Value::Array(vec![value]) } else { value };
            // Each by itself, so that a mistake is told with its word.
            let alone = [here(), (key.to_owned(), value.clone())].into_iter().collect();
            DoorSettings::read(dialect, alone).map_err(|error| match error {
                BadDoor::Unreadable { why, .. } => BadDoor::Value { word: word.to_owned(), why },
                other => other,
            })?;
            match (options.get_mut(key), value) {
                (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                (_, value) => drop(options.insert(key.to_owned(), value)),
            }
        }
        Ok(DoorSettings { address, ..DoorSettings::read(dialect, options)? })
    }
}
