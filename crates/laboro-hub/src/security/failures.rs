//! Wrong tokens and passwords, counted by where they came from. Many different ones from one address are guesses, and
//! the address has to wait; the same wrong one again is a worker with an old access file, and is not.

use laboro_api::access::Hash;
use laboro_core::Time;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// So many different wrong tokens in one window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoginLimits {
    pub(crate) wrong_max: u32,
    pub(crate) window_ms: u64,
}

impl Default for LoginLimits {
    fn default() -> LoginLimits {
        LoginLimits { wrong_max: 10, window_ms: 60_000 }
    }
}

/// Addresses that are remembered.
const PEERS_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Failures {
    limits: LoginLimits,
    peers: HashMap<IpAddr, Wrong>,
}

#[derive(Debug)]
struct Wrong {
    since: Time,
    count: u32,
    last: Hash,
}

impl Failures {
    pub fn new(limits: LoginLimits) -> Failures {
        Failures { limits, peers: HashMap::new() }
    }

    /// How many seconds this peer has to wait, if it has to.
    pub fn wait_s(&self, peer: Option<IpAddr>, now: Time) -> Option<u64> {
        let wrong = self.peers.get(&network(peer?))?;
        let left = self.limits.window_ms.saturating_sub(now.since_ms(wrong.since));
        (wrong.count >= self.limits.wrong_max && left > 0).then(|| left.div_ceil(1000))
    }

    pub fn note(&mut self, peer: Option<IpAddr>, shown: Hash, now: Time) {
        let Some(peer) = peer.map(network) else { return };
        let window_ms = self.limits.window_ms;
        if self.peers.len() >= PEERS_MAX && !self.peers.contains_key(&peer) {
            self.peers.retain(|_, wrong| now.since_ms(wrong.since) < window_ms);
            if self.peers.len() >= PEERS_MAX {
                // So many at once is no guessing from one place; what counts is that memory stays bounded.
                self.peers.clear();
            }
        }
        let new = Wrong { since: now, count: 0, last: [0; 32] };
        let wrong = self.peers.entry(peer).or_insert(new);
        if now.since_ms(wrong.since) >= window_ms {
            *wrong = Wrong { since: now, count: 0, last: wrong.last };
        }
        if wrong.last != shown {
            wrong.count += 1;
            wrong.last = shown;
        }
    }
}

/// Whoever has one IPv6 address usually has the other 2^64 of its network too.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let high = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(high))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
