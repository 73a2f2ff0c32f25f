//! The server's side of all conversations of one door: what peers say becomes words for the broker, what the
//! broker does becomes messages. One for all connections, driven by one thread.

use super::codec::{App, Command, Envelope, decimal};
use crate::zmtp::Message;
use bytes::Bytes;
use laboro_core::{Act, Broker, BrokerConfig, Dropped, Name, PeerId, Time};
use std::collections::HashMap;

/// The broker of one door with the words of its peers.
#[derive(Debug)]
pub struct Server {
    broker: Broker<Message>,
    /// By the connections' numbers, which are our own.
    identities: HashMap<PeerId, Bytes>,
    acts: Vec<Act<Message>>,
    probes: u64,
    /// The ids of PINGs of ours that were not answered yet.
    probed: HashMap<PeerId, Bytes>,
}

/// What the door must do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Effect {
    /// Send this message to this peer.
    Send { to: PeerId, message: Message },
    /// Close the connection of this peer.
    Close { peer: PeerId },
}

impl Server {
    /// Without peers. The seed decides between workers that are equally good.
    pub fn new(config: BrokerConfig, seed: u64) -> Server {
        Server {
            broker: Broker::new(config, seed),
            identities: HashMap::new(),
            acts: Vec::new(),
            probes: 0,
            probed: HashMap::new(),
        }
    }

    /// A connection has its ZMTP handshake behind it. A peer without an identity gets one, as from any
    /// ROUTER: a zero first, which no socket may begin its own with.
    pub fn open(&mut self, now: Time, peer: PeerId, identity: &[u8], out: &mut Vec<Effect>) {
        let identity = if identity.is_empty() {
            Bytes::from([&[0][..], &peer.0.to_be_bytes()].concat())
        } else {
            Bytes::copy_from_slice(identity)
        };
        self.broker.open(now, peer, Name::new(&identity), &mut self.acts);
        self.identities.insert(peer, identity);
        self.act(out);
    }

    /// The connection is gone.
    pub fn close(&mut self, now: Time, peer: PeerId) {
        self.forget(peer);
        self.broker.close(now, peer);
    }

    /// One message of a peer. What is not understood or goes nowhere is counted: the wire has no words for a
    /// refusal, and a client would take any answer for success.
    pub fn receive(
        &mut self,
        now: Time,
        peer: PeerId,
        message: Message,
        out: &mut Vec<Effect>,
    ) -> Result<(), Dropped> {
        self.broker.hear(now, peer);
        let Some(sender) = self.identities.get(&peer).cloned() else {
            self.broker.count(Dropped::UnknownPeer);
            return Err(Dropped::UnknownPeer);
        };
        let received = match message.get(0) {
            Some(first) if !first.is_empty() => self.pass(message, sender),
            _ => self.take(now, peer, message, sender, out),
        };
        self.act(out);
        received
    }

    /// When `tick` is to be called at the latest.
    pub fn deadline(&self) -> Option<Time> {
        self.broker.deadline()
    }

    /// The deadline has come.
    pub fn tick(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.broker.tick(now, &mut self.acts);
        self.act(out);
    }

    /// The broker, to be looked at.
    pub fn broker(&self) -> &Broker<Message> {
        &self.broker
    }

    /// A message with an address goes there, whatever it says: only its ends change.
    fn pass(&mut self, mut message: Message, sender: Bytes) -> Result<(), Dropped> {
        let to = Name::new(&message.0.remove(0));
        if message.is_empty() {
            self.broker.count(Dropped::Malformed);
            return Err(Dropped::Malformed);
        }
        message.push(sender);
        self.broker.pass(&to, message, &mut self.acts)
    }

    fn take(
        &mut self,
        now: Time,
        peer: PeerId,
        mut message: Message,
        sender: Bytes,
        out: &mut Vec<Effect>,
    ) -> Result<(), Dropped> {
        let Ok(envelope) = Envelope::parse(&message) else {
            self.broker.count(Dropped::Malformed);
            return Err(Dropped::Malformed);
        };
        let mut answer = |command| {
            let message = envelope.answer(command, []).to_message();
            out.push(Effect::Send { to: peer, message });
        };
        match (envelope.command, envelope.app()) {
            (Command::Ping, _) => answer(Command::Pong),
            (Command::Pong, _) if self.probed.get(&peer) == Some(&envelope.id) => {
                self.probed.remove(&peer);
            }
            (Command::Pong | Command::TrackAddress | Command::Response, _) => {
                self.broker.count(Dropped::Unasked);
                return Err(Dropped::Unasked);
            }
            (Command::Exec | Command::TrackExec, None) => {
                self.broker.count(Dropped::Malformed);
                return Err(Dropped::Malformed);
            }
            (command, Some(App::Register)) => {
                let slots = envelope.args.get(1).and_then(|slots| decimal(slots));
                let Some(slots) = slots.filter(|_| envelope.args.len() == 2) else {
                    self.broker.count(Dropped::BadSlots);
                    return Err(Dropped::BadSlots);
                };
                // The answer goes before any request that the new slots let through.
                self.broker.register(now, peer, slots, &mut self.acts)?;
                if command == Command::TrackExec {
                    answer(Command::Response);
                }
            }
            (_, Some(App::Deregister)) => self.broker.deregister(peer),
            (_, Some(App::Increment)) => self.broker.increment(now, peer, &mut self.acts),
            (_, Some(_)) => {
                message.push(sender);
                let bytes = message.held_bytes();
                // What waits is moved out of the buffer it was read into, which it would hold.
                let keep = |message: Message| message.compact();
                return self.broker.request(now, message, bytes, keep, &mut self.acts);
            }
        }
        Ok(())
    }

    fn forget(&mut self, peer: PeerId) {
        self.identities.remove(&peer);
        self.probed.remove(&peer);
    }

    fn act(&mut self, out: &mut Vec<Effect>) {
        for act in self.acts.drain(..) {
            out.push(match act {
                Act::Send { to, message } => Effect::Send { to, message },
                Act::Probe { to } => {
                    self.probes += 1;
                    let id = Bytes::copy_from_slice(&self.probes.to_le_bytes());
                    self.probed.insert(to, id.clone());
                    let message = Envelope::new(Command::Ping, id, []).to_message();
                    Effect::Send { to, message }
                }
                Act::Close { peer } => {
                    self.identities.remove(&peer);
                    self.probed.remove(&peer);
                    Effect::Close { peer }
                }
            });
        }
    }
}
