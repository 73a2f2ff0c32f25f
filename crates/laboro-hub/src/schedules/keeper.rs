//! The thread of schedules: what is due, what to do about a job that still runs, and what is told of it.

use super::OLD_FILE;
use super::cron::Cron;
use super::store::{self, Known, Run, State};
use super::time_zone;
use crate::config::{IfRunning, ScheduleSettings};
use crate::documents::{DocumentError, Documents, Opening};
use crate::inbox::Handle;
use crate::security::{Access, NewToken, Role, SecurityError, TokenBook};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use laboro_api as api;
use laboro_core::{Command, JobId, Query, Reply};
use laboro_net::Clock;
use laboro_net::secret_file::make_dir;
use laboro_pool::{Call, run_within};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("there is no schedule {0}: hub.toml has them")]
    Missing(String),
    #[error("{0}")]
    NotSubmitted(String),
    #[error(transparent)]
    Store(#[from] DocumentError),
}

/// The schedules of a hub.
#[derive(Clone)]
pub struct Schedules(Arc<Shared>);

impl std::fmt::Debug for Schedules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schedules")
    }
}

struct Shared {
    all: Vec<Schedule>,
    state: Mutex<State>,
    documents: Documents,
    /// One change at a time; held while it is written.
    changing: tokio::sync::Mutex<()>,
    dir: PathBuf,
    access: Access,
    handle: Handle,
    clock: Clock,
    /// One thing is submitted at a time.
    turn: tokio::sync::Mutex<()>,
}

struct Schedule {
    settings: ScheduleSettings,
    cron: Cron,
    zone: TimeZone,
}

const TICK: Duration = Duration::from_millis(500);
/// Later than this after its time, the hub was not there.
const LATE_MS: u64 = 60_000;
/// Reading a large job file takes a while.
const SUBMIT_TIME: Duration = Duration::from_secs(600);
/// More times than this are not counted one by one.
const MISSED_MAX: u64 = 100_000;

impl Schedules {
    pub(crate) fn open(
        dir: &Path,
        settings: &[ScheduleSettings],
        access: &Access,
        handle: Handle,
        clock: Clock,
        opening: &mut Opening<'_>,
    ) -> Result<Schedules, DocumentError> {
        let names: Vec<&str> = settings.iter().map(|schedule| schedule.name.as_str()).collect();
        let state = store::open(opening, &dir.join(OLD_FILE), &names, clock.now().0)?;
        let mut all = Vec::new();
        for schedule in settings {
            let bad = |why: String| SecurityError::malformed(Path::new("hub.toml"), why);
            let cron = Cron::parse(&schedule.cron).map_err(bad)?;
            let zone = time_zone(schedule.time_zone.as_deref()).map_err(bad)?;
            all.push(Schedule { settings: schedule.clone(), cron, zone });
        }
        let shared = Shared {
            all,
            state: Mutex::new(state),
            documents: Documents::new(handle.clone()),
            changing: tokio::sync::Mutex::default(),
            dir: dir.to_owned(),
            access: access.clone(),
            handle,
            clock,
            turn: tokio::sync::Mutex::default(),
        };
        for schedule in &shared.all {
            shared.give_access(&schedule.settings)?;
        }
        Ok(Schedules(Arc::new(shared)))
    }

    pub(crate) fn list(&self) -> Vec<api::Schedule> {
        self.0.all.iter().map(|schedule| self.0.view(schedule)).collect()
    }

    pub(crate) fn show(&self, name: &str) -> Result<api::Schedule, ScheduleError> {
        Ok(self.0.view(self.0.find(name)?))
    }

    pub(crate) async fn pause(
        &self,
        name: &str,
        paused: bool,
    ) -> Result<api::Schedule, ScheduleError> {
        let schedule = self.0.find(name)?;
        let now = self.0.clock.now().0;
        let pause = |known: &mut Known| {
            // What passed while it was paused was not missed.
            if known.paused {
                known.decided_ms = now;
            }
            known.paused = paused;
        };
        self.0.change(name, pause).await?;
        Ok(self.0.view(schedule))
    }

    /// Whatever the time is, and also while it is paused.
    pub(crate) async fn run_now(&self, name: &str) -> Result<api::Schedule, ScheduleError> {
        let schedule = self.0.find(name)?;
        let _turn = self.0.turn.lock().await;
        let fired = self.0.submit(schedule, self.0.clock.now().0, "now:").await;
        if let Some(why) = &fired.run.why {
            return Err(ScheduleError::NotSubmitted(why.clone()));
        }
        self.0.note(name, fired, |_| {}).await?;
        Ok(self.0.view(schedule))
    }
}

/// Starts the thread, if there is anything to do; it ends with the hub.
pub(crate) fn start(schedules: &Schedules, stop: CancellationToken) -> std::io::Result<()> {
    if schedules.0.all.is_empty() {
        return Ok(());
    }
    let shared = schedules.0.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = async move {
        loop {
            for schedule in &shared.all {
                if let Err(error) = shared.look(schedule).await {
                    tracing::error!("schedule {}: {error}", schedule.settings.name);
                }
            }
            tokio::time::sleep(TICK).await;
        }
    };
    let run = move || {
        runtime.block_on(async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    };
    std::thread::Builder::new().name("laboro-schedules".into()).spawn(run).map(drop)
}

impl Schedule {
    fn next(&self, after_ms: u64) -> Option<u64> {
        let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
        u64::try_from(self.cron.next(after, &self.zone)?.as_millisecond()).ok()
    }

    /// The last time up to now after this one, and how many there were.
    fn due(&self, after_ms: u64, now_ms: u64) -> Option<(u64, u64)> {
        let (mut last, mut count) = (None, 0);
        let mut at = after_ms;
        while let Some(next) = self.next(at).filter(|next| *next <= now_ms) {
            count += 1;
            // After months every minute: what is long ago is not counted.
            at = if count >= MISSED_MAX {
                next.max(now_ms.saturating_sub(86_400_000))
            } else {
                next
            };
            last = Some(next);
        }
        last.map(|last| (last, count))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Result<&Schedule, ScheduleError> {
        let found = self.all.iter().find(|schedule| schedule.settings.name == name);
        found.ok_or_else(|| ScheduleError::Missing(name.to_owned()))
    }

    fn known(&self, name: &str) -> Known {
        self.state().get(name).cloned().unwrap_or_default()
    }

    /// In the journal when this returns.
    async fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut Known),
    ) -> Result<(), DocumentError> {
        let _changing = self.changing.lock().await;
        let mut known = self.known(name);
        change(&mut known);
        self.documents.write(vec![store::set(name, &known)]).await?;
        self.state().insert(name.to_owned(), known);
        Ok(())
    }

    async fn look(&self, schedule: &Schedule) -> Result<(), ScheduleError> {
        let _turn = self.turn.lock().await;
        let (name, now) = (&schedule.settings.name, self.clock.now().0);
        let known = self.known(name);
        if let Some(planned) = known.queued_ms
            && !self.is_running(known.job).await
        {
            let run = self.submit(schedule, planned, "").await;
            self.note(name, run, |known| known.queued_ms = None).await?;
            return Ok(());
        }
        if known.paused {
            return Ok(());
        }
        let Some((planned, count)) = schedule.due(known.decided_ms, now) else { return Ok(()) };
        let is_late = now.saturating_sub(planned) > LATE_MS;
        let missed = if is_late { count } else { count - 1 };
        if missed > 0 {
            tracing::warn!(
                event = "schedule_missed",
                name,
                missed,
                "times passed while the hub was down"
            );
        }
        let decided = |known: &mut Known| {
            known.decided_ms = planned;
            known.missed += missed;
        };
        if is_late && !schedule.settings.catch_up {
            let why = Some("missed: the hub was down".to_owned());
            let run = Run { planned_ms: planned, at_ms: now, job: None, why };
            let missed_it = Fired { run, queued_ms: known.queued_ms };
            self.note(name, missed_it, decided).await?;
            return Ok(());
        }
        let run = self.fire(schedule, planned, &known).await;
        // Only now: killed before this, the same is done again, under the same key.
        self.note(name, run, decided).await?;
        Ok(())
    }

    async fn fire(&self, schedule: &Schedule, planned: u64, known: &Known) -> Fired {
        let skipped = |why: String, queued_ms| Fired {
            run: Run { planned_ms: planned, at_ms: self.clock.now().0, job: None, why: Some(why) },
            queued_ms,
        };
        if self.is_running(known.job).await {
            let job = known.job.unwrap_or_default();
            match schedule.settings.if_running {
                IfRunning::Skip => {
                    return skipped(format!("skipped: job {job} still runs"), known.queued_ms);
                }
                IfRunning::Queue => {
                    return skipped(format!("waits for the end of job {job}"), Some(planned));
                }
                IfRunning::Replace => {
                    let words = ["cancel".to_owned(), job.to_string()];
                    // It may have ended meanwhile.
                    let _ = self.laboro(schedule, &words).await;
                }
            }
        }
        self.submit(schedule, planned, "").await
    }

    async fn is_running(&self, job: Option<u32>) -> bool {
        let Some(job) = job else { return false };
        match self.handle.ask(Command::Query(Query::Job(JobId(job)))).await {
            Ok(Reply::Jobs(views)) => views.first().is_some_and(|view| view.ended.is_none()),
            _ => false,
        }
    }

    async fn submit(&self, schedule: &Schedule, planned: u64, mark: &str) -> Fired {
        let settings = &schedule.settings;
        let key = format!("schedule:{}:{mark}{planned}", settings.name);
        let mut words = vec!["submit".to_owned(), "--json".to_owned(), format!("--key={key}")];
        if let Some(group) = &settings.group {
            words.push(format!("--group={group}"));
        }
        words.push(settings.file.to_string_lossy().into_owned());
        let (job, why) = match self.laboro(schedule, &words).await {
            Ok(printed) => match serde_json::from_str::<api::Submitted>(printed.trim()) {
                Ok(submitted) => (Some(submitted.job), None),
                Err(error) => (None, Some(format!("laboro submit printed no job: {error}"))),
            },
            Err(why) => (None, Some(why)),
        };
        let name = &settings.name;
        match (&job, &why) {
            (Some(job), _) => {
                tracing::info!(event = "schedule_run", name, job, "schedule {name}: job {job}");
            }
            (None, why) => {
                let why = why.as_deref().unwrap_or_default();
                tracing::error!(event = "schedule_failed", name, "schedule {name}: {why}");
            }
        }
        Fired {
            run: Run { planned_ms: planned, at_ms: self.clock.now().0, job, why },
            queued_ms: None,
        }
    }

    /// The program that this is, in the directory of the job file.
    async fn laboro(&self, schedule: &Schedule, words: &[String]) -> Result<String, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let file = &schedule.settings.file;
        let dir = file.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let access = self.access_file(&schedule.settings.name);
        let access = std::path::absolute(&access).unwrap_or(access);
        let start = ["/bin/sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh"];
        let mut all: Vec<String> = start.map(str::to_owned).into();
        all.extend([dir, program.to_string_lossy().into_owned()]);
        all.extend(words.iter().cloned());
        let env = vec![("LABORO_ACCESS".to_owned(), access.to_string_lossy().into_owned())];
        let call = Call { words: all, stdin: String::new(), env };
        run_within(&call, SUBMIT_TIME).await.map_err(|error| error.to_string())
    }

    async fn note(
        &self,
        name: &str,
        fired: Fired,
        change: impl FnOnce(&mut Known),
    ) -> Result<(), DocumentError> {
        let note = |known: &mut Known| {
            change(known);
            known.job = fired.run.job.or(known.job);
            known.queued_ms = fired.queued_ms;
            known.last = Some(fired.run);
        };
        self.change(name, note).await
    }

    fn view(&self, schedule: &Schedule) -> api::Schedule {
        let settings = &schedule.settings;
        let known = self.known(&settings.name);
        let next_ms = (!known.paused).then(|| schedule.next(self.clock.now().0)).flatten();
        let zone = settings.time_zone.clone();
        let zone = zone.or_else(|| schedule.zone.iana_name().map(str::to_owned));
        api::Schedule {
            name: settings.name.clone(),
            cron: settings.cron.clone(),
            time_zone: zone.unwrap_or_else(|| "local".to_owned()),
            file: settings.file.display().to_string(),
            if_running: settings.if_running.word().to_owned(),
            owner: settings.owner.clone(),
            group: settings.group.clone(),
            catch_up: settings.catch_up,
            paused: known.paused,
            next_ms,
            queued_ms: known.queued_ms,
            last: known.last.map(|last| api::ScheduleRun {
                planned_ms: last.planned_ms,
                at_ms: last.at_ms,
                job: last.job,
                why: last.why,
            }),
            missed: known.missed,
        }
    }

    fn access_file(&self, name: &str) -> PathBuf {
        Access::path_in(&self.dir.join("schedules").join(name))
    }

    /// A file that only this user can read, with a token that submits for the owner of the schedule.
    fn give_access(&self, settings: &ScheduleSettings) -> Result<(), SecurityError> {
        make_dir(&self.dir.join("schedules").join(&settings.name))?;
        let token_name = format!("schedule-{}", settings.name);
        let book = TokenBook::of(&self.dir);
        // The owner or the group may have been changed.
        match book.revoke(&token_name) {
            Ok(_) | Err(SecurityError::NoSuchToken { .. }) => {}
            Err(error) => return Err(error),
        }
        let owner = settings.owner.clone().or_else(|| Some(crate::security::user_name()));
        let new = NewToken {
            name: Some(token_name),
            role: Role::Submit,
            owner,
            group: settings.group.clone(),
            expires_ms: None,
        };
        let token = book.add(new, self.clock.now())?.0;
        let group = settings.group.clone();
        let own = self.access.clone();
        Access { role: Role::Submit, group, token, ..own }.write(&self.access_file(&settings.name))
    }
}

/// What came of one time.
struct Fired {
    run: Run,
    /// It waits for the job before it.
    queued_ms: Option<u64>,
}
