//! Who a worker is, what it has and what runs there.

use super::super::pack::{
    PackError, PackReader, write_array, write_bin, write_map, write_str, write_uint,
};
use super::super::payload::{self, TASKS_MAX};
use super::{LABORO, read_lease, text, write_lease};
use bytes::{Bytes, BytesMut};
use laboro_core::{FEATURES_MAX, Fields, LeaseNo, Name, Supply, TaskId};

const KEYS: [&str; 19] = [
    "Version",
    "Token",
    "Name",
    "Group",
    "Tags",
    "Slots",
    "Memory",
    "Resources",
    "Ahead",
    "Period",
    "Pid",
    "Host",
    "Program",
    "Names",
    "Running",
    "Left",
    "Life",
    "Fields",
    "Items",
];
/// Of the fields; readers of another number go on, because they skip what they do not know.
const VERSION: u64 = 1;

#[derive(Clone, Default, PartialEq, Eq)]
pub(in super::super) struct NativeHello {
    pub(in super::super) token: Vec<u8>,
    pub(in super::super) name: Name,
    /// Empty: the one of the door.
    pub(in super::super) group: Name,
    pub(in super::super) tags: Vec<Name>,
    pub(in super::super) slots: u32,
    pub(in super::super) memory: u64,
    pub(in super::super) resources: Vec<(Name, Supply)>,
    pub(in super::super) ahead: u32,
    /// How long the hub waits for a sign of life. 0: as long as it likes.
    pub(in super::super) period_ms: u64,
    pub(in super::super) pid: u32,
    pub(in super::super) host: String,
    /// Which program, of which version.
    pub(in super::super) program: String,
    /// It knows what tasks mean that are only a name.
    pub(in super::super) takes_names: bool,
    pub(in super::super) running: Vec<(TaskId, LeaseNo)>,
    /// It leaves after so long. 0: it does not say.
    pub(in super::super) left_ms: u64,
    /// A number that only this process has. 0: it does not say.
    pub(in super::super) life: u64,
    /// Those of a task that it understands. A worker from before there were any says nothing.
    pub(in super::super) fields: Fields,
}

impl NativeHello {
    pub(in super::super) fn write(&self, to: &mut BytesMut) {
        write_map(to, 3);
        let free = i64::from(self.slots).saturating_sub(self.running.len() as i64).max(0);
        payload::PlainHello { free, running: Vec::new() }.write_fields(to);
        write_str(to, LABORO.as_bytes());
        write_map(to, KEYS.len());
        for (at, key) in KEYS.iter().enumerate() {
            write_str(to, key.as_bytes());
            self.write_field(at, to);
        }
    }

    fn write_field(&self, at: usize, to: &mut BytesMut) {
        match at {
            0 => write_uint(to, VERSION),
            1 => write_bin(to, &self.token),
            2 => write_str(to, self.name.bytes()),
            3 => write_str(to, self.group.bytes()),
            4 => {
                write_array(to, self.tags.len());
                self.tags.iter().for_each(|tag| write_str(to, tag.bytes()));
            }
            5 => write_uint(to, self.slots.into()),
            6 => write_uint(to, self.memory),
            7 => {
                write_array(to, self.resources.len());
                for (name, supply) in &self.resources {
                    write_array(to, 2);
                    write_str(to, name.bytes());
                    write_uint(to, supply.count);
                }
            }
            8 => write_uint(to, self.ahead.into()),
            9 => write_uint(to, self.period_ms),
            10 => write_uint(to, self.pid.into()),
            11 => write_str(to, self.host.as_bytes()),
            12 => write_str(to, self.program.as_bytes()),
            13 => write_uint(to, self.takes_names.into()),
            14 => {
                write_array(to, self.running.len());
                self.running.iter().for_each(|&lease| write_lease(to, lease));
            }
            15 => write_uint(to, self.left_ms),
            16 => write_uint(to, self.life),
            17 => {
                write_array(to, self.fields.tags().count());
                self.fields.tags().for_each(|tag| write_uint(to, tag.into()));
            }
            _ => {
                let named = || self.resources.iter().filter(|(_, supply)| !supply.items.is_empty());
                write_array(to, named().count());
                for (name, supply) in named() {
                    write_array(to, 1 + supply.items.len());
                    write_str(to, name.bytes());
                    supply.items.iter().for_each(|item| write_str(to, item.bytes()));
                }
            }
        }
    }

    /// `None`: it has no fields of ours.
    pub(in super::super) fn read(body: &Bytes) -> Result<Option<NativeHello>, PackError> {
        if body.is_empty() {
            return Ok(None);
        }
        let mut hello = None;
        PackReader::new(body).fields(&["NumProcs", "Running", LABORO], |at, from| {
            if at < 2 {
                return from.skip();
            }
            let ours = hello.insert(NativeHello::default());
            from.fields(&KEYS, |at, from| ours.read_field(at, from))
        })?;
        Ok(hello)
    }

    fn read_field(&mut self, at: usize, from: &mut PackReader<'_>) -> Result<(), PackError> {
        match at {
            0 => from.skip()?,
            1 => self.token = from.bytes()?.to_vec(),
            2 => self.name = Name::new(from.bytes()?),
            3 => self.group = Name::new(from.bytes()?),
            4 => self.tags = from.list(FEATURES_MAX, |from| from.bytes().map(Name::new))?,
            5 => self.slots = from.small()?,
            6 => self.memory = from.uint()?,
            7 => self.resources = from.list(FEATURES_MAX, read_resource)?,
            8 => self.ahead = from.small()?,
            9 => self.period_ms = from.uint()?,
            10 => self.pid = from.small()?,
            11 => self.host = text(from.bytes()?),
            12 => self.program = text(from.bytes()?),
            13 => self.takes_names = from.uint()? != 0,
            14 => self.running = from.list(TASKS_MAX, read_lease)?,
            15 => self.left_ms = from.uint()?,
            16 => self.life = from.uint()?,
            17 => {
                let tags = from.list(FEATURES_MAX, PackReader::small)?;
                self.fields = tags.into_iter().fold(Fields::NONE, Fields::with);
            }
            _ => {
                let most = Supply::ITEMS_MAX as usize + 1;
                let names =
                    |from: &mut PackReader<'_>| from.list(most, |from| from.bytes().map(Name::new));
                for mut items in from.list(FEATURES_MAX, names)? {
                    let Some(name) = (!items.is_empty()).then(|| items.remove(0)) else { continue };
                    let known = self.resources.iter_mut().find(|(known, _)| *known == name);
                    // For people only: what does not fit the count is not shown.
                    if let Some((_, supply)) = known
                        && supply.count == items.len() as u64
                    {
                        supply.items = items;
                    }
                }
            }
        }
        Ok(())
    }
}

fn read_resource(from: &mut PackReader<'_>) -> Result<(Name, Supply), PackError> {
    let mut resource = (Name::default(), Supply::default());
    from.tuple(2, |at, from| {
        match at {
            0 => resource.0 = Name::new(from.bytes()?),
            _ => resource.1.count = from.uint()?,
        }
        Ok(())
    })?;
    Ok(resource)
}

/// Whatever prints a hello does not print the secret in it.
impl std::fmt::Debug for NativeHello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeHello")
            .field("name", &self.name)
            .field("group", &self.group)
            .field("slots", &self.slots)
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}
