//! Requests through a server to ten workers of ten slots, 1, 10 and 100 at once, empty and of 1 KiB. The same
//! clients and workers can be put around libzmq's own proxy, which only passes on: it knows no slots.

mod broker;
mod load;

use crate::exit::print;
use crate::exit::usage;
use crate::program::Program;
use anyhow::Context;
use broker::Broker;
use clap::Args;
use load::{Load, LoadFigures};
use serde_json::json;
use std::collections::BTreeMap;
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

    /// Measure ours and libzmq's proxy in turn, by this Python with pyzmq, and print what lies in the middle.
    #[arg(long, value_name = "PYTHON", conflicts_with_all = ["server", "proxy"])]
    compare: Option<PathBuf>,

    /// With --compare: how often each is measured.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "compare")]
    runs: usize,

    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0)]
    seconds: f64,

    /// One JSON line a case.
    #[arg(long)]
    json: bool,
}

const AT_ONCE: [usize; 3] = [1, 10, 100];
const BYTES: [usize; 2] = [0, 1024];

pub(super) fn run(args: &MqBench, program: &Program) -> anyhow::Result<()> {
    let seconds = Duration::try_from_secs_f64(args.seconds).context("--seconds: not a time")?;
    let mut measured = BrokerFigures::default();
    if let Some(python) = &args.compare {
        if args.runs == 0 {
            return Err(usage("--runs 0: there is nothing to compare"));
        }
        // In turn, so that whatever else the machine does troubles both.
        for _ in 0..args.runs {
            measured.all(&Broker::ours(&program.path()?)?, seconds, |_, _| Ok(()))?;
            measured.all(&Broker::proxy(python)?, seconds, |_, _| Ok(()))?;
        }
        measured.cases().try_for_each(|(case, figures)| show(args.json, case, figures))?;
        return Ok(());
    }
    let broker = match (&args.server, &args.proxy) {
        (Some(address), _) => Broker::at(address),
        (None, Some(python)) => Broker::proxy(python)?,
        (None, None) => Broker::ours(&program.path()?)?,
    };
    measured.all(&broker, seconds, |case, figures| show(args.json, case, figures))?;
    Ok(())
}

/// All runs of all cases.
#[derive(Default)]
struct BrokerFigures(BTreeMap<BrokerCase, Vec<LoadFigures>>);

/// Size and number first, so that the same of two brokers stand together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BrokerCase {
    bytes: usize,
    at_once: usize,
    broker: &'static str,
}

impl BrokerFigures {
    /// Every case once, at a broker of its own.
    fn all(
        &mut self,
        broker: &Broker,
        seconds: Duration,
        told: impl Fn(BrokerCase, &[LoadFigures]) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let load = Load::start(broker)?;
        for bytes in BYTES {
            for at_once in AT_ONCE {
                let before = broker.cpu();
                let mut figures = load.run(bytes, at_once, seconds)?;
                let used = broker.cpu().zip(before).map(|(after, before)| after - before);
                figures.cpu_us = used.map(|cpu| cpu.as_secs_f64() * 1e6 / figures.all as f64);
                let case = BrokerCase { bytes, at_once, broker: broker.name };
                let runs = self.0.entry(case).or_default();
                runs.push(figures);
                told(case, runs)?;
            }
        }
        Ok(())
    }

    fn cases(&self) -> impl Iterator<Item = (BrokerCase, &[LoadFigures])> {
        self.0.iter().map(|(&case, runs)| (case, &runs[..]))
    }
}

fn show(as_json: bool, case: BrokerCase, runs: &[LoadFigures]) -> anyhow::Result<()> {
    let BrokerCase { bytes, at_once, broker } = case;
    let case = format!("{broker} {bytes} B, {at_once} in flight");
    let middle = |of: fn(&LoadFigures) -> f64| median(runs.iter().map(of).collect());
    let per_s = middle(|run| run.count as f64 / run.took.as_secs_f64());
    let (p50, p99) = (middle(|run| run.p50_us), middle(|run| run.p99_us));
    let cpu = runs.iter().map(|run| run.cpu_us).collect::<Option<Vec<f64>>>().map(median);
    let round = |value: f64| (value * 100.0).round() / 100.0;
    if as_json {
        print(json!({
            "case": case,
            "n": runs.iter().map(|run| run.count).sum::<usize>(),
            "runs": runs.len(),
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

/// Of at least one.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
