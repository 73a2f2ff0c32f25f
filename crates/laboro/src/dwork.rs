//! `laboro dwork`: says single things to a dwork hub, ours or an original, as its own query program does,
//! and tells what came of it by its exit status.

pub(crate) mod args;
mod file;
mod show;

use crate::curve::advised;
use crate::exit::{Exit, usage};
use anyhow::Context;
use args::{Dwork, DworkCommand};
use bytes::BytesMut;
use laboro_clients::dwork::{Address, DworkLink};
use laboro_dialects::dwork::{Dep, Kind, QueryWriter};
use laboro_plan::parse_duration;
use show::Answer;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

pub(crate) fn run(args: &Dwork) -> anyhow::Result<Exit> {
    let timeout = parse_duration(&args.timeout)
        .map_err(|error| usage(format!("--timeout {}: {error}", args.timeout)))?;
    let address: Address = args.server.parse().map_err(usage)?;
    let mechanism = args.curve.mechanism()?;
    // What cannot be read is found out before anybody is asked.
    let requests = requests(&args.what)?;
    let waits = matches!(args.what, DworkCommand::Steal { wait: true, .. });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let mut link =
            DworkLink::connect(&address, mechanism.clone(), timeout).await.map_err(|error| {
                advised(&mechanism, error, "is a dwork hub running there? -s says where")
            })?;
        let (mut last, mut before) = (None, 0);
        for Request { bytes, tasks } in requests {
            let answer = match waits {
                true => wait(&mut link, &bytes).await?,
                false => Answer::of(&link.ask(&bytes).await?)?,
            };
            if !answer.is_ok() {
                return Ok((answer, before));
            }
            (last, before) = (Some(answer), before + tasks);
        }
        anyhow::Ok((last.context("nothing was asked")?, before))
    });
    let (answer, before) = asked?;
    show::answer(&args.what, &answer, before, args.json)
}

/// Asks again for as long as nothing is ready. A hub of ours keeps the answer waiting; one that answers at once is asked
/// less and less often.
async fn wait(link: &mut DworkLink, request: &[u8]) -> anyhow::Result<Answer> {
    let mut pause = PAUSE_MIN;
    loop {
        let asked_at = Instant::now();
        let answer = Answer::of(&link.ask(request).await?)?;
        if !answer.is_not_found() {
            return Ok(answer);
        }
        if asked_at.elapsed() < PAUSE_MAX / 2 {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One message, and how many tasks it creates.
struct Request {
    bytes: BytesMut,
    tasks: usize,
}

/// What is asked, one after the other: each must be answered before the next.
fn requests(what: &DworkCommand) -> anyhow::Result<Vec<Request>> {
    let mut to = BytesMut::new();
    match what {
        DworkCommand::Status => {
            QueryWriter::new(Kind::Ok, &mut to);
        }
        DworkCommand::Create { task, deps } => {
            one_task(Kind::Create, task, deps, &mut to);
        }
        DworkCommand::Addfile { file } => return file::requests(file, &host()),
        DworkCommand::Steal { number: Some(..=0), wait: true, .. } => {
            return Err(usage(
                "--wait: there is nothing to wait for with -n 0; ask for at least 1",
            ));
        }
        DworkCommand::Steal { number, host: who, .. } => {
            let mut query = QueryWriter::new(Kind::Steal, &mut to);
            if let Some(number) = number {
                query = query.n(*number);
            }
            query.location(&location(who.as_deref()));
        }
        DworkCommand::Complete { tasks, location: who } => {
            let mut query = QueryWriter::new(Kind::Complete, &mut to);
            for task in tasks {
                query = query.task(task.as_bytes(), &host(), [].into_iter(), &[]);
            }
            query.location(&location(who.as_deref()));
        }
        DworkCommand::Transfer { task, deps, location: who } => {
            one_task(Kind::Transfer, task, deps, &mut to).location(&location(who.as_deref()));
        }
        DworkCommand::Lookup { task } => {
            QueryWriter::new(Kind::Lookup, &mut to).name(task.as_bytes());
        }
        DworkCommand::Exit { host } => {
            QueryWriter::new(Kind::Exit, &mut to).location(&location(host.as_deref()));
        }
    }
    Ok(vec![Request { bytes: to, tasks: 1 }])
}

fn one_task<'b>(
    kind: Kind,
    task: &OsStr,
    deps: &[OsString],
    to: &'b mut BytesMut,
) -> QueryWriter<'b> {
    let deps = deps.iter().map(|dep| Dep::new(dep.as_bytes()));
    QueryWriter::new(kind, to).task(task.as_bytes(), &host(), deps, &[])
}

fn location(named: Option<&OsStr>) -> Vec<u8> {
    named.map_or_else(host, |name| name.as_bytes().to_vec())
}

/// Who asks, where nobody is named.
fn host() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}
