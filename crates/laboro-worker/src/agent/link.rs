//! The connection to a hub: made, lost, made again with growing pauses. Carries bytes and knows nothing of what
//! they say; whoever drives it decides what a loss means.

mod connect;
mod wire;

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use laboro_net::{Backoff, Linger};
use tokio::time::{Sleep, sleep};

pub use connect::{ByteStream, Connect, ConnectError, Connecting, Several, Tcp, Tls, Ways};

use wire::{Wire, WireEvent};

/// What a turn of the link brought.
#[derive(Debug)]
pub(super) enum Met {
    /// A connection stands.
    Up,
    /// There is something in `input`.
    Heard,
    /// Much was waiting to be said, and is not any more.
    Room,
    /// A connection could not be made; another try follows.
    Failed(ConnectError),
    /// The connection is gone; another try follows unless it was hung up for good.
    Down(String),
}

/// What comes after hanging up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Never,
    /// At once, unless the last connection was over at once too.
    Soon,
    Later,
    /// Again and again, in short pauses.
    Steady,
}

/// What a hub in the same process has for its worker: no bytes, and nothing that could be lost.
pub trait Inbox {
    /// Ready when the worker's side of the conversation has something to take. False: the hub is gone.
    fn poll_heard(&mut self, context: &mut Context<'_>) -> Poll<bool>;
}

pub struct Link {
    connect: Option<Box<dyn Connect>>,
    state: LinkState,
    backoff: Backoff,
    input: BytesMut,
    next: Next,
    /// Whether answers are waited for awake where that pays.
    lingers: bool,
}

enum LinkState {
    Closed,
    Pausing(Pin<Box<Sleep>>),
    Connecting(Connecting),
    Up { wire: Wire, since: Instant },
    Within { inbox: Box<dyn Inbox>, is_met: bool },
}

/// A connection that lasted so long was a good one: the next try need not wait.
const LASTED: Duration = Duration::from_secs(5);

impl Link {
    pub fn new(connect: impl Connect + 'static) -> Link {
        Link {
            state: LinkState::Connecting(connect.connect()),
            connect: Some(Box::new(connect)),
            backoff: Backoff::default(),
            input: BytesMut::new(),
            next: Next::Soon,
            lingers: true,
        }
    }

    /// To a hub in this process.
    pub fn within_process(inbox: impl Inbox + 'static) -> Link {
        Link {
            state: LinkState::Within { inbox: Box::new(inbox), is_met: false },
            connect: None,
            backoff: Backoff::default(),
            input: BytesMut::new(),
            next: Next::Soon,
            lingers: false,
        }
    }

    /// Answers are waited for asleep: the core is better used by what runs meanwhile.
    pub fn asleep(mut self) -> Link {
        self.lingers = false;
        self
    }

    /// The hub gives up whoever is not back after so long.
    pub fn within(mut self, patience: Duration) -> Link {
        self.backoff.within(patience);
        self
    }

    /// Where it leads, for people.
    pub(super) fn target(&self) -> String {
        self.connect.as_ref().map_or("this process".to_owned(), |connect| connect.target())
    }

    pub(super) fn is_up(&self) -> bool {
        match &self.state {
            LinkState::Up { wire, .. } => !wire.is_closing(),
            LinkState::Within { .. } => true,
            LinkState::Closed | LinkState::Pausing(_) | LinkState::Connecting(_) => false,
        }
    }

    /// It was hung up, and what was said before is still on its way.
    pub(super) fn is_closing(&self) -> bool {
        matches!(&self.state, LinkState::Up { wire, .. } if wire.is_closing())
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.state, LinkState::Closed)
    }

    /// What was heard and not yet understood.
    pub(super) fn input(&mut self) -> &mut BytesMut {
        &mut self.input
    }

    /// Without a connection it is lost; conversations know that.
    pub(super) fn say(&mut self, bytes: BytesMut) {
        if let LinkState::Up { wire, .. } = &mut self.state {
            wire.say(bytes);
        }
    }

    /// Whether so much waits to be said that nothing should be added.
    pub(super) fn is_full(&self) -> bool {
        matches!(&self.state, LinkState::Up { wire, .. } if wire.is_full())
    }

    /// Closes the connection when all is said.
    pub(super) fn hang_up(&mut self, next: Next) {
        match &mut self.state {
            LinkState::Up { wire, .. } => {
                self.next = next;
                wire.close();
            }
            _ if next == Next::Never => self.state = LinkState::Closed,
            _ => {}
        }
    }

    /// The next thing that happens; for ever if the link is closed. May be dropped and called again.
    pub(super) async fn turn(&mut self) -> Met {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Met> {
        loop {
            match &mut self.state {
                LinkState::Closed => return Poll::Pending,
                LinkState::Within { is_met, .. } if !*is_met => {
                    *is_met = true;
                    return Poll::Ready(Met::Up);
                }
                LinkState::Within { inbox, .. } => {
                    if ready!(inbox.poll_heard(context)) {
                        return Poll::Ready(Met::Heard);
                    }
                    self.state = LinkState::Closed;
                    return Poll::Ready(Met::Down("the hub stopped".to_owned()));
                }
                LinkState::Pausing(pause) => {
                    ready!(pause.as_mut().poll(context));
                    let connect = self.connect.as_ref().expect("only connections are made again");
                    self.state = LinkState::Connecting(connect.connect());
                }
                LinkState::Connecting(connecting) => {
                    return Poll::Ready(match ready!(connecting.as_mut().poll(context)) {
                        Ok(stream) => {
                            self.input.clear();
                            let since = Instant::now();
                            let wire = Wire::new(
                                stream,
                                if self.lingers { Linger::default() } else { Linger::never() },
                            );
                            self.state = LinkState::Up { wire, since };
                            Met::Up
                        }
                        Err(error) => {
                            // A hub is there, and one will lead in a moment.
                            let next = match error {
                                ConnectError::Follows { .. } => Next::Steady,
                                _ => Next::Later,
                            };
                            self.pause(next);
                            Met::Failed(error)
                        }
                    });
                }
                LinkState::Up { wire, since } => {
                    return Poll::Ready(match ready!(wire.poll(context, &mut self.input)) {
                        WireEvent::Heard => Met::Heard,
                        WireEvent::Room => Met::Room,
                        WireEvent::Closed(why) => {
                            if since.elapsed() >= LASTED {
                                self.backoff.reset();
                            }
                            let next = std::mem::replace(&mut self.next, Next::Soon);
                            self.pause(next);
                            Met::Down(why)
                        }
                    });
                }
            }
        }
    }

    fn pause(&mut self, next: Next) {
        self.state = match next {
            Next::Never => LinkState::Closed,
            Next::Soon => LinkState::Pausing(Box::pin(sleep(self.backoff.soon()))),
            Next::Later => LinkState::Pausing(Box::pin(sleep(self.backoff.later()))),
            Next::Steady => LinkState::Pausing(Box::pin(sleep(self.backoff.steady()))),
        };
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("target", &self.target()).finish_non_exhaustive()
    }
}
