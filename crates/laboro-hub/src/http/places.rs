//! The connections that are open, and which one makes room when there are as many as may be: of the address that
//! comes again, or else of the one that has most, the one that has been silent longest. Connections that have
//! asked something go after those that never did; those with a request under way stay.

use super::limits::Limits;
use super::quiet::Quiet;
use crate::listen::allows;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What happens at the HTTP door, in numbers.
#[derive(Debug, Default)]
pub struct ServeStats {
    open: Mutex<OpenConnections>,
    connections_total: AtomicU64,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct OpenConnections {
    count: usize,
    next: u64,
    /// In the order in which they came.
    addresses: HashMap<IpAddr, BTreeMap<u64, Connection>>,
}

#[derive(Debug)]
struct Connection {
    quiet: Quiet,
    go: Arc<Notify>,
}

/// One connection's place among them.
pub(super) struct ConnectionPlace {
    stats: Arc<ServeStats>,
    address: IpAddr,
    number: u64,
    pub(super) quiet: Quiet,
    go: Arc<Notify>,
}

impl ServeStats {
    /// Open now.
    pub fn connections(&self) -> u64 {
        self.open().count as u64
    }

    pub fn connections_total(&self) -> u64 {
        self.connections_total.load(Ordering::Relaxed)
    }

    /// Turned away or ended because a limit was reached, or because it may not come from there.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn admit(
        self: &Arc<ServeStats>,
        address: IpAddr,
        limits: &Limits,
    ) -> Option<ConnectionPlace> {
        let mut open = self.open();
        if !allows(&limits.allow, address) || !self.make_room(&mut open, address, limits) {
            self.refuse();
            return None;
        }
        let (quiet, go) = (Quiet::new(), Arc::new(Notify::new()));
        open.count += 1;
        open.next += 1;
        let number = open.next;
        let connection = Connection { quiet: quiet.clone(), go: go.clone() };
        open.addresses.entry(address).or_default().insert(number, connection);
        drop(open);
        self.connections_total.fetch_add(1, Ordering::Relaxed);
        Some(ConnectionPlace { stats: self.clone(), address, number, quiet, go })
    }

    fn make_room(&self, open: &mut OpenConnections, address: IpAddr, limits: &Limits) -> bool {
        let here = open.addresses.get(&address).map_or(0, BTreeMap::len);
        let from = if here >= limits.connections_per_address {
            address
        } else if open.count >= limits.connections {
            let most = open.addresses.iter().max_by_key(|(_, connections)| connections.len());
            most.map_or(address, |(address, _)| *address)
        } else {
            return true;
        };
        let connections = open.addresses.get(&from).into_iter().flatten();
        let silent = connections.filter_map(|(&number, connection)| {
            connection.quiet.since().map(|since| (since, number))
        });
        let Some((_, number)) = silent.min() else { return false };
        let gone = open.remove(from, number);
        gone.inspect(|connection| connection.go.notify_one());
        self.refuse();
        true
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    fn remove(&mut self, address: IpAddr, number: u64) -> Option<Connection> {
        let connections = self.addresses.get_mut(&address)?;
        let gone = connections.remove(&number)?;
        if connections.is_empty() {
            self.addresses.remove(&address);
        }
        self.count -= 1;
        Some(gone)
    }
}

impl ConnectionPlace {
    /// Comes when another connection needs it.
    pub(super) async fn must_go(&self) {
        self.go.notified().await;
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        // Unless it was taken away before.
        self.stats.open().remove(self.address, self.number);
    }
}
