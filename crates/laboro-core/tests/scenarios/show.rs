//! Events and effects as the words of a script: one short line each, with names where there are names.

use laboro_core::*;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Names that ids stand for, gathered from the events.
#[derive(Default)]
pub struct Names {
    groups: BTreeMap<GroupId, Name>,
    workers: BTreeMap<WorkerId, Name>,
}

impl Names {
    pub fn of(events: &[(Time, Event)]) -> Names {
        let mut names = Names::default();
        for (_, event) in events {
            match event {
                Event::GroupMade { group, name } => {
                    names.groups.insert(*group, name.clone());
                }
                Event::WorkerMet { worker, name, .. } => {
                    names.workers.insert(*worker, name.clone());
                }
                _ => {}
            }
        }
        names
    }

    fn worker(&self, id: WorkerId) -> String {
        self.workers.get(&id).map_or_else(|| format!("worker {}", id.0), ToString::to_string)
    }

    fn group(&self, id: GroupId) -> &Name {
        &self.groups[&id]
    }

    pub fn event(&self, event: &Event) -> String {
        match event {
            Event::Began { life, .. } => format!("began life {life}"),
            Event::GroupMade { name, .. } => format!("group {name}"),
            Event::GroupForgotten { group } => format!("forgot group {}", self.group(*group)),
            Event::GroupPaused { group, paused: true } => format!("paused {}", self.group(*group)),
            Event::GroupPaused { group, .. } => format!("resumed {}", self.group(*group)),
            Event::JobMade { job, group, .. } => format!("job {job} in {}", self.group(*group)),
            Event::JobClosed { job } => format!("closed {job}"),
            Event::JobHeld { job, held: true } => format!("held job {job}"),
            Event::JobHeld { job, .. } => format!("released job {job}"),
            Event::JobStopped { job, stopped: true } => format!("stopped {job}"),
            Event::JobStopped { job, .. } => format!("goes on {job}"),
            Event::JobDue { job } => format!("due {job}"),
            Event::JobDeferred { job, begin: Some(begin) } => {
                format!("deferred {job} until {}", begin.0)
            }
            Event::JobDeferred { job, begin: None } => format!("begins now {job}"),
            Event::JobLimited { job, max_running, max_fails } => {
                format!("limited {job} running {} fails {}", most(max_running), most(max_fails))
            }
            Event::JobForgotten { job } => format!("forgot job {job}"),
            Event::Added(added) => show_added(added),
            Event::PredsAdded { task, preds } => format!("preds {task}{}", after('<', preds)),
            Event::Renewed { task, preds, .. } => format!("renewed {task}{}", after('<', preds)),
            Event::WorkerMet { name, .. } => format!("met {name}"),
            Event::WorkerForgotten { worker } => format!("forgot {}", self.worker(*worker)),
            Event::Leased { task, lease, worker, until, share } => {
                let until = until.map_or_else(String::new, |until| format!(" until {}", until.0));
                let share = show_share(share.as_deref());
                format!("leased {task} {lease} {}{until}{share}", self.worker(*worker))
            }
            Event::Finished { task, worker, outcome, then, .. } => {
                let then = match then {
                    Then::Done => "done".to_owned(),
                    Then::Failed => "failed".to_owned(),
                    Then::Again(at) => format!("again at {}", at.0),
                };
                format!("finished {task} {}: {outcome}, {then}", self.worker(*worker))
            }
            Event::Returned { task, why, preds } => {
                format!("returned {task} {}{}", word(why), after('<', preds))
            }
            Event::HeldBack { task, why, reason } => {
                format!("held back {task} {}: {reason}", word(why))
            }
            Event::Woken { task } => format!("woken {task}"),
            Event::Cancelled { job, ranges } => format!("cancelled {job} {}", runs(ranges)),
            Event::Held { job, ranges } => format!("held {job} {}", runs(ranges)),
            Event::Released { job, ranges } => format!("released {job} {}", runs(ranges)),
            Event::MarkedDone { job, ranges } => format!("marked_done {job} {}", runs(ranges)),
            Event::Retried { job, ranges } => format!("retried {job} {}", runs(ranges)),
            Event::Prioritised { job, ranges, priority } => {
                format!("prioritised {job} {} to {priority}", runs(ranges))
            }
            Event::TasksForgotten { job, ranges } => format!("forgot {job} {}", runs(ranges)),
            Event::Judged { worker, standing, reason, until } => {
                let until = until.map_or_else(String::new, |until| format!(" until {}", until.0));
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                format!("judged {} {}{until}{reason}", self.worker(*worker), standing.word())
            }
            Event::DocumentChanged(change) => {
                let DocumentId { kind, name } = &change.id;
                let body = change.body.as_ref();
                let now = body.map_or("removed".into(), |body| format!("{} bytes", body.len()));
                format!("document {kind}/{name} is {now}")
            }
            Event::Restored(_) => "restored".into(),
        }
    }

    /// Effects of the present command stand bare; others name the command they belong to.
    pub fn effect(&self, effect: &Effect, now: u64) -> Vec<String> {
        match effect {
            Effect::Reply { token, reply } => {
                let to = if token.0 == now { String::new() } else { format!("#{} ", token.0) };
                self.reply(reply).into_iter().map(|line| format!("{to}{line}")).collect()
            }
            Effect::Dispatch { worker, grants, .. } => {
                vec![format!("dispatch {} {}", self.worker(*worker), show_grants(grants))]
            }
            Effect::Revoke { worker, leases, .. } => {
                let leases = leases.iter().map(|(task, lease)| format!("{task}@{lease}"));
                vec![format!("revoke {} {}", self.worker(*worker), join(leases))]
            }
            Effect::Stop { worker, drain, .. } => {
                vec![format!("stop {} {drain:?}", self.worker(*worker))]
            }
            Effect::Replaced { session, worker } => {
                vec![format!("replaced {} of session {}", self.worker(*worker), session.0)]
            }
            Effect::Notify { watch, changes } => {
                let show = |change: &Change| format!("notify #{} {}", watch.0, self.change(change));
                changes.iter().map(show).collect()
            }
        }
    }

    fn change(&self, change: &Change) -> String {
        match change {
            Change::Tasks { job, first, last, state, worker, outcome } => {
                let by = worker.map_or_else(String::new, |w| format!(" {}", self.worker(w)));
                let how = outcome.map_or_else(String::new, |o| format!(" ({o})"));
                format!("{job}/{} {}{by}{how}", runs(&[(*first, *last)]), state.word())
            }
            Change::Job { job } => format!("job {job}"),
            Change::Worker { worker } => format!("worker {}", self.worker(*worker)),
            Change::Group { group } => format!("group {}", self.group(*group)),
        }
    }

    fn reply(&self, reply: &Reply) -> Vec<String> {
        let line = match reply {
            Reply::Ok => "ok".into(),
            Reply::Submitted { job, first, count, again } => {
                format!(
                    "submitted {job}: {count} from {first}{}",
                    if *again { ", again" } else { "" }
                )
            }
            Reply::Joined { worker, unknown } => {
                let unknown: Vec<TaskId> = unknown.iter().map(|&(task, _)| task).collect();
                format!("joined {}{}", self.worker(*worker), after('?', &unknown))
            }
            Reply::Work { worker, grants } => {
                format!("work {} {}", self.worker(*worker), show_grants(grants))
            }
            Reply::Nothing(idle) => format!("nothing, {}", word(idle)),
            Reply::Reported(verdicts) => {
                let verdicts = verdicts.iter().map(|verdict| match verdict {
                    Ok(()) => "ok".to_owned(),
                    Err(Refusal::AlreadyFinished { by_you: true, .. }) => "finished by you".into(),
                    Err(refusal) => refusal.to_string(),
                });
                format!("reported {}", verdicts.collect::<Vec<_>>().join(", "))
            }
            Reply::Changed { tasks } => format!("changed {tasks}"),
            Reply::Refused(refusal) => format!("refused: {refusal}"),
            Reply::Explained(text) => format!("explained: {text}"),
            Reply::Watching => "watching".into(),
            Reply::Groups(groups) => return groups.iter().map(show_group).collect(),
            Reply::Jobs(jobs) => return jobs.iter().map(show_job).collect(),
            Reply::Owners(owners) => return owners.iter().map(show_owner).collect(),
            Reply::Tasks { tasks, next } => {
                let mut lines: Vec<String> = tasks.iter().map(|task| self.task(task)).collect();
                lines.extend(next.map(|next| format!("more from {next}")));
                return lines;
            }
            Reply::Parts { parts, next } => {
                let mut lines: Vec<String> = parts.iter().map(show_part).collect();
                lines.extend(next.map(|next| format!("more from {next}")));
                return lines;
            }
            Reply::Ranges { ranges, next } => {
                let shown: Vec<String> =
                    ranges.iter().map(|(first, last)| format!("{first}-{last}")).collect();
                let more = next.map_or_else(String::new, |next| format!(", more from {next}"));
                format!("ranges {}{more}", shown.join(" "))
            }
            Reply::Retention(Retention { finished, most, soon, first }) => {
                let first = first.map_or_else(String::new, |job| format!(", job {job} first"));
                format!("{finished} of {most} finished jobs, {soon} forgotten soon{first}")
            }
            Reply::Backlog(classes) => {
                return classes
                    .iter()
                    .map(|Backlog { needs, limit_ms, tasks }| {
                        let limit =
                            limit_ms.map_or_else(String::new, |ms| format!(" within {ms} ms"));
                        format!("backlog {tasks} of {} slots{limit}", needs.slots)
                    })
                    .collect();
            }
            Reply::Task(task) => self.task(task),
            Reply::Workers(workers) => return workers.iter().map(show_worker).collect(),
        };
        vec![line]
    }

    fn task(&self, view: &TaskView) -> String {
        let mut line = format!("task {} {} {}", view.task, view.name, view.state.word());
        if view.priority != 0 {
            line += &format!(" priority {}", view.priority);
        }
        for attempt in &view.attempts {
            let how = attempt.outcome.map_or_else(|| "runs".into(), |outcome| outcome.to_string());
            let ended = attempt.ended.map_or_else(String::new, |ended| ended.0.to_string());
            let worker = self.worker(attempt.worker);
            line += &format!(", {worker} {}..{ended} {how}", attempt.started.0);
        }
        line + &ties('<', &view.preds) + &ties('>', &view.succs)
    }
}

/// Those of other groups are marked.
fn ties(sign: char, ties: &Ties) -> String {
    let elsewhere = ties.elsewhere.iter().map(|id| format!(" {sign}elsewhere:{id}"));
    after(sign, &ties.own) + &elsewhere.collect::<String>()
}

fn show_added(added: &Added) -> String {
    let arrays = added.arrays.iter().map(|array| {
        let preds = after('<', &array.preds) + &after('~', &array.each);
        format!("{}[{}]{preds}", array.name, array.count)
    });
    let tasks = added.tasks.iter().map(|task| {
        let name = if task.name.is_empty() { "_".into() } else { task.name.to_string() };
        format!("{name}{}", after('<', &task.preds))
    });
    format!("added {} {}", added.job, join(arrays.chain(tasks)))
}

fn show_grants(grants: &[Grant]) -> String {
    join(grants.iter().map(|grant| {
        let name = match (&grant.element, grant.name.is_empty()) {
            (Some(element), _) => format!("{}.{}", grant.name, element.position + 1),
            (None, true) => grant.task.to_string(),
            (None, false) => grant.name.to_string(),
        };
        let again = if grant.attempt > 1 { format!("({})", grant.attempt) } else { String::new() };
        let role = match &grant.role {
            Role::Only => String::new(),
            Role::First(nodes) => {
                let nodes: Vec<String> =
                    nodes.iter().map(|node| format!("{}@{}", node.worker, node.host)).collect();
                format!(" on {}", nodes.join("+"))
            }
            Role::Kept => " kept".to_owned(),
        };
        format!("{name}{again}{}{role}", show_share(grant.share.as_deref()))
    }))
}

fn show_share(share: Option<&Share>) -> String {
    let parts = share.iter().flat_map(|share| &share.portions).map(|(name, portion)| {
        let set = (0..128).filter(|bit| portion.items & 1 << bit != 0);
        let mut shown: Vec<String> = set.map(|bit: u32| bit.to_string()).collect();
        let part = |(item, parts)| format!("{}/{item}", Amount::of_parts(u64::from(parts)));
        shown.extend(portion.shared.map(part));
        shown.extend((portion.amount.parts() > 0).then(|| format!("x{}", portion.amount)));
        format!(" {name}:{}", shown.join("+"))
    });
    let variant = share.map_or(0, |share| share.variant);
    let variant = if variant > 0 { format!(" way {variant}") } else { String::new() };
    let nodes = share.iter().flat_map(|share| &share.nodes);
    let nodes: String = nodes.map(|node| format!(" and {}", node.0)).collect();
    parts.collect::<String>() + &variant + &nodes
}

fn show_group(view: &GroupView) -> String {
    let paused = if view.paused { ", paused" } else { "" };
    format!("group {}{}{paused}", view.name, show_counts(&view.counts))
}

fn show_owner(view: &OwnerView) -> String {
    let OwnerView { owner, jobs, slots_used, weight, max_running_slots } = view;
    let owner = owner.as_ref().map_or_else(|| "nobody".to_owned(), Name::to_string);
    let most = max_running_slots.map(|most| format!(" of {most}")).unwrap_or_default();
    format!("owner {owner}: jobs {jobs}, slots {slots_used}{most}, weight {weight}")
}

fn show_job(view: &JobView) -> String {
    let mut line = format!("job {}{}", view.job, show_counts(&view.counts));
    for (is, word) in [(view.open, "open"), (view.held, "held"), (view.stopped, "stopped")] {
        if is {
            line += &format!(", {word}");
        }
    }
    if let Some(begin) = view.begin {
        line += &format!(", begins at {}", begin.0);
    }
    for (outcome, count) in &view.failures {
        line += &format!(", {count} x {outcome}");
    }
    if let Some(ended) = view.ended {
        line += &format!(", ended at {}", ended.0);
    }
    line
}

fn show_counts(counts: &Counts) -> String {
    let some = State::ALL.into_iter().filter(|&state| counts.of(state) > 0);
    some.map(|state| format!(" {} {}", counts.of(state), state.word())).collect()
}

fn show_part(part: &PartView) -> String {
    let mut line = format!("part {}x{} {}", part.first, part.count, part.name);
    line += &match part.state {
        Some(state) => format!(" {}", state.word()),
        None => show_counts(&part.counts),
    };
    line.extend(part.preds.own.iter().map(|pred| format!(" <{pred}")));
    line.extend(part.preds.elsewhere.iter().map(|pred| format!(" <elsewhere:{pred}")));
    line.extend(part.each.own.iter().map(|pred| format!(" each {pred}")));
    line.extend(part.each.elsewhere.iter().map(|pred| format!(" each elsewhere:{pred}")));
    line
}

fn show_worker(view: &WorkerView) -> String {
    let place = if view.connected { "here" } else { "away" };
    let draining = if view.draining { ", draining" } else { "" };
    format!(
        "worker {} {place}, {}, {}/{} slots, {} good {} bad{draining}",
        view.name,
        view.conduct.standing.word(),
        view.slots_used,
        view.slots,
        view.succeeded,
        view.failed
    )
}

fn most(limit: &Option<u32>) -> String {
    limit.map_or_else(|| "none".into(), |most| most.to_string())
}

fn runs(ranges: &[(u32, u32)]) -> String {
    let show = |&(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

fn after(mark: char, ids: &[TaskId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    format!(" {mark}{}", ids.join(","))
}

fn join(words: impl Iterator<Item = impl Display>) -> String {
    words.map(|word| word.to_string()).collect::<Vec<_>>().join(" ")
}

fn word(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}
