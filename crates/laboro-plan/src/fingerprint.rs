//! A number for what a plan would run: the same command typed again has the same one, a changed line another.
//! It covers names, work, values, order, and what a process sees (directory, variables, input); not how the hub
//! treats it (priority, attempts, limits), so that a job can be resumed with a longer timeout.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::content::Elements;
use crate::plan::{On, Part, Plan};
use crate::settings::{Settings, Stdin};
use crate::template::Template;
use crate::values::{Items, Pairing, Values};
use crate::work::{ScriptKind, Work};

/// A hash that stands for what is run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// One that was written down.
    pub fn from_bytes(bytes: [u8; 32]) -> Fingerprint {
        Fingerprint(bytes)
    }

    /// To be written down.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The same plan in another place, where relative paths mean something else.
    #[must_use]
    pub fn within(&self, place: &Path) -> Fingerprint {
        let mut digest = Digest(blake3::Hasher::new());
        digest.word("laboro place 1");
        digest.bytes(&self.0);
        digest.bytes(place.as_os_str().as_bytes());
        Fingerprint(*digest.0.finalize().as_bytes())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl Plan {
    /// Of what the plan runs, whatever it runs over: that of the same command with other values is the same.
    pub fn template(&self) -> Fingerprint {
        let mut digest = Digest::new("laboro template 1");
        for part in &self.parts {
            digest.word(part.name());
            match part {
                Part::Task(task) => {
                    digest.content(&task.work, &task.settings, |text| text.as_bytes().to_vec());
                }
                Part::Array(array) => {
                    digest.content(&array.template, &array.settings, Template::canonical);
                }
            }
        }
        digest.finish()
    }

    /// Two plans have the same one if they run the same.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut digest = Digest(blake3::Hasher::new());
        digest.word("laboro plan 1");
        digest.option(self.job.name.as_ref().map(String::as_bytes));
        digest.option(self.job.group.as_ref().map(String::as_bytes));
        digest.number(self.parts.len() as u64);
        for part in &self.parts {
            digest.part(part);
        }
        Fingerprint(*digest.0.finalize().as_bytes())
    }
}

/// Every field goes in with its length, so that no two plans run together to the same bytes.
pub(crate) struct Digest(blake3::Hasher);

impl Digest {
    pub(crate) fn new(what: &str) -> Digest {
        let mut digest = Digest(blake3::Hasher::new());
        digest.word(what);
        digest
    }

    pub(crate) fn finish(&self) -> Fingerprint {
        Fingerprint(*self.0.finalize().as_bytes())
    }

    /// What a task runs and what its process sees.
    pub(crate) fn content<T>(
        &mut self,
        work: &Work<T>,
        settings: &Settings<T>,
        text: impl Fn(&T) -> Vec<u8>,
    ) {
        self.work(work, &text);
        self.settings(settings, &text);
    }

    pub(crate) fn elements(&mut self, elements: &Elements<'_>) {
        match elements {
            Elements::One => self.word("one"),
            Elements::Numbers { first, step, count } => {
                [first, step, count].into_iter().for_each(|number| self.number(*number));
            }
            Elements::Values(_) | Elements::Hashes(_) => {
                elements.hashes().for_each(|hash| self.bytes(&hash.to_le_bytes()));
            }
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    pub(crate) fn word(&mut self, word: &str) {
        self.bytes(word.as_bytes());
    }

    fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    fn option(&mut self, bytes: Option<&[u8]>) {
        self.number(u64::from(bytes.is_some()));
        self.bytes(bytes.unwrap_or_default());
    }

    fn part(&mut self, part: &Part) {
        self.word(part.name());
        self.number(part.after().len() as u64);
        for after in part.after() {
            self.word(match after.on {
                On::Task(_) => "task",
                On::All(_) => "all",
                On::Each(_) => "each",
            });
            self.word(after.on.name());
        }
        match part {
            Part::Task(task) => {
                self.word("one");
                self.work(&task.work, |text| text.as_bytes().to_vec());
                self.settings(&task.settings, |text| text.as_bytes().to_vec());
            }
            Part::Array(array) => {
                self.word("array");
                self.values(&array.values);
                self.work(&array.template, Template::canonical);
                self.settings(&array.settings, Template::canonical);
            }
        }
    }

    fn values(&mut self, values: &Values) {
        self.word(match values.pairing() {
            Pairing::Product => "product",
            Pairing::Zip | Pairing::ZipShortest => "zip",
            Pairing::ZipLongest => "turns",
        });
        self.number(values.count());
        self.number(values.columns().len() as u64);
        for column in values.columns() {
            self.option(column.key.as_ref().map(String::as_bytes));
            self.number(column.count());
            if column.is_linked {
                self.word("linked");
            }
            match &column.items {
                Items::Numbers(numbers) => {
                    self.word("numbers");
                    self.number(numbers.first());
                    self.number(numbers.step());
                }
                Items::List(list) => {
                    self.word("list");
                    (0..list.len()).for_each(|i| self.bytes(list.item(i)));
                }
            }
        }
    }

    fn work<T>(&mut self, work: &Work<T>, text: impl Fn(&T) -> Vec<u8>) {
        let words = match work {
            Work::Shell { line } => {
                self.word("shell");
                std::slice::from_ref(line)
            }
            Work::Argv(words) => {
                self.word("argv");
                words
            }
            Work::Script(script) => {
                match &script.kind {
                    ScriptKind::Bash => self.word("bash"),
                    ScriptKind::Matlab => self.word("matlab"),
                    ScriptKind::Program(words) => {
                        self.word("program");
                        self.number(words.len() as u64);
                        words.iter().for_each(|word| self.word(word));
                    }
                }
                self.bytes(&script.body);
                &script.arguments
            }
        };
        self.number(words.len() as u64);
        words.iter().for_each(|word| self.bytes(&text(word)));
    }

    fn settings<T>(&mut self, settings: &Settings<T>, text: impl Fn(&T) -> Vec<u8>) {
        self.option(settings.dir.as_ref().map(&text).as_deref());
        self.number(settings.env.len() as u64);
        for (name, value) in &settings.env {
            self.word(name);
            self.bytes(&text(value));
        }
        match &settings.stdin {
            None => self.word("no input"),
            Some(Stdin::Text(words)) => {
                self.word("text");
                self.bytes(&text(words));
            }
            Some(Stdin::File(path)) => {
                self.word("file");
                self.bytes(&text(path));
            }
        }
        // Most have none, and are known by the fingerprint they always had.
        for (stream, path) in
            [("stdout", &settings.output.stdout), ("stderr", &settings.output.stderr)]
        {
            if let Some(path) = path {
                self.word(stream);
                self.bytes(&text(path));
            }
        }
        if !settings.wrap.is_empty() {
            self.word("wrap");
            settings.wrap.iter().for_each(|word| self.bytes(&text(word)));
        }
    }
}
