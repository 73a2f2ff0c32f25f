//! The worker's side: registers, does what the example's requests ask, and gives its slots back. After a new
//! connection it registers again by itself, because a server may have forgotten it.

use super::codec::{App, Command, Envelope, EnvelopeError, Parts, Status, decimal};
use super::example;
use super::pulse::Pulse;
use super::stream::{Pack, Packet, StreamState, Writer};
use crate::zmtp::Message;
use bytes::Bytes;
use laboro_core::Time;
use std::collections::BTreeMap;

/// What a worker offers, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerOptions {
    /// How many requests it takes at once.
    pub slots: u32,
    /// How it packs the streams that it sends.
    pub pack: Pack,
    /// Of all streams that are open together: a larger request is answered with an abort.
    pub streams_bytes_max: usize,
    /// How long a stream waits for the next packet to be asked for.
    pub stream_ms: u64,
}

impl Default for WorkerOptions {
    fn default() -> WorkerOptions {
        let (streams_bytes_max, stream_ms) = (64 << 20, 120_000);
        WorkerOptions { slots: 10, pack: Pack::Raw, streams_bytes_max, stream_ms }
    }
}

/// What went through a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct WorkerTally {
    pub requests: u64,
    pub answers: u64,
    pub unknown: u64,
}

/// The working side, over one connection after another.
#[derive(Debug)]
pub struct Worker {
    options: WorkerOptions,
    next_id: u32,
    pulse: Pulse,
    standing: Standing,
    streams: BTreeMap<u64, OpenStream>,
    streams_bytes: usize,
    next_handle: u64,
    tally: WorkerTally,
}

/// How this worker stands with the server.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Apart,
    /// REGISTER with this id has no answer yet.
    Asking(Bytes),
    Registered,
}

#[derive(Debug)]
struct OpenStream {
    writer: Writer,
    host: Bytes,
    bytes: usize,
    until: Time,
}

impl Worker {
    /// Not connected and not registered yet.
    pub fn new(options: WorkerOptions) -> Worker {
        Worker {
            options,
            next_id: 0,
            pulse: Pulse::new(),
            standing: Standing::Apart,
            streams: BTreeMap::new(),
            streams_bytes: 0,
            next_handle: 1,
            tally: WorkerTally::default(),
        }
    }

    /// A connection stands, the first or a later one.
    pub fn open(&mut self, now: Time, out: &mut Vec<Message>) {
        self.next_id = self.next_id.wrapping_add(1);
        self.pulse.open(now, u64::from(self.next_id), out);
        if self.standing != Standing::Apart {
            self.register(out);
        }
    }

    /// The connection is gone. It registers again over the next one.
    pub fn lost(&mut self) {
        self.pulse.lost();
    }

    /// Asks the server for requests, as many as it has slots.
    pub fn register(&mut self, out: &mut Vec<Message>) {
        let id = self.id();
        let slots = Bytes::from(self.options.slots.to_string());
        let args = [App::Register.frame(), slots];
        out.push(Envelope::new(Command::TrackExec, id.clone(), args).to_message());
        self.standing = Standing::Asking(id);
    }

    /// Tells the server to send no more requests.
    pub fn deregister(&mut self, out: &mut Vec<Message>) {
        let id = Bytes::from_static(b"WORKER");
        out.push(Envelope::new(Command::Exec, id, [App::Deregister.frame()]).to_message());
        self.standing = Standing::Apart;
    }

    /// The server has answered REGISTER.
    pub fn is_registered(&self) -> bool {
        self.standing == Standing::Registered
    }

    /// It has registered or asked to, and did not deregister since.
    pub fn is_on_duty(&self) -> bool {
        self.standing != Standing::Apart
    }

    /// What went through it so far.
    pub fn tally(&self) -> WorkerTally {
        self.tally
    }

    /// One message of the server. What the example does not know is not done.
    pub fn receive(
        &mut self,
        now: Time,
        message: &Message,
        out: &mut Vec<Message>,
    ) -> Result<(), EnvelopeError> {
        if let Some(asked) = self.receive_or_give(now, message, out)? {
            self.tally.unknown += 1;
            self.finish(&asked, None, out);
        }
        Ok(())
    }

    /// One message of the server. A request that the example does not know is given to the caller, who owes
    /// `finish` for it.
    pub fn receive_or_give(
        &mut self,
        now: Time,
        message: &Message,
        out: &mut Vec<Message>,
    ) -> Result<Option<Envelope>, EnvelopeError> {
        self.pulse.hear(now);
        let asked = Envelope::parse(message)?;
        match asked.command {
            Command::Ping => out.push(asked.answer(Command::Pong, []).to_message()),
            Command::Response if self.standing == Standing::Asking(asked.id.clone()) => {
                self.standing = Standing::Registered;
            }
            Command::Pong | Command::TrackAddress | Command::Response => {}
            Command::Exec | Command::TrackExec => {
                self.tally.requests += 1;
                match asked.app() {
                    None | Some(App::Unknown) => return Ok(Some(asked)),
                    Some(app) => self.work(now, app, &asked, out),
                }
            }
        }
        Ok(None)
    }

    /// The request is done: its answer, if there is one and it is wanted, and then its slot back.
    pub fn finish(&mut self, asked: &Envelope, answer: Option<Parts>, out: &mut Vec<Message>) {
        if let Some(args) = answer.filter(|_| asked.command == Command::TrackExec) {
            self.tally.answers += 1;
            out.push(asked.answer(Command::Response, args).to_message());
        }
        self.give_slot_back(out);
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        let stream = self.streams.values().map(|stream| stream.until).min();
        [self.pulse.deadline(), stream].into_iter().flatten().min()
    }

    /// `false` when the server is gone and a new connection is needed.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Message>) -> bool {
        let late: Vec<u64> = self
            .streams
            .iter()
            .filter(|(_, s)| now >= s.until)
            .map(|(&handle, _)| handle)
            .collect();
        late.into_iter().for_each(|handle| self.forget(handle));
        self.pulse.tick(now, out)
    }

    fn work(&mut self, now: Time, app: App, asked: &Envelope, out: &mut Vec<Message>) {
        let answer = match app {
            App::Ping => Some(Parts::new()),
            App::Stream => Some([self.begin(now, asked).to_frame()].into_iter().collect()),
            // About a stream of ours these two came past the slots, by this worker's address. About any
            // other they may have come by any way: a slot too many for a moment is better than one lost.
            App::More => {
                let packet = self.next(now, asked);
                let is_ours = packet.is_some();
                let packet = packet.unwrap_or_else(|| self.abort(handle(asked)));
                return self.answer(asked, packet.to_frame(), is_ours, out);
            }
            App::Ongoing => {
                let is_ours = self.touch(now, asked.args.get(1));
                let status = if is_ours { Status::OK } else { Status::FAILED };
                return self.answer(asked, status.to_frame(), is_ours, out);
            }
            App::Increment | App::Register | App::Deregister | App::Unknown => {
                self.tally.unknown += 1;
                None
            }
        };
        // Everything else took a slot, understood or not, and the server gets it back after the answer.
        self.finish(asked, answer, out);
    }

    fn answer(&mut self, asked: &Envelope, frame: Bytes, keeps_slot: bool, out: &mut Vec<Message>) {
        if asked.command == Command::TrackExec {
            self.tally.answers += 1;
            out.push(asked.answer(Command::Response, [frame]).to_message());
        }
        if !keeps_slot {
            self.give_slot_back(out);
        }
    }

    fn give_slot_back(&mut self, out: &mut Vec<Message>) {
        let id = self.id();
        out.push(Envelope::new(Command::Exec, id, [App::Increment.frame()]).to_message());
    }

    /// STREAM, for whom, how much.
    fn begin(&mut self, now: Time, asked: &Envelope) -> Packet {
        let host = asked.args.get(1).cloned().unwrap_or_default();
        let ones = asked.args.get(2).and_then(|size| decimal(size));
        let bytes = ones.map_or(usize::MAX, |ones| ones as usize);
        let handle = self.next_handle;
        self.next_handle += 1;
        let Some(ones) = ones
            .filter(|_| self.streams_bytes.saturating_add(bytes) <= self.options.streams_bytes_max)
        else {
            return self.abort(handle.to_le_bytes());
        };
        let mut writer = Writer::new(handle, self.options.pack, example::data(ones));
        let first = writer.next_packet();
        if !writer.is_over() {
            let until = now.after_ms(self.options.stream_ms);
            self.streams_bytes += bytes;
            self.streams.insert(handle, OpenStream { writer, host, bytes, until });
        }
        first
    }

    /// mqs_more, for whom, of which stream, and whether it is wanted. `None`: there is no such stream.
    fn next(&mut self, now: Time, asked: &Envelope) -> Option<Packet> {
        let number = u64::from_le_bytes(handle(asked));
        let is_wanted = asked.args.get(3).is_some_and(|mode| *mode == b"0"[..]);
        let until = now.after_ms(self.options.stream_ms);
        let stream = self.streams.get_mut(&number)?;
        let packet = if is_wanted { stream.writer.next_packet() } else { stream.writer.abort() };
        stream.until = until;
        if stream.writer.is_over() {
            self.forget(number);
        }
        Some(packet)
    }

    /// ongoing, for whom: whether there is still something of theirs, which is then kept on.
    fn touch(&mut self, now: Time, host: Option<&Bytes>) -> bool {
        let until = now.after_ms(self.options.stream_ms);
        let mut is_any = false;
        for stream in self.streams.values_mut().filter(|stream| host == Some(&stream.host)) {
            stream.until = until;
            is_any = true;
        }
        is_any
    }

    fn abort(&self, handle: [u8; 8]) -> Packet {
        let (state, pack) = (StreamState::Abort, self.options.pack);
        Packet { state, pack, handle, payload: Bytes::new() }
    }

    fn forget(&mut self, handle: u64) {
        if let Some(stream) = self.streams.remove(&handle) {
            self.streams_bytes -= stream.bytes;
        }
    }

    fn id(&mut self) -> Bytes {
        self.next_id = self.next_id.wrapping_add(1);
        Bytes::copy_from_slice(&self.next_id.to_le_bytes())
    }
}

/// Which stream an mqs_more is about.
fn handle(asked: &Envelope) -> [u8; 8] {
    let handle = asked.args.get(2).and_then(|handle| <[u8; 8]>::try_from(&handle[..]).ok());
    handle.unwrap_or_default()
}
