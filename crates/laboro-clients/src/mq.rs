//! One connection to a server of the rrmq message queue: messages in, messages out. Connecting again is its owner's
//! business.

mod target;

pub use target::Target;

use crate::LinkError;
use bytes::{Buf, BytesMut};
use laboro_dialects::zmtp::{Connection, Message, Options, ZmtpError};
use laboro_net::{Clock, dial};
use std::io;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::TcpStream;

const READ_BYTES: usize = 64 << 10;
const CONNECT: Duration = Duration::from_secs(10);

/// A connection whose handshake is over.
pub struct BrokerLink {
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
pub enum Broken {
    #[error("the server has closed the connection")]
    Closed,
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Zmtp(#[from] ZmtpError),
}

impl BrokerLink {
    /// Until both sides know who the other is.
    pub async fn open(target: &Target, clock: Clock) -> Result<BrokerLink, LinkError> {
        let options = target.options();
        BrokerLink::open_as(target, options, clock).await
    }

    /// With a name that the caller keeps, for one that comes again.
    pub async fn open_as(
        target: &Target,
        options: Options,
        clock: Clock,
    ) -> Result<BrokerLink, LinkError> {
        let address = || target.to_string();
        let stream = match tokio::time::timeout(CONNECT, dial(&target.host)).await {
            Ok(dialled) => {
                dialled.map_err(|source| LinkError::Unreachable { address: address(), source })?
            }
            Err(_) => return Err(LinkError::Silent { address: address(), patience: CONNECT }),
        };
        let mut link = BrokerLink {
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
            link.turn(&mut early).await.map_err(|broken| match broken {
                Broken::Closed => LinkError::Closed { address: address() },
                Broken::Io(source) => LinkError::Unreachable { address: address(), source },
                Broken::Zmtp(source) => LinkError::Zmtp { address: address(), source },
            })?;
        }
        // A worker that comes back under its name may be given something at once.
        link.early = early;
        Ok(link)
    }

    /// Goes out with the next `hear` or `flush`.
    pub fn say(&mut self, message: &Message) {
        self.connection.send(message.slices(), &mut self.unsent);
    }

    /// Takes all of these.
    pub fn say_all(&mut self, messages: &mut Vec<Message>) {
        messages.drain(..).for_each(|message| self.say(&message));
    }

    /// Waits until the server has said something. What was said here goes out meanwhile. Nothing is lost
    /// when it is dropped half way.
    pub async fn hear(&mut self, messages: &mut Vec<Message>) -> Result<(), Broken> {
        messages.append(&mut self.early);
        while messages.is_empty() {
            self.turn(messages).await?;
        }
        Ok(())
    }

    /// Sends everything that was said.
    pub async fn flush(&mut self) -> Result<(), Broken> {
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

impl std::fmt::Debug for BrokerLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BrokerLink").field("stream", &self.stream).finish_non_exhaustive()
    }
}
