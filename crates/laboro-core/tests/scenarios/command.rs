//! From the words of a script to commands. Small on purpose: one profile a submit, few defaults.
//!
//! `submit [GROUP] a b<a,c x[10]<a y[10]~x slots=2 gpu=1 tag=t priority=1 attempts=3 lost=0 backoff=100`
//! `  retry_on=3 anyway kind=command open held max_running=1 max_fails=0 own key=k into=1 taken=merge unknown=ignore`
//! `join w slots=4 memory=9 gpu=2 tag=t kinds=named period=1000 running=1/1@1.0 session=2 group=g`
//! `  words=140000 variables=9 line=9 body=9`, for works that are large
//! `join w life=1 acks=yes` · `ack w 1.3` · `decline w a the reason`
//! `push w lease=5` · `pull w 3 until=50 lease=5` · `report w a=ok 1/2@1.0=1 x.1-9=sig9` · `return w a<b front`
//! `documents pool/a=text pool/b`
//! `cancel 1 2-5,7` · `hold 1` · `release 1 held` · `retry 1 failed` · `prioritise 5 1 2-3`

use laboro_core::*;
use smallvec::SmallVec;
use std::sync::Arc;

type Parsed<T> = Result<T, String>;

pub fn configure(config: &mut Config, words: &str) -> Parsed<()> {
    for word in words.split_whitespace() {
        let (key, value) = word.split_once('=').ok_or("a setting is key=value")?;
        match key {
            "conduct" => {
                config.conduct.rule = match value {
                    "off" => ConductRule::Off,
                    "compared" => ConductRule::Compared,
                    "fixed" => ConductRule::Fixed,
                    _ => return Err(format!("no such rule: {value}")),
                }
            }
            "results_min" => config.conduct.results_min = number(value)?,
            "passes" => config.passes_max = number(value)?,
            "keep_jobs" => config.keep.jobs = number(value)?,
            "keep_ms" => config.keep.age_ms = number(value)?,
            "keep_tasks" => config.keep.tasks_of_open_job = number(value)?,
            "keep_worker_ms" => config.keep.worker_ms = number(value)?,
            "slice" => config.keep.slice = number(value)?,
            "tasks" => config.limits.tasks = number(value)?,
            "cycle_search" => config.limits.cycle_search = number(value)?,
            "preds_a_task" => config.limits.preds_a_task = number(value)?,
            "documents" => config.documents.count = number(value)?,
            "document_bytes" => config.documents.bytes = number(value)?,
            "documents_bytes" => config.documents.bytes_in_all = number(value)?,
            "edges" => config.limits.edges = number(value)?,
            "workers" => config.limits.workers = number(value)?,
            "group_tasks" => config.quotas.group_tasks = number(value)?,
            "group_bytes" => config.quotas.group_bytes = number(value)?,
            "token_tasks" => config.quotas.token_tasks = number(value)?,
            "token_bytes" => config.quotas.token_bytes = number(value)?,
            "weight" | "max_slots" => {
                let (owner, value) = value.split_once(':').ok_or("a share is owner:number")?;
                let shares = Arc::make_mut(&mut config.shares);
                let share = shares.owners.entry(owner.into()).or_default();
                match key {
                    "weight" => share.weight = number(value)?,
                    _ => share.max_running_slots = Some(number(value)?),
                }
            }
            "groups" => config.limits.groups = number(value)?,
            "classes" => config.limits.classes = number(value)?,
            "profiles" => config.limits.profiles = number(value)?,
            "tasks_a_submit" => config.limits.tasks_a_submit = number(value)?,
            _ => return Err(format!("no such setting: {key}")),
        }
    }
    Ok(())
}

pub fn parse(line: &str) -> Parsed<Command> {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let words: Vec<&str> = rest.split_whitespace().collect();
    Ok(match verb {
        "submit" => submit(&words)?,
        "close" => Command::Close(job(&words)?),
        "join" => join(&words)?,
        "push" | "pull" => offer(verb, &words)?,
        "withdraw" => Command::Withdraw(token(&words)?),
        "report" => report(&words)?,
        "renew" => Command::Renew(worker(&words)?),
        "return" => hand_back(&words)?,
        "decline" => decline(&words)?,
        "ack" => {
            let lease = words.get(1).ok_or("no lease")?;
            Command::Acknowledge(worker(&words)?, lease_no(lease)?)
        }
        "leave" => leave(&words)?,
        "cancel" => Command::Cancel(selection(&words)?),
        "mark_done" => Command::MarkDone(selection(&words)?),
        "hold" => Command::Hold(selection(&words)?),
        "release" => Command::Release(selection(&words)?),
        "retry" => Command::Retry(selection(&words)?),
        "prioritise" => {
            let priority = number(words.first().ok_or("no priority")?)?;
            Command::Prioritise(selection(&words[1..])?, priority)
        }
        "limit" => limit(&words)?,
        "pause" => Command::Pause(first(&words)?.into()),
        "resume" => Command::Resume(first(&words)?.into()),
        "drain" => {
            let how = match words.get(1).copied() {
                None => Drain::All,
                Some("at_once") => Drain::AtOnce,
                Some("lift") => Drain::Lift,
                Some(slots) => Drain::Slots(number(slots)?),
            };
            Command::Drain(worker(&words)?, how)
        }
        "eject" => Command::Eject(worker(&words)?, words[1..].join(" ")),
        "pardon" => Command::Pardon(worker(&words)?),
        "forget" => Command::Forget(job(&words)?),
        "documents" => Command::ChangeDocuments(
            words.iter().map(|word| document(word)).collect::<Parsed<_>>()?,
        ),
        "query" => Command::Query(query(&words)?),
        "watch" => Command::Watch(match words.first() {
            Some(job) => Scope::Job(JobId(number(job)?)),
            None => Scope::All,
        }),
        "unwatch" => Command::Unwatch(token(&words)?),
        _ => return Err(format!("no such command: {verb}")),
    })
}

/// `kind/name=body`, or without a body to remove it.
fn document(word: &str) -> Parsed<DocumentChange> {
    let (id, body) = word.split_once('=').map_or((word, None), |(id, body)| (id, Some(body)));
    let (kind, name) = id.split_once('/').ok_or("a document is kind/name")?;
    Ok(match body {
        Some(body) => DocumentChange::set(kind, name, body.as_bytes()),
        None => DocumentChange::remove(kind, name),
    })
}

fn number<T: std::str::FromStr>(text: &str) -> Parsed<T> {
    text.parse().map_err(|_| format!("not a number here: {text}"))
}

fn first<'a>(words: &[&'a str]) -> Parsed<&'a str> {
    words.first().copied().ok_or_else(|| "a word is missing".into())
}

fn job(words: &[&str]) -> Parsed<JobId> {
    Ok(JobId(number(first(words)?)?))
}

fn token(words: &[&str]) -> Parsed<Token> {
    Ok(Token(number(first(words)?.trim_start_matches('#'))?))
}

/// `w` is in the group `default`, `g:w` in g.
fn worker(words: &[&str]) -> Parsed<WorkerRef> {
    let (group, name) = first(words)?.split_once(':').unwrap_or(("default", first(words)?));
    Ok(WorkerRef::Name { group: group.into(), name: name.into() })
}

fn task_id(text: &str) -> Option<TaskId> {
    let (job, index) = text.split_once('/')?;
    let job = JobId(job.parse().ok()?);
    match index.strip_suffix("..") {
        Some(first) => Some(TaskId::whole(job, first.parse().ok()?)),
        None => Some(TaskId::new(job, index.parse().ok()?)),
    }
}

fn lease_no(text: &str) -> Parsed<LeaseNo> {
    let (life, count) = text.split_once('.').ok_or("a lease is life.count")?;
    Ok(LeaseNo::new(number(life)?, number(count)?))
}

/// `1/2` is an id, `@1/2` one of the own group, everything else a name.
fn task_ref(text: &str) -> TaskRef {
    if let Some(id) = text.strip_prefix('@').and_then(task_id) {
        return TaskRef::Own(id);
    }
    task_id(text).map_or_else(|| TaskRef::Name(text.into()), TaskRef::Id)
}

fn task_refs(text: &str) -> Vec<TaskRef> {
    text.split(',').filter(|word| !word.is_empty()).map(task_ref).collect()
}

fn submit(words: &[&str]) -> Parsed<Command> {
    let mut submit = Submit::new("default");
    let mut options = JobOptions::default();
    let mut work = None;
    let mut items = Vec::new();
    for word in words {
        if !setting(word, &mut submit, &mut options, &mut work)? {
            items.push(*word);
        }
    }
    match submit.job {
        SubmitTo::New(_) => submit.job = SubmitTo::New(options),
        SubmitTo::Open(_) => submit.job = SubmitTo::Open(options),
        SubmitTo::Add(_) => {}
    }
    for word in items {
        item(word, &mut submit, work.clone())?;
    }
    Ok(Command::Submit(submit))
}

/// False: the word is a task or an array.
fn setting(
    word: &str,
    submit: &mut Submit,
    options: &mut JobOptions,
    work: &mut Option<Work>,
) -> Parsed<bool> {
    let profile = &mut submit.profiles[0];
    match word {
        "open" => options.open = true,
        "held" => options.held = true,
        "own" => options.own_names = true,
        "shared" => submit.job = SubmitTo::Open(JobOptions::default()),
        "anyway" => profile.runs_anyway = true,
        _ => {
            let Some((key, value)) = word.split_once('=') else { return Ok(false) };
            match key {
                "group" => submit.group = value.into(),
                "into" => submit.job = SubmitTo::Add(JobId(number(value)?)),
                "name" => options.name = value.into(),
                "max_running" => options.max_running = Some(number(value)?),
                "max_fails" => options.max_fails = Some(number(value)?),
                "begin" => options.begin = Some(Time(number(value)?)),
                "owner" => options.owner = Some(value.into()),
                "key" => options.key = Some(value.as_bytes().into()),
                "slots" => profile.needs.slots = number(value)?,
                "memory" => profile.needs.memory = number(value)?,
                "nodes" => profile.needs.nodes = number(value)?,
                "gpu" | "licence" => profile.needs.resources.push((key.into(), request(value)?)),
                "or" => profile.needs.variants.push(variant(value)?),
                "request" => profile.time_request_ms = Some(number(value)?),
                "tag" => profile.needs.tags.push(value.into()),
                "priority" => profile.priority = number(value)?,
                "attempts" => profile.attempts = number(value)?,
                "lost" => profile.lost_max = number(value)?,
                "limit" => profile.time_limit_ms = Some(number(value)?),
                "backoff" => profile.backoff.first_ms = number(value)?,
                "backoff_most" => profile.backoff.most_ms = number(value)?,
                "retry_on" => profile.retry_on.push(number(value)?),
                "unknown" if value == "in_order" => submit.unknown_pred = UnknownPred::InOrder,
                "unknown" => submit.unknown_pred = UnknownPred::Ignore,
                "taken" => {
                    submit.if_taken = if value == "merge" { IfTaken::Merge } else { IfTaken::Same };
                }
                "kind" => *work = Some(some_work(value)),
                "words" | "variables" | "line" | "body" => {
                    *work = Some(large_work(key, number(value)?));
                }
                _ => return Err(format!("no such setting: {key}")),
            }
        }
    }
    Ok(true)
}

/// `_` has no name; `x[10]` is an array; `<` its predecessors; `~` element by element.
fn item(word: &str, submit: &mut Submit, work: Option<Work>) -> Parsed<()> {
    let (head, each) = word.split_once('~').unwrap_or((word, ""));
    let (head, preds) = head.split_once('<').unwrap_or((head, ""));
    let Some((name, count)) = head.split_once('[') else {
        let name = if head == "_" { Name::default() } else { head.into() };
        let preds: SmallVec<[TaskRef; 1]> = task_refs(preds).into();
        let work = work.map(Arc::new);
        submit.tasks.push(TaskSpec { name, profile: 0, work, preds, memo: None });
        return Ok(());
    };
    let count = number(count.trim_end_matches(']'))?;
    let mut array = ArraySpec::numbered(name, count, work.unwrap_or(Work::Named));
    (array.preds, array.each) = (task_refs(preds), task_refs(each));
    submit.arrays.push(array);
    Ok(())
}

fn some_work(kind: &str) -> Work {
    match kind {
        "command" => Work::Command(CommandWork {
            program: Program::Shell(b"true".as_slice().into()),
            setting: Arc::default(),
        }),
        "redirected" => Work::Command(CommandWork {
            program: Program::Shell(b"true".as_slice().into()),
            setting: Arc::new(Setting {
                stdout: Some(b"out".as_slice().into()),
                ..Setting::default()
            }),
        }),
        "script" => Work::script(".sh", Arc::from(b"true".as_slice()), Arc::default()),
        _ => Work::Named,
    }
}

/// A command with so many words or variables, a line or a script of so many bytes.
fn large_work(what: &str, count: usize) -> Work {
    let mut setting = Setting::default();
    if what == "variables" {
        setting.env = vec![(b"a".as_slice().into(), Box::default()); count];
    }
    let setting = Arc::new(setting);
    let program = match what {
        "words" => Program::Argv(std::iter::repeat_n("a", count).collect()),
        _ => Program::Shell(vec![b'a'; if what == "line" { count } else { 4 }].into()),
    };
    match what {
        "body" => Work::script(".sh", vec![b'a'; count].into(), setting),
        _ => Work::Command(CommandWork { program, setting }),
    }
}

/// `2`, `0.5` or `all`.
fn request(text: &str) -> Parsed<Request> {
    if text == "all" {
        return Ok(Request::All);
    }
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let parts: u64 = number(&format!("{whole}{decimals:0<4}"))?;
    Ok(Request::Some(Amount::of_parts(parts)))
}

/// `slots:2,gpu:1`
fn variant(text: &str) -> Parsed<Needs> {
    let mut needs = Needs::default();
    for (key, value) in text.split(',').filter_map(|word| word.split_once(':')) {
        match key {
            "slots" => needs.slots = number(value)?,
            "tag" => needs.tags.push(value.into()),
            _ => needs.resources.push((key.into(), request(value)?)),
        }
    }
    Ok(needs)
}

fn join(words: &[&str]) -> Parsed<Command> {
    let (group, name) = first(words)?.split_once(':').unwrap_or(("default", first(words)?));
    let mut join = Join::new(group, name, "test", SessionId(1));
    for word in &words[1..] {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("what is {word}"))?;
        match key {
            "slots" => join.capacity.slots = number(value)?,
            "memory" => join.capacity.memory = number(value)?,
            "left" => join.capacity.time_left_ms = Some(number(value)?),
            "gpu" | "licence" => {
                join.capacity.resources.push((key.into(), Supply::of(number(value)?)));
            }
            "host" => join.host = value.into(),
            "tag" => join.tags.push(value.into()),
            "period" => join.period_ms = Some(number(value)?),
            "session" => join.session = SessionId(number(value)?),
            "life" => join.life = Some(number(value)?),
            "acks" => join.acknowledges = value == "yes",
            "kinds" => join.kinds = Kinds::of(&[some_work(value).kind()]),
            "running" => {
                let mut running = Vec::new();
                for word in value.split(',').filter(|word| *word != "nothing") {
                    let (task, lease) = word.split_once('@').ok_or("running=1/1@1.0")?;
                    running.push((task_id(task).ok_or("running=1/1@1.0")?, lease_no(lease)?));
                }
                join.running = Some(running);
            }
            _ => return Err(format!("no such setting: {key}")),
        }
    }
    Ok(Command::Join(join))
}

fn offer(verb: &str, words: &[&str]) -> Parsed<Command> {
    let (mut most, mut patience, mut lease_ms, mut ahead) = (1, Patience::None, None, 0);
    for word in &words[1..] {
        match word.split_once('=') {
            None => most = number(word)?,
            Some(("until", value)) => patience = Patience::Until(Time(number(value)?)),
            Some(("always", value)) => patience = Patience::Always(Time(number(value)?)),
            Some(("lease", value)) => lease_ms = Some(number(value)?),
            Some(("ahead", value)) => ahead = number(value)?,
            _ => return Err(format!("what is {word}")),
        }
    }
    let route = match verb {
        "push" => Route::Push { ahead },
        _ => Route::Answer { most, patience },
    };
    Ok(Command::Offer(Offer { worker: worker(words)?, route, lease_ms }))
}

/// `a`, `1/2`, or with its number `1/2@1.0`; `a?` also where no worker holds it, `a!` also where another worker does.
fn lease_ref(text: &str) -> Parsed<LeaseRef> {
    match text.split_once('@') {
        None => Ok(match (text.strip_suffix('?'), text.strip_suffix('!')) {
            (Some(text), _) => LeaseRef::HeldOrFree(task_ref(text)),
            (None, Some(text)) => LeaseRef::Anyones(task_ref(text)),
            (None, None) => LeaseRef::Held(task_ref(text)),
        }),
        Some((task, lease)) => {
            let task = task_id(task).ok_or("a lease number goes with an id")?;
            Ok(LeaseRef::Number { task, lease: lease_no(lease)? })
        }
    }
}

fn report(words: &[&str]) -> Parsed<Command> {
    let mut results = Vec::new();
    for word in &words[1..] {
        let (lease, outcome) = word.split_once('=').ok_or("a result is task=outcome")?;
        let (outcome, why) = outcome.split_once(':').unwrap_or((outcome, ""));
        let message = (!why.is_empty()).then(|| why.replace('_', " ").into());
        let outcome = match outcome {
            "ok" => Outcome::Success,
            "timeout" => Outcome::TimedOut,
            "error" => Outcome::Error,
            "lost" => Outcome::Lost,
            other => match other.strip_prefix("sig") {
                Some(signal) => Outcome::Signal(number(signal)?),
                None => Outcome::Exit(number(other)?),
            },
        };
        for lease in elements(lease)? {
            let lease = lease_ref(&lease)?;
            results.push(TaskResult { lease, outcome, message: message.clone(), memo: None });
        }
    }
    Ok(Command::Report(Report { worker: worker(words)?, results }))
}

/// `x.3-5` are three elements.
fn elements(text: &str) -> Parsed<Vec<String>> {
    let range = text.split_once('.').and_then(|(x, range)| Some((x, range.split_once('-')?)));
    let Some((array, (first, last))) = range else { return Ok(vec![text.into()]) };
    let (first, last): (u32, u32) = (number(first)?, number(last)?);
    Ok((first..=last).map(|element| format!("{array}.{element}")).collect())
}

fn hand_back(words: &[&str]) -> Parsed<Command> {
    let mut place = Place::Back;
    let mut tasks = Vec::new();
    for word in &words[1..] {
        if *word == "front" {
            place = Place::Front;
            continue;
        }
        let (lease, preds) = word.split_once('<').unwrap_or((word, ""));
        tasks.push(Returned { lease: lease_ref(lease)?, preds: task_refs(preds) });
    }
    Ok(Command::Return(Return { worker: worker(words)?, tasks, place }))
}

/// `decline w a it is too long`
fn decline(words: &[&str]) -> Parsed<Command> {
    let lease = lease_ref(words.get(1).ok_or("which task")?)?;
    let tasks = vec![Declined { lease, reason: words[2..].join(" ").into() }];
    Ok(Command::Decline(Decline { worker: worker(words)?, tasks }))
}

fn leave(words: &[&str]) -> Parsed<Command> {
    let (mut how, mut session) = (Leaving::Gone, None);
    for word in &words[1..] {
        match word.split_once('=') {
            Some(("away", ms)) => how = Leaving::Away { grace_ms: number(ms)? },
            Some(("session", value)) => session = Some(SessionId(number(value)?)),
            _ => return Err(format!("what is {word}")),
        }
    }
    Ok(Command::Leave(Leave { worker: worker(words)?, session, how }))
}

fn selection(words: &[&str]) -> Parsed<Selection> {
    let which = match words.get(1) {
        None => Which::Job,
        Some(word) => match State::ALL.into_iter().find(|state| state.word() == *word) {
            Some(state) => Which::InState(state),
            None => {
                let mut ranges = Vec::new();
                for range in word.split(',') {
                    let (first, last) = range.split_once('-').unwrap_or((range, range));
                    ranges.push((number(first)?, number(last)?));
                }
                Which::Ranges(ranges)
            }
        },
    };
    Ok(Selection { job: job(words)?, which })
}

fn limit(words: &[&str]) -> Parsed<Command> {
    let (mut max_running, mut max_fails) = (None, None);
    for word in &words[1..] {
        let (key, value) = word.split_once('=').ok_or("a limit is key=value")?;
        let value = if value == "none" { None } else { Some(number(value)?) };
        match key {
            "max_running" => max_running = Some(value),
            "max_fails" => max_fails = Some(value),
            _ => return Err(format!("no such limit: {key}")),
        }
    }
    Ok(Command::Limit { job: job(words)?, max_running, max_fails })
}

fn query(words: &[&str]) -> Parsed<Query> {
    let group = || Name::from("default");
    let second = words.get(1).copied();
    Ok(match (first(words)?, second) {
        ("groups", _) => Query::Groups,
        ("group", Some(name)) => Query::Group(name.into()),
        ("jobs", name) => {
            Query::Jobs { group: name.map(Name::from), owner: None, from: JobId(0), most: 100 }
        }
        ("jobs_of", Some(owner)) => {
            let owner = Some(owner.into());
            Query::Jobs { group: None, owner, from: JobId(0), most: 100 }
        }
        ("owners", name) => {
            let group = name.map_or_else(group, Name::from);
            Query::Owners { group, after: None, most: 100 }
        }
        ("newest", name) => {
            let group = name.map(Name::from);
            Query::JobsBefore { group, owner: None, before: JobId(u32::MAX), most: 2 }
        }
        ("ended", Some(time)) => {
            let job = words.get(2).map_or(Ok(0), |job| number(job))?;
            Query::Ended { after: (Time(number(time)?), JobId(job)), most: 2 }
        }
        ("job", Some(job)) => Query::Job(JobId(number(job)?)),
        ("tasks", Some(job)) => {
            let wanted = words.get(2);
            let state = wanted.and_then(|word| State::ALL.into_iter().find(|s| s.word() == *word));
            Query::Tasks { job: JobId(number(job)?), state, from: 1, most: 5 }
        }
        ("ranges", Some(job)) => {
            let wanted =
                words.get(2).and_then(|word| State::ALL.into_iter().find(|s| s.word() == *word));
            let state = wanted.ok_or("the state")?;
            Query::Ranges { job: JobId(number(job)?), state, from: 1, most: 2 }
        }
        ("retention", Some(within)) => Query::Retention { within_ms: number(within)? },
        ("backlog", Some(name)) => Query::Backlog { group: name.into(), most: 1000 },
        ("parts", Some(job)) => Query::Parts { job: JobId(number(job)?), from: 1, most: 3 },
        ("task", Some(task)) => Query::Task { group: group(), task: task_ref(task) },
        ("explain", Some(task)) => {
            let group = words.get(2).map_or_else(group, |&name| name.into());
            Query::Explain { group, task: task_ref(task) }
        }
        ("workers", name) => {
            Query::Workers { group: name.map(Name::from), from: WorkerId(0), most: 100 }
        }
        ("worker", Some(_)) => Query::Worker(worker(&words[1..])?),
        _ => return Err("what is asked".into()),
    })
}
