//! `laboro dwork`: says single things to a dwork hub, ours or an original, as its own query program does,
//! and tells what came of it by its exit status.

pub(crate) mod args;
mod file;
pub(crate) mod link;
mod show;

use crate::exit::{Exit, usage};
use anyhow::Context;
use args::{Dwork, What};
use bytes::BytesMut;
use laboro_dialects::dwork::{Dep, Kind, QueryWriter};
use laboro_plan::parse_duration;
use link::{Address, Link};
use show::Answer;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub(crate) fn run(args: &Dwork) -> anyhow::Result<Exit> {
    let timeout = parse_duration(&args.timeout)
        .map_err(|error| usage(format!("--timeout {}: {error}", args.timeout)))?;
    let address: Address = args.server.parse().map_err(usage)?;
    let mechanism = args.curve.mechanism()?;
    // What cannot be read is found out before anybody is asked.
    let requests = requests(&args.what)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let mut link = Link::connect(&address, mechanism, timeout).await?;
        let mut last = None;
        for request in requests {
            let answer = Answer::of(&link.ask(&request).await?)?;
            if !answer.is_ok() {
                return Ok(answer);
            }
            last = Some(answer);
        }
        last.context("nothing was asked")
    });
    show::answer(&args.what, &answer?, args.json)
}

/// What is asked, one after the other: each must be answered before the next.
fn requests(what: &What) -> anyhow::Result<Vec<BytesMut>> {
    let mut to = BytesMut::new();
    match what {
        What::Status => {
            QueryWriter::new(Kind::Ok, &mut to);
        }
        What::Create { task, deps } => {
            one_task(Kind::Create, task, deps, &mut to);
        }
        What::Addfile { file } => return file::requests(file, &host()),
        What::Steal { number, host: who, .. } => {
            let mut query = QueryWriter::new(Kind::Steal, &mut to);
            if let Some(number) = number {
                query = query.n(*number);
            }
            query.location(&location(who.as_deref()));
        }
        What::Complete { tasks, location: who } => {
            let mut query = QueryWriter::new(Kind::Complete, &mut to);
            for task in tasks {
                query = query.task(task.as_bytes(), &host(), [].into_iter(), &[]);
            }
            query.location(&location(who.as_deref()));
        }
        What::Transfer { task, deps, location: who } => {
            one_task(Kind::Transfer, task, deps, &mut to).location(&location(who.as_deref()));
        }
        What::Lookup { task } => {
            QueryWriter::new(Kind::Lookup, &mut to).name(task.as_bytes());
        }
        What::Exit { host } => {
            QueryWriter::new(Kind::Exit, &mut to).location(&location(host.as_deref()));
        }
    }
    Ok(vec![to])
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
