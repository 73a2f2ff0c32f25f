//! One connection to a dwork hub over TCP: asks, waits, and gives up in time with words that say what to do.

use crate::curve::{closed, explained};
use anyhow::{Context, bail};
use bytes::BytesMut;
use laboro_dialects::dwork::{Client, ClientError, Reply};
use laboro_dialects::zmtp::Mechanism;
use laboro_net::{Clock, Linger, dial};
use std::future::poll_fn;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Host and port as a person wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    host: String,
    port: u16,
}

const PORT: u16 = 6125;

impl FromStr for Address {
    type Err = String;

    /// `host`, `host:port`, `[v6]:port`, all also behind `tcp://`.
    fn from_str(text: &str) -> Result<Address, String> {
        let bad = || format!("{text} is no address: say host, host:port or tcp://host:port");
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

#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    linger: Linger,
    client: Client,
    clock: Clock,
    input: BytesMut,
    unsent: BytesMut,
    timeout: Duration,
    address: Address,
}

impl Link {
    pub(crate) async fn connect(
        address: &Address,
        mechanism: Mechanism,
        wait: Duration,
    ) -> anyhow::Result<Link> {
        let connected = timeout(wait, dial((&address.host[..], address.port))).await;
        let stream = match connected {
            Ok(stream) => stream.with_context(|| {
                format!("no dwork hub at {address}: is it running? Use -s to say where")
            })?,
            Err(_) => bail!("nobody at {address} within {wait:?}"),
        };
        let clock = Clock::start();
        let mut link = Link {
            stream,
            linger: Linger::default(),
            client: Client::new(mechanism.clone()),
            clock,
            input: BytesMut::with_capacity(CHUNK),
            unsent: BytesMut::new(),
            timeout: wait,
            address: address.clone(),
        };
        link.client.open(clock.now(), &mut link.unsent);
        link.within(async |link| {
            while !link.client.is_ready() {
                if !link.exchange().await? {
                    bail!(closed(&mechanism).unwrap_or(CLOSED));
                }
                let now = link.clock.now();
                match link.client.receive(now, &mut link.input, &mut link.unsent) {
                    Ok(None) => {}
                    Ok(Some(_)) => bail!("it answers before it is asked"),
                    Err(ClientError::Zmtp(error)) => return Err(explained(&mechanism, error)),
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(())
        })
        .await?;
        Ok(link)
    }

    /// Asks one thing and waits for its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<Reply> {
        self.client.ask(request, &mut self.unsent);
        self.next().await
    }

    /// The next answer to anything that was asked.
    async fn next(&mut self) -> anyhow::Result<Reply> {
        self.within(async |link| {
            loop {
                let now = link.clock.now();
                match link.client.receive(now, &mut link.input, &mut link.unsent)? {
                    Some(reply) => return Ok(reply),
                    None if link.exchange().await? => {}
                    None => bail!(CLOSED),
                }
            }
        })
        .await
    }

    async fn within<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut Link) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (wait, address) = (self.timeout, self.address.clone());
        match timeout(wait, what(self)).await {
            Ok(done) => done.with_context(|| format!("the hub at {address}")),
            Err(_) => bail!("the hub at {address} did not answer within {wait:?}"),
        }
    }

    /// Sends all that is to be sent, then reads what comes first. `false` when nothing will come any more.
    async fn exchange(&mut self) -> anyhow::Result<bool> {
        if !self.unsent.is_empty() {
            self.stream.write_all_buf(&mut self.unsent).await?;
            self.linger.said();
        }
        self.input.reserve(CHUNK);
        let (stream, input) = (&mut self.stream, &mut self.input);
        let read = poll_fn(|context| self.linger.poll_read(context, stream, input)).await?;
        Ok(read > 0)
    }
}

const CHUNK: usize = 32 << 10;
const CLOSED: &str = "it closed the connection: is it a dwork hub?";

#[cfg(test)]
mod tests;
