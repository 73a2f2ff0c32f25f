//! What the keys of a task mean, for flows and JSON lines alike. Every mistake is noted and the reading goes
//! on, so that one look shows them all. Relations between tasks are checked later, by `validate`.

mod scalar;
mod settings;
mod values;

use std::path::Path;
use std::sync::Arc;

use crate::mistake::{Mistake, Position, did_you_mean};
use crate::node::{Key, Node, Value};
use crate::plan::{After, Array, Job, On, Part, Task};
use crate::settings::{Settings, TextKind};
use crate::template::{Filling, Template, Vocabulary, misread};
use crate::values::Values;
use crate::work::{Script, ScriptKind, Work};

const TASK_KEYS: [&str; 9] = [
    "name",
    "command",
    "script",
    "interpreter",
    "after",
    "foreach",
    "matrix",
    "zip",
    "literal_braces",
];
const JOB_KEYS: [&str; 4] = ["name", "group", "max_fails", "begin"];

/// Reads nodes and notes mistakes. `base` is where relative list files are looked for.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    pub base: &'a Path,
    pub mistakes: Vec<Mistake>,
    /// Tasks that were named but could not be made; who waits for one makes no mistake.
    pub broken: Vec<String>,
    /// Those of the task before: most tasks of a file have the same.
    last_settings: Arc<Settings>,
}

/// What a task says before its parts are put together.
#[derive(Default)]
struct Draft<'n> {
    name: Option<String>,
    command: Option<(&'n Key, &'n Node)>,
    script: Option<(&'n Key, &'n Node)>,
    interpreter: Option<(&'n Key, &'n Node)>,
    after: Vec<After>,
    foreach: Option<(&'n Key, &'n Node)>,
    matrix: Option<(&'n Key, &'n Node)>,
    zip: Option<(&'n Key, bool)>,
    /// What looks like a placeholder and is not one is passed on.
    literal_braces: bool,
    settings: Settings<String>,
    /// One of its keys is unknown, perhaps the one that seems to be missing.
    has_unknown_key: bool,
}

impl<'a> Decoder<'a> {
    pub fn new(base: &'a Path) -> Decoder<'a> {
        Decoder { base, mistakes: Vec::new(), broken: Vec::new(), last_settings: Arc::default() }
    }

    pub fn note(&mut self, at: Position, message: impl Into<String>) {
        self.mistakes.push(Mistake::new(at, message));
    }

    fn note_hint(&mut self, at: Position, message: String, hint: Option<String>) {
        self.mistakes.push(Mistake { at, message, hint });
    }

    pub fn job(&mut self, node: &Node) -> Job {
        let mut job = Job::default();
        for (key, node) in self.table("job", node) {
            match key.text.as_str() {
                "name" => job.name = self.text(key, node),
                "group" => job.group = self.text(key, node),
                "begin" => job.begin = self.text(key, node),
                "max_fails" => job.fails_max = self.integer(key, node, 0..=i64::MAX as u64),
                _ => self.unknown_key(key, JOB_KEYS),
            }
        }
        job
    }

    pub fn defaults(&mut self, node: &Node) -> Settings<String> {
        let mut defaults = Settings::default();
        for (key, node) in self.table("defaults", node) {
            if !self.setting(key, node, &mut defaults) {
                self.unknown_key(key, settings::KEYS);
            }
        }
        defaults
    }

    pub fn task(&mut self, node: &Node, defaults: &Settings<String>) -> Option<Part> {
        let Value::Table(entries) = &node.value else {
            self.note(node.at, format!("a task is a table of keys, found {}", node.value.kind()));
            return None;
        };
        let mut draft = Draft::default();
        let mut name_at = None;
        for (key, node) in entries {
            match key.text.as_str() {
                "name" => {
                    draft.name = self.text(key, node);
                    name_at = Some(node.at);
                }
                "command" => draft.command = Some((key, node)),
                "script" => draft.script = Some((key, node)),
                "interpreter" => draft.interpreter = Some((key, node)),
                "after" => draft.after = self.after(node),
                "foreach" => draft.foreach = Some((key, node)),
                "matrix" => draft.matrix = Some((key, node)),
                "zip" => draft.zip = self.truth(key, node).map(|zip| (key, zip)),
                "literal_braces" => draft.literal_braces = self.truth(key, node).unwrap_or(true),
                _ if self.setting(key, node, &mut draft.settings) => {}
                _ => {
                    self.unknown_key(key, TASK_KEYS.into_iter().chain(settings::KEYS));
                    draft.has_unknown_key = true;
                }
            }
        }
        let at = name_at.unwrap_or(node.at);
        if name_at.is_none() && !draft.has_unknown_key {
            self.note_hint(node.at, "the task has no name".into(), Some("add name = \"…\"".into()));
        }
        let name = draft.name.clone();
        let part = self.assemble(draft, at, defaults);
        if part.is_none() {
            self.broken.extend(name);
        }
        part
    }

    fn assemble(
        &mut self,
        draft: Draft<'_>,
        at: Position,
        defaults: &Settings<String>,
    ) -> Option<Part> {
        let before = self.mistakes.len();
        let values = self.task_values(draft.foreach, draft.matrix, draft.zip);
        let vocabulary = match &values {
            Some(values) => Vocabulary::Values(values),
            None => Vocabulary::NameOnly,
        };
        let work = self.work(&draft, at, values.as_ref());
        let settings = draft.settings.or(defaults);
        if !draft.literal_braces {
            settings.map(|text, _| self.look_at_braces(at, text, vocabulary));
        }
        let name = draft.name?;
        let work = work?;
        if self.mistakes.len() > before {
            return None;
        }
        let after = draft.after;
        let templates = settings.map(|text, kind| match (&values, kind) {
            (Some(_), _) | (None, TextKind::Path) => Template::plain(text.as_bytes(), vocabulary),
            (None, TextKind::Free) => Template::literal(text.as_bytes()),
        });
        match values {
            Some(values) => Some(Part::Array(Box::new(Array {
                name,
                values,
                template: work,
                after,
                settings: templates,
                at,
            }))),
            None => {
                let filling =
                    Filling { name: &name, index: 1, row: Vec::new(), is_range: false, slot: None };
                let work = work.fill(&filling);
                let settings = templates.map(|text, _| text.fill(&filling));
                drop(filling);
                let settings = self.shared(settings);
                Some(Part::Task(Task { name, work, after, settings, at }))
            }
        }
    }

    fn shared(&mut self, settings: Settings) -> Arc<Settings> {
        if *self.last_settings != settings {
            self.last_settings = Arc::new(settings);
        }
        Arc::clone(&self.last_settings)
    }

    fn work(
        &mut self,
        draft: &Draft<'_>,
        at: Position,
        values: Option<&Values>,
    ) -> Option<Work<Template>> {
        if let (Some((key, _)), None) = (draft.interpreter, draft.script) {
            self.note(key.at, "`interpreter` is for a `script`, and this task has none");
        }
        match (draft.command, draft.script) {
            (Some(_), Some((key, _))) => {
                self.note(key.at, "the task has both `command` and `script`: keep one");
                None
            }
            (None, None) if draft.has_unknown_key => None,
            (None, None) => {
                let hint = "add command = \"…\" or script = \"\"\"…\"\"\"";
                self.note_hint(at, "the task has nothing to run".into(), Some(hint.into()));
                None
            }
            (Some((key, node)), None) => {
                if let (Some(values), false) = (values, draft.literal_braces) {
                    self.look_at_command(node, values);
                }
                self.command(key, node, values)
            }
            (None, Some((key, node))) => self.script(key, node, draft.interpreter, values),
        }
    }

    fn look_at_command(&mut self, node: &Node, values: &Values) {
        match &node.value {
            Value::Text(text) => self.look_at_braces(node.at, text, Vocabulary::Values(values)),
            Value::List(items) => items.iter().for_each(|item| self.look_at_command(item, values)),
            _ => {}
        }
    }

    fn look_at_braces(&mut self, at: Position, text: &str, vocabulary: Vocabulary<'_>) {
        if let Some(found) = misread(text.as_bytes(), vocabulary) {
            let hint = "literal_braces = true passes the braces on as they are";
            self.note_hint(at, found.to_string(), Some(hint.into()));
        }
    }

    fn command(
        &mut self,
        key: &Key,
        node: &Node,
        values: Option<&Values>,
    ) -> Option<Work<Template>> {
        match &node.value {
            Value::Text(_) => {
                let line = self.text(key, node)?;
                let Some(values) = values else {
                    return Some(Work::Shell { line: Template::literal(line) });
                };
                match Template::shell(line.as_bytes(), Vocabulary::Values(values)) {
                    Ok(line) => Some(Work::Shell { line }),
                    Err(error) => {
                        self.note(node.at, error.to_string());
                        None
                    }
                }
            }
            Value::List(items) if !items.is_empty() => {
                let words = items.iter().map(|item| {
                    // A number among arguments is what was typed; quoting it would be a chore.
                    let word = self.scalar(key, item)?;
                    Some(match values {
                        Some(values) => {
                            Template::plain(word.as_bytes(), Vocabulary::Values(values))
                        }
                        None => Template::literal(word),
                    })
                });
                words.collect::<Option<Vec<_>>>().map(Work::Argv)
            }
            Value::List(_) => {
                self.note(node.at, "`command` is an empty list: its first item is the program");
                None
            }
            other => {
                let found = other.kind();
                self.note(
                    node.at,
                    format!("`command` is a shell line (string) or a program with arguments (list), found {found}"),
                );
                None
            }
        }
    }

    fn script(
        &mut self,
        key: &Key,
        node: &Node,
        interpreter: Option<(&Key, &Node)>,
        values: Option<&Values>,
    ) -> Option<Work<Template>> {
        let body = self.text(key, node)?;
        let kind = match interpreter {
            Some((key, node)) => self.interpreter(key, node)?,
            None => ScriptKind::Bash,
        };
        let arguments = match values {
            Some(values) => vec![Template::plain(b"{}", Vocabulary::Values(values))],
            None => Vec::new(),
        };
        Some(Work::Script(Script { kind, body: Arc::from(body.into_bytes()), arguments }))
    }

    fn interpreter(&mut self, key: &Key, node: &Node) -> Option<ScriptKind> {
        let words = match &node.value {
            Value::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
            _ => self.texts(key, node)?,
        };
        if words.is_empty() {
            self.note(node.at, "`interpreter` is empty: name a program such as python3");
            return None;
        }
        Some(ScriptKind::from_words(words))
    }

    fn after(&mut self, node: &Node) -> Vec<After> {
        match &node.value {
            Value::List(items) => items.iter().filter_map(|item| self.after_one(item)).collect(),
            _ => self.after_one(node).into_iter().collect(),
        }
    }

    fn after_one(&mut self, node: &Node) -> Option<After> {
        let at = node.at;
        let on = match &node.value {
            Value::Text(text) => match text.strip_prefix("each:") {
                Some(array) => On::Each(array.to_owned()),
                None => On::Task(text.clone()),
            },
            Value::Table(entries) => match entries.as_slice() {
                [(key, node)] if key.text == "each" => On::Each(self.text(key, node)?),
                [(key, node)] if key.text == "all" => On::All(self.text(key, node)?),
                [(key, node)] if key.text == "task" => On::Task(self.text(key, node)?),
                _ => {
                    self.note(at, "a table in `after` has one key: task, all or each");
                    return None;
                }
            },
            other => {
                let found = other.kind();
                self.note(at, format!("`after` lists names of tasks, found {found}"));
                return None;
            }
        };
        Some(After { on, at })
    }

    pub fn unknown_key<'k>(&mut self, key: &Key, known: impl IntoIterator<Item = &'k str>) {
        let hint = did_you_mean(&key.text, known);
        self.note_hint(key.at, format!("unknown key `{}`", key.text), hint);
    }
}
