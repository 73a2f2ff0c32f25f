//! Task files of dwork: `name,pred,pred,...` one a line. Spaces around names and the carriage returns of
//! other systems do not count, and a predecessor may stand on a later line: tasks are sent in an order in
//! which each is known before it is waited for.

use super::Request;
use crate::exit::usage;
use anyhow::Context;
use bytes::BytesMut;
use laboro_dialects::dwork::{Dep, Kind, QueryWriter};
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

/// Tasks in one message. Each message is answered before the next is sent: a hub that works on several at
/// once would not know the predecessors of the later ones.
const TASKS_A_MESSAGE: usize = 1000;

/// A message that is longer takes no further task. Much less than hubs take.
const MESSAGE_BYTES: usize = 1 << 20;

pub(super) fn requests(path: &Path, origin: &[u8]) -> anyhow::Result<Vec<Request>> {
    let text = read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let tasks = parse(&text);
    if tasks.is_empty() {
        return Err(usage(format!("{} has no tasks", path.display())));
    }
    let order = in_order(&tasks).map_err(|at| {
        let name = String::from_utf8_lossy(tasks[at].name);
        usage(format!("{}: task {name} would wait for itself", path.display()))
    })?;
    let message = |part: &[usize]| {
        let mut to = BytesMut::new();
        let mut query = QueryWriter::new(Kind::Create, &mut to);
        for &at in part {
            let preds = tasks[at].preds.iter().map(|pred| Dep::new(pred));
            query = query.task(tasks[at].name, origin, preds, &[]);
        }
        Request { bytes: to, tasks: part.len() }
    };
    let (mut requests, mut rest) = (Vec::new(), &order[..]);
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |&&at: &&usize| {
            let fits = bytes < MESSAGE_BYTES;
            bytes += tasks[at].bytes();
            fits
        };
        let (part, after) =
            rest.split_at(rest.iter().take(TASKS_A_MESSAGE).take_while(fits).count());
        requests.push(message(part));
        rest = after;
    }
    Ok(requests)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}

#[derive(Debug, PartialEq, Eq)]
struct GraphLine<'a> {
    name: &'a [u8],
    preds: Vec<&'a [u8]>,
}

impl GraphLine<'_> {
    /// About what it takes in a message.
    fn bytes(&self) -> usize {
        self.name.len() + self.preds.iter().map(|pred| pred.len() + 8).sum::<usize>()
    }
}

/// Empty fields are dropped and blank lines skipped. A name that stands twice is one task with the
/// predecessors of both.
fn parse(text: &[u8]) -> Vec<GraphLine<'_>> {
    let mut tasks: Vec<GraphLine<'_>> = Vec::new();
    let mut places: HashMap<&[u8], usize> = HashMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut fields = fields.by_ref().filter(|field| !field.is_empty());
        let Some(name) = fields.next() else { continue };
        let at = *places.entry(name).or_insert(tasks.len());
        if at == tasks.len() {
            tasks.push(GraphLine { name, preds: Vec::new() });
        }
        tasks[at].preds.extend(fields);
    }
    tasks
}

/// As in the file, except that what is waited for comes before. A task on a cycle is the error.
fn in_order(tasks: &[GraphLine<'_>]) -> Result<Vec<usize>, usize> {
    let places: HashMap<&[u8], usize> =
        tasks.iter().enumerate().map(|(at, task)| (task.name, at)).collect();
    let mut order = Vec::with_capacity(tasks.len());
    let mut marks = vec![Mark::New; tasks.len()];
    // A walk with a stack of its own: files may be a chain of a million.
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for start in 0..tasks.len() {
        if marks[start] == Mark::New {
            marks[start] = Mark::Open;
            stack.push((start, 0));
        }
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            let Some(pred) = tasks[at].preds.get(*next) else {
                marks[at] = Mark::Placed;
                order.push(at);
                stack.pop();
                continue;
            };
            *next += 1;
            match places.get(pred).map(|&pred| (pred, marks[pred])) {
                Some((pred, Mark::New)) => {
                    marks[pred] = Mark::Open;
                    stack.push((pred, 0));
                }
                Some((pred, Mark::Open)) => return Err(pred),
                Some((_, Mark::Placed)) | None => {}
            }
        }
    }
    Ok(order)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Open,
    Placed,
}

#[cfg(test)]
mod tests;
