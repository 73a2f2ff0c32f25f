//! The end of a run: what is left to be printed and written, how it went, and the exit status.

use super::desk::{Desk, OUTPUTS_TROUBLE};
use super::on_end;
use super::order::OrderedOutput;
use super::side::SharedDesk;
use super::summary::{FAILURES, Failure, Summary};
use super::{JOB, RunDir, RunEnd, exit_of, job_view};
use crate::exit::Exit;
use anyhow::{Context, anyhow};
use laboro_core::{Command, JobView, Query, Reply, State, TaskView};
use laboro_hub::Handle;
use std::path::Path;

pub(super) async fn finish(
    desk: &SharedDesk,
    handle: &Handle,
    before: &JobView,
    path: &Path,
) -> anyhow::Result<Exit> {
    let after = job_view(handle).await?;
    let failed = failed_tasks(handle).await?;
    let (exit, targets) = sum_up(desk, before, &after, &failed, path)?;
    on_end::call(&targets, &after).await;
    exit
}

/// The exit status, and who is to be called: nobody where the run goes on another time.
fn sum_up(
    desk: &SharedDesk,
    before: &JobView,
    after: &JobView,
    failed: &[TaskView],
    path: &Path,
) -> anyhow::Result<(anyhow::Result<Exit>, Vec<String>)> {
    let mut desk = desk.lock();
    let Desk { layout, display, outputs, order, results, table, tally, .. } = &mut *desk;
    let failed = failed.iter().map(|task| {
        let index = task.task.index;
        let name = layout.name(index).unwrap_or_else(|| task.name.to_string());
        let label = layout.label(index).unwrap_or_else(|| name.clone());
        let known = tally.failure(index);
        let outcome = task.attempts.last().and_then(|attempt| attempt.outcome);
        let outcome = outcome.map(|outcome| outcome.to_string());
        let outcome = outcome.or_else(|| known.map(|known| known.outcome.clone()));
        let outcome = outcome.unwrap_or_else(|| "in an earlier run".to_owned());
        let words = known.map_or_else(Vec::new, |known| known.words.clone());
        let message = known.and_then(|known| known.message.clone());
        let message = message.or_else(|| task.message.as_deref().map(str::to_owned));
        Failure { index, name, label, outcome, message, words }
    });
    let failed = failed.collect();
    outputs.flush().context(OUTPUTS_TROUBLE)?;
    if let Some(order) = order {
        display.above(|| order.print_rest())?;
    }
    if let Some(results) = results {
        results.close()?;
    }
    if let Some(table) = table {
        table.flush()?;
    }
    let cut = order.as_ref().map_or(0, OrderedOutput::cut);
    let how = desk.how(after);
    let targets = match how {
        RunEnd::Interrupted => Vec::new(),
        RunEnd::Finished | RunEnd::Halted(_) => desk.options.on_end.clone(),
    };
    if how == RunEnd::Finished {
        desk.outputs.seal().context(OUTPUTS_TROUBLE)?;
    }
    let exit = exit_of(how, &after.counts);
    let Desk { display, tally, .. } = &mut *desk;
    display.finish(&Summary { how, before, after, tally, failed, path, exit });
    RunDir::leaves_nothing(path);
    if let Some(error) = display.take_trouble() {
        let words =
            "what happened cannot be written to standard output; the run itself is recorded";
        return Ok((Err(anyhow::Error::new(error).context(words)), targets));
    }
    if cut > 0 && exit == Exit::Done {
        let tasks = crate::output::counted(cut, "task");
        let words =
            anyhow!("the output of {tasks} was printed only in part: --output-limit kept no more");
        return Ok((Err(words), targets));
    }
    Ok((Ok(exit), targets))
}

/// The first few that have failed, in this run or an earlier one.
async fn failed_tasks(handle: &Handle) -> anyhow::Result<Vec<TaskView>> {
    let state = Some(State::Failed);
    let query = Query::Tasks { job: JOB, state, from: 1, most: FAILURES as u32 };
    match handle.ask(Command::Query(query)).await? {
        Reply::Tasks { tasks, .. } => Ok(tasks),
        other => Err(anyhow!("the hub answered {other:?}")),
    }
}
