//! A connection that says what a test wants said, also what no program would.

use bytes::{Bytes, BytesMut};
use laboro_core::Time;
use laboro_dialects::zmtp::{Connection, Message, Options, SocketType};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything takes on a machine that is very busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Wire {
    pub stream: TcpStream,
    connection: Connection,
    input: BytesMut,
    /// What came with the handshake: a worker that is back may be given something at once.
    early: Option<Message>,
}

impl Wire {
    pub fn dial(address: SocketAddr, identity: &str) -> Wire {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let identity = Bytes::copy_from_slice(identity.as_bytes());
        let options = Options { identity, ..Options::new(SocketType::Dealer) };
        let (connection, input) = (Connection::new(options), BytesMut::new());
        let mut wire = Wire { stream, connection, input, early: None };
        let mut say = BytesMut::new();
        wire.connection.open(Time(0), &mut say);
        wire.stream.write_all(&say).unwrap();
        while !wire.connection.is_ready() {
            wire.early = wire.read();
        }
        wire
    }

    pub fn send(&mut self, frames: &[&[u8]]) {
        self.send_all(std::iter::once(frames));
    }

    /// In one write.
    pub fn send_all<'a>(&mut self, messages: impl IntoIterator<Item = &'a [&'a [u8]]>) {
        let mut say = BytesMut::new();
        for frames in messages {
            self.connection.send(frames.iter().copied(), &mut say);
        }
        self.stream.write_all(&say).unwrap();
    }

    /// The next message.
    #[track_caller]
    pub fn receive(&mut self) -> Message {
        if let Some(early) = self.early.take() {
            return early;
        }
        loop {
            let mut say = BytesMut::new();
            let received = self.connection.receive(Time(0), &mut self.input, &mut say).unwrap();
            if let Some(message) = received.or_else(|| self.read()) {
                return message;
            }
        }
    }

    fn read(&mut self) -> Option<Message> {
        let mut buffer = [0; 65536];
        let read = self.stream.read(&mut buffer).expect("the server stays");
        assert!(read > 0, "the server has closed the connection");
        self.input.extend_from_slice(&buffer[..read]);
        let mut say = BytesMut::new();
        let received = self.connection.receive(Time(0), &mut self.input, &mut say).unwrap();
        self.stream.write_all(&say).unwrap();
        received
    }

    /// Waits until the server has hung up.
    pub fn is_closed(&mut self) -> bool {
        let mut buffer = [0; 65536];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return true,
                Ok(_) => {}
                Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
            }
        }
    }

    pub fn register(&mut self, slots: &str) {
        self.send(&[b"", b"LMQv100", &[4], b"reg", &[8], slots.as_bytes(), b""]);
        let answer = self.receive();
        assert_eq!(answer.get(2).map(|frame| &frame[..]), Some(&[6][..]));
    }

    pub fn increment(&mut self) {
        self.send(&[b"", b"LMQv100", &[3], b"inc", &[7], b""]);
    }

    pub fn ask(&mut self, id: &[u8]) {
        self.send(&[b"", b"LMQv100", &[4], id, b"\x01", b""]);
    }

    /// Answers a request that this worker got, and gives the slot back.
    pub fn answer(&mut self, asked: &Message) {
        let client = asked.get(asked.len() - 1).unwrap().clone();
        let id = asked.get(3).unwrap().clone();
        self.send(&[&client, b"", b"LMQv100", &[6], &id, b""]);
        self.increment();
    }

    /// A word whose answer comes after everything that was said before it.
    pub fn sync(&mut self) -> Vec<Message> {
        self.send(&[b"", b"LMQv100", &[1], b"sync", b""]);
        let mut before = Vec::new();
        loop {
            let message = self.receive();
            if message.get(2).is_some_and(|command| command == &[2][..]) {
                return before;
            }
            before.push(message);
        }
    }
}
