//! A command with its values on the command line, in the manner of GNU parallel: `prog {} ::: a b c`,
//! several `:::` lists, `:::: file`, values from a pipe, or a range. A command of several words runs without a
//! shell; one word with blanks or shell syntax in it is a shell line. Options before `--` are the program's affair.

use std::ffi::OsString;
use std::io::BufRead;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::lines::{Ending, parse_list, read_list};
use crate::mistake::Position;
use crate::plan::{Array, Part, Plan, PlanError, Task};
use crate::settings::{Settings, TextKind};
use crate::template::{Filling, ShellError, Template, Vocabulary, is_shell_syntax};
use crate::values::{Column, List, Numbers, Pairing, Values, ValuesError};
use crate::work::Work;

#[derive(Debug, Error)]
pub enum ArgumentError {
    #[error("no command: write what to run after `--`")]
    NoCommand,
    #[error("`{0}` is followed by no values")]
    NoValues(String),
    #[error("`::::` needs the name of a file with one value a line")]
    NoFile,
    #[error("{0} has no values in it")]
    EmptyFile(String),
    #[error("no values came from the pipe")]
    EmptyPipe,
    #[error("values come from the range and from `:::`: keep one of them")]
    RangeAndLists,
    #[error(
        "values from a pipe were asked for, but there is no pipe to read or it was read before"
    )]
    NoPipe,
    #[error("{0}: give each list the same number")]
    Unequal(ValuesError),
    #[error(transparent)]
    Values(#[from] ValuesError),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// What stands after `--`: a command and where its values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentForm {
    pub command: Vec<OsString>,
    pub sources: Vec<ValueSource>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueSource {
    /// `::: a b c`
    List(Vec<OsString>),
    /// `:::: file`
    File(PathBuf),
    /// `:::: -`
    Pipe,
}

/// What the options before `--` say of it.
#[derive(Debug, Clone, Default)]
pub struct ArgumentOptions {
    /// Empty: tasks are called `1`, `2`, `3` …
    pub name: String,
    pub array: Option<Numbers>,
    pub pairing: Pairing,
    /// How values from a pipe end.
    pub ending: Ending,
    /// Texts may hold placeholders.
    pub settings: Settings,
}

impl ArgumentForm {
    pub fn parse(words: &[OsString]) -> Result<ArgumentForm, ArgumentError> {
        let is_mark = |word: &OsString| word == ":::" || word.as_bytes().starts_with(b"::::");
        let end = words.iter().position(is_mark).unwrap_or(words.len());
        let mut sources = Vec::new();
        let mut rest = &words[end..];
        while let Some((mark, after)) = rest.split_first() {
            let count = after.iter().position(is_mark).unwrap_or(after.len());
            let (values, next) = after.split_at(count);
            rest = next;
            if mark == ":::" {
                if values.is_empty() {
                    return Err(ArgumentError::NoValues(":::".to_owned()));
                }
                sources.push(ValueSource::List(values.to_vec()));
                continue;
            }
            let glued = OsString::from_vec(mark.as_bytes()[4..].to_vec());
            let files: Vec<_> = Some(glued).into_iter().filter(|file| !file.is_empty()).collect();
            if files.is_empty() && values.is_empty() {
                return Err(ArgumentError::NoFile);
            }
            sources.extend(files.iter().chain(values).map(|file| match file.as_bytes() {
                b"-" => ValueSource::Pipe,
                _ => ValueSource::File(PathBuf::from(file)),
            }));
        }
        let command = words[..end].to_vec();
        if command.is_empty() && sources.is_empty() {
            return Err(ArgumentError::NoCommand);
        }
        Ok(ArgumentForm { command, sources })
    }

    /// Whether the command has a `{…}` that only values could fill, so that a pipe must be meant.
    pub fn has_placeholder(&self) -> bool {
        let probe = Values::numbers(Numbers::new(1, 1, 1).expect("one is a range"));
        let vocabulary = Vocabulary::Values(&probe);
        self.command
            .iter()
            .any(|word| Template::plain(word.as_bytes(), vocabulary).has_placeholder())
    }

    /// `pipe` is read only if the form or its caller says that values come from it: by `:::: -`, or by
    /// giving a pipe to a form that has neither lists nor a range.
    pub fn plan(
        &self,
        options: &ArgumentOptions,
        pipe: Option<&mut dyn BufRead>,
    ) -> Result<Plan, ArgumentError> {
        let mut plan = Plan::new("arguments");
        let part = match self.values(options, pipe)? {
            Some(values) => self.array(options, values)?,
            None => self.task(options)?,
        };
        plan.parts.push(part);
        plan.validate().map_err(PlanError::from)?;
        Ok(plan)
    }

    fn values(
        &self,
        options: &ArgumentOptions,
        mut pipe: Option<&mut dyn BufRead>,
    ) -> Result<Option<Values>, ArgumentError> {
        if let Some(numbers) = options.array {
            return match self.sources.is_empty() {
                true => Ok(Some(Values::numbers(numbers))),
                false => Err(ArgumentError::RangeAndLists),
            };
        }
        let implied = [ValueSource::Pipe];
        let sources = match (&pipe, self.sources.as_slice()) {
            (None, []) => return Ok(None),
            (Some(_), []) => &implied,
            (_, sources) => sources,
        };
        let columns = sources.iter().map(|source| source.column(options.ending, &mut pipe));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        match Values::new(columns, options.pairing) {
            Ok(values) => Ok(Some(values)),
            Err(error @ ValuesError::Unequal(..)) => Err(ArgumentError::Unequal(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn array(&self, options: &ArgumentOptions, values: Values) -> Result<Part, ArgumentError> {
        let vocabulary = Vocabulary::Values(&values);
        let template = match self.command.as_slice() {
            [] => Work::Shell { line: Template::value_itself() },
            [word] if is_shell_syntax(word.as_bytes()) => shell_line(word.as_bytes(), vocabulary)?,
            words => {
                let parse = |word: &OsString| Template::plain(word.as_bytes(), vocabulary);
                let mut arguments: Vec<_> = words.iter().map(parse).collect();
                if !arguments.iter().any(Template::has_placeholder) {
                    arguments.push(Template::plain(b"{}", vocabulary));
                }
                Work::Argv(arguments)
            }
        };
        let settings = options.settings.map(|text, _| Template::plain(text.as_bytes(), vocabulary));
        Ok(Part::Array(Box::new(Array {
            name: options.name.clone(),
            values,
            template,
            after: Vec::new(),
            settings,
            at: Position::default(),
        })))
    }

    fn task(&self, options: &ArgumentOptions) -> Result<Part, ArgumentError> {
        let name = if options.name.is_empty() { "1" } else { &options.name };
        let filling = Filling { name, index: 1, row: Vec::new(), is_range: false };
        let settings = Arc::new(options.settings.map(|text, kind| match kind {
            TextKind::Path => Template::plain(text.as_bytes(), Vocabulary::NameOnly).fill(&filling),
            TextKind::Free => text.clone(),
        }));
        let work = match self.command.as_slice() {
            [] => return Err(ArgumentError::NoCommand),
            [word] if is_shell_syntax(word.as_bytes()) => Work::Shell { line: word.clone() },
            words => Work::Argv(words.to_vec()),
        };
        let (name, after) = (name.to_owned(), Vec::new());
        Ok(Part::Task(Task { name, work, after, settings, at: Position::default() }))
    }
}

fn shell_line(line: &[u8], vocabulary: Vocabulary<'_>) -> Result<Work<Template>, ShellError> {
    let mut template = Template::shell(line, vocabulary)?;
    if !template.has_placeholder() {
        template = Template::shell(&[line, b" {}"].concat(), vocabulary)?;
    }
    Ok(Work::Shell { line: template })
}

impl ValueSource {
    fn column(
        &self,
        ending: Ending,
        pipe: &mut Option<&mut dyn BufRead>,
    ) -> Result<Column, ArgumentError> {
        let list = match self {
            ValueSource::List(values) => {
                let mut list = List::default();
                for value in values {
                    list.push(value.as_bytes())?;
                }
                list
            }
            ValueSource::File(path) => {
                let list = read_list(path)?;
                if list.is_empty() {
                    return Err(ArgumentError::EmptyFile(path.display().to_string()));
                }
                list
            }
            ValueSource::Pipe => {
                let reader = pipe.take().ok_or(ArgumentError::NoPipe)?;
                let list = parse_list("stdin", reader, ending)?;
                if list.is_empty() {
                    return Err(ArgumentError::EmptyPipe);
                }
                list
            }
        };
        Ok(Column::list(list))
    }
}
