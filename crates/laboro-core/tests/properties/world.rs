//! A hub with a naive model, a standby and a crew of workers beside it. Every batch goes through
//! `World::step`, which looks for broken promises.

use crate::fairness;
use crate::model::{Model, Phase};
use laboro_core::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::mem::Discriminant;

pub struct World {
    pub hub: Hub,
    /// Those who said in this step that they go; they may have asked for more after that.
    leaving: Vec<WorkerId>,
    config: Config,
    pub now: Time,
    pub model: Model,
    /// Gets every event and nothing else.
    standby: Ledger,
    pub crew: BTreeMap<WorkerId, Crew>,
    /// Offers that wait for their reply.
    pub waiting: BTreeMap<Token, Waiting>,
    /// Leases that were live once, for stale and repeated results.
    pub old_leases: Vec<(WorkerId, TaskId, LeaseNo)>,
    /// Leases that their worker asked for: those may be more than it has room for.
    pulled: BTreeSet<LeaseNo>,
    /// Every join: a worker may have got its tasks when it had more.
    joins: Vec<Join>,
    next_token: u64,
    pub next_session: u64,
    trace: bool,
    /// Which kinds of events there were.
    pub kinds: HashSet<Discriminant<Event>>,
    pub steps: u64,
}

/// A worker as it said it was.
#[derive(Debug, Clone)]
pub struct Crew {
    pub join: Join,
    pub pushes: bool,
    pub connected: bool,
    pub draining: bool,
    /// Less than it said, while some of it drains.
    pub slots: u32,
    /// It leaves then.
    pub until: Option<Time>,
}

#[derive(Debug, Clone)]
pub struct Waiting {
    pub worker: WorkerId,
    pub most: u32,
}

impl World {
    pub fn new(config: Config) -> World {
        let (hub, batch) = Hub::begin(Ledger::default(), config.clone(), Time(1000), 7);
        let mut world = World {
            hub,
            config,
            now: Time(1000),
            model: Model::default(),
            standby: Ledger::default(),
            crew: BTreeMap::new(),
            waiting: BTreeMap::new(),
            old_leases: Vec::new(),
            pulled: BTreeSet::new(),
            joins: Vec::new(),
            next_token: 1,
            next_session: 1,
            kinds: HashSet::new(),
            trace: std::env::var_os("LABORO_TRACE").is_some(),
            steps: 0,
            leaving: Vec::new(),
        };
        world.absorb(batch, &mut BTreeMap::new());
        world
    }

    /// One batch of commands; gives the replies in the order of the commands, `None` for those that wait.
    pub fn step(&mut self, commands: Vec<Command>) -> Vec<Option<Reply>> {
        let mut owed: BTreeMap<Token, Option<Waiting>> = BTreeMap::new();
        let mut tokens = Vec::new();
        let asks = commands.into_iter().map(|command| {
            let token = Token(self.next_token);
            self.next_token += 1;
            tokens.push(token);
            owed.insert(token, self.waiting_for(&command));
            Ask { token, command }
        });
        let asks: Vec<Ask> = asks.collect();
        let joins = asks.iter().filter_map(|ask| match &ask.command {
            Command::Join(join) => Some(join.clone()),
            _ => None,
        });
        self.joins.extend(joins);
        self.leaving = (asks.iter())
            .filter_map(|ask| match &ask.command {
                Command::Leave(Leave { worker: WorkerRef::Id(worker), .. }) => Some(*worker),
                _ => None,
            })
            .collect();
        let batch = self.hub.step(self.now, asks);
        let mut replies = self.absorb(batch, &mut owed);
        self.steps += 1;
        for (token, waits) in owed {
            let waits = waits.unwrap_or_else(|| panic!("command {token:?} got no reply"));
            self.waiting.insert(token, waits);
        }
        tokens.iter().map(|token| replies.remove(token)).collect()
    }

    pub fn ask(&mut self, command: Command) -> Option<Reply> {
        self.step(vec![command]).remove(0)
    }

    fn waiting_for(&self, command: &Command) -> Option<Waiting> {
        let Command::Offer(Offer { worker: WorkerRef::Id(worker), route, .. }) = command else {
            return None;
        };
        match *route {
            Route::Answer { most, patience: Patience::Until(_) } => {
                Some(Waiting { worker: *worker, most })
            }
            _ => None,
        }
    }

    fn absorb(
        &mut self,
        batch: Batch,
        owed: &mut BTreeMap<Token, Option<Waiting>>,
    ) -> BTreeMap<Token, Reply> {
        let mut leased = BTreeSet::new();
        for event in &batch.events {
            if self.trace {
                eprintln!("{} {event:?}", batch.at.0);
            }
            self.kinds.insert(std::mem::discriminant(event));
            self.remember_ending(event);
            if let Event::Leased { task, share, .. } = event {
                let shares = &self.config.shares;
                let unfair = fairness::unfair(&self.model, shares, *task, share.as_deref());
                assert_eq!(unfair, None, "after {} steps", self.steps);
            }
            self.model.follow(batch.at, event);
            self.standby.apply(batch.at, event);
            if let Event::PredsAdded { task, .. } | Event::Returned { task, .. } = event {
                assert!(!self.model.waits_for_itself(*task), "{task} waits for itself");
            }
            if let Event::Leased { task, lease, worker, .. } = event {
                self.check_understood(*worker, *task);
                leased.insert((*worker, *task, *lease));
            }
        }
        let mut replies = BTreeMap::new();
        let mut granted = BTreeSet::new();
        let mut dispatched = Vec::new();
        for effect in batch.release(Nowhere.receipt()) {
            match effect {
                Effect::Reply { token, reply } => {
                    let expected =
                        owed.remove(&token).is_some() || self.waiting.remove(&token).is_some();
                    assert!(
                        expected,
                        "{token:?} gets a second reply, or one that nobody asked for: {reply:?}"
                    );
                    if let Reply::Work { worker, grants } = &reply {
                        granted.extend(grants.iter().map(|g| (*worker, g.task, g.lease)));
                        self.pulled.extend(grants.iter().map(|grant| grant.lease));
                    }
                    replies.insert(token, reply);
                }
                Effect::Dispatch { worker, grants, .. } => {
                    dispatched.push(worker);
                    granted.extend(grants.iter().map(|g| (worker, g.task, g.lease)));
                }
                Effect::Revoke { leases, .. } => {
                    let live: BTreeSet<LeaseNo> = self.model.leases().iter().map(|l| l.1).collect();
                    assert!(
                        leases.iter().all(|(_, no)| !live.contains(no)),
                        "a live lease is revoked"
                    );
                }
                Effect::Stop { .. } | Effect::Replaced { .. } | Effect::Notify { .. } => {}
            }
        }
        dispatched.into_iter().for_each(|worker| self.check_room(worker));
        assert_eq!(leased, granted, "what is leased is what is given out");
        replies
    }

    fn remember_ending(&mut self, event: &Event) {
        let (Event::Finished { task, .. }
        | Event::Returned { task, .. }
        | Event::HeldBack { task, .. }) = event
        else {
            return;
        };
        if let Phase::Leased { lease, worker, .. } = self.model.tasks[task].phase {
            self.old_leases.push((worker, *task, lease));
            if self.old_leases.len() > 40 {
                self.old_leases.remove(0);
            }
        }
    }

    /// Somebody who only takes what is pushed is never given more than it has.
    fn check_room(&self, worker: WorkerId) {
        let used = self.used(worker);
        let Some(crew) = self.crew.get(&worker).filter(|_| !used.pulled) else { return };
        let known = |join: &&Join| join.name == crew.join.name && join.group == crew.join.group;
        let said = self.joins.iter().filter(known).map(|join| &join.capacity);
        let slots = said.clone().map(|has| has.slots).max().unwrap_or(0);
        let memory = said.map(|has| has.memory).max().unwrap_or(0);
        assert!(used.slots <= slots, "{worker:?} has {slots} slots, {} used", used.slots);
        assert!(used.memory <= memory, "{worker:?} has {memory} memory, {} used", used.memory);
    }

    /// Nobody gets work of a kind, or with fields, that it never said it knows.
    fn check_understood(&self, worker: WorkerId, task: TaskId) {
        // Who asks without having joined has said nothing of what it knows.
        let Some(crew) = self.crew.get(&worker).filter(|crew| crew.connected) else { return };
        if self.leaving.contains(&worker) {
            return;
        }
        let known = |join: &&Join| join.name == crew.join.name && join.group == crew.join.group;
        let mut said = self.joins.iter().filter(known).chain([&crew.join]);
        let demand = self.model.tasks[&task].demand;
        assert!(said.any(|join| join.kinds.has(demand)), "{worker:?} does not understand {task}");
    }

    pub fn used(&self, worker: WorkerId) -> Used {
        let mut used = Used { slots: 0, memory: 0, leases: 0, gpus: [0; 128], pulled: false };
        for (task, lease, share) in self.model.held_by(worker) {
            let needs = task.way(share);
            used.leases += 1;
            used.pulled |= self.pulled.contains(&lease);
            used.slots += needs.slots;
            used.memory += needs.memory;
            let mut got = 0;
            for (_, portion) in share.into_iter().flat_map(|share| &share.portions) {
                for item in 0..128 {
                    let whole = (portion.items >> item & 1) as u64 * Amount::PARTS;
                    let shared = portion.shared.filter(|(one, _)| usize::from(*one) == item);
                    let parts = whole + shared.map_or(0, |(_, parts)| u64::from(parts));
                    used.gpus[item] += parts;
                    got += parts;
                    assert!(
                        used.gpus[item] <= Amount::PARTS,
                        "a gpu is given out beyond one whole"
                    );
                }
            }
            match needs.resources.first() {
                None => assert_eq!(got, 0, "a task gets no gpu that it does not need"),
                Some((_, Request::Some(amount))) => {
                    assert_eq!(got, amount.parts(), "a task gets as many gpus as it needs");
                }
                Some((_, Request::All)) => assert!(got > 0, "all gpus are some"),
            }
        }
        used
    }

    pub fn pass(&mut self, ms: u64) {
        self.now = self.now.after_ms(ms);
    }

    /// The hub stops and comes back with what the journal has, in full or condensed.
    pub fn restart(&mut self, condensed: bool) {
        self.waiting.clear();
        let state = if condensed { self.condensed() } else { std::mem::take(&mut self.standby) };
        if condensed {
            self.standby = Ledger::default();
        }
        self.standby = self.copy_of(&state);
        let (hub, batch) = Hub::begin(state, self.config.clone(), self.now, 99);
        self.hub = hub;
        for crew in self.crew.values_mut() {
            (crew.connected, crew.pushes, crew.draining) = (false, false, false);
        }
        self.absorb(batch, &mut BTreeMap::new());
    }

    fn copy_of(&self, state: &Ledger) -> Ledger {
        let mut copy = Ledger::default();
        state.condense(&mut |event| copy.apply(self.now, &event));
        copy
    }

    fn condensed(&self) -> Ledger {
        self.copy_of(self.hub.ledger())
    }

    /// The promises that cost a walk over everything.
    pub fn check(&mut self) {
        // What is due now would happen while the questions below are asked.
        while self.hub.next_deadline().is_some_and(|due| due <= self.now) {
            self.step(Vec::new());
        }
        let state = self.hub.ledger();
        state.check().unwrap_or_else(|what| panic!("the ledger disagrees with itself: {what}"));
        for (id, group) in &self.model.groups {
            let is_its = |job: &crate::model::Job| job.group == *id;
            assert_eq!(state.group_load(&group.name).tasks, self.model.queued(is_its));
        }
        for kind in ["a", "b"].map(Name::from) {
            let of_kind = self.model.documents.iter().filter(|(id, _)| id.kind == kind);
            let expected = of_kind.map(|(id, body)| (&id.name, body));
            assert!(state.documents_of(&kind).eq(expected), "documents of kind {kind}");
        }
        let live = state.describe();
        same(&live, &self.standby.describe(), "a standby that got the same events");
        let condensed = self.condensed();
        same(&live, &condensed.describe(), "a condensed ledger");
        condensed.check().unwrap_or_else(|what| panic!("condensed: {what}"));
        self.check_tasks();
        self.see_crew();
        self.check_nobody_idles();
    }

    /// Every task is where the model says, and none is lost.
    fn check_tasks(&mut self) {
        let jobs: Vec<JobId> = self.model.jobs.keys().copied().collect();
        for job in jobs {
            let query = Query::Tasks { job, state: None, from: 1, most: 1000 };
            let replies = self.step(vec![Command::Query(Query::Job(job)), Command::Query(query)]);
            let [Some(Reply::Jobs(views)), Some(Reply::Tasks { tasks, .. })] = &replies[..] else {
                panic!("job {job} cannot be asked for: {replies:?}");
            };
            assert_eq!(tasks.len(), self.model.in_job(job).count(), "no task of {job} is lost");
            let mut counts = [0u32; State::COUNT];
            for task in tasks {
                counts[task.state as usize] += 1;
                let expected = self.model.state(task.task);
                if task.state != expected && self.model.is_unclear(task.task) {
                    continue;
                }
                assert_eq!(task.state, expected, "{} after {} steps", task.task, self.steps);
                if !expected.is_finished() && !self.model.tasks[&task.task].ended_once {
                    assert_eq!(
                        task.priority, self.model.tasks[&task.task].profile.priority,
                        "{}",
                        task.task
                    );
                }
            }
            for state in State::ALL {
                assert_eq!(
                    views[0].counts.of(state),
                    counts[state as usize],
                    "{} in job {job}",
                    state.word()
                );
            }
        }
    }

    /// Who is connected is nobody's event, so it is asked for.
    pub fn see_crew(&mut self) {
        let query = Query::Workers { group: None, from: WorkerId(0), most: 1000 };
        let Some(Reply::Workers(views)) = self.ask(Command::Query(query)) else {
            panic!("no workers")
        };
        let there: BTreeMap<WorkerId, &WorkerView> = views.iter().map(|v| (v.worker, v)).collect();
        self.crew.retain(|worker, _| there.contains_key(worker));
        for (worker, crew) in &mut self.crew {
            let view = there[worker];
            crew.draining = view.draining;
            crew.connected = view.connected;
            crew.slots = view.slots;
            crew.pushes &= view.connected;
        }
    }

    /// No ready task is left while somebody waits who fits it. Only sure when nobody is kept free for a
    /// bigger task.
    fn check_nobody_idles(&self) {
        if self.config.passes_max != u32::MAX {
            return;
        }
        let open: BTreeMap<JobId, bool> =
            self.model.jobs.keys().map(|&job| (job, self.model.is_open(job))).collect();
        let ready: Vec<TaskId> = (self.model.tasks.keys().copied())
            .filter(|id| open[&id.job] && self.model.state(*id) == State::Ready)
            .filter(|id| !self.model.is_unclear(*id))
            .filter(|id| !fairness::is_full(&self.model, &self.config.shares, *id))
            .collect();
        for (worker, crew) in self.crew.iter().filter(|(_, crew)| crew.pushes) {
            let free = crew.slots.saturating_sub(self.used(*worker).slots);
            self.check_not_idle(*worker, crew, free, &ready);
        }
        for Waiting { worker, most } in self.waiting.values() {
            // Who asks without having joined has said nothing of what it has.
            if let Some(crew) = self.crew.get(worker).filter(|crew| crew.connected) {
                let free = crew.slots.saturating_sub(self.used(*worker).slots);
                self.check_not_idle(*worker, crew, free.max(*most), &ready);
            }
        }
    }

    fn check_not_idle(&self, worker: WorkerId, crew: &Crew, slots: u32, ready: &[TaskId]) {
        let this = &self.model.workers[&worker];
        let used = self.used(worker);
        let may = match this.standing {
            Standing::Good => true,
            Standing::Probation => used.leases == 0,
            Standing::OnHold | Standing::Ejected => false,
        };
        let holds = self.model.leases().into_iter().filter(|(.., holder)| *holder == worker);
        let is_reserved =
            holds.map(|(task, ..)| task).any(|task| self.model.tasks[&task].is_suspect());
        if !may || crew.draining || is_reserved {
            return;
        }
        let has = &crew.join.capacity;
        let memory = has.memory.saturating_sub(used.memory);
        let gpus = has.resources.first().map_or(0, |(_, supply)| supply.count);
        for id in ready {
            let task = &self.model.tasks[id];
            let ways = [&task.profile.needs].into_iter().chain(&task.profile.needs.variants);
            // The hub may take a limit for a sixteenth more than it is.
            let has_time =
                match (crew.until, task.profile.time_request_ms.or(task.profile.time_limit_ms)) {
                    (Some(until), Some(limit)) => self.now.after_ms(limit + limit / 16) <= until,
                    _ => true,
                };
            let fits = has_time
                && (!task.is_suspect() || used.leases == 0)
                && self.model.jobs[&id.job].group == this.group
                && crew.join.kinds.has(task.demand)
                && ways.into_iter().any(|needs| {
                    needs.slots <= slots
                        && needs.slots <= crew.slots.max(1)
                        && needs.memory <= memory
                        && needs.tags.iter().all(|tag| crew.join.tags.contains(tag))
                        && needs.resources.iter().all(|(_, wanted)| used.has_gpus(gpus, *wanted))
                });
            assert!(
                !fits,
                "{id} is ready and {worker:?} waits for it, after {} steps: {task:?} {crew:?} {used:?}",
                self.steps
            );
        }
    }
}

#[derive(Debug)]
pub struct Used {
    pub slots: u32,
    pub memory: u64,
    pub leases: u32,
    /// How much of each is given out, in ten-thousandths.
    pub gpus: [u64; 128],
    /// Some of it was asked for.
    pub pulled: bool,
}

impl Used {
    /// Is so much left of so many gpus?
    fn has_gpus(&self, count: u64, wanted: Request) -> bool {
        let taken: u64 = self.gpus.iter().sum();
        let amount = match wanted {
            Request::All => return count > 0 && taken == 0,
            Request::Some(amount) => amount,
        };
        let own = &self.gpus[..count as usize];
        let whole = own.iter().filter(|&&parts| parts == 0).count() as u64;
        let part = u64::from(amount.fraction());
        let fits_beside = own.iter().any(|&parts| parts > 0 && parts + part <= Amount::PARTS);
        let spare = amount.wholes() + u64::from(part > 0 && !fits_beside);
        whole >= spare && taken + amount.parts() <= Amount::PARTS * count
    }
}

fn same(live: &str, other: &str, whose: &str) {
    if live == other {
        return;
    }
    for (a, b) in live.lines().zip(other.lines()) {
        assert_eq!(a, b, "{whose} differs");
    }
    panic!("{whose} has {} lines, not {}", other.lines().count(), live.lines().count());
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}
