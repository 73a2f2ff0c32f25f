//! What the command line says of every task of a plan, as if each task said it itself. Decides nothing about what
//! options there are.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use crate::plan::{Part, Plan};
use crate::settings::{Settings, TextKind};
use crate::template::{Filling, Misread, Template, Vocabulary, misread};

impl Plan {
    /// What looks like a placeholder in the options' paths and is not one for some array.
    pub fn misread(&self, options: &Settings) -> Option<Misread> {
        self.parts.iter().find_map(|part| {
            let Part::Array(array) = part else { return None };
            let vocabulary = Vocabulary::Values(&array.values);
            let mut found = None;
            options.map(|text, kind| {
                if kind == TextKind::Path && found.is_none() {
                    found = misread(text.as_bytes(), vocabulary);
                }
            });
            found
        })
    }

    /// A task's own settings count before `options`; a directory of its own is below theirs. Paths may hold
    /// placeholders, as in a flow; other texts are what they are.
    pub fn apply(&mut self, options: &Settings) {
        if *options == Settings::default() {
            return;
        }
        let templates = |vocabulary| options.map(|text, kind| template(text, kind, vocabulary));
        let of_tasks = templates(Vocabulary::NameOnly);
        let mut says_name = false;
        let _ = of_tasks.map(|text, _| says_name |= text.has_placeholder());
        // Before and after: a million tasks of one file mostly have the same settings.
        let mut last: Option<(Arc<Settings>, Arc<Settings>)> = None;
        for part in &mut self.parts {
            match part {
                Part::Array(array) => {
                    let options = templates(Vocabulary::Values(&array.values));
                    let own = std::mem::take(&mut array.settings);
                    array.settings = own.within(&options, Template::join);
                }
                Part::Task(task) => {
                    if let Some((before, after)) = &last
                        && Arc::ptr_eq(before, &task.settings)
                    {
                        task.settings = Arc::clone(after);
                        continue;
                    }
                    let name = &task.name;
                    let filling =
                        Filling { name, index: 1, row: Vec::new(), is_range: false, slot: None };
                    let options = of_tasks.map(|text, _| text.fill(&filling));
                    drop(filling);
                    let join = |base: &OsString, own: &OsString| {
                        std::path::Path::new(base).join(own).into_os_string()
                    };
                    let own = Settings::clone(&task.settings);
                    let after = Arc::new(own.within(&options, join));
                    let before = std::mem::replace(&mut task.settings, Arc::clone(&after));
                    last = (!says_name).then_some((before, after));
                }
            }
        }
    }
}

fn template(text: &OsString, kind: TextKind, vocabulary: Vocabulary<'_>) -> Template {
    match kind {
        TextKind::Path => Template::plain(text.as_bytes(), vocabulary),
        TextKind::Free => Template::literal(text.as_bytes()),
    }
}

impl<T: Clone> Settings<T> {
    fn within(mut self, options: &Settings<T>, join: impl Fn(&T, &T) -> T) -> Settings<T> {
        if let (Some(base), Some(own)) = (&options.dir, &self.dir) {
            self.dir = Some(join(base, own));
        }
        self.or(options)
    }
}
