//! The 16 bytes that open every message, in all numberings of the message types. Knows nothing of bodies,
//! except which messages have one.

use bytes::{BufMut, BytesMut};

pub(crate) const MAGIC: u16 = 0xC047;
pub(super) const HEADER_BYTES: usize = 16;
/// In the padding of a HELLO and of its answer: Laboro speaks here.
pub(super) const LABORO: u32 = u32::from_le_bytes(*b"LABO");
/// STOP with this number means at once.
pub(crate) const AT_ONCE: u32 = u32::MAX;
/// OK with this number means: say HELLO.
pub(super) const SAY_HELLO: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    Ok,
    Hello,
    Job,
    Update,
    Cancel,
    Stop,
    Error,
    Reset,
}

/// Which numbers the message types have. First there was no CANCEL; then it came before STOP and moved what is
/// behind it; then so did LIST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// With CANCEL and LIST.
    #[default]
    Current,
    /// Without LIST.
    Older,
    /// Without CANCEL, too: what runs there cannot be ended.
    Oldest,
}

impl std::str::FromStr for Numbering {
    type Err = String;

    fn from_str(word: &str) -> Result<Numbering, String> {
        match word {
            "current" => Ok(Numbering::Current),
            "older" => Ok(Numbering::Older),
            "oldest" => Ok(Numbering::Oldest),
            _ => Err(format!("there is no numbering {word}; there are current, older and oldest")),
        }
    }
}

impl Numbering {
    pub(super) fn number(self, kind: MessageKind) -> u8 {
        let oldest = match kind {
            MessageKind::Ok => return 1,
            MessageKind::Hello => return 2,
            MessageKind::Job => return 3,
            MessageKind::Update => return 4,
            // Never said where it is unknown, and never understood.
            MessageKind::Cancel if self == Numbering::Oldest => return 0,
            MessageKind::Cancel => return 5,
            MessageKind::Stop => 5,
            MessageKind::Error => 6,
            MessageKind::Reset => 7,
        };
        match self {
            Numbering::Oldest => oldest,
            Numbering::Older => oldest + 1,
            Numbering::Current => oldest + 2,
        }
    }

    pub(super) fn has_cancel(self) -> bool {
        self != Numbering::Oldest
    }

    pub(super) fn kind(self, number: u8) -> Option<MessageKind> {
        let kinds = [
            MessageKind::Ok,
            MessageKind::Hello,
            MessageKind::Job,
            MessageKind::Update,
            MessageKind::Cancel,
            MessageKind::Stop,
            MessageKind::Error,
            MessageKind::Reset,
        ];
        kinds.into_iter().filter(|_| number > 0).find(|&kind| self.number(kind) == number)
    }
}

/// Why a request was not done: the subtype of an ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Overflow,
    NoProcs,
    /// From here on only between Laboro peers.
    BadSeq,
    NoSuchJob,
    /// The hub will not have this worker. With a body: the reason, in words.
    Refused,
    /// The same, but later it may.
    NotNow,
    /// What a stranger may say.
    Other(u8),
}

impl Trouble {
    pub(super) fn code(self) -> u8 {
        match self {
            Trouble::Overflow => 1,
            Trouble::NoProcs => 2,
            Trouble::BadSeq => 3,
            Trouble::NoSuchJob => 4,
            Trouble::Refused => 5,
            Trouble::NotNow => 6,
            Trouble::Other(code) => code,
        }
    }

    pub(super) fn of(code: u8) -> Trouble {
        match code {
            1 => Trouble::Overflow,
            2 => Trouble::NoProcs,
            3 => Trouble::BadSeq,
            4 => Trouble::NoSuchJob,
            5 => Trouble::Refused,
            6 => Trouble::NotNow,
            other => Trouble::Other(other),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageHeader {
    pub(super) kind: MessageKind,
    /// An error code; 0 in everything else.
    pub(super) subtype: u8,
    pub(super) seq: u32,
    pub(super) padding: u32,
    pub(super) arg0: u32,
}

impl MessageHeader {
    pub(super) fn write(&self, numbering: Numbering, say: &mut BytesMut) {
        say.put_u16_le(MAGIC);
        say.put_u8(numbering.number(self.kind));
        say.put_u8(self.subtype);
        say.put_u32_le(self.seq);
        say.put_u32_le(self.padding);
        say.put_u32_le(self.arg0);
    }

    pub(super) fn has_body(&self) -> bool {
        match self.kind {
            MessageKind::Hello | MessageKind::Job | MessageKind::Update | MessageKind::Cancel => {
                true
            }
            MessageKind::Error => {
                matches!(Trouble::of(self.subtype), Trouble::Refused | Trouble::NotNow)
            }
            MessageKind::Ok | MessageKind::Stop | MessageKind::Reset => false,
        }
    }
}

/// Free processors and running tasks, as an OK carries them. All ones would mean something else.
pub(super) fn counts(free: u32, running: u32) -> u32 {
    const MOST: u32 = 0xFFFE;
    free.min(MOST) << 16 | running.min(MOST)
}
