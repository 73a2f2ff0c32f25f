//! A command with its values on the command line, in the manner of GNU parallel: `prog {} ::: a b c`,
//! several `:::` lists, `:::+` beside one, `:::: file`, values from a pipe, or a range. A command of several words runs without a
//! shell; one word with blanks or shell syntax in it is a shell line. Options before `--` are the program's affair.

mod table;

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
use crate::template::{
    Filling, Misread, ShellError, Template, Vocabulary, is_shell_syntax, misread,
};
use crate::values::{Column, List, Numbers, Pairing, Values, ValuesError};
use crate::work::Work;
pub use table::{Separator, TableError};
use table::{columns_by_turns, columns_of, only_list};

/// Why a command and its values make no plan.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ArgumentError {
    #[error("no command: write what to run after `--`")]
    NoCommand,
    #[error("`{0}` is followed by no values")]
    NoValues(String),
    #[error("`::::` needs the name of a file with one value per line")]
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
    #[error("`{0}` comes first: there is no list before it to go with")]
    NothingBefore(&'static str),
    #[error("`{0}` could mean two things: write `::::+ {file}` or `:::: ./+{file}`", file = &.0[5..])]
    Glued(String),
    #[error("{0} (--literal-braces passes the braces on as they are)")]
    Misread(Misread),
    #[error(
        "`{0}` could mean two things: GNU parallel's -X and -N repeat the word for each value, -m and -n put all of them into \
         one; write {{1}} {{2}} … for the first, -m or -n for the second"
    )]
    WithinWord(String),
    #[error(
        "the command has a placeholder for values, and there are none: give them after `:::`, in a file after `::::`, or through a pipe (--literal-braces passes the braces on as they are)"
    )]
    NothingToFillIn,
    #[error(transparent)]
    Values(#[from] ValuesError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Shell(#[from] ShellError),
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// What stands after `--`: a command and where its values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ArgumentForm {
    pub command: Vec<OsString>,
    pub sources: Vec<Source>,
}

/// One list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Source {
    pub from: ValueSource,
    /// `:::+` and `::::+`: goes side by side with the list before it.
    pub is_linked: bool,
}

/// Where the values of one list are.
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
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct ArgumentOptions {
    /// Empty: tasks are called `1`, `2`, `3` …
    pub name: String,
    /// Of numbers.
    pub array: Option<Column>,
    pub pairing: Pairing,
    /// What looks like a placeholder and is not one is passed on.
    pub literal_braces: bool,
    /// How values from a pipe end.
    pub ending: Ending,
    /// Splits every value into columns.
    pub separator: Option<Separator>,
    /// The first value of a list has the names of its columns.
    pub has_header: bool,
    /// How many values of the list a command gets.
    pub per_command: usize,
    /// Commands that are to share all values, each as many as fit: overrides `per_command`.
    pub spread_over: Option<usize>,
    /// `{}` with several values may only be a word of its own.
    pub refuses_parts: bool,
    /// The values come in another order, always the same.
    pub is_shuffled: bool,
    /// A value from a list whose command has no placeholder is added at its end.
    pub appends: bool,
    /// Texts may hold placeholders.
    pub settings: Settings,
}

impl Default for ArgumentOptions {
    fn default() -> ArgumentOptions {
        ArgumentOptions {
            name: String::new(),
            array: None,
            pairing: Pairing::default(),
            literal_braces: false,
            ending: Ending::default(),
            separator: None,
            has_header: false,
            per_command: 1,
            spread_over: None,
            refuses_parts: false,
            is_shuffled: false,
            appends: true,
            settings: Settings::default(),
        }
    }
}

impl ArgumentForm {
    /// Takes the words after `--` apart; reads no file and no pipe.
    pub fn parse(words: &[OsString]) -> Result<ArgumentForm, ArgumentError> {
        let end = words.iter().position(is_mark).unwrap_or(words.len());
        let mut sources: Vec<Source> = Vec::new();
        let mut rest = &words[end..];
        while let Some((mark, after)) = rest.split_first() {
            let count = after.iter().position(is_mark).unwrap_or(after.len());
            let (values, next) = after.split_at(count);
            rest = next;
            let is_linked = mark == ":::+" || mark == "::::+";
            if is_linked && sources.is_empty() {
                let mark = if mark == ":::+" { ":::+" } else { "::::+" };
                return Err(ArgumentError::NothingBefore(mark));
            }
            let mut push = |from| sources.push(Source { from, is_linked });
            if mark == ":::" || mark == ":::+" {
                if values.is_empty() {
                    return Err(ArgumentError::NoValues(mark.to_string_lossy().into_owned()));
                }
                push(ValueSource::List(values.to_vec()));
                continue;
            }
            let glued = &mark.as_bytes()[4 + usize::from(is_linked)..];
            if glued.starts_with(b"+") {
                return Err(ArgumentError::Glued(mark.to_string_lossy().into_owned()));
            }
            let glued = OsString::from_vec(glued.to_vec());
            let files: Vec<_> = Some(glued).into_iter().filter(|file| !file.is_empty()).collect();
            if files.is_empty() && values.is_empty() {
                return Err(ArgumentError::NoFile);
            }
            files.iter().chain(values).for_each(|file| {
                push(match file.as_bytes() {
                    b"-" => ValueSource::Pipe,
                    _ => ValueSource::File(PathBuf::from(file)),
                });
            });
        }
        let command = words[..end].to_vec();
        if command.is_empty() && sources.is_empty() {
            return Err(ArgumentError::NoCommand);
        }
        Ok(ArgumentForm { command, sources })
    }

    /// Whether the command has a `{…}` that only values can fill.
    pub fn takes_values(&self) -> bool {
        let probe = Values::numbers(Numbers::new(1, 1, 1).expect("one is a range"));
        let vocabulary = Vocabulary::Values(&probe);
        self.command.iter().any(|word| Template::plain(word.as_bytes(), vocabulary).takes_values())
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
        if let Some(numbers) = &options.array {
            return match self.sources.is_empty() {
                true => Ok(Some(Values::new(vec![numbers.clone()], Pairing::Product)?)),
                false => Err(ArgumentError::RangeAndLists),
            };
        }
        let implied = [Source { from: ValueSource::Pipe, is_linked: false }];
        let sources = match (&pipe, self.sources.as_slice()) {
            (None, []) => return Ok(None),
            (Some(_), []) => &implied,
            (_, sources) => sources,
        };
        let mut columns: Vec<Column> = Vec::new();
        for source in sources {
            let list = source.list(options.ending, &mut pipe)?;
            let separator = options.separator.clone().or_else(|| source.separator(options));
            let mut these = match separator.is_some() || options.has_header {
                true => columns_of(&list, separator.as_ref(), options.has_header)?,
                false => vec![Column::list(list)],
            };
            these[0].is_linked = source.is_linked;
            columns.extend(these);
        }
        if options.is_shuffled {
            let list = only_list(columns, "--shuf")?;
            columns = vec![Column::list(list.shuffled()?)];
        }
        if let Some(commands) = options.spread_over {
            let list = only_list(columns, "-m")?;
            return self.by_turns(options, list.share_of(commands), list).map(Some);
        }
        if options.per_command > 1 {
            let list = only_list(columns, "-n")?;
            return self.by_turns(options, options.per_command, list).map(Some);
        }
        match Values::new(columns, options.pairing) {
            Ok(values) => Ok(Some(values)),
            Err(error @ ValuesError::Unequal(..)) => Err(ArgumentError::Unequal(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Where a value is called by its number, one that is missing at the end is empty.
    fn by_turns(
        &self,
        options: &ArgumentOptions,
        per_command: usize,
        list: List,
    ) -> Result<Values, ArgumentError> {
        let all = columns_by_turns(&list, per_command, true)?;
        let values = Values::new(all, Pairing::Zip)?;
        let template =
            |text: &OsString| Template::plain(text.as_bytes(), Vocabulary::Values(&values));
        let mut names_columns = self.command.iter().any(|word| template(word).names_columns());
        options.settings.map(|text, _| names_columns |= template(text).names_columns());
        if names_columns {
            return Ok(values);
        }
        let ragged = columns_by_turns(&list, per_command, false)?;
        Ok(Values::new(ragged, Pairing::ZipLongest)?)
    }

    fn array(&self, options: &ArgumentOptions, values: Values) -> Result<Part, ArgumentError> {
        let vocabulary = Vocabulary::Values(&values);
        // Numbers of a range are often only counted; values of a list are meant for something.
        let appends = options.appends && options.array.is_none();
        if !options.literal_braces {
            let mut words = self.command.iter();
            if let Some(found) = words.find_map(|word| misread(word.as_bytes(), vocabulary)) {
                return Err(ArgumentError::Misread(found));
            }
        }
        let template = match self.command.as_slice() {
            [] => Work::Shell { line: Template::value_itself() },
            [word] if is_shell_syntax(word.as_bytes()) => {
                shell_line(word.as_bytes(), vocabulary, appends)?
            }
            words => {
                let parse = |word: &OsString| Template::plain(word.as_bytes(), vocabulary);
                let mut arguments: Vec<_> = words.iter().map(parse).collect();
                if appends && !arguments.iter().any(Template::has_placeholder) {
                    arguments.push(Template::plain(b"{}", vocabulary));
                }
                Work::Argv(arguments)
            }
        };
        if options.refuses_parts && template.has_part_of_a_word() {
            let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
            return Err(ArgumentError::WithinWord(words.join(" ")));
        }
        let mut found = None;
        let settings = options.settings.map(|text, _| {
            found = found.take().or_else(|| misread(text.as_bytes(), vocabulary));
            Template::plain(text.as_bytes(), vocabulary)
        });
        if let Some(found) = found.filter(|_| !options.literal_braces) {
            return Err(ArgumentError::Misread(found));
        }
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
        if !options.literal_braces && self.takes_values() {
            return Err(ArgumentError::NothingToFillIn);
        }
        let name = if options.name.is_empty() { "1" } else { &options.name };
        let filling = Filling { name, index: 1, row: Vec::new(), is_range: false, slot: None };
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

fn is_mark(word: &OsString) -> bool {
    word == ":::" || word == ":::+" || word.as_bytes().starts_with(b"::::")
}

fn shell_line(
    line: &[u8],
    vocabulary: Vocabulary<'_>,
    appends: bool,
) -> Result<Work<Template>, ShellError> {
    let mut template = Template::shell(line, vocabulary)?;
    if appends && !template.has_placeholder() {
        template = Template::shell(&[line, b" {}"].concat(), vocabulary)?;
    }
    Ok(Work::Shell { line: template })
}

impl Source {
    /// A sample sheet is split as its name says.
    fn separator(&self, options: &ArgumentOptions) -> Option<Separator> {
        match &self.from {
            ValueSource::File(path) if options.has_header => Separator::of_file(path),
            _ => None,
        }
    }

    fn list(
        &self,
        ending: Ending,
        pipe: &mut Option<&mut dyn BufRead>,
    ) -> Result<List, ArgumentError> {
        Ok(match &self.from {
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
        })
    }
}
