//! `laboro-sim`: one seed with its timeline, or many with a line a hundred. Ends with 1 when a promise is broken.

use clap::Parser;
use laboro_sim::{DIALECTS, Options, Run, Tally, simulate};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A seeded simulation of hub, journal, network and peers that tries to break Laboro's promises
#[derive(Debug, Parser)]
#[command(name = "laboro-sim")]
struct Args {
    /// Run this seed and print what happened
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,

    /// Run so many seeds, a line a hundred
    #[arg(long)]
    seeds: Option<u64>,

    /// The first of them; `fresh` takes one from the clock and says which
    #[arg(long, default_value = "0", value_parser = first_seed)]
    from: u64,

    /// How many run at once
    #[arg(long, default_value_t = default_jobs())]
    jobs: usize,

    /// Start no more seeds after so many seconds
    #[arg(long)]
    seconds: Option<u64>,

    /// Say it in JSON, a line a hundred seeds and one for each broken promise
    #[arg(long)]
    json: bool,
}

fn first_seed(text: &str) -> Result<u64, String> {
    if text == "fresh" {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        return Ok(now.as_secs() * 1000);
    }
    text.parse().map_err(|_| format!("`{text}` is not a number; give one, or `fresh`"))
}

fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// A promise was broken.
const BROKEN: u8 = 1;

fn main() -> ExitCode {
    let args = Args::parse();
    let is_kept = match args.seed {
        Some(seed) => one(seed, args.json),
        None => many(&args),
    };
    if is_kept { ExitCode::SUCCESS } else { ExitCode::from(BROKEN) }
}

fn one(seed: u64, json: bool) -> bool {
    let run = simulate(seed, &Options { timeline: true, ..Options::default() });
    if json {
        println!("{}", as_json(&run));
    } else {
        run.timeline.iter().for_each(|line| println!("{line}"));
        match &run.broken {
            Some(broken) => println!("seed {seed}: BROKEN {broken}"),
            None => println!("seed {seed}: every promise held; {}", in_words(&run.tally)),
        }
    }
    run.broken.is_none()
}

/// What the seeds run so far came to.
#[derive(Default)]
struct Sum {
    done: u64,
    broken: u64,
    tally: Tally,
}

fn many(args: &Args) -> bool {
    let (begun, count) = (Instant::now(), args.seeds.unwrap_or(1000));
    let (next, sum) = (AtomicU64::new(0), Mutex::new(Sum::default()));
    if !args.json {
        println!("{count} seeds from {}", args.from);
    }
    let is_over = || args.seconds.is_some_and(|most| begun.elapsed().as_secs() >= most);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| {
                while !is_over() {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let run = simulate(args.from + at, &Options::default());
                    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
                    note(&mut sum, &run, args, begun);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = begun.elapsed().as_secs_f64();
    if args.json {
        println!("{}", line(&sum, args.from, seconds));
    } else {
        let (done, broken) = (sum.done, sum.broken);
        println!("{done} seeds in {seconds:.1} s, {broken} broken; {}", in_words(&sum.tally));
    }
    sum.broken == 0
}

fn note(sum: &mut Sum, run: &Run, args: &Args, begun: Instant) {
    sum.done += 1;
    sum.tally.add(&run.tally);
    if let Some(broken) = &run.broken {
        sum.broken += 1;
        let seed = run.seed;
        if args.json {
            println!("{}", as_json(run));
        } else {
            println!("seed {seed}: BROKEN {broken}; see `laboro-sim --seed {seed}`");
        }
    }
    if sum.done.is_multiple_of(100) {
        let seconds = begun.elapsed().as_secs_f64();
        if args.json {
            println!("{}", line(sum, args.from, seconds));
        } else {
            let (done, broken) = (sum.done, sum.broken);
            println!("{done} seeds, {broken} broken, {seconds:.1} s");
        }
    }
}

fn in_words(tally: &Tally) -> String {
    let Tally { lives, torn, refusals, cuts, worker_crashes, stalls, batches, .. } = tally;
    let Tally { grants, submits, requests, .. } = tally;
    let started = DIALECTS.iter().zip(tally.started).map(|(word, count)| format!("{word} {count}"));
    let started = started.collect::<Vec<_>>().join(", ");
    let hours = tally.virtual_ms / 3_600_000;
    format!(
        "{lives} lives of the hub, {torn} torn writes, {refusals} refused, {cuts} lines lost, \
         {worker_crashes} worker crashes, {stalls} stalls, {batches} batches, {grants} grants, \
         {submits} submits, tasks begun ({started}), {requests} requests to the broker, {hours} hours of virtual time"
    )
}

fn line(sum: &Sum, from: u64, seconds: f64) -> serde_json::Value {
    serde_json::json!({
        "from": from,
        "seeds": sum.done,
        "broken": sum.broken,
        "seconds": seconds,
        "tally": tally_json(&sum.tally),
    })
}

fn as_json(run: &Run) -> serde_json::Value {
    serde_json::json!({
        "seed": run.seed,
        "broken": run.broken.as_ref().map(|broken| serde_json::json!({
            "promise": broken.promise.name(),
            "means": broken.promise.words(),
            "what": broken.what,
        })),
        "timeline": run.timeline,
        "tally": tally_json(&run.tally),
    })
}

fn tally_json(tally: &Tally) -> serde_json::Value {
    serde_json::json!({
        "lives": tally.lives,
        "torn": tally.torn,
        "refusals": tally.refusals,
        "cuts": tally.cuts,
        "worker_crashes": tally.worker_crashes,
        "stalls": tally.stalls,
        "batches": tally.batches,
        "grants": tally.grants,
        "submits": tally.submits,
        "started": DIALECTS.iter().copied().zip(tally.started).collect::<BTreeMap<_, _>>(),
        "requests": tally.requests,
        "virtual_ms": tally.virtual_ms,
    })
}
