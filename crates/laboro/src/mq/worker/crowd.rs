//! The workers that `bulk` adds to a console's own: each with a connection and a name of its own.

use super::member::{Member, MemberOrder, Trade};
use laboro_clients::mq::Target;
use laboro_dialects::rrmq::WorkerTally;
use std::time::Duration;

pub(super) struct Crowd {
    target: Target,
    trade: Trade,
    members: Vec<Member>,
    /// All that ever were: names are not used twice.
    started: usize,
}

impl Crowd {
    pub(super) fn new(target: Target, trade: Trade) -> Crowd {
        Crowd { target, trade, members: Vec::new(), started: 0 }
    }

    /// So many more. Says how many of these the server has taken within the time.
    pub(super) async fn grow(&mut self, count: usize, patience: Duration) -> usize {
        let first = self.members.len();
        for _ in 0..count {
            self.started += 1;
            let member = Member::start(self.target.child(self.started), self.trade.clone());
            member.order(MemberOrder::Register);
            self.members.push(member);
        }
        let mut registered = 0;
        let all = async {
            for member in &mut self.members[first..] {
                member.registered().await;
                registered += 1;
            }
        };
        // Those that are still out go on trying.
        let _ = tokio::time::timeout(patience, all).await;
        registered
    }

    /// All of them deregister and go.
    pub(super) async fn leave(&mut self) -> Vec<WorkerTally> {
        self.members.iter().for_each(|member| member.order(MemberOrder::Leave));
        let mut tallies = Vec::with_capacity(self.members.len());
        for mut member in self.members.drain(..) {
            tallies.push(member.gone().await);
        }
        tallies
    }
}
