//! Where a door listens: as it was typed, and as it was found. A ZeroMQ door goes by what was typed, because
//! its clients look for the very name that they connect to.

#[cfg(test)]
mod tests;

use super::BadDoor;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    at: SocketAddr,
    /// A name, or a number in whatever form.
    host: String,
}

impl Address {
    /// The same, and the port may be left out.
    pub(super) fn with_usual_port(text: &str, usual: u16) -> Result<Address, BadDoor> {
        let has_port = text.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match text.parse::<IpAddr>() {
            Ok(ip) => Ok(Address::from(SocketAddr::from((ip, usual)))),
            Err(_) if has_port => text.parse(),
            Err(_) => format!("{text}:{usual}").parse(),
        }
    }

    pub fn at(&self) -> SocketAddr {
        self.at
    }

    /// The host as it was typed, with the port that it really is.
    pub fn typed(&self, port: u16) -> String {
        format!("{}:{port}", self.host)
    }
}

impl FromStr for Address {
    type Err = BadDoor;

    /// A name stands for its first address of IPv4, or else its first: sockets of ZeroMQ do not look for
    /// another one unless they are told to.
    fn from_str(text: &str) -> Result<Address, BadDoor> {
        let bad = |why: &str| BadDoor::Address { text: text.to_owned(), why: why.to_owned() };
        let found = text.to_socket_addrs().map_err(|error| bad(&error.to_string()))?;
        let at = choose(found).ok_or_else(|| bad("nothing is known by this name"))?;
        let (host, _) = text.rsplit_once(':').ok_or_else(|| bad("it has no port"))?;
        Ok(Address { at, host: host.to_owned() })
    }
}

fn choose(found: impl Iterator<Item = SocketAddr>) -> Option<SocketAddr> {
    let found: Vec<SocketAddr> = found.collect();
    found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
}

impl From<SocketAddr> for Address {
    fn from(at: SocketAddr) -> Address {
        let host = match at.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        Address { at, host }
    }
}

impl TryFrom<String> for Address {
    type Error = BadDoor;

    fn try_from(text: String) -> Result<Address, BadDoor> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.typed(address.at.port())
    }
}
