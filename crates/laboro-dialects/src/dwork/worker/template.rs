//! What a worker runs for a task: a command in which the task's name is filled in. A name is one word, whatever it
//! contains; no shell ever sees it.

use laboro_core::{CommandWork, Program, Setting, Work};
use std::sync::Arc;

/// A command line in which a task's name is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    words: Vec<Word>,
    setting: Arc<Setting>,
}

/// The pieces between which the name stands.
type Word = Vec<Box<[u8]>>;

/// Why words are not a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TemplateError {
    #[error("there is no command to run for a task")]
    Empty,
}

impl Template {
    /// `{}` and `{name}` stand for the task's name; where neither is there, the name is the last argument.
    pub fn new<W: AsRef<[u8]>>(
        words: impl IntoIterator<Item = W>,
        setting: Setting,
    ) -> Result<Template, TemplateError> {
        let mut words: Vec<Word> = words.into_iter().map(|word| pieces(word.as_ref())).collect();
        if words.is_empty() {
            return Err(TemplateError::Empty);
        }
        if words.iter().all(|word| word.len() == 1) {
            words.push(vec![Box::default(), Box::default()]);
        }
        Ok(Template { words, setting: Arc::new(setting) })
    }

    /// What to run for the task of this name.
    pub fn fill(&self, name: &[u8]) -> Arc<Work> {
        let fill = |word: &Word| word.join(name).into_boxed_slice();
        let program = Program::Argv(self.words.iter().map(fill).collect());
        Arc::new(Work::Command(CommandWork { program, setting: self.setting.clone() }))
    }
}

fn pieces(word: &[u8]) -> Word {
    let mut pieces = Vec::new();
    let mut piece = Vec::new();
    let mut rest = word;
    while let Some((&byte, after)) = rest.split_first() {
        let found = [&b"{}"[..], b"{name}"].into_iter().find_map(|mark| rest.strip_prefix(mark));
        match found {
            Some(after) => {
                pieces.push(std::mem::take(&mut piece).into());
                rest = after;
            }
            None => {
                piece.push(byte);
                rest = after;
            }
        }
    }
    pieces.push(piece.into());
    pieces
}
