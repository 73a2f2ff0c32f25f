//! The runner's side: works for a manager, ours or an original one. One exchange at a time on one connection,
//! results before requests. An original reads whatever comes at once as one message, so
//! where nothing is said in between two words of ours a short pause keeps them apart.

mod incoming;
mod job;

use super::door::Success;
use super::words::{RunnerWord, WordBuffer};
use super::{DEFAULT_GROUP, VERSION};
use crate::worker::{Key, News, Order, Orders, Parting, WorkerSide};
use bytes::{Bytes, BytesMut};
use job::{Handover, Running};
use laboro_core::{Time, counted};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;

/// What a runner says of itself, and its times and limits.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// Letters, digits, `-` and `_`; anything else is left out when it is said.
    pub host: String,
    /// The one that it wants to work for.
    pub group: String,
    /// How many jobs run at once.
    pub slots: u32,
    /// The versions of the protocol that are accepted.
    pub versions: Vec<String>,
    /// What makes a result a good one.
    pub success: Success,
    /// Between JES and the first PETO.
    pub first_pause_ms: u64,
    /// After a job without a body was taken.
    pub empty_pause_ms: u64,
    /// After ATENDI, unless a job of our own is handed in before.
    pub hold_ms: u64,
    /// A manager that owes an answer for so long is gone, but for the answer to PETO: a runner that has nothing to do
    /// may have to wait for it.
    pub exchange_ms: u64,
    /// The longest script that is taken.
    pub job_bytes_max: u64,
    /// Of what one job prints; the rest is counted and left out.
    pub output_bytes_max: usize,
}

impl RunnerOptions {
    /// A runner on this host; everything else is a default.
    pub fn new(host: &str, slots: u32) -> RunnerOptions {
        RunnerOptions {
            host: sayable_host(host),
            group: DEFAULT_GROUP.to_owned(),
            slots: slots.max(1),
            versions: vec![VERSION.to_owned()],
            success: Success::ResLine,
            first_pause_ms: 55,
            empty_pause_ms: 20,
            hold_ms: 10_000,
            exchange_ms: 60_000,
            job_bytes_max: 64 << 20,
            output_bytes_max: 16 << 20,
        }
    }
}

/// A runner of a runexp manager, ours or an original.
#[derive(Debug)]
pub struct Runner {
    options: RunnerOptions,
    heard: WordBuffer,
    stage: RunnerStage,
    /// When the manager must have answered.
    due: Option<Time>,
    /// Nothing is said before.
    quiet_until: Option<Time>,
    /// No work is asked for before.
    hold_until: Option<Time>,
    running: BTreeMap<Key, Running>,
    /// The first one is being handed in.
    results: VecDeque<Handover>,
    /// Given up with the last connection, and nobody was told yet.
    unwanted: Option<Handover>,
    given_up: u32,
    next_key: u64,
    /// No more work is asked for, for this reason.
    end: Option<End>,
    /// The worker wants to, whatever is still to be done.
    is_leaving: bool,
    may_ask: Option<MayAsk>,
}

/// Asked before each request for work.
struct MayAsk(Box<dyn FnMut() -> bool + Send>);

impl std::fmt::Debug for MayAsk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MayAsk")
    }
}

#[derive(Debug)]
enum RunnerStage {
    Away,
    /// VERSIO comes next.
    Version,
    /// ALIGI comes next.
    Group,
    /// It is our turn.
    Free,
    /// PETO was said.
    Asked,
    Taking {
        name: Bytes,
        kind: Bytes,
        left: u64,
        body: BytesMut,
    },
    /// REZULTO was said, PRETA comes next.
    Announced,
    /// RICEVIS comes next.
    Handing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// FINO, or the worker wants to leave.
    Finished,
    /// ELIRI.
    Ejected,
}

/// A result that a connection was lost over so often is given up: the manager does not want it.
const TRIES_MAX: u8 = 3;

/// How long an answer to PETO is waited for by a runner that has a result to hand in.
const ANSWER_MS: u64 = 5000;

/// How long an answer to PETO is waited for before the runner leaves without it.
const FAREWELL_MS: u64 = 1000;

/// Between two looks whether work may be asked for.
const LOOK_AGAIN_MS: u64 = 1000;

impl Runner {
    /// Not connected yet.
    pub fn new(options: RunnerOptions) -> Runner {
        Runner {
            options,
            heard: WordBuffer::default(),
            stage: RunnerStage::Away,
            due: None,
            quiet_until: None,
            hold_until: None,
            running: BTreeMap::new(),
            results: VecDeque::new(),
            unwanted: None,
            given_up: 0,
            next_key: 1,
            end: None,
            is_leaving: false,
            may_ask: None,
        }
    }

    /// No work is asked for while this says no, whatever room there is.
    pub fn asking_if(mut self, may_ask: impl FnMut() -> bool + Send + 'static) -> Runner {
        self.may_ask = Some(MayAsk(Box::new(may_ask)));
        self
    }

    /// Says the next thing, if it is our turn and there is one.
    fn speak(&mut self, now: Time, out: &mut Orders) {
        if !matches!(self.stage, RunnerStage::Free)
            || self.quiet_until.is_some_and(|until| now < until)
        {
            return;
        }
        self.quiet_until = None;
        if let Some(result) = self.results.front() {
            self.say(&result.word(), out);
            self.expect(RunnerStage::Announced, now);
        } else if self.asks(now) {
            self.say(&RunnerWord::Peto, out);
            self.stage = RunnerStage::Asked;
            self.due = self.is_busy().then(|| now.after_ms(self.options.exchange_ms));
        } else if let (Some(end), true) = (self.end, self.running.is_empty()) {
            self.say_farewell(end, out);
        }
    }

    fn say_farewell(&mut self, end: End, out: &mut Orders) {
        self.say(&RunnerWord::FinoAnkau, out);
        self.stage = RunnerStage::Away;
        out.hang_up(match end {
            End::Finished if self.given_up > 0 => {
                let results = counted(self.given_up, "result");
                Parting::Refused(format!("the manager did not accept {results}"))
            }
            End::Finished => Parting::Finished,
            End::Ejected => Parting::Refused(
                "the manager has ejected this runner: too many of its jobs failed".into(),
            ),
        });
    }

    /// The manager knows it, and answers at once.
    fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.results.is_empty()
    }

    fn asks(&mut self, now: Time) -> bool {
        if !self.has_room() || self.hold_until.is_some_and(|until| now < until) {
            return false;
        }
        let may_ask = self.may_ask.as_mut().is_none_or(|MayAsk(may_ask)| may_ask());
        self.hold_until = (!may_ask).then(|| now.after_ms(LOOK_AGAIN_MS));
        may_ask
    }

    fn has_room(&self) -> bool {
        self.end.is_none() && self.running.len() < self.options.slots as usize
    }

    fn expect(&mut self, stage: RunnerStage, now: Time) {
        self.stage = stage;
        self.due = Some(now.after_ms(self.options.exchange_ms));
    }

    fn say(&self, word: &RunnerWord, out: &mut Orders) {
        word.write(&mut out.say);
        out.end_message();
    }

    /// Nothing more is asked for.
    fn finish(&mut self, end: End) {
        self.end.get_or_insert(end);
        self.hold_until = None;
    }
}

impl WorkerSide for Runner {
    fn open(&mut self, now: Time, out: &mut Orders) {
        if let Some(result) = self.unwanted.take() {
            let name = result.name.escape_ascii();
            out.order(Order::Say(format!(
                "the manager ends the connection over the result of `{name}`: given up after {TRIES_MAX} tries"
            )));
        }
        self.say(&RunnerWord::Saluton(self.options.host.clone()), out);
        self.expect(RunnerStage::Version, now);
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Orders) {
        self.heard.take_in(input);
        self.go_on(now, out);
        self.speak(now, out);
    }

    fn tell(&mut self, now: Time, news: News, out: &mut Orders) {
        match news {
            News::Started(key) => {
                if let Some(job) = self.running.get_mut(&key) {
                    job.begin(now);
                }
            }
            // None is taken that would have to wait: it could run elsewhere, and there is no word to give it back.
            News::Ahead(_) => {}
            News::Wrote { key, stream, bytes } => {
                if let Some(job) = self.running.get_mut(&key) {
                    job.take(stream, &bytes, self.options.output_bytes_max);
                }
            }
            News::Ended { key, how } => {
                if let Some(job) = self.running.remove(&key) {
                    let result = job.end(&how, now, &self.options);
                    self.results.push_back(result);
                    // A manager that was started anew does not know that we have jobs, and lets us wait.
                    if matches!(self.stage, RunnerStage::Asked) {
                        let soon = now.after_ms(ANSWER_MS);
                        self.due = Some(self.due.map_or(soon, |due| due.min(soon)));
                    }
                }
            }
            News::Returned(key) => {
                // There is no word to give a job back. Once we leave, the manager hands out again whatever has
                // no result; until then it is still ours to run.
                if let Some(job) = self.running.remove(&key)
                    && !self.is_leaving
                {
                    self.begin(job, out);
                }
            }
            News::Draining | News::Leaving => {
                self.is_leaving = true;
                self.finish(End::Finished);
                // Nobody waits for a job that will not be run; but the answer may be on its way.
                if matches!(self.stage, RunnerStage::Asked) && !self.is_busy() {
                    self.due = Some(now.after_ms(FAREWELL_MS));
                }
            }
        }
        self.speak(now, out);
    }

    fn launching(&mut self, key: Key, words: &[OsString]) {
        if let Some(job) = self.running.get_mut(&key) {
            job.launching(words);
        }
    }

    fn deadline(&self) -> Option<Time> {
        let our_turn = matches!(self.stage, RunnerStage::Free);
        let would_ask = self.results.is_empty() && self.has_room();
        let quiet = self.quiet_until.filter(|_| our_turn);
        let hold = self.hold_until.filter(|_| our_turn && would_ask);
        // Who must be quiet anyway need not be woken before.
        [self.due, quiet.max(hold).or(hold)].into_iter().flatten().min()
    }

    fn tick(&mut self, now: Time, out: &mut Orders) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            match self.end {
                Some(end) if matches!(self.stage, RunnerStage::Asked) && !self.is_busy() => {
                    self.say_farewell(end, out);
                }
                _ => out.hang_up(Parting::Again("the manager does not answer".into())),
            }
            return;
        }
        self.speak(now, out);
    }

    fn lost(&mut self, _: Time) {
        if matches!(self.stage, RunnerStage::Announced | RunnerStage::Handing)
            && let Some(result) = self.results.front_mut()
        {
            result.tries += 1;
            if result.tries >= TRIES_MAX {
                self.unwanted = self.results.pop_front();
                self.given_up += 1;
            }
        }
        self.stage = RunnerStage::Away;
        self.heard = WordBuffer::default();
        (self.due, self.quiet_until, self.hold_until) = (None, None, None);
    }

    /// A result is said only when its job has ended, so what running jobs print must not stop their pipes.
    fn unsaid(&self) -> usize {
        self.results.iter().map(|result| result.body.len()).sum()
    }

    fn takes_back(&self) -> bool {
        false
    }

    fn is_settled(&self) -> bool {
        self.results.is_empty()
    }
}

/// A host name as the dialect has it: no dots.
fn sayable_host(host: &str) -> String {
    let first = host.split('.').next().unwrap_or_default();
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let host: String = first.chars().filter(allowed).take(255).collect();
    if host.is_empty() { "laboro".to_owned() } else { host }
}

impl Order {
    fn welcome(name: &str) -> Order {
        Order::Welcome { name: name.to_owned() }
    }
}
