//! One connection to a server: messages in, messages out. Connecting again is its owner's business.

use super::target::Target;
use crate::curve::{closed, explained};
use anyhow::{Context, anyhow};
use bytes::{Buf, BytesMut};
use laboro_dialects::zmtp::{Connection, Message, ZmtpError};
use laboro_net::{Clock, dial};
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 << 10;
const CONNECT: Duration = Duration::from_secs(10);

pub(crate) struct Link {
    stream: TcpStream,
    connection: Connection,
    input: BytesMut,
    unsent: BytesMut,
    /// What came with the handshake.
    early: Vec<Message>,
    clock: Clock,
}

/// How a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    #[error("the server has closed the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Zmtp(#[from] ZmtpError),
}

impl Link {
    /// Until both sides know who the other is.
    pub(crate) async fn open(target: &Target, clock: Clock) -> anyhow::Result<Link> {
        let options = target.options();
        Link::open_as(target, options, clock).await
    }

    pub(super) async fn open_as(
        target: &Target,
        options: laboro_dialects::zmtp::Options,
        clock: Clock,
    ) -> anyhow::Result<Link> {
        let mechanism = options.mechanism.clone();
        let connecting = dial(&target.host);
        let stream = tokio::time::timeout(CONNECT, connecting)
            .await
            .map_err(|_| anyhow!("{target} does not answer"))?
            .with_context(|| format!("{target} cannot be reached; is a server running there?"))?;
        let mut link = Link {
            stream,
            connection: Connection::new(options),
            input: BytesMut::new(),
            unsent: BytesMut::new(),
            early: Vec::new(),
            clock,
        };
        link.connection.open(clock.now(), &mut link.unsent);
        let mut early = Vec::new();
        while !link.connection.is_ready() {
            let failed = match link.turn(&mut early).await {
                Ok(()) => continue,
                Err(Broken::Zmtp(error)) => explained(&mechanism, error),
                Err(Broken::Closed) if let Some(advice) = closed(&mechanism) => anyhow!(advice),
                Err(other) => other.into(),
            };
            return Err(failed.context(format!("{target}: no handshake")));
        }
        // A worker that comes back under its name may be given something at once.
        link.early = early;
        Ok(link)
    }

    pub(crate) fn say(&mut self, message: &Message) {
        self.connection.send(message.slices(), &mut self.unsent);
    }

    /// Takes all of these.
    pub(super) fn say_all(&mut self, messages: &mut Vec<Message>) {
        messages.drain(..).for_each(|message| self.say(&message));
    }

    /// Waits until the server has said something. What was said here goes out meanwhile. Nothing is lost
    /// when it is dropped half way.
    pub(crate) async fn hear(&mut self, messages: &mut Vec<Message>) -> Result<(), Broken> {
        messages.append(&mut self.early);
        while messages.is_empty() {
            self.turn(messages).await?;
        }
        Ok(())
    }

    /// Sends everything that was said.
    pub(crate) async fn flush(&mut self) -> Result<(), Broken> {
        while !self.unsent.is_empty() {
            self.stream.writable().await?;
            self.write()?;
        }
        Ok(())
    }

    async fn turn(&mut self, messages: &mut Vec<Message>) -> Result<(), Broken> {
        self.write()?;
        let interest = match self.unsent.is_empty() {
            true => Interest::READABLE,
            false => Interest::READABLE | Interest::WRITABLE,
        };
        let ready = match self.connection.deadline() {
            None => self.stream.ready(interest).await?,
            Some(at) => {
                let ready = self.stream.ready(interest);
                match tokio::time::timeout(self.clock.until(at), ready).await {
                    Ok(ready) => ready?,
                    Err(_) => {
                        self.connection.tick(self.clock.now(), &mut self.unsent)?;
                        return Ok(());
                    }
                }
            }
        };
        if ready.is_readable() {
            self.input.reserve(READ_BYTES);
            match self.stream.try_read_buf(&mut self.input) {
                Ok(0) => return Err(Broken::Closed),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            let now = self.clock.now();
            while let Some(message) =
                self.connection.receive(now, &mut self.input, &mut self.unsent)?
            {
                messages.push(message);
            }
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(written) => self.unsent.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
