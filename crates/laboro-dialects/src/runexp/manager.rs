//! The manager's side of one conversation: greets, dispatches jobs, takes results. Speaks in turn. A runner that waits
//! for an answer is blocked as a whole, so a request for work is answered at once while it has jobs; a runner without
//! any loses nothing by waiting. Judging results and runners is left to the hub.

mod lending;
mod receipt;

use super::VERSION;
use super::door::ManagerDoor;
use super::roll::{Loan, Seat};
use super::words::{MESSAGE_BYTES_MAX, ManagerWord, RunnerWord, WordBuffer};
use crate::session::{Delivery, HangUp, Output, Session, SessionContext};
use bytes::{Bytes, BytesMut};
use laboro_core::{
    Capacity, Command, Idle, Join, Kinds, Leave, Leaving, Name, Offer, Patience, Refusal, Reply,
    Route, Time, WorkKind, WorkerId, WorkerRef,
};
use receipt::{Announced, Receipt};

/// The hub's side of a conversation with a runner.
#[derive(Debug)]
pub struct Manager {
    door: ManagerDoor,
    context: SessionContext,
    heard: WordBuffer,
    stage: ManagerStage,
    /// When the peer must have said something, or it is dropped.
    due: Option<Time>,
    /// Nothing is said before.
    quiet_until: Option<Time>,
    /// From SALUTON on.
    seat: Option<Seat>,
    /// What the hub calls it.
    worker_id: Option<WorkerId>,
    /// From JES until the hub is told that it left.
    renew_at: Option<Time>,
    /// RICEVIS was said to this result. Only the next word shows that it was heard.
    settled: Option<(Bytes, Loan)>,
    /// FINO was said; it is said again to whoever asks.
    is_finished: bool,
}

#[derive(Debug)]
enum ManagerStage {
    /// SALUTON comes next.
    Hail,
    /// KOMPRENAS comes next.
    Version,
    /// JES comes next.
    Group,
    /// The runner speaks when it wants to.
    Waiting,
    /// The hub is asked for work.
    Offering,
    /// PRETA comes next, then this is sent.
    Lending(Bytes),
    /// The hub is asked whether it knows of this.
    Recalling(Announced),
    Receiving(Receipt),
    /// The hub is told a result.
    Reporting,
    Over,
}

/// What the hub's answers are about.
mod tag {
    pub(super) const JOIN: u64 = 1;
    pub(super) const OFFER: u64 = 2;
    pub(super) const REPORT: u64 = 3;
    /// Answers that change nothing here.
    pub(super) const ASIDE: u64 = 4;
    pub(super) const RECALL: u64 = 5;
}

/// Without a sign of life for so long a worker is gone, also when the hub was started anew meanwhile.
const PERIOD_MS: u64 = 60_000;
const RENEW_MS: u64 = 20_000;

impl Manager {
    pub(super) fn new(door: ManagerDoor, context: SessionContext) -> Manager {
        Manager {
            door,
            context,
            heard: WordBuffer::default(),
            stage: ManagerStage::Hail,
            due: None,
            quiet_until: None,
            seat: None,
            worker_id: None,
            renew_at: None,
            settled: None,
            is_finished: false,
        }
    }

    /// Who is at the other end, once it has said so.
    pub fn runner(&self) -> Option<&Name> {
        self.seat.as_ref().map(|seat| &seat.name)
    }

    /// Goes on as far as what was heard allows.
    fn go_on(&mut self, now: Time, out: &mut Output) {
        while out.hang_up.is_none() {
            match &mut self.stage {
                // It may lose its patience, too.
                ManagerStage::Offering if self.heard.is_farewell() => self.say_farewell(out),
                ManagerStage::Offering
                | ManagerStage::Recalling(_)
                | ManagerStage::Reporting
                | ManagerStage::Over => break,
                ManagerStage::Receiving(receipt) => {
                    if receipt.take(&mut self.heard, out) {
                        self.due = Some(now.after_ms(self.door.limits.exchange_ms));
                    }
                    if !receipt.is_complete() || self.quiet_until.is_some() {
                        break;
                    }
                    self.report(now, out);
                }
                ManagerStage::Hail
                | ManagerStage::Version
                | ManagerStage::Group
                | ManagerStage::Waiting
                | ManagerStage::Lending(_) => match self.heard.runner_word() {
                    Ok(Some(word)) => {
                        out.heard += 1;
                        self.hear(word, now, out);
                    }
                    Ok(None) if self.heard.may_become(self.stage.words()) => break,
                    Ok(None) => {
                        let (said, due) = (self.heard.shown(), self.stage.expects());
                        out.malformed(format!("it said `{said}` where {due} was due"));
                    }
                    Err(error) => out.malformed(error.to_string()),
                },
            }
        }
        if self.heard.len() > MESSAGE_BYTES_MAX {
            out.malformed("it continues to send while it should wait for an answer");
        }
        // Half a word has to become a whole one.
        if matches!(self.stage, ManagerStage::Waiting)
            && self.due.is_none()
            && !self.heard.is_empty()
        {
            self.due = Some(now.after_ms(self.door.limits.exchange_ms));
        }
    }

    fn hear(&mut self, word: RunnerWord, now: Time, out: &mut Output) {
        if let Some((name, loan)) = self.settled.take() {
            self.seat().end_loan(&name, &loan);
        }
        match (&mut self.stage, word) {
            (ManagerStage::Hail, RunnerWord::Saluton(host)) => {
                self.seat = Some(self.door.roll.seat(&host, self.context.peer));
                say(out, &ManagerWord::Versio(Bytes::from_static(VERSION.as_bytes())));
                self.stage = ManagerStage::Version;
            }
            (ManagerStage::Version, RunnerWord::Komprenas) => {
                say(out, &ManagerWord::Aligi(self.door.group.clone()));
                self.stage = ManagerStage::Group;
            }
            (ManagerStage::Group, RunnerWord::Jes) => self.join(now, out),
            (ManagerStage::Waiting, RunnerWord::Peto) => self.ask_for_work(out),
            (ManagerStage::Waiting, RunnerWord::Rezulto { name, is_good, size }) => {
                self.announced(Announced { name, is_good, size }, now, out);
            }
            (ManagerStage::Waiting, RunnerWord::FinoAnkau) => self.say_farewell(out),
            (ManagerStage::Lending(body), RunnerWord::Preta) => {
                if !body.is_empty() {
                    out.say_message(body);
                }
                self.wait();
            }
            (stage, word) => {
                let stage = stage.expects();
                out.malformed(format!("it said `{word}` where {stage} was due"));
            }
        }
    }

    fn wait(&mut self) {
        self.stage = ManagerStage::Waiting;
        self.due = None;
    }

    fn seat(&self) -> &Seat {
        self.seat.as_ref().expect("a seat is taken with the first word")
    }

    fn worker(&self) -> WorkerRef {
        WorkerRef::Name { group: self.context.group.clone(), name: self.seat().name.clone() }
    }

    fn join(&mut self, now: Time, out: &mut Output) {
        let seat = self.seat();
        let join = Join {
            group: self.context.group.clone(),
            name: seat.name.clone(),
            dialect: "runexp",
            session: self.context.session,
            life: None,
            kinds: Kinds::of(&[WorkKind::Script, WorkKind::Command]),
            tags: Vec::new(),
            capacity: Capacity::slots(1),
            period_ms: (!self.door.is_watched).then_some(PERIOD_MS),
            // It cannot say what it runs. What it was given before goes to whoever asks first, and its result
            // counts all the same if it comes before that.
            running: Some(Vec::new()),
            acknowledges: false,
            host: Default::default(),
        };
        out.ask(tag::JOIN, Command::Join(join));
        seat.take_up_left(now);
        self.renew_at = Some(match self.door.is_watched {
            true => Time::NEVER,
            false => now.after_ms(RENEW_MS),
        });
        self.wait();
    }

    fn ask_for_work(&mut self, out: &mut Output) {
        if self.seat().is_ejected() {
            say(out, &ManagerWord::Eliri);
        } else if self.is_finished {
            say(out, &ManagerWord::Fino);
        } else if self.seat().lent_count() >= self.door.limits.lent {
            say(out, &ManagerWord::Atendi);
        } else {
            self.offer(self.patience(), out);
        }
        self.due = None;
    }

    /// Until a job comes back from another runner, or all is done.
    pub(super) fn patience(&self) -> Patience {
        match self.seat().lent_count() {
            0 => Patience::Until(Time::NEVER),
            _ => Patience::None,
        }
    }

    pub(super) fn offer(&mut self, patience: Patience, out: &mut Output) {
        let route = Route::Answer { most: 1, patience };
        let offer = Offer { worker: self.worker(), route, lease_ms: None };
        out.ask(tag::OFFER, Command::Offer(offer));
        self.stage = ManagerStage::Offering;
    }

    fn answer(&mut self, now: Time, reply: Reply, out: &mut Output) {
        let word = match reply {
            Reply::Work { grants, .. } => {
                if let Some(seat) = &mut self.seat {
                    seat.note_pardoned();
                }
                self.lend(now, grants, out);
                return;
            }
            // Somebody may submit something.
            Reply::Nothing(Idle::Finished) if self.door.stays && self.seat().lent_count() == 0 => {
                self.offer(Patience::Always(Time::NEVER), out);
                return;
            }
            Reply::Nothing(Idle::Finished | Idle::Own) if self.door.stays => ManagerWord::Atendi,
            // What runs here comes back with this runner or not at all: nobody need stay for it.
            Reply::Nothing(Idle::Finished | Idle::Own | Idle::Draining) => {
                self.is_finished = true;
                ManagerWord::Fino
            }
            Reply::Nothing(Idle::Later | Idle::OnHold | Idle::Fresh)
            | Reply::Refused(Refusal::Limit { .. }) => ManagerWord::Atendi,
            Reply::Nothing(Idle::Ejected) => {
                if let Some(seat) = &mut self.seat {
                    seat.note_ejected();
                }
                ManagerWord::Eliri
            }
            Reply::Refused(refusal) => {
                out.hang_up(HangUp::Denied(refusal.to_string()));
                return;
            }
            other => unreachable!("an offer is not answered with {other:?}"),
        };
        say(out, &word);
        self.wait();
    }

    fn say_farewell(&mut self, out: &mut Output) {
        self.leave(Leaving::Gone, out);
        self.seat().forget_lent();
        self.stage = ManagerStage::Over;
        out.hang_up(HangUp::Finished);
    }

    fn leave(&mut self, how: Leaving, out: &mut Output) {
        if self.renew_at.take().is_some() {
            let session = Some(self.context.session);
            let leave = Leave { worker: self.worker(), session, how };
            out.ask(tag::ASIDE, Command::Leave(leave));
        }
    }
}

impl Session for Manager {
    fn open(&mut self, now: Time, _: &mut Output) {
        self.due = Some(now.after_ms(self.door.limits.handshake_ms));
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        self.heard.take_in(input);
        self.go_on(now, out);
    }

    fn deliver(&mut self, now: Time, delivery: Delivery, out: &mut Output) {
        // There is no word to end a job or to lower a number of slots: its result is refused when it comes,
        // and nothing more is handed out.
        let Delivery::Reply { tag, reply } = delivery else { return };
        match (tag, reply) {
            (tag::OFFER, reply) if matches!(self.stage, ManagerStage::Offering) => {
                self.answer(now, reply, out);
            }
            // Counted or not, the exchange is completed: the runner has done its part.
            (tag::REPORT, _) if matches!(self.stage, ManagerStage::Reporting) => {
                say(out, &ManagerWord::Ricevis);
                self.wait();
            }
            (tag::RECALL, reply) if matches!(self.stage, ManagerStage::Recalling(_)) => {
                self.recalled(reply, now, out);
            }
            (tag::JOIN, Reply::Joined { worker, .. }) => self.worker_id = Some(worker),
            (tag::JOIN, Reply::Refused(refusal)) => {
                out.hang_up(HangUp::Denied(refusal.to_string()));
            }
            _ => {}
        }
        self.go_on(now, out);
    }

    fn deadline(&self) -> Option<Time> {
        [self.due, self.quiet_until, self.renew_at].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Time, out: &mut Output) {
        if self.quiet_until.is_some_and(|until| until <= now) {
            self.quiet_until = None;
            self.go_on(now, out);
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            match self.heard.is_empty() {
                true => out.hang_up(HangUp::Silent),
                false => {
                    let said = self.heard.shown();
                    out.malformed(format!("it said `{said}` and not the rest of it in time"));
                }
            }
        }
        if self.renew_at.is_some_and(|at| at <= now) {
            out.ask(tag::ASIDE, Command::Renew(self.worker()));
            self.renew_at = Some(now.after_ms(RENEW_MS));
        }
    }

    fn close(&mut self, now: Time, out: &mut Output) {
        // Lost with its worker: such a job is tried again, but not for ever.
        self.leave(Leaving::Away { grace_ms: 0 }, out);
        if let Some(seat) = self.seat.take() {
            seat.leave(now);
        }
        self.stage = ManagerStage::Over;
        (self.due, self.quiet_until) = (None, None);
    }
}

impl ManagerStage {
    /// What each word begins with that may come now.
    fn words(&self) -> &'static [&'static [u8]] {
        match self {
            ManagerStage::Hail => &[b"SALUTON; MI "],
            ManagerStage::Version => &[b"KOMPRENAS"],
            ManagerStage::Group => &[b"JES"],
            ManagerStage::Waiting => &[b"PETO", b"REZULTO ", b"FINO ANKAU"],
            ManagerStage::Lending(_) => &[b"PRETA"],
            ManagerStage::Offering
            | ManagerStage::Recalling(_)
            | ManagerStage::Receiving(_)
            | ManagerStage::Reporting
            | ManagerStage::Over => &[],
        }
    }

    fn expects(&self) -> &'static str {
        match self {
            ManagerStage::Hail => "SALUTON",
            ManagerStage::Version => "KOMPRENAS",
            ManagerStage::Group => "JES",
            ManagerStage::Waiting => "PETO, REZULTO or FINO ANKAU",
            ManagerStage::Lending(_) => "PRETA",
            ManagerStage::Receiving(_) => "a result",
            ManagerStage::Offering
            | ManagerStage::Recalling(_)
            | ManagerStage::Reporting
            | ManagerStage::Over => "nothing",
        }
    }
}

fn say(out: &mut Output, word: &ManagerWord) {
    word.write(&mut out.say);
    out.end_message();
}
