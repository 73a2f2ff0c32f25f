//! One door as a person asks for it: `dwork=127.0.0.1:6125,group=exp,allow=10.0.0.0/8,insecure`.

use super::Address;
use crate::listen::{Dialect, Network};
use crate::security::CurveKey;
use laboro_dialects::fuq2::Numbering;
use laboro_dialects::zmtp;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DoorSettings {
    pub dialect: Dialect,
    pub address: Address,
    /// `None`: the group of the hub's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Empty: everyone who reaches it.
    #[serde(default)]
    pub allow: Vec<Network>,
    /// How a ZeroMQ door calls itself, if not by its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// A dialect without authentication may listen beyond this machine.
    #[serde(default)]
    pub insecure: bool,
    /// Of a ZeroMQ door: peers prove by CURVE that they know the hub's public key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub curve: bool,
    /// Of a ZeroMQ door: CURVE, and only with these public keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve_allow: Vec<CurveKey>,
    /// Of a dwork door: how long a steal may wait for work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// Of a dwork door: after so long a stolen task goes back by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Of a dwork or runexp door: workers are not sent away when everything is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stay: bool,
    /// Of a dwork door: tasks of every kind may be stolen, by their names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
    /// Of a dwork door: only the location that has a task may complete it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_holder: bool,
    /// Of a dwork door: how many tasks one request may name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_a_message: Option<usize>,
    /// Of an rrmq door: requests that may wait for a worker, in number, bytes and time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<u64>,
    /// Of an rrmq door: how long a worker whose connection is lost keeps its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
    /// Of an rrmq door: after so long a slot is free again, though its worker did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot_ms: Option<u64>,
    /// Of a fuq door: the file with the password of its nodes and clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<PathBuf>,
    /// Of a fuq door: another certificate than the hub's, and its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Of a fuq door: how long a node's login is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cookie_ms: Option<u64>,
    /// Of a fuq door: how long a polling node that should have asked may be silent before it counts as gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_ms: Option<u64>,
    /// Of a fuq door: its clients cannot stop the hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_shutdown: bool,
    /// Of a fuq or fuq2 door: which numbers its nodes know messages by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbering: Option<String>,
    /// Of a runexp door: the exit status decides what a script has come to, not the last `RES:` line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_code: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDoor {
    #[error("door {text}: write it as dialect=address, such as fuq2=127.0.0.1:7912")]
    Shape { text: String },
    #[error("there is no dialect {word}; there are {}", Dialect::words())]
    Dialect { word: String },
    #[error("{text} is no address: {why}; write host:port, port 0 for any that is free")]
    Address { text: String, why: String },
    #[error(
        "door option {word}: there are group=NAME, allow=NETWORK and insecure; for dwork and rrmq \
         identity=NAME, curve and curve_allow=KEY; for dwork patience_ms=N, lease_ms=N, tasks_a_message=N, stay, any and only_holder; \
         for rrmq queue=N, queue_bytes=N, queue_ms=N, grace_ms=N and slot_ms=N; for runexp stay and exit_code; \
         for fuq auth=FILE, cert=FILE and key=FILE, cookie_ms=N, quiet_ms=N, no_shutdown, and as for fuq2 \
         numbering=current, older or oldest"
    )]
    Option { word: String },
    #[error("door {dialect}: {word} is an option of {of} doors")]
    NotHere { dialect: &'static str, word: &'static str, of: &'static str },
    #[error("door option curve_allow={text}: {why}; `laboro mq keys` makes a pair")]
    Key { text: String, why: String },
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
    #[error(transparent)]
    Network(#[from] crate::listen::BadNetwork),
    #[error(
        "door {dialect} on {address}: this dialect has no authentication, and other machines can reach \
         this address: bind it to 127.0.0.1 and let others come through `ssh -L`, or add `,insecure` if \
         whoever reaches it may submit and run tasks, best with `,allow=NETWORK` to say who that is; dwork \
         and rrmq can be locked by `,curve_allow=KEY` for each client that may come"
    )]
    Open { dialect: &'static str, address: SocketAddr },
}

impl DoorSettings {
    pub fn new(dialect: Dialect, address: impl Into<Address>) -> DoorSettings {
        DoorSettings {
            dialect,
            address: address.into(),
            group: None,
            allow: Vec::new(),
            identity: None,
            curve: false,
            curve_allow: Vec::new(),
            insecure: false,
            patience_ms: None,
            lease_ms: None,
            stay: false,
            any: false,
            only_holder: false,
            tasks_a_message: None,
            queue: None,
            queue_bytes: None,
            queue_ms: None,
            grace_ms: None,
            slot_ms: None,
            auth: None,
            cert: None,
            key: None,
            cookie_ms: None,
            quiet_ms: None,
            no_shutdown: false,
            numbering: None,
            exit_code: false,
        }
    }

    /// Whether peers have to speak CURVE.
    pub fn has_curve(&self) -> bool {
        self.curve || !self.curve_allow.is_empty()
    }

    pub(crate) fn numbering(&self) -> Result<Numbering, BadDoor> {
        let dialect = self.dialect.word();
        let numbering = self.numbering.as_deref().map_or(Ok(Numbering::Current), str::parse);
        numbering.map_err(|why| BadDoor::Numbering { dialect, why })
    }

    /// Whoever reaches a door without a lock can run anything here.
    pub(crate) fn check(&self) -> Result<(), BadDoor> {
        let (is_dwork, has_zmtp) = (self.dialect == Dialect::Dwork, self.dialect.has_zmtp());
        let is_rrmq = self.dialect == Dialect::Rrmq;
        let is_fuq = self.dialect == Dialect::Fuq;
        let is_runexp = self.dialect == Dialect::Runexp;
        let has_numbers = is_fuq || self.dialect == Dialect::Fuq2;
        let options = [
            (self.patience_ms.is_some(), is_dwork, "patience_ms", "dwork"),
            (self.lease_ms.is_some(), is_dwork, "lease_ms", "dwork"),
            (self.tasks_a_message.is_some(), is_dwork, "tasks_a_message", "dwork"),
            (self.queue.is_some(), is_rrmq, "queue", "rrmq"),
            (self.queue_bytes.is_some(), is_rrmq, "queue_bytes", "rrmq"),
            (self.queue_ms.is_some(), is_rrmq, "queue_ms", "rrmq"),
            (self.grace_ms.is_some(), is_rrmq, "grace_ms", "rrmq"),
            (self.slot_ms.is_some(), is_rrmq, "slot_ms", "rrmq"),
            (self.stay, is_dwork || is_runexp, "stay", "dwork and runexp"),
            (self.exit_code, is_runexp, "exit_code", "runexp"),
            (self.any, is_dwork, "any", "dwork"),
            (self.only_holder, is_dwork, "only_holder", "dwork"),
            (self.has_curve(), has_zmtp, "curve", "dwork and rrmq"),
            (self.identity.is_some(), has_zmtp, "identity", "dwork and rrmq"),
            (self.auth.is_some(), is_fuq, "auth", "fuq"),
            (self.cert.is_some(), is_fuq, "cert", "fuq"),
            (self.key.is_some(), is_fuq, "key", "fuq"),
            (self.cookie_ms.is_some(), is_fuq, "cookie_ms", "fuq"),
            (self.quiet_ms.is_some(), is_fuq, "quiet_ms", "fuq"),
            (self.no_shutdown, is_fuq, "no_shutdown", "fuq"),
            (self.numbering.is_some(), has_numbers, "numbering", "fuq and fuq2"),
        ];
        if let Some((.., word, of)) =
            options.into_iter().find(|&(is_set, fits, ..)| is_set && !fits)
        {
            return Err(BadDoor::NotHere { dialect: self.dialect.word(), word, of });
        }
        if self.lease_ms == Some(0) {
            return Err(BadDoor::NoLease);
        }
        if self.group.as_deref() == Some("") {
            return Err(BadDoor::NoGroup { dialect: self.dialect.word() });
        }
        if self.cookie_ms == Some(0) {
            return Err(BadDoor::Zero { word: "cookie_ms", what: "end every login at once" });
        }
        if self.quiet_ms == Some(0) {
            return Err(BadDoor::Zero { word: "quiet_ms", what: "take every busy node for gone" });
        }
        if self.cert.is_some() != self.key.is_some() {
            return Err(BadDoor::HalfCertificate);
        }
        self.numbering()?;
        // A public key is no secret, so CURVE alone keeps nobody out.
        let is_locked = self.dialect.has_authentication() || !self.curve_allow.is_empty();
        let is_open = !is_locked && !self.address.at().ip().is_loopback();
        match is_open && !self.insecure {
            false => Ok(()),
            true => Err(BadDoor::Open { dialect: self.dialect.word(), address: self.address.at() }),
        }
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
        let mut door = DoorSettings::new(dialect, address);
        for word in words {
            let bad = || BadDoor::Option { word: word.to_owned() };
            let ms = |text: &str| text.parse().map(Some).map_err(|_| bad());
            let size = |text: &str| text.parse().map(Some).map_err(|_| bad());
            match word.split_once('=') {
                Some(("group", group)) => door.group = Some(group.to_owned()),
                Some(("allow", network)) => door.allow.push(network.parse()?),
                Some(("identity", name)) => door.identity = Some(name.to_owned()),
                Some(("curve_allow", text)) => door.curve_allow.push(curve_key(text)?),
                Some(("patience_ms", text)) => door.patience_ms = ms(text)?,
                Some(("lease_ms", text)) => door.lease_ms = ms(text)?,
                Some(("tasks_a_message", text)) => door.tasks_a_message = size(text)?,
                Some(("queue", text)) => door.queue = size(text)?,
                Some(("queue_bytes", text)) => door.queue_bytes = size(text)?,
                Some(("queue_ms", text)) => door.queue_ms = ms(text)?,
                Some(("grace_ms", text)) => door.grace_ms = ms(text)?,
                Some(("slot_ms", text)) => door.slot_ms = ms(text)?,
                Some(("auth", path)) => door.auth = Some(path.into()),
                Some(("cert", path)) => door.cert = Some(path.into()),
                Some(("key", path)) => door.key = Some(path.into()),
                Some(("cookie_ms", text)) => door.cookie_ms = ms(text)?,
                Some(("quiet_ms", text)) => door.quiet_ms = ms(text)?,
                Some(("numbering", word)) => door.numbering = Some(word.to_owned()),
                None if word == "no_shutdown" => door.no_shutdown = true,
                None if word == "insecure" => door.insecure = true,
                None if word == "curve" => door.curve = true,
                None if word == "stay" => door.stay = true,
                None if word == "any" => door.any = true,
                None if word == "only_holder" => door.only_holder = true,
                None if word == "exit_code" => door.exit_code = true,
                _ => return Err(bad()),
            }
        }
        Ok(door)
    }
}

fn curve_key(text: &str) -> Result<CurveKey, BadDoor> {
    let bad = |why: zmtp::KeyError| BadDoor::Key { text: text.to_owned(), why: why.to_string() };
    text.parse().map_err(bad)
}
