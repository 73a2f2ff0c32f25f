//! Condenses a journal: adds its records up in a ledger apart from the hub's, and writes that down in
//! records of bounded size.

use crate::log::{Fold, Piece};
use crate::record::Encoder;
use crate::replay::Replay;
use laboro_core::restore::{Restore, RestoredExtra, RestoredTask, RestoredTasks};
use laboro_core::{Event, Ledger, Program, Stdin, Time, Work};
use std::io;

const RECORD_BYTES: usize = 256 << 10;
/// The ledger's pieces are bounded by number. Tasks with long scripts are cut further.
const PIECE_BYTES: usize = 4 << 20;

#[derive(Debug, Default)]
pub(super) struct LedgerFold {
    replay: Replay,
}

impl Fold for LedgerFold {
    fn absorb(&mut self, _: Piece, _: u64, payload: &[u8]) -> Result<(), String> {
        self.replay.absorb(payload)
    }

    fn emit(self: Box<Self>, sink: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> Result<(), String> {
        self.replay.condense(sink).map_err(|error| error.to_string())
    }
}

pub(crate) fn condense(
    ledger: &Ledger,
    at: Time,
    sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut records = Records::new(at, sink);
    ledger.condense(&mut |event| records.add(event));
    records.finish()
}

/// Groups events into records. They go on from one another, so that what tasks share is there once.
struct Records<'a> {
    at: Time,
    encoder: Encoder,
    is_begun: bool,
    sink: &'a mut dyn FnMut(&[u8]) -> io::Result<()>,
    result: io::Result<()>,
}

impl<'a> Records<'a> {
    fn new(at: Time, sink: &'a mut dyn FnMut(&[u8]) -> io::Result<()>) -> Records<'a> {
        let mut encoder = Encoder::default();
        encoder.begin(at);
        Records { at, encoder, is_begun: false, sink, result: Ok(()) }
    }

    fn add(&mut self, event: Event) {
        if let Event::Restored(piece) = &event
            && let Restore::Tasks(tasks) = &**piece
            && tasks.tasks.iter().map(weight).sum::<usize>() > PIECE_BYTES
        {
            return cut(tasks).for_each(|piece| self.write(&Event::Restored(Box::new(piece))));
        }
        self.write(&event);
    }

    fn write(&mut self, event: &Event) {
        // The ledger cannot be told to stop; after an error the rest goes nowhere.
        if self.result.is_ok() {
            self.encoder.event(event);
            self.is_begun = true;
            if self.encoder.bytes().len() >= RECORD_BYTES {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        self.result = (self.sink)(self.encoder.bytes());
        self.encoder.go_on(self.at);
        self.is_begun = false;
    }

    fn finish(mut self) -> io::Result<()> {
        if self.is_begun {
            self.flush();
        }
        self.result
    }
}

/// The same tasks in pieces that each weigh little, or have one task.
fn cut(tasks: &RestoredTasks) -> impl Iterator<Item = Restore> {
    let mut rest = &tasks.tasks[..];
    std::iter::from_fn(move || {
        let mut sum = 0;
        let fit = rest.iter().take_while(|task| {
            sum += weight(task);
            sum <= PIECE_BYTES
        });
        let count = fit.count().max(1).min(rest.len());
        let (piece, left) = rest.split_at(count);
        rest = left;
        let (job, profiles) = (tasks.job, tasks.profiles.clone());
        let piece = RestoredTasks { job, profiles, tasks: piece.to_vec() };
        (count > 0).then(|| Restore::Tasks(Box::new(piece)))
    })
}

/// About what a task takes when it shares nothing.
fn weight(task: &RestoredTask) -> usize {
    let work = match task.work.as_deref() {
        None | Some(Work::Named) => 0,
        Some(Work::Command(command)) => match &command.program {
            Program::Argv(words) => words.weight(),
            Program::Shell(line) => line.len(),
        },
        Some(Work::Script(script)) => script.body.len(),
        Some(Work::Indexed(indexed)) => {
            indexed.program.len() + indexed.dir.len() + indexed.log_dir.len()
        }
        Some(Work::Call(call)) => call.payload.len(),
    };
    let setting = task.work.as_deref().and_then(Work::setting).map_or(0, |setting| {
        let env = setting.env.iter().map(|(name, value)| name.len() + value.len());
        let stdin = if let Stdin::Text(text) = &setting.stdin { text.len() } else { 0 };
        env.sum::<usize>() + stdin
    });
    let extra = task.extra.as_deref().map_or(0, |RestoredExtra { memo, message, .. }| {
        memo.as_ref().map_or(0, |memo| memo.len())
            + message.as_ref().map_or(0, |message| message.len())
    });
    task.name.len() + work + setting + extra
}
