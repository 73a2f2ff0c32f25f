//! People and programs at the API: submits, and everything else that can be asked, aimed at what is there. It
//! remembers what was acknowledged to it, and asks again what was not.

mod documents;
mod wants;

use crate::dice::Dice;
use crate::now_or_never_pinned;
use crate::oracle::Oracle;
use crate::plan::Plan;
use crate::promise::{Broken, Kept, Promise};
use documents::Documents;
use laboro_core::{
    ArraySpec, CallWork, Command, CommandWork, Drain, IfTaken, JobId, JobOptions, LeaseRef, Name,
    Outcome, Profile, Program, Query, Reply, Report, Runner, Scope, Selection, Setting, State,
    Stdin, Submit, SubmitTo, TaskId, TaskRef, TaskResult, TaskSpec, Token, UnknownPred, Which,
    Work, WorkerId, WorkerRef,
};
use laboro_core::{Backoff, Needs};
use laboro_hub::{Handle, Lost};
use std::pin::Pin;
use std::sync::Arc;

/// What a watcher takes before it stops reading.
const WATCHED: usize = 20;

pub(crate) struct Clerk {
    dice: Dice,
    /// Where tasks ask for more than slots.
    wants: Option<Dice>,
    /// How many workers a task may take.
    nodes: Option<(u32, Dice)>,
    period_ms: u64,
    next_at: u64,
    left: u32,
    waiting: Vec<Waiting>,
    /// Nobody said what became of these.
    unsure: Vec<Submit>,
    jobs: Vec<Acked>,
    documents: Documents,
    names: u64,
    watches: Vec<Watch>,
    pub acked: u64,
    pub refused: u64,
}

struct Waiting {
    wish: Wish,
    answer: Pin<Box<dyn Future<Output = Result<Reply, Lost>>>>,
}

/// Somebody who looks on, until there is too much to see.
struct Watch(Pin<Box<dyn Future<Output = ()>>>);

#[derive(Clone)]
enum Wish {
    Submit(Box<Submit>),
    Forget(JobId),
    Documents(u64),
    Other,
}

#[derive(Clone, Debug)]
struct Acked {
    job: JobId,
    key: Option<Box<[u8]>>,
    is_forgotten: bool,
}

impl Clerk {
    pub fn new(dice: Dice, plan: &Plan) -> Clerk {
        Clerk {
            wants: plan.asks_much.then(|| dice.aside()),
            nodes: (plan.nodes_max > 0).then(|| (plan.nodes_max, dice.aside())),
            documents: Documents::new(dice.aside().split()),
            dice,
            period_ms: plan.clerk_ms,
            next_at: 0,
            left: plan.clerk_most,
            waiting: Vec::new(),
            unsure: Vec::new(),
            jobs: Vec::new(),
            names: 0,
            watches: Vec::new(),
            acked: 0,
            refused: 0,
        }
    }

    pub fn due(&self) -> Option<u64> {
        (self.left > 0 || !self.unsure.is_empty()).then_some(self.next_at)
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.unsure.is_empty()
    }

    /// Asks the next thing, if it is time; gives words for the timeline.
    pub fn act(&mut self, now: u64, handle: &Handle, oracle: &Oracle) -> Option<String> {
        if self.next_at > now {
            return None;
        }
        self.next_at = now + self.dice.between(1, 2 * self.period_ms);
        if let Some(submit) = self.unsure.pop() {
            let words = format!("submits again what nobody answered, key {:?}", key_of(&submit));
            self.ask(handle, Wish::Submit(Box::new(submit.clone())), Command::Submit(submit));
            return Some(words);
        }
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.dice.one_in(25) {
            let handle = handle.clone();
            // It takes a few changes and then leaves off reading, as a browser that was left open does.
            self.watches.push(Watch(Box::pin(async move {
                let Ok(mut changes) = handle.watch(Command::Watch(Scope::All)).await else {
                    return;
                };
                for _ in 0..WATCHED {
                    if changes.recv().await.is_none() {
                        return;
                    }
                }
                std::future::pending::<()>().await;
            })));
            return Some("watches everything, for a while".to_owned());
        }
        if let Some((wish, command)) = self.documents.draw() {
            self.ask(handle, Wish::Documents(wish), command);
        }
        let (wish, command) = self.draw(oracle);
        let words = told(&command);
        self.ask(handle, wish, command);
        Some(words)
    }

    /// Asks for nothing new.
    pub fn rest(&mut self) {
        self.left = 0;
    }

    /// Takes away whatever keeps things from going on.
    pub fn calm_down(&mut self, handle: &Handle, oracle: &Oracle) {
        self.watches.clear();
        let mut commands = vec![Command::Resume(group())];
        for (job, known) in oracle.jobs() {
            let all = |which| Selection { job, which };
            if known.options.held || known.options.begin.is_some() {
                commands.push(Command::Release(all(Which::Job)));
            }
            commands.push(Command::Release(all(Which::InState(State::Held))));
            if known.options.max_running.is_some() {
                let max_running = Some(None);
                commands.push(Command::Limit { job, max_running, max_fails: None });
            }
        }
        for worker in oracle.workers() {
            commands.push(Command::Pardon(WorkerRef::Id(worker)));
            commands.push(Command::Drain(WorkerRef::Id(worker), Drain::Lift));
        }
        commands.into_iter().for_each(|command| self.ask(handle, Wish::Other, command));
    }

    fn ask(&mut self, handle: &Handle, wish: Wish, command: Command) {
        let handle = handle.clone();
        let answer = Box::pin(async move { handle.ask(command).await });
        self.waiting.push(Waiting { wish, answer });
    }

    /// Takes answers that have come.
    pub fn hear(&mut self, oracle: &Oracle) -> Kept {
        self.watches.retain_mut(|Watch(watch)| now_or_never_pinned(watch.as_mut()).is_none());
        for mut waiting in std::mem::take(&mut self.waiting) {
            match now_or_never_pinned(waiting.answer.as_mut()) {
                None => self.waiting.push(waiting),
                Some(Err(Lost)) => match waiting.wish {
                    Wish::Submit(submit) if key_of(&submit).is_some() => self.unsure.push(*submit),
                    // Without a key nobody could tell a second one from the first.
                    Wish::Submit(_) | Wish::Documents(_) | Wish::Other => {}
                    // It may have been kept before the hub ended.
                    Wish::Forget(job) => self.forgets(job),
                },
                Some(Ok(reply)) => self.answered(waiting.wish, &reply, oracle)?,
            }
        }
        Ok(())
    }

    fn answered(&mut self, wish: Wish, reply: &Reply, oracle: &Oracle) -> Kept {
        match (wish, reply) {
            (Wish::Documents(wish), reply) => self.documents.answered(wish, reply, oracle)?,
            (_, Reply::Refused(_)) => self.refused += 1,
            (Wish::Submit(submit), Reply::Submitted { job, first, count, again }) => {
                self.acked += 1;
                let key = key_of(&submit);
                if !again {
                    check_made(*job, *first, *count, oracle)?;
                }
                self.jobs.push(Acked { job: *job, key, is_forgotten: false });
            }
            (Wish::Forget(job), Reply::Ok | Reply::Changed { .. }) => self.forgets(job),
            (Wish::Submit(_) | Wish::Forget(_) | Wish::Other, _) => {}
        }
        Ok(())
    }

    /// This job may be gone.
    fn forgets(&mut self, job: JobId) {
        let of_job = self.jobs.iter_mut().filter(|acked| acked.job == job);
        of_job.for_each(|acked| acked.is_forgotten = true);
    }

    /// Every job it was told of is there, once.
    pub fn check(&self, oracle: &Oracle, forgets: bool) -> Kept {
        self.documents.check(oracle)?;
        for acked in &self.jobs {
            let is_there = oracle.jobs().any(|(job, _)| job == acked.job);
            if !is_there && !acked.is_forgotten && !forgets {
                let what = format!("job {} was acknowledged and is not there", acked.job);
                return Err(Broken::new(Promise::NothingLost, what));
            }
            if let Some(key) = &acked.key {
                let same = |options: &JobOptions| options.key.as_ref() == Some(key);
                let count = oracle.jobs().filter(|(_, job)| same(&job.options)).count();
                if count > 1 {
                    let what = format!("{count} jobs have the key {}", key.escape_ascii());
                    return Err(Broken::new(Promise::NoSecondRun, what));
                }
            }
        }
        Ok(())
    }

    fn draw(&mut self, oracle: &Oracle) -> (Wish, Command) {
        let job = self.job();
        let Some(job) = job.filter(|_| !self.dice.percent(35)) else {
            let submit = self.submit(job, oracle);
            return (Wish::Submit(Box::new(submit.clone())), Command::Submit(submit));
        };
        let command = match self.dice.below(22) {
            0 | 1 => Command::Cancel(self.selection(job)),
            2 | 3 => Command::Hold(self.selection(job)),
            4 | 5 => Command::Release(self.selection(job)),
            6 | 7 => Command::Retry(self.selection(job)),
            8 => Command::Prioritise(self.selection(job), self.dice.below(5) as i32 - 2),
            9 => {
                let most = Some(Some(self.dice.small(0, 3)));
                Command::Limit { job, max_running: most, max_fails: None }
            }
            10 => Command::Pause(group()),
            11 => Command::Resume(group()),
            12 => Command::Close(job),
            13 => return (Wish::Forget(job), Command::Forget(job)),
            14..=18 => match self.late_report(oracle) {
                Some(command) => command,
                None => Command::Query(Query::Groups),
            },
            19 => self.about_worker(oracle),
            20 => Command::MarkDone(self.selection(job)),
            _ => self.query(job),
        };
        (Wish::Other, command)
    }

    fn job(&mut self) -> Option<JobId> {
        self.dice.pick(&self.jobs).map(|acked| acked.job)
    }

    fn selection(&mut self, job: JobId) -> Selection {
        let which = match self.dice.below(5) {
            0 => Which::Job,
            1 => Which::InState(State::ALL[self.dice.index(State::COUNT)]),
            _ => {
                let first = self.dice.small(1, 12);
                Which::Ranges(vec![(first, first + self.dice.small(0, 4))])
            }
        };
        Selection { job, which }
    }

    /// A result that was told before, or comes after somebody else has got the task.
    fn late_report(&mut self, oracle: &Oracle) -> Option<Command> {
        let &(worker, task, lease) = self.dice.pick(&oracle.old_leases)?;
        let outcome = if self.dice.one_in(3) { Outcome::Exit(9) } else { Outcome::Success };
        let lease = LeaseRef::Number { task, lease };
        let result = TaskResult { lease, outcome, message: None, memo: None };
        let worker = WorkerRef::Id(worker);
        Some(Command::Report(Report { worker, results: vec![result] }))
    }

    fn about_worker(&mut self, oracle: &Oracle) -> Command {
        let worker = self.dice.pick(&oracle.workers()).copied().unwrap_or(WorkerId(1));
        let worker = WorkerRef::Id(worker);
        match self.dice.below(6) {
            0 => Command::Eject(worker, "told to".to_owned()),
            1 => Command::Pardon(worker),
            2 => Command::Drain(worker, Drain::All),
            3 => Command::Drain(worker, Drain::AtOnce),
            4 => Command::Drain(worker, Drain::Slots(1)),
            _ => Command::Drain(worker, Drain::Lift),
        }
    }

    fn query(&mut self, job: JobId) -> Command {
        let task = TaskRef::Id(TaskId::new(job, self.dice.small(1, 9)));
        Command::Query(match self.dice.below(5) {
            0 => Query::Job(job),
            1 => Query::Tasks { job, state: None, from: 1, most: 100 },
            2 => Query::Explain { group: group(), task },
            3 => Query::Parts { job, from: 1, most: 100 },
            _ => Query::Task { group: group(), task },
        })
    }

    fn submit(&mut self, known: Option<JobId>, oracle: &Oracle) -> Submit {
        let job = match known {
            Some(job) if self.dice.one_in(4) => SubmitTo::Add(job),
            _ => {
                self.names += 1;
                let key = format!("key-{}", self.names).into_bytes();
                let begin = (self.dice.one_in(8))
                    .then(|| oracle.now().after_ms(self.dice.between(0, 20_000)));
                SubmitTo::New(JobOptions {
                    name: "made".into(),
                    open: self.dice.one_in(3),
                    held: self.dice.one_in(10),
                    begin,
                    max_running: self.dice.one_in(8).then(|| self.dice.small(1, 3)),
                    max_fails: self.dice.one_in(8).then(|| self.dice.small(0, 3)),
                    key: Some(key.into()),
                    own_names: self.names.is_multiple_of(2),
                    owner: Some(format!("owner-{}", self.names % 3).into()),
                    ..JobOptions::default()
                })
            }
        };
        let profiles = vec![Profile::default(), self.profile(), self.profile()];
        let mut tasks = Vec::new();
        let mut names: Vec<Name> = Vec::new();
        for _ in 0..self.dice.below(7) {
            tasks.push(self.task(known, &mut names));
        }
        let arrays = (0..self.dice.below(3)).map(|_| self.array(&names)).collect();
        let unknown_pred =
            if self.dice.one_in(4) { UnknownPred::Refuse } else { UnknownPred::Ignore };
        let if_taken = IfTaken::Same;
        Submit { group: group(), job, profiles, tasks, arrays, unknown_pred, if_taken }
    }

    fn profile(&mut self) -> Profile {
        let first_ms = if self.dice.one_in(2) { 0 } else { self.dice.between(1, 2000) };
        let slots = self.dice.small(1, 2);
        let mut profile = Profile {
            needs: Needs { slots, ..Needs::default() },
            priority: self.dice.below(7) as i32 - 3,
            attempts: self.dice.small(1, 4) as u16,
            lost_max: self.dice.small(1, 8) as u16,
            backoff: Backoff { first_ms, most_ms: 4000 },
            runs_anyway: self.dice.one_in(5),
            ..Profile::default()
        };
        if let Some(dice) = &mut self.wants {
            wants::more(&mut profile, dice);
        }
        if let Some((nodes_max, dice)) = &mut self.nodes
            && dice.one_in(4)
        {
            profile.needs = wants::workers(*nodes_max, dice);
        }
        profile
    }

    fn name(&mut self) -> Name {
        self.names += 1;
        Name::from(format!("t{}", self.names))
    }

    fn task(&mut self, known: Option<JobId>, names: &mut Vec<Name>) -> TaskSpec {
        let name = self.name();
        let mut preds = Vec::new();
        if self.dice.one_in(2) {
            preds.extend(self.dice.pick(names).cloned().map(TaskRef::Name));
        }
        if let Some(job) = known.filter(|_| self.dice.one_in(5)) {
            preds.push(TaskRef::Id(TaskId::new(job, self.dice.small(1, 6))));
        }
        if self.dice.one_in(12) {
            preds.push(TaskRef::Name("nobody-knows".into()));
        }
        names.push(name.clone());
        let profile = self.dice.small(0, 2);
        TaskSpec { name, profile, work: self.work(), preds: preds.into(), memo: None }
    }

    fn array(&mut self, names: &[Name]) -> ArraySpec {
        let work = match self.dice.below(5) {
            0 => indexed(),
            4 => call(),
            1 => command(self.setting()),
            2 => script(self.setting()),
            _ => Work::Named,
        };
        let mut array = ArraySpec::numbered(self.name(), self.dice.small(1, 12), work);
        array.profile = self.dice.small(0, 2);
        if self.dice.one_in(3) {
            array.preds.extend(self.dice.pick(names).cloned().map(TaskRef::Name));
        }
        array
    }

    /// Some have fields that not every worker understands.
    fn setting(&mut self) -> Arc<Setting> {
        let mut setting = Setting::default();
        if self.dice.one_in(4) {
            setting.stdout = Some((*b"out").into());
        }
        if self.dice.one_in(8) {
            setting.stdin = Stdin::File((*b"in").into());
        }
        Arc::new(setting)
    }

    fn work(&mut self) -> Option<Arc<Work>> {
        if self.dice.one_in(20) {
            return Some(Arc::new(poison()));
        }
        match self.dice.below(7) {
            6 => Some(Arc::new(call())),
            0 | 1 => None,
            2 => Some(Arc::new(command(self.setting()))),
            3 | 4 => Some(Arc::new(script(self.setting()))),
            _ => Some(Arc::new(indexed())),
        }
    }
}

pub(crate) fn group() -> Name {
    "default".into()
}

fn command(setting: Arc<Setting>) -> Work {
    let program = Program::Shell((*b"true").into());
    Work::Command(CommandWork { program, setting })
}

/// No worker survives it.
pub(crate) fn poison() -> Work {
    let program = Program::Shell((*b"kill -9 $PPID").into());
    Work::Command(CommandWork { program, setting: Arc::new(Setting::default()) })
}

/// Older workers know nothing of runners.
fn call() -> Work {
    let runner = Runner { words: vec![(*b"runner").into()], ..Runner::default() };
    let setting = Setting { runner: Some(Arc::new(runner)), ..Setting::default() };
    Work::Call(CallWork { payload: (*b"call").into(), setting: Arc::new(setting) })
}

fn script(setting: Arc<Setting>) -> Work {
    Work::script(".sh", b"echo RES:\n".as_slice().into(), setting)
}

fn indexed() -> Work {
    let (program, dir) = ((*b"/bin/true").into(), (*b"/").into());
    Work::indexed(program, dir, (*b"/tmp").into())
}

fn key_of(submit: &Submit) -> Option<Box<[u8]>> {
    match &submit.job {
        SubmitTo::New(options) | SubmitTo::Open(options) => options.key.clone(),
        SubmitTo::Add(_) => None,
    }
}

/// What is acknowledged is recorded.
fn check_made(job: JobId, first: u32, count: u32, oracle: &Oracle) -> Kept {
    let missing = (first..first + count).find(|&n| !oracle.has_met(TaskId::new(job, n)));
    match missing {
        None => Ok(()),
        Some(n) => {
            let what = format!("task {job}/{n} was acknowledged and never recorded");
            Err(Broken::new(Promise::NothingLost, what))
        }
    }
}

fn told(command: &Command) -> String {
    match command {
        Command::Submit(submit) => {
            let (tasks, arrays) = (submit.tasks.len(), submit.arrays.len());
            format!("submits {tasks} tasks and {arrays} arrays, key {:?}", key_of(submit))
        }
        Command::Report(report) => format!("repeats a result: {:?}", report.results),
        Command::Unwatch(Token(_)) => String::new(),
        other => format!("{other:?}"),
    }
}
