//! One connection to a dwork hub over TCP: asks, waits, and gives up in time.

use crate::LinkError;
use bytes::BytesMut;
use laboro_dialects::dwork::{Client, ClientError, Reply};
use laboro_dialects::zmtp::Mechanism;
use laboro_net::{Clock, Linger, dial};
use std::future::poll_fn;
use std::io;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Host and port as a person wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    host: String,
    port: u16,
}

const PORT: u16 = 6125;

impl FromStr for Address {
    type Err = String;

    /// `host`, `host:port`, `[v6]:port`, all also behind `tcp://`.
    fn from_str(text: &str) -> Result<Address, String> {
        let bad = || format!("{text} is not an address: write host, host:port or tcp://host:port");
        let rest = match text.split_once("://") {
            Some(("tcp" | "dwork", rest)) => rest,
            Some(_) => return Err(bad()),
            None => text,
        };
        let (host, port) = match rest.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, port))) => (host, port),
            Some(None) => return Err(bad()),
            None if rest.matches(':').count() > 1 => (rest, ""),
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let port = match port.strip_prefix(':') {
            Some(port) => port.parse().map_err(|_| bad())?,
            None if port.is_empty() => PORT,
            None => return Err(bad()),
        };
        if host.is_empty() || host.contains('/') {
            return Err(bad());
        }
        Ok(Address { host: host.to_owned(), port })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// One conversation: a question, then its answer.
#[derive(Debug)]
pub struct DworkLink {
    stream: TcpStream,
    linger: Linger,
    client: Client,
    clock: Clock,
    input: BytesMut,
    unsent: BytesMut,
    timeout: Duration,
    address: Address,
}

impl DworkLink {
    /// Until both sides know who the other is. `wait` is how long that, and later each answer, may take.
    pub async fn connect(
        address: &Address,
        mechanism: Mechanism,
        wait: Duration,
    ) -> Result<DworkLink, LinkError> {
        let dialled = timeout(wait, dial((&address.host[..], address.port))).await;
        let stream = match dialled {
            Ok(stream) => stream.map_err(|source| unreachable(address, source))?,
            Err(_) => {
                return Err(LinkError::Silent { address: address.to_string(), patience: wait });
            }
        };
        let clock = Clock::start();
        let mut link = DworkLink {
            stream,
            linger: Linger::default(),
            client: Client::new(mechanism),
            clock,
            input: BytesMut::with_capacity(CHUNK),
            unsent: BytesMut::new(),
            timeout: wait,
            address: address.clone(),
        };
        link.client.open(clock.now(), &mut link.unsent);
        link.within(async |link| {
            while !link.client.is_ready() {
                link.exchange().await?;
                if link.receive()?.is_some() {
                    return Err(LinkError::Unasked { address: link.address.to_string() });
                }
            }
            Ok(())
        })
        .await?;
        Ok(link)
    }

    /// Asks one thing and waits for its answer.
    pub async fn ask(&mut self, request: &[u8]) -> Result<Reply, LinkError> {
        self.client.ask(request, &mut self.unsent);
        self.within(async |link| {
            loop {
                match link.receive()? {
                    Some(reply) => return Ok(reply),
                    None => link.exchange().await?,
                }
            }
        })
        .await
    }

    async fn within<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut DworkLink) -> Result<T, LinkError>,
    ) -> Result<T, LinkError> {
        let patience = self.timeout;
        match timeout(patience, what(self)).await {
            Ok(done) => done,
            Err(_) => Err(LinkError::Silent { address: self.address.to_string(), patience }),
        }
    }

    /// What can be understood of what was read.
    fn receive(&mut self) -> Result<Option<Reply>, LinkError> {
        let now = self.clock.now();
        self.client.receive(now, &mut self.input, &mut self.unsent).map_err(|error| {
            let address = self.address.to_string();
            match error {
                ClientError::Zmtp(source) => LinkError::Zmtp { address, source },
                source => LinkError::Dialect { address, source },
            }
        })
    }

    /// Sends all that is to be sent, then reads what comes first.
    async fn exchange(&mut self) -> Result<(), LinkError> {
        match self.send_and_read().await {
            Ok(0) => Err(LinkError::Closed { address: self.address.to_string() }),
            Ok(_) => Ok(()),
            Err(source) => Err(unreachable(&self.address, source)),
        }
    }

    async fn send_and_read(&mut self) -> io::Result<usize> {
        if !self.unsent.is_empty() {
            self.stream.write_all_buf(&mut self.unsent).await?;
            self.linger.said();
        }
        self.input.reserve(CHUNK);
        let (stream, input) = (&mut self.stream, &mut self.input);
        poll_fn(|context| self.linger.poll_read(context, stream, input)).await
    }
}

fn unreachable(address: &Address, source: io::Error) -> LinkError {
    LinkError::Unreachable { address: address.to_string(), source }
}

const CHUNK: usize = 32 << 10;

#[cfg(test)]
mod tests;
