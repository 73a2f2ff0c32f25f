//! `POST bulk`: the same change of many jobs, chosen by the words of the command line. Each job is changed by itself: what is
//! refused of one does not keep the others from it.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::JsonBody;
use super::jobs::PAGE;
use axum::Json;
use axum::extract::State;
use laboro_api::{Bulk, BulkAction, BulkChanged, BulkJob, Job, JobWord, Problem, Selection, fits};
use laboro_core::{Command, JobId, JobView, Name, Query, Reply, counted};
use std::collections::BTreeMap;

/// So many jobs are changed by one request, and so many words may say which.
const JOBS_MAX: usize = 10_000;
const WORDS_MAX: usize = 1000;

/// Cancels, holds, releases, retries, closes or forgets many jobs.
#[utoipa::path(post, path = "/bulk", tag = "control", request_body = Bulk,
    responses((status = 200, body = BulkChanged), (status = 400, body = Problem),
        (status = 404, body = Problem)))]
pub(super) async fn bulk(
    State(api): Shared,
    visitor: Visitor,
    JsonBody(asked): JsonBody<Bulk>,
) -> Answer<BulkChanged> {
    visitor.must_submit()?;
    if asked.select.len() > WORDS_MAX {
        let detail = format!("more than {WORDS_MAX} words in `select`");
        return Err(Refused::bad_request("too_many", detail));
    }
    let mut chosen: BTreeMap<u32, Selection> = BTreeMap::new();
    for word in &asked.select {
        api.choose(&visitor, &asked, word, &mut chosen).await?;
    }
    let mut changed = BulkChanged::default();
    for (job, selection) in chosen {
        let result = match asked.dry_run {
            true => api.job_to_change(&visitor, job).await.map(|view| view.counts.total()),
            false => api.act(&visitor, asked.action, job, &selection).await,
        };
        let one = match result {
            Ok(tasks) => BulkJob { job, tasks, ..BulkJob::default() },
            Err(refused) => {
                let (reason, detail) = refused.words();
                BulkJob { job, tasks: 0, reason: Some(reason), detail: Some(detail) }
            }
        };
        changed.tasks += one.tasks;
        changed.jobs.push(one);
    }
    let words = asked.select.join(" ");
    visitor.note(format!(
        "{:?} {words}: {}",
        asked.action,
        counted(changed.jobs.len() as u64, "job")
    ));
    Ok(Json(changed))
}

impl super::Api {
    /// Adds what a word means.
    async fn choose(
        &self,
        visitor: &Visitor,
        asked: &Bulk,
        word: &str,
        chosen: &mut BTreeMap<u32, Selection>,
    ) -> Result<(), Refused> {
        let bad = || {
            let detail = format!("`{word}` does not say which jobs");
            Refused::bad_request("bad_selection", detail)
                .hint("such as 12, 4-8,12, last, all, mine, failed, night*, 12/failed")
        };
        let mine = Some(visitor.owner());
        let own = if asked.everybody { None } else { mine.clone() };
        let suits = |job: &Job| suits(asked.action, job);
        match JobWord::parse(word).ok_or_else(bad)? {
            JobWord::Tasks(job, selection) => {
                self.job(visitor, job).await?;
                add(chosen, job, selection, word)
            }
            JobWord::Numbers(ranges) => {
                for (first, last) in ranges {
                    if first == last {
                        self.job(visitor, first).await?;
                        add(chosen, first, Selection::default(), word)?;
                        continue;
                    }
                    let is_meant = |job: &Job| (first..=last).contains(&job.job) && suits(job);
                    let found = self.jobs_where(visitor, asked, None, (first, last), is_meant);
                    add_all(chosen, found.await?, word)?;
                }
                Ok(())
            }
            JobWord::All => {
                add_all(chosen, self.jobs_where(visitor, asked, own, EVERY, suits).await?, word)
            }
            JobWord::Mine => {
                add_all(chosen, self.jobs_where(visitor, asked, mine, EVERY, suits).await?, word)
            }
            JobWord::InState(state) => {
                let is_meant = |job: &Job| job.state == state && suits(job);
                add_all(chosen, self.jobs_where(visitor, asked, own, EVERY, is_meant).await?, word)
            }
            JobWord::Like(pattern) => {
                let is_meant = |job: &Job| fits(&pattern, &job.name.to_string()) && suits(job);
                add_all(chosen, self.jobs_where(visitor, asked, own, EVERY, is_meant).await?, word)
            }
            JobWord::Last => {
                let found = self.newest_where(visitor, asked, own, |_| true).await?;
                add(chosen, found.ok_or_else(|| none(word))?, Selection::default(), word)
            }
            JobWord::Named(name) => {
                let is_meant = |job: &Job| job.name.to_string() == name;
                let found = self.newest_where(visitor, asked, own, is_meant).await?;
                add(chosen, found.ok_or_else(|| none(word))?, Selection::default(), word)
            }
        }
    }

    /// Numbers of the jobs that the visitor may see and that are meant, ascending.
    async fn jobs_where(
        &self,
        visitor: &Visitor,
        asked: &Bulk,
        owner: Option<Name>,
        (first, last): (u32, u32),
        is_meant: impl Fn(&Job) -> bool,
    ) -> Result<Vec<u32>, Refused> {
        let group = group_of(visitor, asked)?;
        let (mut found, mut from) = (Vec::new(), first);
        loop {
            let (group, owner) = (group.clone(), owner.clone());
            let query = Query::Jobs { group, owner, from: JobId(from), most: PAGE };
            let views = self.job_views(query).await?;
            let next = views.last().map(|view| view.job.0.saturating_add(1));
            let is_last = views.len() < PAGE as usize || next.is_none_or(|next| next > last);
            let jobs = views.into_iter().map(Job::from).filter(|job| is_meant(job));
            found.extend(jobs.map(|job| job.job));
            match next {
                Some(next) if !is_last => from = next,
                _ => return Ok(found),
            }
        }
    }

    /// The newest job that is meant; older ones are not looked at.
    async fn newest_where(
        &self,
        visitor: &Visitor,
        asked: &Bulk,
        owner: Option<Name>,
        is_meant: impl Fn(&Job) -> bool,
    ) -> Result<Option<u32>, Refused> {
        let group = group_of(visitor, asked)?;
        let mut before = JobId(u32::MAX);
        loop {
            let (group, owner) = (group.clone(), owner.clone());
            let views =
                self.job_views(Query::JobsBefore { group, owner, before, most: PAGE }).await?;
            let Some(oldest) = views.last().map(|view| view.job) else { return Ok(None) };
            let found = views.into_iter().map(Job::from).find(&is_meant);
            if let Some(job) = found {
                return Ok(Some(job.job));
            }
            before = oldest;
        }
    }

    async fn job_views(&self, query: Query) -> Result<Vec<JobView>, Refused> {
        match self.ask(Command::Query(query)).await? {
            Reply::Jobs(views) => Ok(views),
            reply => Err(Refused::unexpected(&reply)),
        }
    }

    async fn act(
        &self,
        visitor: &Visitor,
        action: BulkAction,
        job: u32,
        selection: &Selection,
    ) -> Result<u64, Refused> {
        let command = match action {
            BulkAction::Cancel => Command::Cancel,
            BulkAction::Hold => Command::Hold,
            BulkAction::Release => Command::Release,
            BulkAction::Retry => Command::Retry,
            BulkAction::Close | BulkAction::Forget if *selection != Selection::default() => {
                let detail = "only whole jobs are closed or forgotten, not tasks of one";
                return Err(Refused::bad_request("bad_selection", detail));
            }
            BulkAction::Close => {
                self.job_to_change(visitor, job).await?;
                self.ask(Command::Close(JobId(job))).await?;
                return Ok(0);
            }
            BulkAction::Forget => {
                let view = self.job_to_change(visitor, job).await?;
                self.ask(Command::Forget(JobId(job))).await?;
                return Ok(view.counts.total());
            }
        };
        self.change(visitor, job, selection, command).await.map(|changed| changed.tasks)
    }
}

/// The group whose jobs are meant; none: all groups.
fn group_of(visitor: &Visitor, asked: &Bulk) -> Result<Option<Name>, Refused> {
    match asked.group.as_deref() {
        None => Ok(visitor.bound_to().cloned()),
        Some(named) => visitor.group(Some(named.into())).map(Some),
    }
}

const EVERY: (u32, u32) = (0, u32::MAX);

/// Is there something to do, where a word means many?
fn suits(action: BulkAction, job: &Job) -> bool {
    match action {
        BulkAction::Cancel | BulkAction::Hold | BulkAction::Release => job.ended_ms.is_none(),
        BulkAction::Retry => job.counts.failed > 0,
        BulkAction::Close => job.open,
        BulkAction::Forget => job.ended_ms.is_some(),
    }
}

fn none(word: &str) -> Refused {
    Refused::new(
        axum::http::StatusCode::NOT_FOUND,
        "no_such_job",
        format!("there is no job {word}"),
    )
}

fn add_all(
    chosen: &mut BTreeMap<u32, Selection>,
    jobs: Vec<u32>,
    word: &str,
) -> Result<(), Refused> {
    jobs.into_iter().try_for_each(|job| add(chosen, job, Selection::default(), word))
}

/// A job as a whole and some of its tasks would be two things: what is said twice must be the same.
fn add(
    chosen: &mut BTreeMap<u32, Selection>,
    job: u32,
    selection: Selection,
    word: &str,
) -> Result<(), Refused> {
    if chosen.len() >= JOBS_MAX && !chosen.contains_key(&job) {
        let detail = format!("more than {JOBS_MAX} jobs are meant");
        return Err(
            Refused::bad_request("too_many", detail).hint("choose them in several requests")
        );
    }
    let known = chosen.entry(job).or_insert_with(|| selection.clone());
    if *known != selection {
        let detail = format!("`{word}` and another word mean different tasks of job {job}");
        return Err(Refused::bad_request("bad_selection", detail));
    }
    Ok(())
}
