//! `laboro bench`: load generators, one for each door. Each takes the address of a hub, ours or an original,
//! or starts one; and prints one line a case.

mod dwork;
mod figures;
mod fuq;
mod hub;
mod mq;
mod native;
mod process;
mod runexp;

use crate::exit::Exit;
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Bench {
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

pub(crate) fn run(args: &Bench) -> anyhow::Result<Exit> {
    match &args.door {
        Door::Native(args) => native::run(args),
        Door::Mq(args) => mq::run(args),
        Door::Dwork(args) => dwork::run(args),
        Door::Runexp(args) => runexp::run(args),
        Door::Fuq(args) => fuq::run(args),
    }
}
