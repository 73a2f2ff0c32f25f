//! What every worker does with a message: tell requests from answers, and refuse what cannot be. What a request asks is
//! a matter of the peer, a Laboro hub or an original foreman.

use crate::fuq2::frame::Frame;
use crate::fuq2::header::{MessageKind, Trouble};
use crate::fuq2::pack::PackError;
use crate::fuq2::talk::{Meaning, Talk};
use crate::worker::{Orders, Parting};
use laboro_core::Time;

pub(super) trait Incoming {
    /// What the other end is called in messages about it.
    const PEER: &'static str;

    fn talk(&mut self) -> &mut Talk;
    fn take_job(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError>;
    fn take_cancel(&mut self, request: &Frame, out: &mut Orders) -> Result<(), PackError>;
    fn take_stop(&mut self, seq: u32, slots: u32, out: &mut Orders);
    fn take_response(&mut self, now: Time, response: &Frame, out: &mut Orders);
    fn start_anew(&mut self, now: Time, out: &mut Orders);

    /// The peer has said that it is there.
    fn greeted(&mut self, _now: Time, _out: &mut Orders) {}

    /// Whether the peer can be told that a number was wrong before it is left.
    fn explains_numbers(&self) -> bool {
        true
    }

    fn hear(&mut self, now: Time, message: Frame, out: &mut Orders) {
        match self.talk().hear(message) {
            Meaning::Request(request) => self.take_request(&request, out),
            Meaning::Response(response) => self.take_response(now, &response, out),
            Meaning::Greeting => self.greeted(now, out),
            Meaning::Nothing => {}
            Meaning::Overflow(seq) => {
                self.talk().refuse(&mut out.say, seq, Trouble::Overflow, 0);
                out.end_message();
            }
            Meaning::BadSeq { seq, why } => {
                if self.explains_numbers() {
                    self.talk().refuse(&mut out.say, seq, Trouble::BadSeq, 0);
                    out.end_message();
                }
                out.hang_up(Parting::Malformed(format!("message number {seq} {why}")));
            }
            Meaning::Anew => self.start_anew(now, out),
        }
        while out.hang_up.is_none()
            && let Some(request) = self.talk().next_queued()
        {
            self.take_request(&request, out);
        }
    }

    fn take_request(&mut self, request: &Frame, out: &mut Orders) {
        let (kind, seq) = (request.header.kind, request.header.seq);
        let result = match kind {
            MessageKind::Job => self.take_job(request, out),
            MessageKind::Cancel => self.take_cancel(request, out),
            MessageKind::Stop => {
                self.take_stop(seq, request.header.arg0, out);
                Ok(())
            }
            kind => {
                out.hang_up(Parting::Malformed(format!("{kind:?} from a {}", Self::PEER)));
                return;
            }
        };
        match result {
            Ok(()) => out.end_message(),
            Err(error) => {
                out.hang_up(Parting::Malformed(format!("{kind:?} number {seq}: {error}")));
            }
        }
    }
}

/// An answer after which there is nothing more to say.
pub(super) fn parting(trouble: Trouble, response: &Frame, peer: &str) -> Parting {
    let why = || String::from_utf8_lossy(&response.body).into_owned();
    match trouble {
        Trouble::Refused => Parting::Refused(why()),
        Trouble::NotNow => Parting::NotNow(why()),
        trouble => Parting::Again(format!("the {peer} answered with {trouble:?}")),
    }
}
