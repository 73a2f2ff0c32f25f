//! What a Laboro worker says of itself, and the limits of its side of the conversation.

use laboro_core::{Fields, MESSAGE_BYTES_MAX, Supply, Time};

/// Everything that a worker tells the hub in its HELLO.
#[derive(Clone)]
pub struct WorkerSettings {
    /// Unique in its group; the same after a restart of the worker, so that it is known again.
    pub name: String,
    /// `None`: the one that the token or the door is bound to.
    pub group: Option<String>,
    /// The secret that proves that it may work here.
    pub token: Vec<u8>,
    /// What it is besides its resources; tasks may ask for them.
    pub tags: Vec<String>,
    /// How many tasks of one slot it runs at once.
    pub slots: u32,
    /// In bytes.
    pub memory: u64,
    /// How many of each, and what they are called.
    pub resources: Vec<(String, Supply)>,
    /// Small tasks that shall be sent beyond the free slots.
    pub ahead: u32,
    /// Without a sign of life for so long the hub gives the tasks to others. A sign is given three times
    /// as often.
    pub period_ms: u64,
    /// The name of its machine, for people.
    pub host: String,
    /// Its process on that machine, for people.
    pub pid: u32,
    /// A number that no other process has, so that a second worker of the same name is told from this one
    /// coming back. 0: it does not say.
    pub life: u64,
    /// It knows what tasks mean that are only a name, such as those of dwork.
    pub takes_names: bool,
    /// The fields of a task that it understands; those with others are for newer workers.
    pub fields: Fields,
    /// It leaves then: tasks whose time limit does not fit before are for others.
    pub until: Option<Time>,
    /// Name and version of the program.
    pub program: String,
    /// The largest message taken, in bytes.
    pub message_max: usize,
}

impl WorkerSettings {
    /// A worker of this name with so many slots; everything else is a default.
    pub fn new(name: impl Into<String>, slots: u32) -> WorkerSettings {
        WorkerSettings {
            name: name.into(),
            group: None,
            token: Vec::new(),
            tags: Vec::new(),
            slots,
            memory: 0,
            resources: Vec::new(),
            ahead: 0,
            period_ms: 30_000,
            host: String::new(),
            pid: 0,
            life: 0,
            takes_names: true,
            fields: Fields::known(),
            until: None,
            program: concat!("laboro ", env!("CARGO_PKG_VERSION")).into(),
            message_max: MESSAGE_BYTES_MAX,
        }
    }
}

/// Whatever prints the settings does not print the secret in them.
impl std::fmt::Debug for WorkerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerSettings")
            .field("name", &self.name)
            .field("group", &self.group)
            .field("slots", &self.slots)
            .finish_non_exhaustive()
    }
}
