//! What people hear of a manager: how far it is, what became of jobs and runners, and how it ended. Decides nothing
//! but when all is done.

use super::args::Manage;
use super::files::{ManagerNews, SharedFiles};
use super::manage::JOB;
use crate::exit::Exit;
use crate::output::{counted, safe, say};
use crate::progress::Progress;
use laboro_core::{Command, Counts, Outcome, Query, Reply, State, TaskView};
use laboro_hub::Handle;
use std::time::Duration;

/// How often somebody who looks at the progress sees something new.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// More jobs than this that were lost for good are not named one by one.
const LOST_NAMED_MAX: u32 = 20;

/// Until nothing is left to do.
pub(super) async fn follow(args: &Manage, hub: &Handle, files: &SharedFiles) -> Exit {
    let mut progress = Progress::new(0, !args.progress);
    loop {
        let Some(counts) = counts(hub).await else { return Exit::Trouble };
        show(args, files, &counts, &mut progress);
        if files.lock().has_trouble() {
            return Exit::Trouble;
        }
        if counts.active() == 0 {
            drop(progress);
            tell_lost(hub).await;
            let (done, failed) = (counts.of(State::Done), failed(&counts));
            say(format_args!("{done} done, {failed} failed"));
            let all = u64::from(done) == counts.total();
            return if all { Exit::Done } else { Exit::SomeFailed };
        }
        // Each result ends one job at most. A job that was lost for the last time has none.
        let enough = usize::try_from(counts.active()).unwrap_or(usize::MAX);
        if files.lock().await_news(enough) {
            let _ = tokio::time::timeout(LOOK_EVERY, files.news.notified()).await;
        }
    }
}

/// `None`: the hub has stopped, because a result could not be written.
async fn counts(hub: &Handle) -> Option<Counts> {
    match hub.ask(Command::Query(Query::Job(JOB))).await {
        Ok(Reply::Jobs(jobs)) => jobs.first().map(|job| job.counts),
        _ => None,
    }
}

fn show(args: &Manage, files: &SharedFiles, counts: &Counts, progress: &mut Progress) {
    let news = files.lock().take_news();
    for news in news {
        tell(args, news, |words| progress.say(words));
    }
    let (running, failed) = (counts.of(State::Leased), failed(counts));
    let over = u64::from(counts.of(State::Done)) + u64::from(failed);
    progress.set(over, counts.total(), &format!("{running} running, {failed} failed"));
}

pub(super) fn tell(args: &Manage, news: ManagerNews, say: impl Fn(String)) {
    match news {
        ManagerNews::Words(words) => say(words),
        ManagerNews::Result(name, good) if args.shownames => {
            let status = if good { "success" } else { "failure" };
            say(format!("{status} {}", safe(&name.to_string_lossy())));
        }
        ManagerNews::Result(..) => {}
    }
}

/// What is held was lost too often, and here nobody can release it.
fn failed(counts: &Counts) -> u32 {
    counts.of(State::Failed) + counts.of(State::Held)
}

/// There is no result of these that could tell.
async fn tell_lost(hub: &Handle) {
    let is_lost = |task: &&TaskView| {
        task.attempts.last().is_some_and(|last| last.outcome == Some(Outcome::Lost))
    };
    let (mut count, mut next) = (0, Some(1));
    while let Some(from) = next {
        let query = Query::Tasks { job: JOB, state: Some(State::Held), from, most: u32::MAX };
        let Ok(Reply::Tasks { tasks, next: after }) = hub.ask(Command::Query(query)).await else {
            break;
        };
        for task in tasks.iter().filter(is_lost) {
            count += 1;
            if count <= LOST_NAMED_MAX {
                let (name, times) = (task.name.to_string(), task.lost_attempts);
                say(format_args!("failure {}: its runner was lost {times} times", safe(&name)));
            }
        }
        next = after;
    }
    if count > LOST_NAMED_MAX {
        say(format_args!(
            "{} lost with their runners",
            counted(count - LOST_NAMED_MAX, "more job")
        ));
    }
}

pub(super) async fn tell_interrupted(hub: &Handle) {
    let Some(counts) = counts(hub).await else { return };
    let (done, failed) = (counts.of(State::Done), failed(&counts));
    let left = counts.active();
    say(format_args!("{done} done, {failed} failed, {left} left; the same command resumes"));
}
