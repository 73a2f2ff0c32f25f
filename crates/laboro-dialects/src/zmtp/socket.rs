//! The kinds of ZeroMQ socket and which may talk to which. How a kind routes its messages is not known here.

use std::fmt;

/// The kinds of sockets, as ZeroMQ calls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SocketType {
    Req,
    Rep,
    Dealer,
    Router,
    Pub,
    Sub,
    Xpub,
    Xsub,
    Push,
    Pull,
    Pair,
}

impl SocketType {
    const ALL: [SocketType; 11] = [
        SocketType::Req,
        SocketType::Rep,
        SocketType::Dealer,
        SocketType::Router,
        SocketType::Pub,
        SocketType::Sub,
        SocketType::Xpub,
        SocketType::Xsub,
        SocketType::Push,
        SocketType::Pull,
        SocketType::Pair,
    ];

    /// As READY says it.
    pub fn name(self) -> &'static str {
        match self {
            SocketType::Req => "REQ",
            SocketType::Rep => "REP",
            SocketType::Dealer => "DEALER",
            SocketType::Router => "ROUTER",
            SocketType::Pub => "PUB",
            SocketType::Sub => "SUB",
            SocketType::Xpub => "XPUB",
            SocketType::Xsub => "XSUB",
            SocketType::Push => "PUSH",
            SocketType::Pull => "PULL",
            SocketType::Pair => "PAIR",
        }
    }

    pub(super) fn from_name(name: &[u8]) -> Option<SocketType> {
        SocketType::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }

    /// Whether a peer of that kind may be at the other end.
    pub fn talks_to(self, peer: SocketType) -> bool {
        use SocketType::*;
        match self {
            Req => matches!(peer, Rep | Router),
            Rep => matches!(peer, Req | Dealer),
            Dealer => matches!(peer, Rep | Dealer | Router),
            Router => matches!(peer, Req | Dealer | Router),
            Pub | Xpub => matches!(peer, Sub | Xsub),
            Sub | Xsub => matches!(peer, Pub | Xpub),
            Push => peer == Pull,
            Pull => peer == Push,
            Pair => peer == Pair,
        }
    }

    /// Only sockets that somebody may route to by name tell theirs.
    pub(super) fn tells_identity(self) -> bool {
        matches!(self, SocketType::Req | SocketType::Dealer | SocketType::Router)
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
