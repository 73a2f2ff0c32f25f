//! Requests through a server to ten workers of ten slots, 1, 10 and 100 at once, empty and of 1 KiB. The same
//! clients and workers can be put around libzmq's own proxy, which only passes on: it knows no slots.

mod broker;
mod load;

use crate::exit::Exit;
use crate::output::print;
use anyhow::Context;
use broker::Broker;
use clap::Args;
use load::{Figures, Load};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct MqBench {
    /// A server that is there. Default: one is started.
    #[arg(short, long, value_name = "ADDRESS", conflicts_with = "proxy")]
    server: Option<String>,

    /// Measure libzmq's proxy instead, by this Python with pyzmq.
    #[arg(long, value_name = "PYTHON")]
    proxy: Option<PathBuf>,

    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,

    /// One JSON line a case.
    #[arg(long)]
    json: bool,
}

const AT_ONCE: [usize; 3] = [1, 10, 100];
const BYTES: [usize; 2] = [0, 1024];

pub(super) fn run(args: &MqBench) -> anyhow::Result<Exit> {
    let seconds = Duration::try_from_secs_f64(args.seconds).context("--seconds: not a time")?;
    let broker = match (&args.server, &args.proxy) {
        (Some(address), _) => Broker::at(address),
        (None, Some(python)) => Broker::proxy(python)?,
        (None, None) => Broker::ours()?,
    };
    let load = Load::start(&broker)?;
    for bytes in BYTES {
        for at_once in AT_ONCE {
            let before = broker.cpu();
            let figures = load.run(bytes, at_once, seconds)?;
            let cpu = broker.cpu().zip(before).map(|(after, before)| after.saturating_sub(before));
            show(args, &broker, (bytes, at_once), &figures, cpu)?;
        }
    }
    Ok(Exit::Done)
}

fn show(
    args: &MqBench,
    broker: &Broker,
    (bytes, at_once): (usize, usize),
    figures: &Figures,
    cpu: Option<Duration>,
) -> anyhow::Result<()> {
    let case = format!("{} {bytes} B, {at_once} in flight", broker.name);
    let per_s = figures.count as f64 / figures.took.as_secs_f64();
    let cpu = cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / figures.count.max(1) as f64);
    let (p50, p99) = (figures.percentile_us(50), figures.percentile_us(99));
    let round = |value: f64| (value * 100.0).round() / 100.0;
    if args.json {
        print(json!({
            "case": case,
            "n": figures.count,
            "tasks_per_s": per_s.round(),
            "p50_us": round(p50),
            "p99_us": round(p99),
            "hub_cpu_us_per_task": cpu.map(round),
            "durability": "none",
        }))?;
    } else {
        let cpu = cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2}"));
        print(format_args!(
            "{case:<32} {per_s:>9.0}/s  p50 {p50:>8.1} us  p99 {p99:>8.1} us  cpu {cpu:>6} us"
        ))?;
    }
    Ok(())
}
