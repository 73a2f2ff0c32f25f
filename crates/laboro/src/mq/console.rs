//! Commands that a person types, one a line: with editing and history on a terminal, read plainly from
//! anything else. The next line is asked for when the last one is done, so that answers stand where they
//! belong. What the commands mean is not known here.

use crate::output::say;
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{Config, Editor};
use std::io::{BufRead, IsTerminal};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// A line longer than this is no command of ours.
const LINE_BYTES_MAX: u64 = 64 << 10;

pub(super) struct Console {
    lines: Receiver<String>,
    /// Told when the next line is wanted.
    go_on: Sender<()>,
}

impl Console {
    /// Begins to read. Reading from a terminal cannot be called off, so its thread is left to itself: it
    /// ends with its input or with the program.
    pub(super) fn open(prompt: &'static str) -> std::io::Result<Console> {
        let (said, lines) = channel(1);
        let (go_on, wanted) = channel(1);
        let reader = Reader { said, wanted };
        std::thread::Builder::new().name("console".into()).spawn(move || match std::io::stdin()
            .is_terminal()
        {
            true => reader.edit(prompt),
            false => reader.read(),
        })?;
        Ok(Console { lines, go_on })
    }

    /// The words of the next line that has some; `None` at the end of input.
    pub(super) async fn next(&mut self) -> Option<Vec<String>> {
        loop {
            // Full when it was told before and this was dropped while waiting; gone at the end of input.
            let _ = self.go_on.try_send(());
            let line = self.lines.recv().await?;
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            if !words.is_empty() {
                return Some(words);
            }
        }
    }
}

struct Reader {
    said: Sender<String>,
    wanted: Receiver<()>,
}

impl Reader {
    fn edit(mut self, prompt: &str) {
        let editor = Editor::<(), MemHistory>::with_history(Config::default(), MemHistory::new());
        let Ok(mut editor) = editor else { return self.read() };
        while self.wanted.blocking_recv().is_some() {
            match editor.readline(prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    if self.said.blocking_send(line).is_err() {
                        return;
                    }
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => return,
                Err(error) => return say(format_args!("laboro: the console ends: {error}")),
            }
        }
    }

    fn read(mut self) {
        let mut input = std::io::stdin().lock();
        while self.wanted.blocking_recv().is_some() {
            let mut line = Vec::new();
            let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX);
            match limited.read_until(b'\n', &mut line) {
                Ok(0) => return,
                Ok(_) => {
                    let line = String::from_utf8_lossy(&line).into_owned();
                    if self.said.blocking_send(line).is_err() {
                        return;
                    }
                }
                Err(error) => return say(format_args!("laboro: the console ends: {error}")),
            }
        }
    }
}

/// For a word that is no command here.
pub(super) fn unknown(word: &str, commands: &str) {
    say(format_args!("there is no command {word}; there are {commands}"));
}
