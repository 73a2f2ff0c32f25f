//! What waiting tasks cost a hub that has nothing else, and what one more costs where there are very many.

use super::super::figures::{Figures, weigh};
use super::super::hub::Hub;
use super::{NativeBench, access, array, submit};
use crate::exit::Exit;
use crate::hub_client::{self, talk};
use bytes::Bytes;
use laboro_hub::api::AddTasks;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Tasks added one by one.
const ADDED: usize = 200;
/// Tasks in a piece of what is sent.
const PIECE: usize = 1000;

pub(super) fn run(program: &Path, args: &NativeBench) -> anyhow::Result<Exit> {
    let hub = Hub::start_native(program, &args.durability)?;
    talk(&access(&hub)?, async |there| {
        let empty = hub.memory();
        let mut waiting = array("waiting", args.tasks as usize);
        waiting["held"] = true.into();
        submit(there, waiting).await?;
        weigh("array that waits", args.tasks as usize, empty, hub.memory(), args.json)?;
        Ok(Exit::Done)
    })?;
    drop(hub);
    let hub = Hub::start_native(program, &args.durability)?;
    talk(&access(&hub)?, async |there| {
        let empty = hub.memory();
        let job = submit_named(there, args.tasks as usize).await?;
        weigh("named tasks that wait", args.tasks as usize, empty, hub.memory(), args.json)?;
        add_one_by_one(&hub, there, job, args).await?;
        Ok(Exit::Done)
    })
}

/// An open job that is held, so that nothing of it ever starts.
async fn submit_named(there: &hub_client::Hub, tasks: usize) -> anyhow::Result<u32> {
    let submitted = there
        .submit_stream(async |pieces| {
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
            Ok(())
        })
        .await?;
    Ok(submitted.job)
}

async fn add_one_by_one(
    hub: &Hub,
    there: &hub_client::Hub,
    job: u32,
    args: &NativeBench,
) -> anyhow::Result<()> {
    let (cpu, began) = (hub.cpu(), Instant::now());
    let mut latencies = Vec::with_capacity(ADDED);
    for number in 0..ADDED {
        let one = json!({"tasks": [{"name": format!("added-{number}"), "command": ["true"]}]});
        let one: AddTasks = serde_json::from_value(one)?;
        let asked = Instant::now();
        there.add(job, &one).await?;
        latencies.push(asked.elapsed());
    }
    let took = began.elapsed();
    let hub_cpu = cpu.zip(hub.cpu()).map(|(before, after)| after.saturating_sub(before));
    let case = format!("one more in a job of {}", args.tasks);
    let mut figures = Figures { case, tasks: ADDED, took, latencies, hub_cpu };
    Ok(figures.show(&args.durability, args.json)?)
}
