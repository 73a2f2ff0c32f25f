//! A ZMTP connection on a real socket, one thread, blocking.

use bytes::BytesMut;
use laboro_core::Time;
use laboro_dialects::zmtp::{Connection, Message, Options, ZmtpError};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

pub struct Wire {
    pub connection: Connection,
    stream: TcpStream,
    began: Instant,
    input: BytesMut,
    say: BytesMut,
    /// Came in one piece with the end of the handshake.
    early: Option<Message>,
}

impl Wire {
    pub fn open(stream: TcpStream, options: Options) -> Wire {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut connection = Connection::new(options);
        let mut say = BytesMut::new();
        connection.open(Time(0), &mut say);
        Wire { connection, stream, began: Instant::now(), input: BytesMut::new(), say, early: None }
    }

    /// `false` when the peer left before it was ready.
    pub fn until_ready(&mut self) -> Result<bool, ZmtpError> {
        loop {
            let received = self.take();
            self.flush();
            match received {
                Err(error) => return Err(error),
                Ok(Some(message)) => {
                    self.early = Some(message);
                    return Ok(true);
                }
                Ok(None) if self.connection.is_ready() => return Ok(true),
                Ok(None) => {}
            }
            if !self.read() {
                return Ok(false);
            }
        }
    }

    /// `None` when the peer has left.
    pub fn receive(&mut self) -> Result<Option<Message>, ZmtpError> {
        if let Some(message) = self.early.take() {
            return Ok(Some(message));
        }
        loop {
            let received = self.take();
            self.flush();
            match received {
                Err(error) => return Err(error),
                Ok(Some(message)) => return Ok(Some(message)),
                Ok(None) => {}
            }
            if !self.read() {
                return Ok(None);
            }
        }
    }

    pub fn send<'a>(&mut self, frames: impl IntoIterator<Item = &'a [u8]>) {
        self.connection.send(frames, &mut self.say);
        self.flush();
    }

    /// Sends a PING if the connection wants to at some time.
    pub fn tick_at_deadline(&mut self) {
        let deadline = self.connection.deadline().unwrap();
        self.connection.tick(deadline, &mut self.say).unwrap();
        self.flush();
    }

    /// What was said goes out, then the connection closes.
    pub fn hang_up(&mut self) {
        drop(self.stream.shutdown(Shutdown::Both));
    }

    fn take(&mut self) -> Result<Option<Message>, ZmtpError> {
        let now = Time(self.began.elapsed().as_millis() as u64);
        self.connection.receive(now, &mut self.input, &mut self.say)
    }

    fn flush(&mut self) {
        // A peer that has left is seen when it is read from.
        drop(self.stream.write_all(&self.say.split()));
    }

    fn read(&mut self) -> bool {
        let mut piece = [0; 64 << 10];
        let read = self.stream.read(&mut piece);
        if let Err(error) = &read {
            assert!(error.kind() != std::io::ErrorKind::WouldBlock, "the peer said nothing");
        }
        let read = read.unwrap_or(0);
        self.input.extend_from_slice(&piece[..read]);
        read > 0
    }
}
