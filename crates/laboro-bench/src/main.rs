//! Load generators, one for each door: a program of its own, so that the one people install has none of it. Each takes
//! the address of a hub, ours or an original, or starts the `laboro` beside it, and prints one line per case.

#![forbid(unsafe_code)]

mod dwork;
mod exit;
mod figures;
mod fuq;
mod hub;
mod mq;
mod native;
mod process;
mod program;
mod runexp;
mod timings;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measure what a hub can take.
#[derive(Debug, Parser)]
#[command(name = "laboro-bench", version, max_term_width = 100)]
struct Args {
    /// The laboro program to measure. Default: the one beside this program, built first when cargo runs this.
    #[arg(long, value_name = "PATH", global = true)]
    program: Option<PathBuf>,

    #[command(subcommand)]
    door: Door,
}

#[derive(Debug, Subcommand)]
enum Door {
    /// Tasks without a process through a whole hub and a worker; what waiting tasks weigh.
    Native(native::NativeBench),
    /// Requests through an rrmq server, or through a proxy of libzmq.
    Mq(mq::MqBench),
    /// Create, steal and complete tasks at a dwork hub.
    Dwork(dwork::DworkBench),
    /// Run scripts with a runexp manager and a runner of ours.
    Runexp(runexp::RunexpBench),
    /// A node on a websocket at a fuq foreman, in lock step.
    Fuq(fuq::FuqBench),
}

fn main() -> ExitCode {
    exit::of(run(&Args::parse()))
}

fn run(args: &Args) -> anyhow::Result<()> {
    let program = program::Program::new(args.program.clone());
    match &args.door {
        Door::Native(args) => native::run(args, &program),
        Door::Mq(args) => mq::run(args, &program),
        Door::Dwork(args) => dwork::run(args, &program),
        Door::Runexp(args) => runexp::run(args, &program),
        Door::Fuq(args) => fuq::run(args, &program),
    }
}
