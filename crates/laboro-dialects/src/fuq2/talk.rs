//! The numbers of a conversation, the same for both sides: which message is a request and which a response, what is
//! done now and what waits, what happens when the numbers run out. What the messages say is not known here, and what
//! was asked is remembered by the one who asked it.

use super::frame::Frame;
use super::header::{AT_ONCE, LABORO, MessageHeader, MessageKind, Numbering, Trouble};
use bytes::BytesMut;
use std::collections::VecDeque;

/// Requests of the peer that wait for a response of the peer, or for ours.
const WAITING_MAX: usize = 16;
/// And the bytes of those that are kept.
const WAITING_BYTES_MAX: usize = 4 << 20;
/// From this number on the next request is a RESET. Far enough from the end that the peer's numbers, which
/// ours must pass, cannot use up what is left.
const RESET_FROM: u32 = u32::MAX - 0xFFFF;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Even numbers.
    Worker,
    /// Odd numbers.
    Foreman,
}

#[derive(Debug)]
pub(super) struct Talk {
    side: Side,
    numbering: Numbering,
    reset_from: u32,
    /// The peer is known to be Laboro.
    laboro: bool,
    /// The highest number used by anyone. Ours must be greater.
    highest: Option<u32>,
    /// The highest number the peer has used in a request or a response. Its next request must be greater.
    heard: Option<u32>,
    /// The last of theirs that we answered.
    answered: u32,
    /// Requests of ours without a response, in order.
    asked: Vec<u32>,
    /// Requests of theirs that were handed out and are not answered yet.
    open: Vec<u32>,
    /// Requests of theirs that wait for a response to ours.
    queue: VecDeque<Frame>,
    queued_bytes: usize,
    resetting: Resetting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resetting {
    No,
    /// We said it, under this number.
    Ours(u32),
    /// They said it; we answer when nothing below it is left.
    Theirs(u32),
}

/// How far the numbers are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wear {
    Fine,
    /// The next request must be a RESET.
    Reset,
    /// The peer does not know RESET, or has used up the number for it: only a new connection helps.
    Reconnect,
}

/// What a message means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Do it now, then answer.
    Request(Frame),
    /// The answer to what was asked under this number.
    Response(Frame),
    /// Nothing to be done, or not yet.
    Nothing,
    /// An OK that answers nothing: a greeting.
    Greeting,
    /// No room for it: to be answered with ERROR(Overflow).
    Overflow(u32),
    /// To be answered with ERROR(BadSeq), and the connection closed.
    BadSeq { seq: u32, why: &'static str },
    /// The peer has answered our RESET: everything starts anew.
    Anew,
}

impl Talk {
    pub(super) fn new(side: Side, numbering: Numbering) -> Talk {
        Talk {
            side,
            numbering,
            reset_from: RESET_FROM,
            laboro: false,
            highest: None,
            heard: None,
            answered: 0,
            asked: Vec::new(),
            open: Vec::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            resetting: Resetting::No,
        }
    }

    /// As if nothing had been said. What kind of peer it is stays known.
    pub(super) fn restart(&mut self) {
        let (laboro, reset_from) = (self.laboro, self.reset_from);
        *self = Talk { laboro, reset_from, ..Talk::new(self.side, self.numbering) };
    }

    /// The numbers run out there instead of at the end.
    #[cfg(test)]
    pub(super) fn reset_from(&mut self, seq: u32) {
        self.reset_from = seq;
    }

    pub(super) fn numbering(&self) -> Numbering {
        self.numbering
    }

    pub(super) fn knows_laboro(&self) -> bool {
        self.laboro
    }

    pub(super) fn meet_laboro(&mut self, laboro: bool) {
        self.laboro = laboro;
    }

    pub(super) fn hear(&mut self, message: Frame) -> Meaning {
        let MessageHeader { kind, seq, .. } = message.header;
        let is_answer = matches!(kind, MessageKind::Ok | MessageKind::Error | MessageKind::Reset);
        match (self.is_ours(seq), is_answer) {
            (true, true) => self.hear_response(message),
            (true, false) => Meaning::BadSeq { seq, why: "has the wrong parity" },
            (false, _) if kind == MessageKind::Ok => Meaning::Greeting,
            (false, _) if kind == MessageKind::Error => Meaning::Nothing,
            (false, _) => self.hear_request(message),
        }
    }

    fn hear_response(&mut self, message: Frame) -> Meaning {
        let MessageHeader { kind, seq, .. } = message.header;
        let Some(at) = self.asked.iter().position(|&asked| asked == seq) else {
            return match kind {
                MessageKind::Ok => Meaning::Greeting,
                MessageKind::Reset => Meaning::BadSeq { seq, why: "answers no RESET" },
                _ => Meaning::Nothing,
            };
        };
        let answers_reset = self.resetting == Resetting::Ours(seq);
        if answers_reset != (kind == MessageKind::Reset) {
            return Meaning::BadSeq { seq, why: "is answered with the wrong type" };
        }
        self.asked.remove(at);
        self.note_heard(seq);
        if answers_reset {
            self.restart();
            return Meaning::Anew;
        }
        Meaning::Response(message)
    }

    fn hear_request(&mut self, message: Frame) -> Meaning {
        let MessageHeader { kind, seq, arg0, .. } = message.header;
        if self.heard.is_some_and(|heard| seq <= heard) {
            return Meaning::BadSeq { seq, why: "does not rise" };
        }
        if let Resetting::Theirs(_) = self.resetting {
            return Meaning::BadSeq { seq, why: "comes after a RESET" };
        }
        self.note_heard(seq);
        if let Resetting::Ours(reset) = self.resetting
            && seq > reset
        {
            // Dropped by rule; the peer says it again when everything has started anew. Of two RESETs
            // the lower counts, so that a higher one of theirs goes the same way.
            return Meaning::Nothing;
        }
        if kind == MessageKind::Reset {
            // One of ours, if there is one, is the higher and is dropped by the peer.
            self.resetting = Resetting::Theirs(seq);
            self.asked.retain(|&asked| asked < seq);
            return Meaning::Nothing;
        }
        let is_stop_at_once = kind == MessageKind::Stop && arg0 == AT_ONCE;
        if is_stop_at_once {
            self.open.push(seq);
            return Meaning::Request(message);
        }
        if self.open.len() + self.queue.len() >= WAITING_MAX {
            return Meaning::Overflow(seq);
        }
        if self.queue.is_empty() && !self.waits_before(seq) {
            self.open.push(seq);
            return Meaning::Request(message);
        }
        if self.queued_bytes + message.body.len() > WAITING_BYTES_MAX && !self.queue.is_empty() {
            return Meaning::Overflow(seq);
        }
        self.queued_bytes += message.body.len();
        self.queue.push_back(message);
        Meaning::Nothing
    }

    /// The next request of theirs that waited and need not any more.
    pub(super) fn next_queued(&mut self) -> Option<Frame> {
        let seq = self.queue.front()?.header.seq;
        if self.waits_before(seq) {
            return None;
        }
        let message = self.queue.pop_front()?;
        self.queued_bytes -= message.body.len();
        self.open.push(seq);
        Some(message)
    }

    /// All that waited, when nobody will answer any more.
    pub(super) fn take_queued(&mut self) -> VecDeque<Frame> {
        self.queued_bytes = 0;
        std::mem::take(&mut self.queue)
    }

    /// A response to a request of ours comes before this one of theirs.
    fn waits_before(&self, seq: u32) -> bool {
        self.asked.first().is_some_and(|&asked| asked < seq)
    }

    /// Everything received is answered, everything asked has its answer: there may be a new request.
    pub(super) fn may_ask(&self) -> bool {
        self.asked.is_empty()
            && self.open.is_empty()
            && self.queue.is_empty()
            && self.resetting == Resetting::No
    }

    /// A request of ours is under way.
    pub(super) fn has_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    /// A request of theirs is not answered yet.
    pub(super) fn owes(&self) -> bool {
        !(self.open.is_empty() && self.queue.is_empty())
    }

    /// The highest number that anyone has used.
    pub(super) fn highest(&self) -> Option<u32> {
        self.highest
    }

    /// The next request has this number, or a higher one.
    pub(super) fn skip_to(&mut self, seq: u32) {
        self.highest = self.highest.max(seq.checked_sub(1));
    }

    /// STOP at once waits for nobody, where the peer is known to understand that.
    pub(super) fn may_interrupt(&self) -> bool {
        self.may_ask() || (self.laboro && self.resetting == Resetting::No)
    }

    /// Asked before every request: are there numbers left for it?
    pub(super) fn wear(&self) -> Wear {
        match self.highest {
            Some(highest) if highest < self.reset_from => Wear::Fine,
            None => Wear::Fine,
            Some(highest) if self.laboro && highest <= u32::MAX - 2 => Wear::Reset,
            Some(_) => Wear::Reconnect,
        }
    }

    /// Writes a request whose body is written by `body`.
    pub(super) fn ask_with(
        &mut self,
        say: &mut BytesMut,
        kind: MessageKind,
        body: impl FnOnce(&mut BytesMut),
    ) -> u32 {
        let seq = self.next_seq();
        // Whatever the foreman is: originals do not look at it.
        let padding = if kind == MessageKind::Hello { LABORO } else { 0 };
        let at = say.len();
        MessageHeader { kind, subtype: 0, seq, padding, arg0: 0 }.write(self.numbering, say);
        let start = say.len();
        body(say);
        let length = u32::try_from(say.len() - start).expect("messages stay far below 4 GiB");
        say[at + 12..at + 16].copy_from_slice(&length.to_le_bytes());
        self.asked.push(seq);
        seq
    }

    /// Writes a request that is a number only.
    pub(super) fn ask(&mut self, say: &mut BytesMut, kind: MessageKind, arg0: u32) -> u32 {
        let seq = self.next_seq();
        self.write(say, kind, 0, seq, arg0);
        self.asked.push(seq);
        seq
    }

    /// Asks to start anew. Nothing more is asked until that is done.
    pub(super) fn ask_reset(&mut self, say: &mut BytesMut) {
        let seq = self.ask(say, MessageKind::Reset, self.answered);
        self.resetting = Resetting::Ours(seq);
    }

    /// Answers their RESET, if everything before it is answered on both sides. True: everything starts anew.
    pub(super) fn answer_reset(&mut self, say: &mut BytesMut) -> bool {
        let Resetting::Theirs(seq) = self.resetting else { return false };
        if !(self.asked.is_empty() && self.open.is_empty() && self.queue.is_empty()) {
            return false;
        }
        self.write(say, MessageKind::Reset, 0, seq, self.answered);
        self.restart();
        true
    }

    /// Says something that asks for no answer, under a number of ours.
    pub(super) fn greet(&mut self, say: &mut BytesMut) {
        let seq = self.next_seq();
        self.write(say, MessageKind::Ok, 0, seq, 0);
    }

    pub(super) fn answer(&mut self, say: &mut BytesMut, seq: u32, arg0: u32) {
        self.close(seq);
        self.write(say, MessageKind::Ok, 0, seq, arg0);
    }

    /// An answer to something that was not heard, on this connection at least.
    pub(super) fn answer_unheard(&self, say: &mut BytesMut, seq: u32, arg0: u32) {
        self.write(say, MessageKind::Ok, 0, seq, arg0);
    }

    /// The answer to a HELLO says what kind of peer this is, to those who said it themselves.
    pub(super) fn answer_hello(&mut self, say: &mut BytesMut, seq: u32, arg0: u32) {
        self.close(seq);
        let padding = if self.laboro { LABORO } else { 0 };
        MessageHeader { kind: MessageKind::Ok, subtype: 0, seq, padding, arg0 }
            .write(self.numbering, say);
    }

    pub(super) fn refuse(&mut self, say: &mut BytesMut, seq: u32, trouble: Trouble, arg0: u32) {
        self.close(seq);
        self.write(say, MessageKind::Error, trouble.code(), seq, arg0);
    }

    /// Turns a HELLO down, in words. Only for Laboro peers: others do not expect a body here.
    pub(super) fn refuse_with(
        &mut self,
        say: &mut BytesMut,
        seq: u32,
        trouble: Trouble,
        why: &str,
    ) {
        let length = u32::try_from(why.len()).expect("words stay far below 4 GiB");
        self.refuse(say, seq, trouble, length);
        say.extend_from_slice(why.as_bytes());
    }

    fn close(&mut self, seq: u32) {
        self.open.retain(|&open| open != seq);
        self.answered = seq;
    }

    fn write(&self, say: &mut BytesMut, kind: MessageKind, subtype: u8, seq: u32, arg0: u32) {
        MessageHeader { kind, subtype, seq, padding: 0, arg0 }.write(self.numbering, say);
    }

    fn is_ours(&self, seq: u32) -> bool {
        seq.is_multiple_of(2) == (self.side == Side::Worker)
    }

    fn note_heard(&mut self, seq: u32) {
        self.heard = self.heard.max(Some(seq));
        self.highest = self.highest.max(Some(seq));
    }

    fn next_seq(&mut self) -> u32 {
        let after = self.highest.map_or(0, |highest| highest.saturating_add(1));
        let seq = if self.is_ours(after) { after } else { after.saturating_add(1) };
        self.highest = Some(seq);
        seq
    }
}
