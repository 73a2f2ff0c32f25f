//! A worker at work: takes assignments from its side of a conversation with a hub, runs them, and tells what
//! becomes of them. One loop over the connection, the processes, signals and deadlines. What is said in which
//! dialect is the conversation's affair; connecting is the link's.

mod absence;
mod calling;
mod confine;
mod crew;
mod doubt;
mod link;
mod node_file;
mod orders;
mod pace;
mod places;
mod result;
mod running;
mod scratch;
mod stages;
mod tasks;
mod together;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use laboro_core::{Time, counted};
use laboro_dialects::worker::{Assignment, Key, News, Order, Orders, WorkerSide};
use tokio::time::sleep_until;

pub use confine::LimitBy;
pub use crew::Crew;
pub use link::{
    ByteStream, Connect, ConnectError, Connecting, Inbox, Link, Several, Tcp, Tls, Ways,
};
pub use scratch::ScratchPlace;

use crate::calls::Calls;
use crate::cpus::{Cpus, Pin};
use crate::{Common, Maker, MemoryGuard, RunnerError, Until};
use absence::Absence;
use confine::Confinement;
use doubt::Doubtful;
use laboro_net::Clock;
use link::Met;
use pace::Pace;
use places::Places;
use running::Running;
use scratch::Scratch;
use stages::Stage;

/// How an agent works.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// Until the hub gives it another.
    pub name: String,
    pub slots: u32,
    /// Reads lines of commands.
    pub shell: PathBuf,
    /// Where tasks run that do not say where. `None`: where the program was started.
    pub dir: Option<PathBuf>,
    pub scratch: ScratchPlace,
    /// Each task finds one there that is its own.
    pub task_dirs: bool,
    /// What runs for a task that is only a name; `{}` stands for it.
    pub command: Vec<OsString>,
    pub nice: Option<i32>,
    /// How long a task has between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long what runs may go on after the first signal. `None`: as long as it takes.
    pub drain: Option<Duration>,
    /// The same as `grace` after the second signal.
    pub haste: Duration,
    /// At most this many tasks wait at the guardian for a slot.
    pub launch_ahead: u32,
    /// So many are sent ahead before it is known how long they take.
    pub ahead: u32,
    /// Nothing starts while less memory is available.
    pub memory_free: Option<u64>,
    /// Between two starts.
    pub delay: Option<Duration>,
    /// Nothing starts while so many processes run on this machine.
    pub load_max: Option<u32>,
    /// Leaves after so long without work.
    pub idle_timeout: Option<Duration>,
    /// Is gone after so long, whatever runs.
    pub time_limit: Option<Duration>,
    /// How much of each stream of a task is passed on.
    pub output_limit: u64,
    /// When a task is over.
    pub until: Until,
    pub limit_by: LimitBy,
    /// Each task has processors of its own.
    pub pin: Option<Pin>,
    /// What the items of resources are called here, by their places.
    pub items: Vec<(String, Vec<String>)>,
    /// What ends this program also goes to its tasks, as in a batch job.
    pub shares_signals: bool,
    /// The text of an access file for tasks, before and after the secret. `None`: tasks get none.
    pub access: Option<(String, String)>,
}

/// Why an agent is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// Everything is finished or given back, and the hub knows it.
    Finished,
    /// It had to go while the hub had not taken all there was to tell.
    Unsettled,
    /// The hub will not have it.
    Refused(String),
    /// It cannot do its work, for this reason. Everything is finished or given back.
    Unable(String),
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("scratch directory in {path}: {source}: choose another with --scratch")]
    Scratch { path: PathBuf, source: io::Error },
    #[error("cgroups cannot be used: {why}; --limits best watches the memory of tasks instead")]
    Cgroups { why: String },
    #[error("--pin-tasks: {why}")]
    Pin { why: String },
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

pub struct Agent {
    options: AgentOptions,
    side: Box<dyn WorkerSide>,
    orders: Orders,
    /// Empty between turns; kept for its room.
    spare_orders: Vec<Order>,
    /// `None`: every task is a success at once.
    crew: Option<Crew>,
    calls: Calls,
    clock: Clock,
    maker: Maker,
    scratch: Scratch,
    confinement: Confinement,
    memory: MemoryGuard,
    is_short_of_memory: bool,
    /// There was no room to start something that was launched.
    is_starved: bool,
    has_told_no_room: bool,
    /// Nothing is prepared before: there was no room for it.
    held_until: Option<Instant>,
    pace: Pace,
    waiting: VecDeque<Box<Assignment>>,
    running: HashMap<Key, Running>,
    /// This worker is kept for these, which run on others.
    kept_for: BTreeSet<Key>,
    places: Places,
    /// `None`: tasks use what they like.
    cpus: Option<Cpus>,
    slots: u32,
    /// Of launched tasks, also of those that have not begun.
    slots_used: u32,
    /// Launched tasks that take more or less than one slot.
    odd: u32,
    /// Launched and not begun.
    unbegun: u32,
    /// Those of the running ones that are calls.
    running_calls: u32,
    /// When something last began or ended.
    last_moved: Instant,
    /// Tasks in a row that may take longer than this worker has.
    misfits: u32,
    stage: Stage,
    /// Since when something waits to be said together with more.
    unsaid_since: Option<Instant>,
    /// How often somebody wanted an end to it.
    signals: u32,
    /// People do not know yet how much is waited for.
    has_to_say_it_stops: bool,
    /// Gone by then, whatever is left to tell.
    gone_by: Option<Instant>,
    idle_since: Instant,
    started: Instant,
    has_met: bool,
    is_connected: bool,
    /// Why the hub will not have it now, as it was told.
    put_off: Option<String>,
    absence: Absence,
    doubtful: Vec<Doubtful>,
    /// Why it cannot do its work.
    unable: Option<String>,
    farewell: Option<Farewell>,
    say: Box<dyn FnMut(&str)>,
}

/// While so much output waits for the hub, no pipe is read, and tasks that write more wait.
const UNSAID_MAX: usize = 4 << 20;

/// Between two looks at the memory while it is short.
const MEMORY_EVERY: Duration = Duration::from_millis(100);

impl Agent {
    /// Without a crew every task is a success at once. `say` gets words for people.
    pub fn new(
        options: AgentOptions,
        side: Box<dyn WorkerSide>,
        crew: Option<Crew>,
        mut say: Box<dyn FnMut(&str)>,
    ) -> Result<Agent, AgentError> {
        let runner = crew.as_ref().map(|crew| crew.runner.nonce());
        let scratch = Scratch::open(&options.scratch, runner).map_err(|source| {
            AgentError::Scratch { path: options.scratch.path().to_owned(), source }
        })?;
        let (confinement, words) = match &crew {
            Some(_) => {
                Confinement::choose(options.limit_by).map_err(|why| AgentError::Cgroups { why })?
            }
            None => (Confinement::Nothing, None),
        };
        if let Some(words) = words {
            say(&words);
        }
        let cpus = options.pin.map(|how| Cpus::here(how, options.slots)).transpose();
        let cpus = cpus.map_err(|why| AgentError::Pin { why })?;
        let now = Instant::now();
        Ok(Agent {
            maker: Maker::new(Common {
                shell: options.shell.clone(),
                dir: options.dir.clone(),
                command: options.command.clone(),
                worker: Some(options.name.clone()),
                grace: options.grace,
                nice: options.nice,
                until: options.until,
                items: options.items.clone(),
            }),
            calls: Calls::new(scratch.of_runners(), options.grace),
            memory: MemoryGuard::new(options.memory_free),
            pace: Pace::new(options.ahead),
            slots: options.slots,
            options,
            side,
            orders: Orders::default(),
            spare_orders: Vec::new(),
            crew,
            clock: Clock::start(),
            scratch,
            confinement,
            is_short_of_memory: false,
            is_starved: false,
            has_told_no_room: false,
            held_until: None,
            waiting: VecDeque::new(),
            running: HashMap::new(),
            kept_for: BTreeSet::new(),
            places: Places::default(),
            cpus,
            slots_used: 0,
            odd: 0,
            unbegun: 0,
            running_calls: 0,
            last_moved: now,
            misfits: 0,
            stage: Stage::Working,
            unsaid_since: None,
            signals: 0,
            has_to_say_it_stops: false,
            gone_by: None,
            idle_since: now,
            started: now,
            has_met: false,
            is_connected: false,
            put_off: None,
            absence: Absence::default(),
            doubtful: Vec::new(),
            unable: None,
            farewell: None,
            say,
        })
    }

    /// Works until there is a reason to stop. `signal` is ready each time somebody wants an end to it.
    pub async fn run(
        mut self,
        mut link: Link,
        mut signal: impl AsyncFnMut(),
    ) -> Result<Farewell, AgentError> {
        loop {
            self.turn(&mut link);
            if let Some(farewell) = self.farewell.take() {
                // The last word may be what the other side waits for. Closing takes a limited time.
                while link.is_closing() {
                    link.turn().await;
                }
                // Dropping the crew ends what still runs, and waits for it.
                return Ok(farewell);
            }
            let deadline = self.deadline(&link);
            let listens = self.side.unsaid() < UNSAID_MAX && !link.is_full();
            tokio::select! {
                () = signal() => self.signalled(),
                events = happened(&mut self.crew), if listens => self.happened(events?),
                turn = self.calls.turn(), if listens => self.called(turn)?,
                over = self.confinement.over() => self.end_over(over),
                met = link.turn() => self.met(met, &mut link)?,
                () = sleep_until(deadline.into()) => {}
            }
        }
    }

    /// Everything that can be done now.
    fn turn(&mut self, link: &mut Link) {
        let now = self.clock.now();
        if self.side_deadline(link).is_some_and(|at| at <= now) {
            self.side.tick(now, &mut self.orders);
        }
        self.calls.tick(Instant::now());
        self.resolve_doubts();
        loop {
            self.obey();
            self.start_more();
            self.give_back_the_stuck();
            self.say_once_that_it_stops();
            self.advance(link);
            if self.orders.orders.is_empty() {
                break;
            }
        }
        self.speak(link);
        if let Some(parting) = self.orders.hang_up.take() {
            self.part(parting, link);
            // Within a process that is all: nothing more comes of a link that is closed at once.
            if link.is_closed() {
                self.advance(link);
            }
        }
    }

    fn met(&mut self, met: Met, link: &mut Link) -> Result<(), AgentError> {
        let now = self.clock.now();
        match met {
            Met::Up => {
                self.is_connected = true;
                self.absence = Absence::default();
                self.forget_unsaid();
                self.side.open(now, &mut self.orders);
            }
            Met::Heard => self.side.receive(now, link.input(), &mut self.orders),
            Met::Room => {}
            Met::Failed(error) if error.is_final() && !self.has_met => return Err(error.into()),
            Met::Failed(error) => {
                if let Some(words) = self.absence.words(&error, Instant::now()) {
                    (self.say)(&words);
                }
            }
            Met::Down(why) => {
                self.is_connected = false;
                self.forget_unsaid();
                self.side.lost(now);
                let matters = self.is_busy() || !self.side.is_settled();
                if !link.is_closed() && self.put_off.is_none() && matters {
                    let running = counted(self.running.len(), "running task");
                    let target = link.target();
                    (self.say)(&format!("lost {target}: {why}; trying again, with {running}"));
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, news: News) {
        self.side.tell(self.clock.now(), news, &mut self.orders);
    }

    fn note(&mut self, words: &str) {
        (self.say)(words);
    }

    /// A conversation that has hung up does nothing more until the connection is gone, however late it is.
    fn side_deadline(&self, link: &Link) -> Option<Time> {
        self.side.deadline().filter(|_| !link.is_closing())
    }

    /// The latest moment of the next turn.
    fn deadline(&self, link: &Link) -> Instant {
        let side = self.side_deadline(link).and_then(|at| self.clock.instant(at));
        let memory = self.is_short_of_memory.then(|| Instant::now() + MEMORY_EVERY);
        let calls = self.calls.deadline();
        let deadlines = [
            side,
            memory,
            self.held_until,
            self.stuck_at(),
            self.stage_deadline(),
            calls,
            self.speak_at(),
            self.doubt_deadline(),
        ];
        let far = Instant::now() + Duration::from_secs(3600);
        deadlines.into_iter().flatten().fold(far, Instant::min)
    }
}

async fn happened(crew: &mut Option<Crew>) -> Result<Vec<crate::RunnerEvent>, RunnerError> {
    match crew {
        Some(crew) => crew.events().await,
        None => std::future::pending().await,
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.options.name).finish_non_exhaustive()
    }
}
