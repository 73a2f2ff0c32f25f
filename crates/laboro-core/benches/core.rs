//! What a transition costs and what a task weighs: a million independent tasks, a layered graph of a
//! million with two predecessors each, an array of ten million, an array with every second element done, a million tasks of
//! one owner and of ten thousand. Prints a table; asserts nothing.

use laboro_core::*;
use smallvec::{SmallVec, smallvec};
use std::alloc::{GlobalAlloc, Layout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts what is in use, as asked for.
struct Counting(mimalloc::MiMalloc);
static IN_USE: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { self.0.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { self.0.dealloc(ptr, layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        IN_USE.fetch_add(new, Ordering::Relaxed);
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { self.0.realloc(ptr, layout, new) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(mimalloc::MiMalloc);

/// Time that this thread was on a core: what others do on the machine is left out.
fn core_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

const TASKS: usize = 1_000_000;
const WIDTH: usize = 1000;

fn main() {
    // `cargo bench` passes --bench; `cargo test --benches` does not, and wants a quick look only.
    let tasks = if std::env::args().any(|arg| arg == "--bench") { TASKS } else { 10_000 };
    println!(
        "{:<28} {:>9} {:>9} {:>9} {:>9} {:>12}",
        "case", "create", "lease", "complete", "core time", "bytes/task"
    );
    for (case, graph, needs) in [
        ("independent", false, Needs::default()),
        ("graph", true, Needs::default()),
        ("fractions, two variants", false, half_a_gpu()),
    ] {
        for batch in [1, 100] {
            let case = format!("{case} in batches of {batch}");
            if wanted(&case) {
                run(&case, tasks, graph, batch, &needs);
            }
        }
    }
    if wanted("array") {
        array(10 * tasks as u32);
        half_done(tasks as u32);
    }
    if wanted("owners") {
        for batch in [1, 100] {
            let alone = owners(1, tasks, batch);
            let many = owners(tasks / 100, 100, batch);
            println!(
                "owners in batches of {batch}: many at {:.2} of the rate of one",
                alone / many
            );
        }
    }
    if wanted("command") {
        commands(tasks);
    }
    if wanted("edges") {
        edges(tasks);
    }
}

/// `cargo bench -- WORDS` runs the cases with these words in their name.
fn wanted(case: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| case.contains(&word))
}

fn hub() -> Hub {
    let config = Config {
        limits: Limits { tasks_a_submit: usize::MAX, ..Limits::default() },
        ..Config::default()
    };
    Hub::begin(Ledger::default(), config, Time(1), 42).0
}

fn ask(command: Command) -> Vec<Ask> {
    vec![Ask { token: Token(1), command }]
}

fn task_name(number: usize) -> Name {
    Name::from(format!("task-{number:011}"))
}

fn submit(job: SubmitTo, tasks: Vec<TaskSpec>, arrays: Vec<ArraySpec>) -> Command {
    Command::Submit(Submit { job, tasks, arrays, ..Submit::new("default") })
}

/// Half a GPU, or two slots and half of another kind.
fn half_a_gpu() -> Needs {
    let half = |kind: &str| vec![(Name::from(kind), Request::Some(Amount::of_parts(5_000)))];
    let other = Needs { slots: 2, resources: half("old-gpu"), ..Needs::default() };
    Needs { resources: half("gpu"), variants: vec![other], ..Needs::default() }
}

fn join(hub: &mut Hub) {
    let mut join = Join::new("default", "w", "bench", SessionId(1));
    join.capacity.resources =
        vec![("gpu".into(), Supply::of(50)), ("old-gpu".into(), Supply::of(50))];
    hub.step(Time(2), ask(Command::Join(join)));
}

fn offer(batch: u32) -> Vec<Ask> {
    let route = Route::Answer { most: batch, patience: Patience::None };
    ask(Command::Offer(Offer { worker: WorkerRef::Id(WorkerId(0)), route, lease_ms: None }))
}

/// Reports what was given out as done, and counts it.
fn success_of(effects: Vec<Effect>, done: &mut usize) -> Vec<Ask> {
    let Some(Effect::Reply { reply: Reply::Work { grants, .. }, .. }) = effects.into_iter().next()
    else {
        panic!("nothing was ready after {done}");
    };
    *done += grants.len();
    let results = grants.into_iter().map(|grant| TaskResult {
        lease: LeaseRef::Number { task: grant.task, lease: grant.lease },
        outcome: Outcome::Success,
        message: None,
        memo: None,
    });
    let worker = WorkerRef::Id(WorkerId(0));
    ask(Command::Report(Report { worker, results: results.collect() }))
}

fn run(case: &str, tasks: usize, graph: bool, batch: u32, needs: &Needs) {
    let mut hub = hub();
    join(&mut hub);
    let open = JobOptions { open: true, ..JobOptions::default() };
    hub.step(Time(3), ask(submit(SubmitTo::New(open), Vec::new(), Vec::new())));
    let before = IN_USE.load(Ordering::Relaxed);

    let specs: Vec<Vec<TaskSpec>> = (0..tasks.div_ceil(WIDTH))
        .map(|layer| {
            let range = layer * WIDTH..((layer + 1) * WIDTH).min(tasks);
            range
                .map(|number| {
                    let mut preds: SmallVec<[TaskRef; 1]> = SmallVec::new();
                    if graph && layer > 0 {
                        let above = number - WIDTH;
                        let beside = (layer - 1) * WIDTH + (above + 7) % WIDTH;
                        preds = smallvec![
                            TaskRef::Name(task_name(above)),
                            TaskRef::Name(task_name(beside))
                        ];
                    }
                    TaskSpec { name: task_name(number), profile: 0, work: None, preds, memo: None }
                })
                .collect()
        })
        .collect();
    let profiles = vec![Profile { needs: needs.clone(), ..Profile::default() }];
    let mut create = Duration::ZERO;
    let mut on_core = core_time();
    for layer in specs {
        let (job, profiles) = (SubmitTo::Add(JobId(1)), profiles.clone());
        let submit = Submit { job, tasks: layer, profiles, ..Submit::new("default") };
        let command = Command::Submit(submit);
        let start = Instant::now();
        hub.step(Time(4), ask(command));
        create += start.elapsed();
    }
    on_core = core_time() - on_core;
    let bytes = (IN_USE.load(Ordering::Relaxed) - before) as f64 / tasks as f64;

    let (mut lease, mut complete) = (Duration::ZERO, Duration::ZERO);
    let mut done = 0;
    let loop_began = core_time();
    while done < tasks {
        let offer = offer(batch);
        let start = Instant::now();
        let effects = hub.step(Time(5), offer).release(Nowhere.receipt());
        lease += start.elapsed();
        let report = success_of(effects, &mut done);
        let start = Instant::now();
        hub.step(Time(6), report);
        complete += start.elapsed();
    }
    on_core += core_time() - loop_began;
    let us = |time: Duration| time.as_secs_f64() * 1e6 / tasks as f64;
    // The mean is of core time, with what the benchmark itself does in between.
    let mean = us(on_core) / 3.0;
    println!(
        "{case:<28} {:>6.3} µs {:>6.3} µs {:>6.3} µs {mean:>6.3} µs {bytes:>12.1}",
        us(create),
        us(lease),
        us(complete),
    );
}

fn array(count: u32) {
    let mut hub = hub();
    join(&mut hub);
    let command = submit(
        SubmitTo::New(JobOptions::default()),
        Vec::new(),
        vec![ArraySpec::numbered("a", count, Work::Named)],
    );
    let before = IN_USE.load(Ordering::Relaxed);
    let asks = ask(command);
    let start = Instant::now();
    let batch = hub.step(Time(4), asks);
    let took = start.elapsed();
    drop(batch);
    let bytes = IN_USE.load(Ordering::Relaxed) - before;
    println!("array of {count}: submitted in {took:?}, {bytes} bytes");
    let mut held = Vec::new();
    let start = Instant::now();
    let steps = count.min(1_000_000) / 100;
    for _ in 0..steps {
        let worker = WorkerRef::Id(WorkerId(0));
        let route = Route::Answer { most: 100, patience: Patience::None };
        let offer = Offer { worker: worker.clone(), route, lease_ms: None };
        let effects = hub.step(Time(5), ask(Command::Offer(offer))).release(Nowhere.receipt());
        let Some(Effect::Reply { reply: Reply::Work { grants, .. }, .. }) =
            effects.into_iter().next()
        else {
            panic!("an array has elements");
        };
        held.extend(grants.into_iter().map(|grant| (grant.task, grant.lease)));
        if held.len() > 300 {
            let results = held.drain(..100).map(|(task, lease)| TaskResult {
                lease: LeaseRef::Number { task, lease },
                outcome: Outcome::Success,
                message: None,
                memo: None,
            });
            let results = results.collect();
            hub.step(Time(6), ask(Command::Report(Report { worker, results })));
        }
    }
    let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(steps * 100);
    println!("array elements in batches of 100: {us:.3} µs for lease and completion together");
}

/// So many owners with so many tasks each, all of them there from the start. Gives what a lease and its completion take,
/// in µs of core time.
fn owners(owners: usize, tasks_each: usize, batch: u32) -> f64 {
    let mut hub = hub();
    join(&mut hub);
    for number in 0..owners {
        let owner = Some(Name::from(format!("owner-{number:05}")));
        let job = SubmitTo::New(JobOptions { owner, ..JobOptions::default() });
        let named = |task: usize| {
            let name = task_name(number * tasks_each + task);
            TaskSpec { name, profile: 0, work: None, preds: SmallVec::new(), memo: None }
        };
        let tasks = (0..tasks_each).map(named).collect();
        hub.step(Time(4), ask(submit(job, tasks, Vec::new())));
    }
    let (mut on_core, mut done) = (Duration::ZERO, 0);
    while done < owners * tasks_each {
        let asks = offer(batch);
        let began = core_time();
        let effects = hub.step(Time(5), asks).release(Nowhere.receipt());
        on_core += core_time() - began;
        let report = success_of(effects, &mut done);
        let began = core_time();
        hub.step(Time(6), report);
        on_core += core_time() - began;
    }
    let us = on_core.as_secs_f64() * 1e6 / (owners * tasks_each) as f64;
    println!("{owners} owners x {tasks_each} tasks in batches of {batch}: {us:.3} µs a task");
    us
}

/// A graph that grows edge by edge in a random order, a thousand in a submit, over a tenth as many tasks.
fn edges(count: usize) {
    let mut hub = hub();
    let tasks = count / 10;
    let mut order: Vec<usize> = (0..tasks).collect();
    shuffle(&mut order);
    let named = |number: usize, preds| {
        let name = task_name(number);
        TaskSpec { name, profile: 0, work: None, preds, memo: None }
    };
    let open = JobOptions { open: true, ..JobOptions::default() };
    let specs = (0..tasks).map(|number| named(number, SmallVec::new())).collect();
    hub.step(Time(3), ask(submit(SubmitTo::New(open), specs, Vec::new())));
    let mut dice = Dice::default();
    let mut edge = || loop {
        let (a, b) = (dice.below(tasks), dice.below(tasks));
        if a != b {
            let pred = TaskRef::Name(task_name(order[a.min(b)]));
            return named(order[a.max(b)], smallvec![pred]);
        }
    };
    let mut on_core = Duration::ZERO;
    for _ in 0..count / WIDTH {
        let tasks = (0..WIDTH).map(|_| edge()).collect();
        let job = SubmitTo::Add(JobId(1));
        let submit = Submit { job, tasks, if_taken: IfTaken::Merge, ..Submit::new("default") };
        let asks = ask(Command::Submit(submit));
        let began = core_time();
        let mut effects = hub.step(Time(4), asks).release(Nowhere.receipt());
        // A long search for cycles goes on in further steps.
        while effects.is_empty() {
            effects = hub.step(Time(4), Vec::new()).release(Nowhere.receipt());
        }
        on_core += core_time() - began;
    }
    let us = on_core.as_secs_f64() * 1e6 / count as f64;
    println!("edges in random order: {us:.3} µs an edge");
}

/// What tasks weigh that have a command each.
fn commands(count: usize) {
    let mut hub = hub();
    let open = JobOptions { open: true, ..JobOptions::default() };
    hub.step(Time(3), ask(submit(SubmitTo::New(open), Vec::new(), Vec::new())));
    let before = IN_USE.load(Ordering::Relaxed);
    let setting = Arc::new(Setting::default());
    for first in (0..count).step_by(WIDTH) {
        let task = |number: usize| {
            let words = [b"./sim".to_vec(), number.to_string().into_bytes()];
            let program = Program::Argv(words.into_iter().collect());
            let work = Work::Command(CommandWork { program, setting: setting.clone() });
            let preds = SmallVec::new();
            let name = task_name(number);
            TaskSpec { name, profile: 0, work: Some(Arc::new(work)), preds, memo: None }
        };
        let tasks = (first..(first + WIDTH).min(count)).map(task).collect();
        hub.step(Time(4), ask(submit(SubmitTo::Add(JobId(1)), tasks, Vec::new())));
    }
    let bytes = (IN_USE.load(Ordering::Relaxed) - before) as f64 / count as f64;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    println!("named tasks with a command each: {bytes:.1} bytes a task; {resident}");
}

/// Everything is leased, every second one is done in a random order, and the rest is handed back.
fn half_done(count: u32) {
    let mut hub = hub();
    join(&mut hub);
    let before = IN_USE.load(Ordering::Relaxed);
    let spec = ArraySpec::numbered("a", count, Work::Named);
    hub.step(Time(4), ask(submit(SubmitTo::New(JobOptions::default()), Vec::new(), vec![spec])));
    let worker = WorkerRef::Id(WorkerId(0));
    let route = Route::Answer { most: count, patience: Patience::None };
    let offer = Offer { worker: worker.clone(), route, lease_ms: None };
    let effects = hub.step(Time(5), ask(Command::Offer(offer))).release(Nowhere.receipt());
    let Some(Effect::Reply { reply: Reply::Work { grants, .. }, .. }) = effects.into_iter().next()
    else {
        panic!("an array has elements");
    };
    let leased = IN_USE.load(Ordering::Relaxed) - before;
    let held =
        grants.into_iter().map(|grant| LeaseRef::Number { task: grant.task, lease: grant.lease });
    let (mut done, mut back) = (Vec::new(), Vec::new());
    for (number, lease) in held.enumerate() {
        if number % 2 == 0 { done.push(lease) } else { back.push(lease) }
    }
    shuffle(&mut done);
    while !done.is_empty() {
        let some = done.split_off(done.len().saturating_sub(100)).into_iter();
        let results = some.map(|lease| TaskResult {
            lease,
            outcome: Outcome::Success,
            message: None,
            memo: None,
        });
        let results = results.collect();
        let report = Command::Report(Report { worker: worker.clone(), results });
        hub.step(Time(6), ask(report));
    }
    drop(done);
    let half = IN_USE.load(Ordering::Relaxed) - before;
    let tasks = back.into_iter().map(|lease| Returned { lease, preds: Vec::new() }).collect();
    hub.step(Time(7), ask(Command::Return(Return { worker, tasks, place: Place::Back })));
    let waiting = IN_USE.load(Ordering::Relaxed) - before;
    println!(
        "array of {count}: {leased} bytes all leased, {half} with every second one done, {waiting} with the rest waiting"
    );
}

/// The same order each time.
fn shuffle<T>(items: &mut [T]) {
    let mut dice = Dice::default();
    for last in (1..items.len()).rev() {
        items.swap(last, dice.below(last + 1));
    }
}

/// The same throws each time.
struct Dice(u64);

impl Default for Dice {
    fn default() -> Dice {
        Dice(0x9e37_79b9_7f4a_7c15)
    }
}

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}
