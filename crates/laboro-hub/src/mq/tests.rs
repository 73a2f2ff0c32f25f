//! The door over real sockets: what it passes on, and what it stands.

mod hostile;
mod turns;
mod wire;

use super::*;
use wire::Wire;

fn door(change: impl FnOnce(&mut MqSettings)) -> RunningBroker {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = MqSettings::new("tcp://server");
    change(&mut settings);
    serve(listener, settings).unwrap()
}

impl RunningBroker {
    fn dial(&self, identity: &str) -> Wire {
        Wire::dial(self.address, identity)
    }

    fn now(&self) -> BrokerTable {
        self.table().expect("the server runs")
    }

    /// Looks again and again until it holds.
    #[track_caller]
    fn until(&self, holds: impl Fn(&BrokerTable) -> bool) {
        let deadline = std::time::Instant::now() + wire::PATIENCE;
        while !holds(&self.now()) {
            assert!(std::time::Instant::now() < deadline, "{:?}", self.now());
        }
    }

    fn dropped(&self, why: &str) -> u64 {
        self.now().dropped.get(why).copied().unwrap_or(0)
    }
}
