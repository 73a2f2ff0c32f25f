//! The dialects that have a door. Adding one means a line in each list here and an arm in `listen`.

use crate::config::BadDoor;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Dialect {
    /// Our own workers, over TLS, with tokens.
    Native,
    /// Nodes and the command line of fuq, over HTTPS, with a password.
    Fuq,
    /// Workers of fuq's second version, on plain TCP.
    Fuq2,
    /// Workers of fuq's first version, on plain TCP.
    Fuq1,
    /// Peers that create and steal tasks by name, over ZMTP.
    Dwork,
    /// Clients and workers of the request broker, over ZMTP. Apart from the hub's tasks.
    Rrmq,
    /// Runners that take scripts.
    Runexp,
}

impl Dialect {
    pub const ALL: [Dialect; 7] = [
        Dialect::Native,
        Dialect::Fuq,
        Dialect::Fuq2,
        Dialect::Fuq1,
        Dialect::Dwork,
        Dialect::Rrmq,
        Dialect::Runexp,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Dialect::Native => "native",
            Dialect::Fuq => "fuq",
            Dialect::Fuq2 => "fuq2",
            Dialect::Fuq1 => "fuq1",
            Dialect::Dwork => "dwork",
            Dialect::Rrmq => "rrmq",
            Dialect::Runexp => "runexp",
        }
    }

    pub fn has_authentication(self) -> bool {
        match self {
            Dialect::Native | Dialect::Fuq => true,
            Dialect::Fuq2 | Dialect::Fuq1 | Dialect::Dwork | Dialect::Rrmq | Dialect::Runexp => {
                false
            }
        }
    }

    /// Its peers are sockets of ZeroMQ.
    pub fn has_zmtp(self) -> bool {
        match self {
            Dialect::Dwork | Dialect::Rrmq => true,
            Dialect::Native | Dialect::Fuq | Dialect::Fuq2 | Dialect::Fuq1 | Dialect::Runexp => {
                false
            }
        }
    }

    /// Where clients of the dialect look when they are told no port.
    pub(crate) fn usual_port(self) -> Option<u16> {
        match self {
            Dialect::Dwork => Some(6125),
            Dialect::Rrmq => Some(6714),
            Dialect::Fuq => Some(5429),
            Dialect::Native | Dialect::Fuq2 | Dialect::Fuq1 | Dialect::Runexp => None,
        }
    }

    /// Those who come may create work, not only do it.
    pub(crate) fn peers_submit(self) -> bool {
        matches!(self, Dialect::Fuq | Dialect::Dwork | Dialect::Rrmq)
    }

    pub(crate) fn words() -> String {
        Dialect::ALL.map(Dialect::word).join(", ")
    }
}

impl FromStr for Dialect {
    type Err = BadDoor;

    fn from_str(word: &str) -> Result<Dialect, BadDoor> {
        let found = Dialect::ALL.into_iter().find(|dialect| dialect.word() == word);
        found.ok_or_else(|| BadDoor::Dialect { word: word.to_owned() })
    }
}

impl TryFrom<String> for Dialect {
    type Error = BadDoor;

    fn try_from(word: String) -> Result<Dialect, BadDoor> {
        word.parse()
    }
}

impl From<Dialect> for String {
    fn from(dialect: Dialect) -> String {
        dialect.word().to_owned()
    }
}
