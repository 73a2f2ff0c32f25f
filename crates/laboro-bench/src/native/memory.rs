//! What waiting tasks cost a hub that has nothing else, and what one more costs where there are very many.

use super::super::figures::{Figures, weigh};
use super::super::hub::Hub;
use super::{NativeBench, array, client, submit};
use crate::exit::usage;
use anyhow::bail;
use bytes::{Bytes, BytesMut};
use laboro_api::client::{Client, Upload};
use laboro_api::{AddTasks, Submitted};
use laboro_clients::dwork::{Address, DworkLink};
use laboro_dialects::dwork::{Kind, QueryWriter};
use laboro_dialects::zmtp::Mechanism;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tasks added one by one.
const ADDED: usize = 200;
/// Tasks in a piece of what is sent.
const PIECE: usize = 1000;

pub(super) async fn run(program: &Path, args: &NativeBench) -> anyhow::Result<()> {
    let tasks = args.tasks as usize;
    let hub = Hub::start_native(program, &args.durability)?;
    let empty = hub.memory();
    let mut waiting = array("waiting", tasks);
    waiting["held"] = true.into();
    submit(&client(&hub)?, waiting).await?;
    weigh("array that waits", tasks, empty, hub.memory(), args.json)?;
    drop(hub);

    let hub = Hub::start_with_dwork(program, &args.durability)?;
    let empty = hub.memory();
    submit(&client(&hub)?, array("half", tasks)).await?;
    complete_half(&hub, "half", tasks).await?;
    weigh("array of which half is done, far and wide", tasks, empty, hub.memory(), args.json)?;
    drop(hub);

    let hub = Hub::start_native(program, &args.durability)?;
    let there = client(&hub)?;
    let empty = hub.memory();
    let job = submit_named(&there, tasks).await?;
    weigh("named tasks that wait", tasks, empty, hub.memory(), args.json)?;
    add_one_by_one(&hub, &there, job, args).await
}

/// One half of the elements in an order that has nothing to do with their numbers. Nobody has taken them; whoever
/// comes by dwork may say that they are done all the same.
async fn complete_half(hub: &Hub, array: &str, tasks: usize) -> anyhow::Result<()> {
    let address: Address = hub.address.parse().map_err(usage)?;
    let mut link = DworkLink::connect(&address, Mechanism::Null, PATIENCE).await?;
    let order: Vec<usize> = scattered(tasks).take(tasks / 2).collect();
    let mut request = BytesMut::new();
    for piece in order.chunks(PIECE) {
        request.clear();
        let mut complete = QueryWriter::new(Kind::Complete, &mut request);
        for number in piece {
            let name = format!("{array}.{number}");
            complete = complete.task(name.as_bytes(), b"bench", [].into_iter(), &[]);
        }
        complete.location(b"bench");
        let kind = link.ask(&request).await?.query()?.kind;
        if kind != Kind::Ok {
            bail!("the hub answered a complete with {kind:?}");
        }
    }
    Ok(())
}

/// All of `1..=count`, far from one another: the step has no factor in common with the count.
fn scattered(count: usize) -> impl Iterator<Item = usize> {
    let has_common_factor = |step: usize| {
        let (mut a, mut b) = (step, count);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a > 1
    };
    let step = (count * 618 / 1000..).find(|&step| !has_common_factor(step)).unwrap_or(1);
    (0..count).map(move |at| at * step % count + 1)
}

/// An open job that is held, so that nothing of it ever starts.
async fn submit_named(there: &Client, tasks: usize) -> anyhow::Result<u32> {
    let (pieces, upload) = Upload::new();
    let answer = there.upload::<Submitted>("jobs/stream", upload);
    let fed = async {
        let job = json!({"name": "named", "open": true, "held": true});
        let mut piece = format!("{job}\n");
        for first in (0..tasks).step_by(PIECE) {
            for number in first..(first + PIECE).min(tasks) {
                writeln!(
                    piece,
                    r#"{{"name":"task-{number:011}","command":["./sim","{number}"]}}"#
                )?;
            }
            if pieces.send(Bytes::from(std::mem::take(&mut piece))).await.is_err() {
                break;
            }
        }
        drop(pieces);
        anyhow::Ok(())
    };
    let (submitted, fed) = tokio::join!(answer, fed);
    fed?;
    Ok(submitted?.job)
}

async fn add_one_by_one(
    hub: &Hub,
    there: &Client,
    job: u32,
    args: &NativeBench,
) -> anyhow::Result<()> {
    let (cpu, began) = (hub.cpu(), Instant::now());
    let mut latencies = Vec::with_capacity(ADDED);
    for number in 0..ADDED {
        let one = json!({"tasks": [{"name": format!("added-{number}"), "command": ["true"]}]});
        let one: AddTasks = serde_json::from_value(one)?;
        let asked = Instant::now();
        there.post::<_, Submitted>(&format!("jobs/{job}/tasks"), &one).await?;
        latencies.push(asked.elapsed());
    }
    let took = began.elapsed();
    let hub_cpu = cpu.zip(hub.cpu()).map(|(before, after)| after.saturating_sub(before));
    let case = format!("one more in a job of {}", args.tasks);
    let mut figures = Figures { case, tasks: ADDED, took, latencies, hub_cpu };
    Ok(figures.show(&args.durability, args.json)?)
}
