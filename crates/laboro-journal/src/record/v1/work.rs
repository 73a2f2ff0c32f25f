//! Work, and what tasks share of it. A work, a setting or a script's body is written where it is first
//! met and gets a place on a shelf; after that its place is enough. Read back, it is shared again.

use super::{Decoder, Encoder, Form};
use crate::record::RecordError;
use crate::record::bytes::{ByteReader, ByteWriter};
use laboro_core::{CallWork, CommandWork, IndexedWork, Program, ScriptWork, Setting, Work};
use std::collections::HashMap;
use std::sync::Arc;

const NEW: u64 = 0;

const NAMED: u8 = 0;
const ARGV: u8 = 1;
const SHELL: u8 = 2;
const SCRIPT: u8 = 3;
const INDEXED: u8 = 4;
const CALL: u8 = 5;

/// A larger table is not emptied for the next record but given up: emptying costs what it could hold.
const PLACES_KEPT: usize = 1024;

/// What an encoder has written and may point at.
#[derive(Debug, Default)]
pub(super) struct Shelved {
    works: Shelf<Work>,
    settings: Shelf<Setting>,
    bodies: Shelf<[u8]>,
}

impl Shelved {
    pub fn clear(&mut self) {
        self.works.clear();
        self.settings.clear();
        self.bodies.clear();
    }
}

/// Found again by address, which stays its own because the shelf holds on to it; a neighbour also by
/// value, because tasks submitted one by one are often equal and never the same.
#[derive(Debug)]
struct Shelf<T: ?Sized> {
    entries: Vec<Arc<T>>,
    places: HashMap<usize, usize>,
    used_last: usize,
}

impl<T: ?Sized> Default for Shelf<T> {
    fn default() -> Shelf<T> {
        Shelf { entries: Vec::new(), places: HashMap::new(), used_last: 0 }
    }
}

impl<T: ?Sized + PartialEq> Shelf<T> {
    fn clear(&mut self) {
        if self.places.capacity() > PLACES_KEPT {
            *self = Shelf::default();
        }
        self.entries.clear();
        self.places.clear();
        self.used_last = 0;
    }

    /// Writes where it stands, counted from the newest, and whether it stood there before. If not, the
    /// caller writes it now.
    fn place(&mut self, entry: &Arc<T>, out: &mut ByteWriter) -> bool {
        let found = match self.entries.get(self.used_last) {
            Some(last) if Arc::ptr_eq(last, entry) || last == entry => Some(self.used_last),
            _ => self.places.get(&address(entry)).copied(),
        };
        if let Some(place) = found {
            self.used_last = place;
            out.u64((self.entries.len() - place) as u64);
            return true;
        }
        self.used_last = self.entries.len();
        self.places.insert(address(entry), self.used_last);
        self.entries.push(Arc::clone(entry));
        out.u64(NEW);
        false
    }
}

fn address<T: ?Sized>(entry: &Arc<T>) -> usize {
    Arc::as_ptr(entry).cast::<()>().addr()
}

impl Encoder {
    pub(super) fn work(&mut self, work: &Arc<Work>) {
        if self.shelved.works.place(work, &mut self.out) {
            return;
        }
        match &**work {
            Work::Named => self.out.u8(NAMED),
            Work::Command(CommandWork { program: Program::Argv(words), setting }) => {
                self.out.u8(ARGV);
                self.out.u64(words.len() as u64);
                words.iter().for_each(|word| self.out.string(word));
                self.setting(setting);
            }
            Work::Command(CommandWork { program: Program::Shell(line), setting }) => {
                self.out.u8(SHELL);
                self.out.string(line);
                self.setting(setting);
            }
            Work::Script(script) => {
                let ScriptWork { kind, body, setting } = &**script;
                self.out.u8(SCRIPT);
                self.out.string(kind.as_bytes());
                if !self.shelved.bodies.place(body, &mut self.out) {
                    self.out.string(body);
                }
                self.setting(setting);
            }
            Work::Indexed(indexed) => {
                let IndexedWork { program, dir, log_dir } = &**indexed;
                self.out.u8(INDEXED);
                [program, dir, log_dir].into_iter().for_each(|part| self.out.string(part));
            }
            Work::Call(CallWork { payload, setting }) => {
                self.out.u8(CALL);
                if !self.shelved.bodies.place(payload, &mut self.out) {
                    self.out.string(payload);
                }
                self.setting(setting);
            }
        }
    }

    fn setting(&mut self, setting: &Arc<Setting>) {
        if self.shelved.settings.place(setting, &mut self.out) {
            return;
        }
        self.out.string_of(|to| setting.encode(to));
    }
}

/// What a decoder has read and may be pointed at.
#[derive(Debug, Default)]
pub(in crate::record) struct Held {
    works: Vec<Arc<Work>>,
    settings: Vec<Arc<Setting>>,
    bodies: Vec<Arc<[u8]>>,
}

impl Held {
    pub(super) fn clear(&mut self) {
        *self = Held::default();
    }
}

impl Decoder<'_> {
    pub(super) fn work(&mut self) -> Result<Arc<Work>, RecordError> {
        if let Some(work) = placed(&mut self.from, &self.held.works)? {
            return Ok(work);
        }
        let work = Arc::new(match self.from.u8()? {
            NAMED => Work::Named,
            ARGV => {
                let words = self.list(|from| from.from.string())?;
                let program = Program::Argv(words.into_iter().collect());
                Work::Command(CommandWork { program, setting: self.setting()? })
            }
            SHELL => {
                let program = Program::Shell(self.from.string()?.into());
                Work::Command(CommandWork { program, setting: self.setting()? })
            }
            SCRIPT => Work::script(self.from.text()?, self.body()?, self.setting()?),
            INDEXED => Work::indexed(
                self.from.string()?.into(),
                self.from.string()?.into(),
                self.from.string()?.into(),
            ),
            CALL => Work::Call(CallWork { payload: self.body()?, setting: self.setting()? }),
            _ => return self.from.malformed("no such kind of work"),
        });
        self.held.works.push(Arc::clone(&work));
        Ok(work)
    }

    fn body(&mut self) -> Result<Arc<[u8]>, RecordError> {
        if let Some(body) = placed(&mut self.from, &self.held.bodies)? {
            return Ok(body);
        }
        let body: Arc<[u8]> = self.from.string()?.into();
        self.held.bodies.push(Arc::clone(&body));
        Ok(body)
    }

    fn setting(&mut self) -> Result<Arc<Setting>, RecordError> {
        if let Some(setting) = placed(&mut self.from, &self.held.settings)? {
            return Ok(setting);
        }
        let setting = match self.form {
            Form::Positional => self.positional_setting()?,
            Form::Tagged => {
                let mut setting = Setting::default();
                let fields = self.from.string()?;
                setting.decode(fields).or_else(|error| self.from.field(error))?;
                setting
            }
        };
        let setting = Arc::new(setting);
        self.held.settings.push(Arc::clone(&setting));
        Ok(setting)
    }
}

/// `None`: a new one follows.
fn placed<T: ?Sized>(
    from: &mut ByteReader<'_>,
    shelf: &[Arc<T>],
) -> Result<Option<Arc<T>>, RecordError> {
    let back = from.u64()?;
    if back == NEW {
        return Ok(None);
    }
    match usize::try_from(back).ok().and_then(|back| shelf.len().checked_sub(back)) {
        Some(place) => Ok(Some(Arc::clone(&shelf[place]))),
        None => from.malformed("points at something that is not there"),
    }
}
