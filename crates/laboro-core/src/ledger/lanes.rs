//! What is ready, in order. A lane holds the ready tasks of one job with one profile; a class holds
//! the lanes that need the same of a worker, a queue for each owner; a group has its classes by their best lane. A job that may
//! not start anything takes its lanes out of their classes, whatever number of tasks is in them. Which owner is next is
//! decided in `accounts`.

mod accounts;

use super::handle::{
    AccountHandle, ClassHandle, JobHandle, LaneHandle, ProfileHandle, QueueHandle, TaskHandle,
};
use super::record::{Link, Phase, Record};
use super::slab::Slab;
use crate::config::Shares;
use crate::id::{GroupId, Name};
use crate::task::{Demand, Needs};
pub(crate) use accounts::most_slots;
use accounts::{Account, GroupQueue, Place, Queue, Rota};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Smaller goes first: higher priority, then whoever stands further in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneOrder {
    unimportance: i64,
    turn: i64,
}

#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) job: JobHandle,
    pub(crate) profile: ProfileHandle,
    pub(crate) kind: Demand,
    /// Of tasks that run alone.
    pub(crate) is_alone: bool,
    pub(crate) class: ClassHandle,
    queue: QueueHandle,
    pub(crate) order: LaneOrder,
    /// Where it stands among the lanes of its job.
    pub(crate) at: u32,
    /// In its class, and so open to workers.
    pub(crate) listed: bool,
    pub(crate) head: TaskHandle,
    tail: TaskHandle,
}

#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) group: GroupId,
    pub(crate) kind: Demand,
    pub(crate) needs: Arc<Needs>,
    /// How long a worker must still be there.
    pub(crate) limit_ms: Option<u64>,
    /// Its tasks want a worker that has nothing else.
    pub(crate) is_alone: bool,
    /// Those of owners that may have more.
    queues: Rota,
    /// Where it stands in its group.
    filed: Option<(Place, LaneOrder)>,
    /// How many lanes are listed, and how many point here at all.
    listed: u32,
    users: u32,
    /// Tells this class from one that had its handle before.
    pub(crate) serial: u64,
}

impl Class {
    fn vacant() -> Class {
        Class {
            group: GroupId::default(),
            kind: Demand::NAMED,
            needs: Arc::default(),
            limit_ms: None,
            is_alone: false,
            queues: Rota::default(),
            filed: None,
            listed: 0,
            users: 0,
            serial: 0,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Slab<LaneHandle, Lane>,
    by_key:
        HashMap<(JobHandle, ProfileHandle, Demand, bool), LaneHandle, foldhash::fast::FixedState>,
    classes: Slab<ClassHandle, Class>,
    class_serial: u64,
    class_by_content: HashMap<ClassKey, ClassHandle, foldhash::fast::FixedState>,
    queues: Slab<QueueHandle, Queue>,
    queue_by_key: HashMap<(ClassHandle, AccountHandle), QueueHandle, foldhash::fast::FixedState>,
    accounts: Slab<AccountHandle, Account>,
    account_by_owner: BTreeMap<(GroupId, Option<Name>), AccountHandle>,
    shares: Arc<Shares>,
    /// Counts changes of accounts.
    stamp: u64,
    groups: Vec<GroupQueue>,
    turns: Turns,
    /// How many classes each group has.
    class_counts: Vec<usize>,
    /// Lanes in which the last task stood no more at some time.
    emptied: Vec<LaneHandle>,
    /// Classes that have something to do and had nothing before; the hub takes these up.
    awake: Vec<ClassHandle>,
}

/// Turns count up from the middle for whoever comes last and down for whoever goes first.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Turns {
    pub(crate) front: i64,
    pub(crate) back: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

impl Lanes {
    pub(crate) fn lane(&self, lane: LaneHandle) -> &Lane {
        &self.lanes[lane]
    }

    pub(crate) fn class(&self, class: ClassHandle) -> &Class {
        &self.classes[class]
    }

    pub(crate) fn class_count(&self, group: GroupId) -> usize {
        self.class_counts.get(group.at()).copied().unwrap_or(0)
    }

    pub(crate) fn set_at(&mut self, lane: LaneHandle, at: usize) {
        self.lanes[lane].at = at as u32;
    }

    /// A lane in which nothing stands, if it is there.
    pub(crate) fn next_emptied(&mut self) -> Option<LaneHandle> {
        while let Some(lane) = self.emptied.pop() {
            let this = &self.lanes[lane];
            if this.job != JobHandle::NONE && this.head == TaskHandle::NONE {
                return Some(lane);
            }
        }
        None
    }

    pub(crate) fn turns(&self) -> Turns {
        self.turns
    }

    pub(crate) fn set_turns(&mut self, turns: Turns) {
        self.turns = turns;
    }

    /// Classes of a group that have something to do, best first.
    pub(crate) fn heads(&self, group: GroupId) -> impl Iterator<Item = ClassHandle> + '_ {
        let heads = self.groups.get(group.at()).into_iter().flat_map(|group| group.heads.iter());
        heads.map(|&(.., class)| class)
    }

    /// How many classes of a group have something to do, also where their owners have as much as they may.
    pub(crate) fn busy_classes(&self, group: GroupId) -> usize {
        self.groups.get(group.at()).map_or(0, |group| group.busy)
    }

    /// Nobody of the class may start anything now.
    pub(crate) fn is_idle(&self, class: ClassHandle) -> bool {
        self.classes[class].queues.is_empty()
    }

    pub(crate) fn take_awake(&mut self) -> Vec<ClassHandle> {
        std::mem::take(&mut self.awake)
    }

    pub(crate) fn nobody_awake(&self) -> bool {
        self.awake.is_empty()
    }

    /// Everything with something to do in the group is to be looked at again.
    pub(crate) fn wake_group(&mut self, group: GroupId) {
        let classes: Vec<ClassHandle> = self.heads(group).collect();
        self.awake.extend(classes);
    }

    /// The lane of a job for a profile, made when it is not there; and whether it was made now.
    pub(crate) fn lane_for(&mut self, key: LaneKey<'_>) -> (LaneHandle, bool) {
        let by = (key.job, key.profile, key.kind, key.is_alone);
        if let Some(&lane) = self.by_key.get(&by) {
            return (lane, false);
        }
        let class = self.class_for(&key);
        let queue = self.queue_for(class, key.account);
        let order = LaneOrder { unimportance: -i64::from(key.priority), turn: 0 };
        let lane = self.lanes.insert(Lane {
            job: key.job,
            profile: key.profile,
            kind: key.kind,
            is_alone: key.is_alone,
            class,
            queue,
            order,
            at: u32::MAX,
            listed: false,
            head: TaskHandle::NONE,
            tail: TaskHandle::NONE,
        });
        self.by_key.insert(by, lane);
        (lane, true)
    }

    fn class_for(&mut self, lane: &LaneKey<'_>) -> ClassHandle {
        let LaneKey { group, kind, is_alone, .. } = *lane;
        let limit_ms = lane.limit_ms.map(rounded);
        let key = (group, kind, Arc::new(lane.needs.clone()), limit_ms, is_alone);
        if let Some(&class) = self.class_by_content.get(&key) {
            self.classes[class].users += 1;
            return class;
        }
        self.class_serial += 1;
        let serial = self.class_serial;
        let needs = key.2.clone();
        let class =
            Class { group, kind, needs, limit_ms, is_alone, serial, users: 1, ..Class::vacant() };
        let class = self.classes.insert(class);
        self.class_by_content.insert(key, class);
        let at = group.at();
        if at >= self.class_counts.len() {
            self.class_counts.resize(at + 1, 0);
        }
        self.class_counts[at] += 1;
        if at >= self.groups.len() {
            self.groups.resize_with(at + 1, GroupQueue::default);
        }
        class
    }

    /// Of a job that is forgotten, or has others. It is empty.
    pub(crate) fn drop_lane(&mut self, lane: LaneHandle) {
        let nobody = LaneOrder { unimportance: 0, turn: 0 };
        let gone = self.lanes.remove(
            lane,
            Lane {
                job: JobHandle::NONE,
                profile: ProfileHandle::NONE,
                kind: Demand::NAMED,
                is_alone: false,
                class: ClassHandle::NONE,
                queue: QueueHandle::NONE,
                order: nobody,
                at: u32::MAX,
                listed: false,
                head: TaskHandle::NONE,
                tail: TaskHandle::NONE,
            },
        );
        debug_assert!(
            gone.head == TaskHandle::NONE && !gone.listed,
            "only an empty lane is dropped"
        );
        self.by_key.remove(&(gone.job, gone.profile, gone.kind, gone.is_alone));
        self.release_queue(gone.queue);
        let class = &mut self.classes[gone.class];
        class.users -= 1;
        if class.users == 0 {
            let gone_class = self.classes.remove(gone.class, Class::vacant());
            let Class { group, kind, needs, limit_ms, is_alone, .. } = gone_class;
            self.class_counts[group.at()] -= 1;
            self.class_by_content.remove(&(group, kind, needs, limit_ms, is_alone));
            self.awake.retain(|&awake| awake != gone.class);
        }
    }

    /// Puts a task or a gate into the lane. `open` says whether its job may start anything.
    pub(crate) fn push(
        &mut self,
        tasks: &mut Slab<TaskHandle, Record>,
        lane: LaneHandle,
        handle: TaskHandle,
        end: End,
        open: bool,
    ) {
        let was_empty = self.lanes[lane].head == TaskHandle::NONE;
        let (prev, next) = match end {
            End::Front => (TaskHandle::NONE, self.lanes[lane].head),
            End::Back => (self.lanes[lane].tail, TaskHandle::NONE),
        };
        set_link(&mut tasks[handle], Link { lane, prev, next });
        let this = &mut self.lanes[lane];
        match end {
            End::Front => {
                this.head = handle;
                if next == TaskHandle::NONE {
                    this.tail = handle;
                } else {
                    link_mut(&mut tasks[next]).prev = handle;
                }
            }
            End::Back => {
                this.tail = handle;
                if prev == TaskHandle::NONE {
                    this.head = handle;
                } else {
                    link_mut(&mut tasks[prev]).next = handle;
                }
            }
        }
        if was_empty {
            self.lanes[lane].order.turn = self.take_turn(end);
            if open {
                self.list(lane);
            }
        }
    }

    /// Puts a task right before another that stands in a lane.
    pub(crate) fn push_before(
        &mut self,
        tasks: &mut Slab<TaskHandle, Record>,
        other: TaskHandle,
        handle: TaskHandle,
    ) {
        let Link { lane, prev, .. } = *link_mut(&mut tasks[other]);
        link_mut(&mut tasks[other]).prev = handle;
        set_link(&mut tasks[handle], Link { lane, prev, next: other });
        if prev == TaskHandle::NONE {
            self.lanes[lane].head = handle;
        } else {
            link_mut(&mut tasks[prev]).next = handle;
        }
    }

    fn take_turn(&mut self, end: End) -> i64 {
        match end {
            End::Front => {
                self.turns.front -= 1;
                self.turns.front
            }
            End::Back => {
                self.turns.back += 1;
                self.turns.back
            }
        }
    }

    /// Takes a task or a gate out of its lane, wherever it stands there.
    pub(crate) fn unlink(&mut self, tasks: &mut Slab<TaskHandle, Record>, handle: TaskHandle) {
        let Link { lane, prev, next } = *link_mut(&mut tasks[handle]);
        *link_mut(&mut tasks[handle]) = Link::OUT;
        if prev == TaskHandle::NONE {
            self.lanes[lane].head = next;
        } else {
            link_mut(&mut tasks[prev]).next = next;
        }
        if next == TaskHandle::NONE {
            self.lanes[lane].tail = prev;
        } else {
            link_mut(&mut tasks[next]).prev = prev;
        }
        if self.lanes[lane].head == TaskHandle::NONE {
            self.emptied.push(lane);
            if self.lanes[lane].listed {
                self.unlist(lane);
            }
        }
    }

    /// The job may start things, or may not any more.
    pub(crate) fn open(&mut self, lane: LaneHandle, open: bool) {
        let this = &self.lanes[lane];
        if open && !this.listed && this.head != TaskHandle::NONE {
            self.list(lane);
        } else if !open && this.listed {
            self.unlist(lane);
        }
    }

    fn list(&mut self, lane: LaneHandle) {
        let Lane { class, queue, order, .. } = self.lanes[lane];
        self.lanes[lane].listed = true;
        let this = &mut self.classes[class];
        this.listed += 1;
        if this.listed == 1 {
            self.groups[this.group.at()].busy += 1;
        }
        self.insert_lane(queue, order, lane);
    }

    fn unlist(&mut self, lane: LaneHandle) {
        let Lane { class, queue, order, .. } = self.lanes[lane];
        self.lanes[lane].listed = false;
        let this = &mut self.classes[class];
        this.listed -= 1;
        if this.listed == 0 {
            self.groups[this.group.at()].busy -= 1;
        }
        self.remove_lane(queue, order, lane);
    }

    /// The lane goes behind all others of its priority, unless it is alone.
    pub(crate) fn yield_turn(&mut self, lane: LaneHandle) {
        let Lane { class, queue, order: old, listed, .. } = self.lanes[lane];
        let this = &self.classes[class];
        if !listed || (this.listed == 1 && self.groups[this.group.at()].busy == 1) {
            return;
        }
        self.lanes[lane].order.turn = self.take_turn(End::Back);
        self.move_lane(queue, lane, old, self.lanes[lane].order);
    }

    /// Only for restoring: the turn that the lane had.
    pub(crate) fn set_turn(&mut self, lane: LaneHandle, turn: i64) {
        self.lanes[lane].order.turn = turn;
    }

    pub(crate) fn turn(&self, lane: LaneHandle) -> i64 {
        self.lanes[lane].order.turn
    }
}

/// What a lane is for.
pub(crate) struct LaneKey<'a> {
    pub(crate) job: JobHandle,
    pub(crate) group: GroupId,
    pub(crate) account: AccountHandle,
    pub(crate) profile: ProfileHandle,
    pub(crate) kind: Demand,
    pub(crate) priority: i32,
    pub(crate) needs: &'a Needs,
    pub(crate) limit_ms: Option<u64>,
    pub(crate) is_alone: bool,
}

type ClassKey = (GroupId, Demand, Arc<Needs>, Option<u64>, bool);

/// Up to the next of a few numbers, at most a sixteenth more, so that tasks with a thousand different limits
/// still form few classes.
fn rounded(limit_ms: u64) -> u64 {
    let step = 1 << limit_ms.max(1).ilog2().saturating_sub(4);
    limit_ms.checked_next_multiple_of(step).unwrap_or(u64::MAX)
}

fn link_mut(record: &mut Record) -> &mut Link {
    match &mut record.phase {
        Phase::Ready(link) | Phase::Gate(link) => link,
        other => unreachable!("only ready tasks and gates stand in lanes, not {other:?}"),
    }
}

fn set_link(record: &mut Record, link: Link) {
    match &mut record.phase {
        Phase::Gate(here) => *here = link,
        phase => *phase = Phase::Ready(link),
    }
}
