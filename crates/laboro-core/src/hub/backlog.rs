//! What the group could run now if it had more workers. Between commands nobody who waits fits anything that is ready, so
//! what is ready is what has no worker. The look has a bound, whatever number of tasks there is.

use super::Hub;
use crate::backlog::Backlog;
use crate::id::GroupId;
use crate::ledger::{LaneHandle, Phase, TaskHandle};
use crate::task::State;

/// A look at more says nothing new to those who start workers.
const CLASSES_MAX: usize = 256;
const RECORDS_MAX: usize = 20_000;

impl Hub {
    pub(super) fn backlog(&self, group: GroupId, most: u64) -> Vec<Backlog> {
        let ledger = self.ledger();
        if ledger.group(group).paused {
            return Vec::new();
        }
        let mut records = RECORDS_MAX;
        let classes = ledger.lanes().heads(group).take(CLASSES_MAX);
        classes
            .map(|class| {
                let mut tasks = 0;
                for (may_have, lanes) in ledger.lanes().open_queues(class) {
                    let mut of_owner = 0;
                    for lane in lanes {
                        of_owner = may_have.min(of_owner + self.ready_in(lane, &mut records));
                        if tasks + of_owner >= most || of_owner == may_have || records == 0 {
                            break;
                        }
                    }
                    tasks = most.min(tasks + of_owner);
                    if tasks == most || records == 0 {
                        break;
                    }
                }
                let class = ledger.lanes().class(class);
                // Each of them wants so many workers.
                let tasks = tasks.saturating_mul(class.needs.nodes.max(1).into()).min(most);
                Backlog { needs: class.needs.clone(), limit_ms: class.limit_ms, tasks }
            })
            .collect()
    }

    /// No more than its job may have running.
    fn ready_in(&self, lane: LaneHandle, records: &mut usize) -> u64 {
        let ledger = self.ledger();
        let lane = ledger.lanes().lane(lane);
        let job = ledger.job(lane.job);
        let most = job
            .options
            .max_running
            .map_or(u32::MAX, |most| most.saturating_sub(job.counts.of(State::Leased)));
        let (mut at, mut tasks) = (lane.head, 0);
        while at != TaskHandle::NONE && *records > 0 && tasks < u64::from(most) {
            *records -= 1;
            at = match ledger.task(at).phase {
                Phase::Gate(link) => {
                    let (job, array) = ledger.array_of(at);
                    tasks += u64::from(ledger.job(job).arrays[array].fresh.len());
                    link.next
                }
                Phase::Ready(link) => {
                    tasks += 1;
                    link.next
                }
                _ => break,
            };
        }
        tasks.min(most.into())
    }
}
