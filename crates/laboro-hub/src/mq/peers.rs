//! The connections by their numbers, and when each has to be looked at. A number is a place and how often the
//! place was used, so that none means two connections.

use super::peer::BrokerPeer;
use laboro_core::{PeerId, Time};
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Peers {
    places: Vec<PeerPlace>,
    unused: Vec<u32>,
    count: usize,
    timers: BTreeSet<(Time, u64)>,
    unread_bytes: usize,
}

#[derive(Default)]
struct PeerPlace {
    uses: u32,
    peer: Option<Box<BrokerPeer>>,
}

impl Peers {
    pub fn len(&self) -> usize {
        self.count
    }

    /// The number that the next one will have.
    pub fn next_id(&mut self) -> PeerId {
        if self.unused.is_empty() {
            let place = u32::try_from(self.places.len()).expect("fewer than 2^32 connections");
            self.places.push(PeerPlace::default());
            self.unused.push(place);
        }
        let place = *self.unused.last().expect("one was just made");
        number(place, self.places[place as usize].uses)
    }

    pub fn insert(&mut self, id: PeerId, peer: BrokerPeer) {
        let place = self.unused.pop().expect("its number was asked for");
        debug_assert_eq!(u64::from(place), id.0 & 0xffff_ffff);
        self.places[place as usize].peer = Some(Box::new(peer));
        self.count += 1;
    }

    #[inline]
    pub fn get(&mut self, id: PeerId) -> Option<&mut BrokerPeer> {
        let (place, uses) = split(id);
        let place = self.places.get_mut(place)?;
        place.peer.as_deref_mut().filter(|_| place.uses == uses)
    }

    pub fn remove(&mut self, id: PeerId) -> Option<BrokerPeer> {
        let (index, uses) = split(id);
        let place = self.places.get_mut(index).filter(|place| place.uses == uses)?;
        let peer = place.peer.take()?;
        // The last number of all would be that of a socket which is no peer.
        place.uses = (uses + 1) % (u32::MAX - 1);
        self.unused.push(index as u32);
        self.count -= 1;
        self.unread_bytes -= peer.counted;
        if let Some(at) = peer.timer {
            self.timers.remove(&(at, id.0));
        }
        Some(*peer)
    }

    /// What all peers together have not read, as far as it was counted.
    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes
    }

    /// Something was said to it, or it has read something.
    #[inline]
    pub fn count_unread(&mut self, id: PeerId) {
        let Some(peer) = self.get(id) else { return };
        let (unread, counted) = (peer.unsent.len(), peer.counted);
        peer.counted = unread;
        self.unread_bytes = self.unread_bytes + unread - counted;
    }

    /// The one that has left the most unread.
    pub fn slowest(&self) -> Option<PeerId> {
        let peers = self.places.iter().enumerate();
        let peers = peers.filter_map(|(at, place)| Some((at, place.uses, place.peer.as_deref()?)));
        let slowest = peers.max_by_key(|(.., peer)| peer.counted);
        slowest.map(|(at, uses, _)| number(at as u32, uses))
    }

    /// Its deadline may have changed. A timer that is too early is left: when it comes, the deadline is
    /// looked at again.
    pub fn schedule(&mut self, id: PeerId, write_ms: u64) {
        let Some(peer) = self.get(id) else { return };
        let (old, wanted) = (peer.timer, peer.deadline(write_ms));
        let Some(at) = wanted.filter(|&at| old.is_none_or(|old| at < old)) else { return };
        peer.timer = Some(at);
        if let Some(old) = old {
            self.timers.remove(&(old, id.0));
        }
        self.timers.insert((at, id.0));
    }

    pub fn deadline(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// The next one whose timer has come; it has none after that.
    pub fn due(&mut self, now: Time) -> Option<PeerId> {
        let &(at, id) = self.timers.first().filter(|&&(at, _)| at <= now)?;
        self.timers.remove(&(at, id));
        let id = PeerId(id);
        if let Some(peer) = self.get(id) {
            peer.timer = None;
        }
        Some(id)
    }
}

fn number(place: u32, uses: u32) -> PeerId {
    PeerId(u64::from(uses) << 32 | u64::from(place))
}

fn split(id: PeerId) -> (usize, u32) {
    ((id.0 & 0xffff_ffff) as usize, (id.0 >> 32) as u32)
}
