//! The client's side: asks, puts streams together, and gives up on what is not answered in time. It does not
//! know that there are workers behind the server; it only sends back to where a packet came from.

use super::codec::{App, Command, Envelope, EnvelopeError, Parts};
use super::pulse::Pulse;
use super::stream::{Packet, PacketError, StreamReader, StreamState};
use crate::zmtp::Message;
use bytes::Bytes;
use laboro_core::Time;
use std::collections::{HashMap, VecDeque};

/// Which request an answer belongs to. Counted by the client, never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestNo(pub u64);

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The PING reached a worker and came back.
    Ponged(RequestNo),
    /// All of the stream that was asked for.
    Data(RequestNo, Bytes),
    /// There will be no answer.
    Failed(RequestNo, Failure),
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Failure {
    #[error("no answer in {ms} ms")]
    Late { ms: u64 },
    #[error(transparent)]
    Packet(#[from] PacketError),
    #[error("answer has no data")]
    Empty,
}

/// The asking side of any number of requests over one connection after another.
#[derive(Debug)]
pub struct Client {
    answer_ms: u64,
    data_bytes_max: usize,
    next_id: u64,
    pulse: Pulse,
    /// By the id that the answer will have, which is our own.
    pending: HashMap<Bytes, PendingRequest>,
    /// All wait equally long. Those that were answered since are skipped.
    deadlines: VecDeque<(Time, Bytes)>,
}

#[derive(Debug)]
struct PendingRequest {
    request: RequestNo,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    Pong,
    Stream {
        host: Bytes,
        reader: Box<StreamReader>,
    },
    /// Nothing: the stream was given up, and its writer told so.
    Nothing,
}

impl Client {
    /// Answers, and each packet of a stream, may take so long; a stream's data may be so large.
    pub fn new(answer_ms: u64, data_bytes_max: usize) -> Client {
        Client {
            answer_ms,
            data_bytes_max,
            next_id: 0,
            pulse: Pulse::new(),
            pending: HashMap::new(),
            deadlines: VecDeque::new(),
        }
    }

    /// A connection stands.
    pub fn open(&mut self, now: Time, out: &mut Vec<Message>) {
        self.next_id += 1;
        self.pulse.open(now, self.next_id, out);
    }

    /// The connection is gone. Requests that wait for their answer go on waiting.
    pub fn lost(&mut self) {
        self.pulse.lost();
    }

    /// A PING, which has no answer.
    pub fn ping(&mut self, out: &mut Vec<Message>) {
        self.next_id += 1;
        let id = Bytes::copy_from_slice(&self.next_id.to_le_bytes());
        out.push(Envelope::new(Command::Exec, id, [App::Ping.frame()]).to_message());
    }

    /// A PING that a worker answers.
    pub fn tracked_ping(&mut self, now: Time, out: &mut Vec<Message>) -> RequestNo {
        self.ask(now, None, Wanted::Pong, Parts::new(), [App::Ping.frame()], out)
    }

    /// So many ones, for whoever is called `host`.
    pub fn stream(
        &mut self,
        now: Time,
        host: Bytes,
        ones: u32,
        out: &mut Vec<Message>,
    ) -> RequestNo {
        let args = [App::Stream.frame(), host.clone(), Bytes::from(ones.to_string())];
        let reader = Box::new(StreamReader::new(self.data_bytes_max));
        self.ask(now, None, Wanted::Stream { host, reader }, Parts::new(), args, out)
    }

    /// How many requests wait for their answer.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// One message of the server; an answer when it was the last of a request.
    pub fn receive(
        &mut self,
        now: Time,
        message: &Message,
        out: &mut Vec<Message>,
    ) -> Result<Option<Answer>, EnvelopeError> {
        self.pulse.hear(now);
        let said = Envelope::parse(message)?;
        match said.command {
            Command::Ping => out.push(said.answer(Command::Pong, []).to_message()),
            Command::Response => {
                // An answer to nothing, or too late, means nothing.
                let Some(pending) = self.pending.remove(&said.id) else { return Ok(None) };
                return Ok(self.answered(now, pending, &said, out));
            }
            Command::Pong | Command::Exec | Command::TrackExec | Command::TrackAddress => {}
        }
        Ok(None)
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        let answer = self.deadlines.front().map(|&(until, _)| until);
        [self.pulse.deadline(), answer].into_iter().flatten().min()
    }

    /// What was not answered in time goes to `failed`. `false` when the server is gone and a new connection
    /// is needed.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Message>, failed: &mut Vec<Answer>) -> bool {
        while self.deadlines.front().is_some_and(|(until, _)| now >= *until) {
            let (_, id) = self.deadlines.pop_front().expect("there was one in front");
            if let Some(late) = self.pending.remove(&id)
                && !matches!(late.wanted, Wanted::Nothing)
            {
                failed.push(Answer::Failed(late.request, Failure::Late { ms: self.answer_ms }));
            }
        }
        self.pulse.tick(now, out)
    }

    fn answered(
        &mut self,
        now: Time,
        pending: PendingRequest,
        said: &Envelope,
        out: &mut Vec<Message>,
    ) -> Option<Answer> {
        let PendingRequest { request, wanted } = pending;
        match wanted {
            Wanted::Pong => Some(Answer::Ponged(request)),
            Wanted::Nothing => None,
            Wanted::Stream { host, mut reader } => {
                let Some(frame) = said.args.first() else {
                    return Some(Answer::Failed(request, Failure::Empty));
                };
                let packet = match Packet::parse(frame) {
                    Ok(packet) => packet,
                    Err(error) => return Some(Answer::Failed(request, error.into())),
                };
                let hops = said.travelled.iter().rev().cloned().collect();
                let more = |mode: &'static [u8], wanted| {
                    let handle = Bytes::copy_from_slice(&packet.handle);
                    let mode = Bytes::from_static(mode);
                    let args = [App::More.frame(), host.clone(), handle, mode];
                    self.ask(now, Some(request), wanted, hops, args, out);
                };
                match reader.read(&packet) {
                    Ok(Some(data)) => Some(Answer::Data(request, data)),
                    Ok(None) => {
                        more(b"0", Wanted::Stream { host: host.clone(), reader });
                        None
                    }
                    Err(error) => {
                        if packet.state == StreamState::More {
                            more(b"1", Wanted::Nothing);
                        }
                        Some(Answer::Failed(request, error.into()))
                    }
                }
            }
        }
    }

    fn ask(
        &mut self,
        now: Time,
        request: Option<RequestNo>,
        wanted: Wanted,
        hops: Parts,
        args: impl IntoIterator<Item = Bytes>,
        out: &mut Vec<Message>,
    ) -> RequestNo {
        self.next_id += 1;
        let request = request.unwrap_or(RequestNo(self.next_id));
        let id = Bytes::copy_from_slice(&self.next_id.to_le_bytes());
        let mut envelope = Envelope::new(Command::TrackExec, id.clone(), args);
        envelope.hops = hops;
        out.push(envelope.to_message());
        self.pending.insert(id.clone(), PendingRequest { request, wanted });
        // The last id that was answered may still stand in front; it is skipped when its time comes.
        self.deadlines.push_back((now.after_ms(self.answer_ms), id));
        while let Some((_, first)) = self.deadlines.front()
            && !self.pending.contains_key(first)
        {
            self.deadlines.pop_front();
        }
        request
    }
}
