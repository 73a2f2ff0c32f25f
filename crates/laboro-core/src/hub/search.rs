//! Checks for cycles that take long go on in slices, between which others are served. What would make edges or
//! forget tasks meanwhile waits behind them, in order. How a cycle is found is in `submit/cycle`.

use super::Hub;
use super::submit::{Check, Node, Verdict};
use crate::command::Command;
use crate::effect::Effect;
use crate::id::Token;
use crate::refusal::Refusal;
use crate::reply::Reply;
use std::collections::VecDeque;

/// Commands that wait for one that is being checked. Beyond these they are refused.
const WAITING_MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Searching {
    now: Option<(Token, Long)>,
    waiting: VecDeque<(Token, Command)>,
    /// How much may still be looked at in this step.
    visits: usize,
}

/// A command whose check is not over; the command itself has changed nothing.
#[derive(Debug)]
pub(super) struct Long {
    pub(super) command: Command,
    pub(super) check: Check,
}

/// Why a command has no answer of its own.
pub(super) enum Halt {
    Refused(Refusal),
    Long(Box<Long>),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Halt {
        Halt::Refused(refusal)
    }
}

/// How a command that makes edges is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CycleCheck {
    ByLevel,
    Exact,
    /// It was found to be right before. Edges that were planned then may have become needless, none are new.
    Past,
}

impl Hub {
    pub(super) fn begin_slice(&mut self) {
        self.searching.visits = self.config.limits.cycle_search;
    }

    pub(super) fn is_searching(&self) -> bool {
        self.searching.now.is_some()
    }

    /// Runs a check as far as this step allows.
    fn run_check(&mut self, check: &mut Check) -> Option<Verdict> {
        check.run(&mut self.ledger, &mut self.searching.visits)
    }

    /// Checks a command that makes edges. A check that takes longer than this step allows is given back, to be kept
    /// with the command.
    pub(super) fn check_edges(
        &mut self,
        how: CycleCheck,
        by_level: impl FnOnce(&Hub) -> Option<Check>,
        exactly: impl FnOnce(&Hub) -> Result<(), Refusal>,
    ) -> Result<Option<Check>, Refusal> {
        match how {
            CycleCheck::Past => return Ok(None),
            CycleCheck::Exact => exactly(self)?,
            CycleCheck::ByLevel => {
                let Some(mut check) = by_level(self) else { return Ok(None) };
                match self.run_check(&mut check) {
                    Some(Verdict::Acyclic) => {}
                    Some(Verdict::Cycle(node)) => return Err(self.refuse_cycle(node)),
                    Some(Verdict::Unclear) => exactly(self)?,
                    None => return Ok(Some(check)),
                }
            }
        }
        Ok(None)
    }

    fn refuse_cycle(&self, node: Node) -> Refusal {
        let Node::There(handle) = node else { unreachable!("new tasks are checked by counting") };
        Refusal::Cycle(self.ledger().shown_name(self.ledger().id_of(handle)))
    }

    /// Behind the search that is under way.
    pub(super) fn wait_for_search(&mut self, token: Token, command: Command) -> Option<Reply> {
        if self.searching.waiting.len() == WAITING_MOST {
            let (what, most) = ("commands behind a long search for cycles", WAITING_MOST as u64);
            return Some(Reply::Refused(Refusal::Limit { what, most }));
        }
        self.searching.waiting.push_back((token, command));
        None
    }

    pub(super) fn answer(&mut self, token: Token, result: Result<Reply, Halt>) -> Option<Reply> {
        match result {
            Ok(reply) => Some(reply),
            Err(Halt::Refused(refusal)) => Some(Reply::Refused(refusal)),
            Err(Halt::Long(long)) => {
                self.searching.now = Some((token, *long));
                None
            }
        }
    }

    /// A slice of the search under way, and what waited for it when it is over.
    pub(super) fn search_on(&mut self) {
        while let Some((token, mut long)) = self.searching.now.take() {
            let Some(verdict) = self.run_check(&mut long.check) else {
                self.searching.now = Some((token, long));
                return;
            };
            let result = match verdict {
                Verdict::Cycle(node) => Err(self.refuse_cycle(node).into()),
                Verdict::Acyclic => self.make_edges(long.command, CycleCheck::Past),
                Verdict::Unclear => self.make_edges(long.command, CycleCheck::Exact),
            };
            let reply = self.answer(token, result);
            self.reply(token, reply);
            while !self.is_searching()
                && let Some((token, command)) = self.searching.waiting.pop_front()
            {
                let reply = self.run_command(token, command);
                self.reply(token, reply);
            }
        }
    }

    fn make_edges(&mut self, command: Command, check: CycleCheck) -> Result<Reply, Halt> {
        match command {
            Command::Submit(submit) => self.submit(submit, check),
            Command::Return(back) => self.hand_back(back, check),
            _ => unreachable!("only these are checked for cycles"),
        }
    }

    pub(super) fn reply(&mut self, token: Token, reply: Option<Reply>) {
        if let Some(reply) = reply {
            self.effects.push(Effect::Reply { token, reply });
        }
        self.match_waiting();
    }
}
