//! The hub's side of a conversation: requests become commands, in order, and their answers go back in the same order.
//! Several may be under way; a steal that waits is answered with nothing when another request comes. What a request
//! means is in `request`, what a reply of the hub means in `answer`.

mod answer;
mod request;

use super::codec::Kind;
use super::door::HubDoor;
use crate::session::{Delivery, HangUp, Output, Session, SessionContext};
use crate::zmtp::{Connection, Limits, Message, Options, SocketType, ZmtpError};
use bytes::{Bytes, BytesMut};
use laboro_core::{
    Command, Grant, LeaseRef, Name, Place, Reply, Return, Returned, Time, Token, WorkerId,
    WorkerRef,
};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// The hub's side of a conversation with a dwork client or worker.
pub struct HubSide {
    connection: Connection,
    context: SessionContext,
    door: Arc<HubDoor>,
    /// Requests without an answer, the oldest first.
    under_way: VecDeque<ClientRequest>,
    /// The number of the oldest.
    first: u64,
    workers: Workers,
    /// The hub stops: everything is answered with Exit.
    is_stopping: bool,
    is_closed: bool,
    /// Where replies are written before they become frames.
    scratch: BytesMut,
}

struct ClientRequest {
    /// The frames before the delimiter, which go back with the answer.
    envelope: SmallVec<[Bytes; 1]>,
    body: Bytes,
    stage: RequestStage,
    /// The worker that was made known for this request.
    joining: Option<Name>,
    tries: u8,
}

/// What a request waits for, with what is needed to go on then.
enum RequestStage {
    /// The requests before it.
    Answered(Bytes),
    Create,
    Steal {
        until: Option<Time>,
        is_withdrawn: bool,
    },
    Complete,
    Transfer,
    Exit {
        is_known: bool,
    },
    Status,
    Lookup,
    Holder,
}

/// Which of a request's questions a reply answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    Join,
    Withdraw,
    Leave,
}

/// So many requests of one connection are under way at most. Whoever reads for us stops long before,
/// because the hub takes only so many questions of a session at once.
const UNDER_WAY_MAX: usize = 50_000;

/// One long reply does not cost its room for as long as the connection stands.
const SCRATCH_BYTES_KEPT: usize = 256 << 10;

const ENVELOPE_FRAMES_MAX: usize = 32;

impl HubSide {
    /// For one connection.
    pub fn new(context: SessionContext, door: Arc<HubDoor>) -> HubSide {
        let options = Options {
            identity: door.settings.identity.clone(),
            mechanism: door.settings.mechanism.clone(),
            as_server: true,
            limits: Limits {
                frame_bytes: context.message_max,
                leaves_out_long: true,
                message_bytes: context.message_max.saturating_add(64 << 10),
                frames_a_message: ENVELOPE_FRAMES_MAX + 2,
                ..Limits::default()
            },
            ..Options::new(SocketType::Router)
        };
        HubSide {
            connection: Connection::new(options),
            workers: Workers::new(door.workers_left()),
            context,
            door,
            under_way: VecDeque::new(),
            first: 0,
            is_stopping: false,
            is_closed: false,
            scratch: BytesMut::new(),
        }
    }

    /// Frames up to an empty one are the envelope; exactly one follows.
    fn take_message(&mut self, now: Time, message: Message, out: &mut Output) {
        let Message(mut frames) = message;
        let Some(delimiter) = frames.iter().position(Bytes::is_empty) else {
            // Nobody would understand an answer.
            out.dropped += 1;
            return;
        };
        let body = match frames.len() - delimiter {
            2 => frames.pop(),
            _ => None,
        };
        frames.truncate(delimiter);
        let envelope = frames.into_iter().collect();
        self.withdraw_last(out);
        let stage = RequestStage::Answered(Bytes::new());
        let body = body.unwrap_or_default();
        self.under_way.push_back(ClientRequest { envelope, body, stage, joining: None, tries: 0 });
        let number = self.first + self.under_way.len() as u64 - 1;
        if self.is_stopping {
            self.answer_kind(number, Kind::Exit, out);
        } else {
            self.begin(now, number, out);
        }
    }

    /// Replies stay in the order of requests, so whatever is asked next must not wait for a steal.
    fn withdraw_last(&mut self, out: &mut Output) {
        let number = self.first + self.under_way.len() as u64;
        if let Some(last) = self.under_way.back_mut()
            && let RequestStage::Steal { until: Some(_), is_withdrawn } = &mut last.stage
            && !*is_withdrawn
        {
            *is_withdrawn = true;
            let offer = Token(tag(number - 1, Part::Main));
            out.ask(tag(number - 1, Part::Withdraw), Command::Withdraw(offer));
        }
    }

    fn request(&mut self, number: u64) -> Option<&mut ClientRequest> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.under_way.get_mut(at)
    }

    /// A message of nothing but its type.
    fn answer_kind(&mut self, number: u64, kind: Kind, out: &mut Output) {
        let body = match kind {
            Kind::Ok => &[8, Kind::Ok as u8],
            Kind::NotFound => &[8, Kind::NotFound as u8],
            Kind::Exit => &[8, Kind::Exit as u8],
            _ => &[8, Kind::Error as u8],
        };
        self.answer(number, body, out);
    }

    /// What was written to the scratch buffer.
    fn answer_scratch(&mut self, number: u64, out: &mut Output) {
        let body = std::mem::take(&mut self.scratch);
        self.answer(number, &body, out);
        if body.capacity() <= SCRATCH_BYTES_KEPT {
            self.scratch = body;
            self.scratch.clear();
        }
    }

    /// Says it now if all before it are answered, and with it those after it that waited only for this one.
    fn answer(&mut self, number: u64, body: &[u8], out: &mut Output) {
        if number != self.first {
            if let Some(request) = self.request(number) {
                request.stage = RequestStage::Answered(Bytes::copy_from_slice(body));
                request.body = Bytes::new();
            }
            return;
        }
        if let Some(request) = self.under_way.pop_front() {
            self.first += 1;
            self.say(&request.envelope, body, out);
        }
        while let Some(ClientRequest { stage: RequestStage::Answered(body), .. }) =
            self.under_way.front()
        {
            let body = body.clone();
            if let Some(request) = self.under_way.pop_front() {
                self.first += 1;
                self.say(&request.envelope, &body, out);
            }
        }
    }

    fn say(&mut self, envelope: &[Bytes], body: &[u8], out: &mut Output) {
        if self.is_closed || !self.connection.is_ready() {
            return;
        }
        let frames = envelope.iter().map(|frame| &frame[..]).chain([&[][..], body]);
        self.connection.send(frames, &mut out.say);
        out.end_message();
    }
}

impl Session for HubSide {
    fn open(&mut self, now: Time, out: &mut Output) {
        self.connection.open(now, &mut out.say);
        out.end_message();
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        while out.hang_up.is_none() {
            match self.connection.receive(now, input, &mut out.say) {
                Ok(Some(_)) if self.under_way.len() == UNDER_WAY_MAX => {
                    out.malformed(format!("more than {UNDER_WAY_MAX} requests wait for an answer"));
                }
                Ok(Some(message)) => {
                    out.heard += 1;
                    self.take_message(now, message, out);
                }
                Ok(None) => break,
                Err(error) => hang_up(&error, out),
            }
        }
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        match delivery {
            Delivery::Reply { tag, reply: Reply::Work { worker, grants } }
                if self.is_closed || self.request(untag(tag).0).is_none() =>
            {
                // Nobody is there to do it, or its steal was answered with Exit meanwhile.
                give_back(worker, grants.into_iter(), out);
            }
            Delivery::Reply { tag, reply } => {
                let (number, part) = untag(tag);
                self.reply(now, number, part, reply, out);
            }
            // A thief is asked for nothing and cannot be told to stop.
            Delivery::Work { .. }
            | Delivery::Revoke { .. }
            | Delivery::Stop { .. }
            | Delivery::Replaced => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.connection.deadline()
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        if self.connection.deadline().is_some_and(|at| at <= now)
            && let Err(error) = self.connection.tick(now, &mut out.say)
        {
            hang_up(&error, out);
        }
    }

    /// Whoever waits for work is told that there will be none. What comes of other requests that are under
    /// way is not known yet.
    fn last_words(&mut self, _now: Time, out: &mut Output) {
        self.is_stopping = true;
        self.withdraw_last(out);
        while let Some(ClientRequest { stage: RequestStage::Steal { .. }, .. }) =
            self.under_way.front()
        {
            self.answer_kind(self.first, Kind::Exit, out);
        }
    }

    fn owes_answers(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// A REQ socket whose request is lost would wait for ever.
    fn answers_late(&self) -> bool {
        !self.is_closed && self.connection.is_ready()
    }

    /// What its worker holds stays with it: a dwork worker is a name, not a connection.
    fn close(&mut self, _now: Time, out: &mut Output) {
        self.is_closed = true;
        self.withdraw_last(out);
    }
}

/// Tasks that were given and cannot be carried.
fn give_back(worker: WorkerId, grants: impl Iterator<Item = Grant>, out: &mut Output) {
    let back = |grant: Grant| Returned {
        lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
        preds: Vec::new(),
    };
    let tasks: Vec<Returned> = grants.map(back).collect();
    if !tasks.is_empty() {
        let worker = WorkerRef::Id(worker);
        out.ask(u64::MAX, Command::Return(Return { worker, tasks, place: Place::Front }));
    }
}

fn hang_up(error: &ZmtpError, out: &mut Output) {
    out.hang_up(match error {
        ZmtpError::Silent { .. } | ZmtpError::SlowHandshake { .. } => HangUp::Silent,
        _ if error.is_denial() => HangUp::Denied(error.to_string()),
        _ => HangUp::Malformed(error.to_string()),
    });
}

fn tag(number: u64, part: Part) -> u64 {
    number << 2 | part as u64
}

fn untag(tag: u64) -> (u64, Part) {
    let part = match tag & 3 {
        0 => Part::Main,
        1 => Part::Join,
        2 => Part::Withdraw,
        _ => Part::Leave,
    };
    (tag >> 2, part)
}

impl std::fmt::Debug for HubSide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HubSide")
            .field("context", &self.context)
            .field("connection", &self.connection)
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}

/// The workers that this connection spoke for lately, so that each is made known once.
struct Workers {
    lately: Vec<(Name, WorkerId)>,
    /// How many workers had left the door then.
    left: u64,
}

impl Workers {
    const LATELY_MAX: usize = 16;

    fn new(left: u64) -> Workers {
        Workers { lately: Vec::new(), left }
    }

    fn find(&mut self, name: &[u8], left: u64) -> Option<WorkerId> {
        if self.left != left {
            (self.left, self.lately) = (left, Vec::new());
        }
        self.lately.iter().find(|(known, _)| known.bytes() == name).map(|&(_, id)| id)
    }

    fn note(&mut self, name: Name, id: WorkerId) {
        self.lately.retain(|(known, _)| *known != name);
        self.lately.truncate(Self::LATELY_MAX - 1);
        self.lately.insert(0, (name, id));
    }

    fn forget(&mut self) {
        self.lately.clear();
    }
}
