//! `laboro show`: all about one job or one task, with what a failed task said last.

use super::logs::tail;
use crate::args::hub::Show;
use crate::exit::{Exit, usage};
use crate::hub_client::{Hub, TaskPages, look};
use crate::output::table::{Column, Mood, Table};
use crate::output::{bytes, counted, print, safe, shell_word};
use crate::resolve::{Chosen, Purpose, Reading, Which, several};
use crate::view::{
    ago, bar_of, between, called, clock, line_of, now_ms, span, state_of_job, state_of_task, took,
    worker_of,
};
use laboro_api::{After, Attempt, Job, Line, Stdin, Task, TaskState, TaskWork, Text};
use laboro_plan::ScriptKind;

pub(crate) fn run(args: &Show) -> anyhow::Result<Exit> {
    look(&args.answer.place, async |hub| {
        let how =
            Reading { purpose: Purpose::Look, group: args.group.as_deref(), everybody: false };
        let mut is_first = true;
        for text in &args.what {
            for chosen in several(hub, text, how).await? {
                if !args.answer.json && !std::mem::take(&mut is_first) {
                    print("")?;
                }
                show(hub, text, &chosen, args.answer.json).await?;
            }
        }
        Ok(Exit::Done)
    })
}

async fn show(hub: &Hub, text: &str, chosen: &Chosen, json: bool) -> anyhow::Result<()> {
    if let Some(number) = chosen.one_task() {
        let task = hub.task(chosen.job, number).await?;
        match json {
            true => print(serde_json::to_string(&task)?)?,
            false => print(task_text(hub, &task).await?)?,
        }
        return Ok(());
    }
    if chosen.which != Which::Job {
        return Err(usage(format!(
            "{}: show one task or a whole job; `laboro tasks {}` lists several",
            safe(text),
            safe(text)
        )));
    }
    let job = hub.job(chosen.job).await?;
    match json {
        true => print(serde_json::to_string(&job)?)?,
        false => print(job_text(hub, &job).await?)?,
    }
    Ok(())
}

/// Lines of a name and what belongs to it, one below the other.
struct Facts(String);

impl Facts {
    fn add(&mut self, name: &str, value: impl std::fmt::Display) {
        let text = value.to_string();
        if !text.is_empty() {
            self.0.push_str(&format!("\n  {name:<10} {text}"));
        }
    }
}

/// How many failed tasks are shown with a job, and how many lines of what each said.
const FAILED_SHOWN: u32 = 10;
const TAIL_LINES: usize = 5;

async fn job_text(hub: &Hub, job: &Job) -> anyhow::Result<String> {
    let now = now_ms();
    let (word, mood) = state_of_job(job);
    let mut facts = Facts(format!("job {} {} {}", job.job, job.name, mood.paint(word)));
    if let Some(owner) = &job.owner {
        facts.add("owner", owner);
    }
    for target in &job.on_end {
        facts.add("on end", safe(target));
    }
    facts.add("group", &job.group);
    facts.add("tasks", format_args!("{}: {}", job.tasks, bar_of(&job.counts)));
    facts.add(
        "submitted",
        format_args!("{}, {} ago", clock(job.submitted_ms), ago(job.submitted_ms, now)),
    );
    match job.ended_ms {
        Some(ended) => {
            let took = between(job.submitted_ms, ended);
            facts.add("ended", format_args!("{}, after {took}", clock(ended)));
            if let Some(forgotten) = job.forgotten_ms {
                let words = "with its output; sooner if more jobs finish than the hub keeps";
                facts.add("kept until", format_args!("{}, {words}", clock(forgotten)));
            }
        }
        None if job.open => facts.add("open", "takes more tasks until `laboro close`"),
        None => {}
    }
    if let Some(most) = job.max_running {
        facts.add("at once", format_args!("at most {most}"));
    }
    if let Some(most) = job.max_fails {
        facts.add("stops", format_args!("when more than {most} have failed"));
    }
    if let Some(begin) = job.begin_ms {
        let wait = between(now, begin);
        facts.add(
            "begins",
            format_args!("{}, in {wait}; `laboro release {}` begins it now", clock(begin), job.job),
        );
    }
    if job.held || job.stopped {
        facts.add("resumes", format_args!("after laboro release {}", job.job));
    }
    let failures: Vec<String> = job
        .failures
        .iter()
        .map(|failure| format!("{} {}", failure.count, failure.outcome))
        .collect();
    facts.add("failures", failures.join(", "));
    let mut text = facts.0;
    let mut failed = TaskPages::new(hub, job.job, Some(TaskState::Failed), 1, Some(FAILED_SHOWN));
    for _ in 0..FAILED_SHOWN.min(u32::try_from(job.counts.failed).unwrap_or(u32::MAX)) {
        let Some(task) = failed.next().await? else { break };
        text.push_str(&format!("\n\n{}/{} {}", task.job, task.task, safe(&called(&task))));
        if let Some(outcome) = task.attempts.last().and_then(|last| last.outcome) {
            text.push_str(&format!(" ({outcome})"));
        }
        if let Some(message) = &task.message {
            text.push_str(&indented(&safe(message)));
        }
        text.push_str(&indented(&tail(hub, &task, TAIL_LINES).await));
    }
    let more = job.counts.failed.saturating_sub(FAILED_SHOWN.into());
    if more > 0 {
        text.push_str(&format!("\n\n{more} more failed: laboro tasks {}/failed", job.job));
    }
    Ok(text)
}

const ATTEMPT_COLUMNS: &[Column] = &[
    Column::Right("attempt"),
    Column::Left("worker"),
    Column::Left("started"),
    Column::Right("took"),
    Column::Right("cpu"),
    Column::Right("memory"),
    Column::Left("outcome"),
];

async fn task_text(hub: &Hub, task: &Task) -> anyhow::Result<String> {
    let now = now_ms();
    let state = state_of_task(task.state).paint(task.state.word());
    let id = format!("{}/{}", task.job, task.task);
    // One without a name and without values is called by its number.
    let name = match called(task) {
        name if name == id || name == task.task.to_string() => String::new(),
        name => format!(" {}", safe(&name)),
    };
    let mut facts = Facts(format!("task {id}{name} {state}"));
    if !matches!(task.state, TaskState::Done) {
        let explained = hub.explain(task.job, task.task).await?;
        facts.add("because", safe(&explained.explanation));
    }
    if let Some(message) = &task.message {
        facts.add("message", safe(message));
    }
    if task.output_lost {
        let lost = task.attempts.last().map_or(0, |last| last.output_lost_bytes);
        let some = if lost > 0 { counted(lost, "byte") } else { "some".to_owned() };
        facts.add("output", format_args!("{some} lost: the hub could not write it"));
    }
    if let Some(work) = &task.work {
        add_work(&mut facts, work);
    }
    let kept: Vec<String> = task.kept_workers.iter().map(|name| safe(&name.to_string())).collect();
    facts.add("kept for it", kept.join(", "));
    if task.priority != 0 {
        facts.add("priority", task.priority);
    }
    facts.add("after", references(&task.after));
    facts.add("before", references(&task.before));
    let mut text = facts.0;
    if !task.attempts.is_empty() {
        let mut table = Table::new(ATTEMPT_COLUMNS);
        for attempt in &task.attempts {
            table.row(attempt_row(attempt, now));
        }
        text.push_str(&indented(&table.text()));
    }
    if task.state == TaskState::Failed {
        text.push_str(&indented(&tail(hub, task, TAIL_LINES * 2).await));
    }
    Ok(text)
}

fn attempt_row(attempt: &Attempt, now: u64) -> [(String, Mood); 7] {
    let known = |number: u64, text: String| if number > 0 { text } else { String::new() };
    let (cpu, memory) = attempt.used.map_or_else(Default::default, |used| {
        let cpu = span(used.user_us.saturating_add(used.system_us));
        (cpu, known(used.peak_memory_bytes, bytes(used.peak_memory_bytes)))
    });
    let outcome = attempt.outcome.map_or("running".to_owned(), |outcome| outcome.to_string());
    [
        known(attempt.attempt.into(), attempt.attempt.to_string()),
        worker_of(attempt),
        clock(attempt.started_ms),
        took(attempt, now),
        cpu,
        memory,
        outcome,
    ]
    .map(|text| (text, Mood::Plain))
}

fn add_work(facts: &mut Facts, work: &TaskWork) {
    if let Some(command) = &work.command {
        facts.add("runs", line_of(command));
    } else if let (Some(kind), Some(script)) = (&work.script_kind, &work.script) {
        let kind = ScriptKind::from_kind(kind).label();
        facts.add("runs", format_args!("{} script{}", safe(&kind), head(script)));
    } else {
        facts.add("runs", "what its worker knows by its name");
    }
    let is_line = |value: &Text| work.command.as_ref() == Some(&Line::Shell(value.clone()));
    match (work.element, work.value.as_ref().filter(|value| !is_line(value))) {
        (Some(element), Some(value)) => {
            // Several values are told apart by this byte on their way.
            let values: Vec<String> = (value.bytes().split(|&byte| byte == 0x1f))
                .map(|value| Text::from(value).to_string())
                .collect();
            facts.add("element", format_args!("{element}, value {}", values.join(", ")));
        }
        (Some(element), None) => facts.add("element", element),
        (None, _) => {}
    }
    facts.add("files", redirections(work).trim_start());
    if let Some(Stdin::Text(text)) = &work.stdin {
        facts.add("input", format_args!("{} of text", bytes(text.bytes().len() as u64)));
    }
    if let Some(dir) = &work.dir {
        facts.add("in", dir);
    }
    let names: Vec<&str> = work.env.keys().map(String::as_str).collect();
    facts.add("variables", safe(&names.join(" ")));
    let mut needs = vec![counted(work.slots, "slot")];
    if let Some(nodes) = work.nodes {
        let whole = counted(nodes, "whole worker");
        needs.insert(
            0,
            if nodes > 1 { format!("{whole}, each with") } else { format!("{whole} with") },
        );
    }
    if work.memory_bytes > 0 {
        needs.push(bytes(work.memory_bytes));
    }
    needs.extend(work.resources.iter().map(|(name, count)| format!("{count} {}", safe(name))));
    needs.extend(work.tags.iter().map(|tag| format!("tag {tag}")));
    facts.add("needs", needs.join(", ").replace("with, ", "with "));
    if let Some(nice) = work.nice {
        facts.add("nice", nice);
    }
    if let Some(umask) = &work.umask {
        facts.add("umask", safe(umask));
    }
    if let Some(shell) = &work.shell {
        facts.add("shell", safe(shell));
    }
    if !work.wrap.is_empty() {
        let words: Vec<String> =
            work.wrap.iter().map(|word| shell_word(&word.to_string())).collect();
        facts.add("wrapped in", words.join(" "));
    }
    if let Some(signal) = &work.signal {
        facts.add("signal", safe(signal));
    }
    if work.attempts > 1 {
        facts.add("tried", format_args!("up to {} times", work.attempts));
    }
    if let Some(limit) = work.timeout_ms {
        facts.add("time limit", between(0, limit));
    }
}

/// As a shell would be told.
fn redirections(work: &TaskWork) -> String {
    let stdin = match &work.stdin {
        Some(Stdin::File { file }) => Some(file),
        _ => None,
    };
    let all = [(" <", stdin), (" >", work.output.as_ref().or(work.stdout.as_ref()))];
    let all = all.into_iter().chain([(" 2>", work.stderr.as_ref())]);
    let mut text: String = all
        .filter_map(|(operator, file)| {
            Some(format!("{operator} {}", shell_word(&file?.to_string())))
        })
        .collect();
    if work.output.is_some() {
        text.push_str(" 2>&1");
    }
    text
}

/// A script longer than this is known to its author; its head tells which one it is.
const SCRIPT_LINES: usize = 8;

fn head(script: &Text) -> String {
    let body = String::from_utf8_lossy(script.bytes());
    let mut text: String =
        body.lines().take(SCRIPT_LINES).map(|line| format!("\n    | {}", safe(line))).collect();
    match body.lines().count().saturating_sub(SCRIPT_LINES) {
        0 => {}
        more => text.push_str(&format!("\n    | … {} more", counted(more as u64, "line"))),
    }
    text
}

fn references(tasks: &[After]) -> String {
    const SHOWN: usize = 8;
    let mut words: Vec<String> = (tasks.iter().take(SHOWN))
        .map(|task| match task {
            After::Name(name) => name.to_string(),
            After::Task { job, task } => format!("{job}/{task}"),
            After::Array { job, first } => format!("{job}/{first}.."),
        })
        .collect();
    if tasks.len() > SHOWN {
        words.push("…".to_owned());
    }
    words.join(", ")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n    {line}")).collect()
}
