//! What was asked of the hub, folded into the tag that its reply carries.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nobody waits for the reply.
    Nothing,
    Join,
    /// The same, before it has said HELLO.
    Return,
    /// What a worker held when it was last here.
    Look,
    /// Who has what a worker without a name says it runs.
    Holder,
    /// Whether that can be this worker.
    Former,
    Renew,
    /// What a node that came back without a word holds.
    Compare,
    /// The same node has none of it.
    Empty,
    /// The last thing an UPDATE with this number asks: its reply answers the UPDATE.
    Update(u32),
}

impl Asked {
    pub(super) fn tag(self) -> u64 {
        match self {
            Asked::Nothing => 0,
            Asked::Join => 1,
            Asked::Look => 2,
            Asked::Renew => 3,
            Asked::Return => 4,
            Asked::Holder => 5,
            Asked::Former => 6,
            Asked::Compare => 7,
            Asked::Empty => 8,
            Asked::Update(seq) => 1 << 32 | u64::from(seq),
        }
    }

    pub(super) fn of(tag: u64) -> Asked {
        match tag {
            1 => Asked::Join,
            2 => Asked::Look,
            3 => Asked::Renew,
            4 => Asked::Return,
            5 => Asked::Holder,
            6 => Asked::Former,
            7 => Asked::Compare,
            8 => Asked::Empty,
            tag if tag >> 32 == 1 => Asked::Update(tag as u32),
            _ => Asked::Nothing,
        }
    }
}
