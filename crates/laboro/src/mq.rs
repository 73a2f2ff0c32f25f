//! `laboro mq`: the round-robin request broker and the sides that connect to it, each with a console like that
//! of the programs whose protocol it speaks. What is said is in `laboro_dialects::rrmq`, the server in
//! `laboro_hub::mq`; here are arguments, consoles and sockets.

pub(crate) mod args;
mod client;
mod console;
mod server;
mod table;
mod target;
mod worker;

use crate::exit::Exit;
use args::{Mq, MqCommand};
use tracing_subscriber::filter::LevelFilter;

pub(crate) fn run(args: Mq) -> anyhow::Result<Exit> {
    match args.command {
        MqCommand::Server(args) => server::run(&args),
        MqCommand::Worker(args) => worker::run(&args),
        MqCommand::Client(args) => client::run(&args),
        MqCommand::Workers(args) => table::run(&args),
        MqCommand::Keys(args) => table::make_keys(&args),
    }
}

/// 0 errors only, 1 basic information, 2 and more details.
fn log(level: u8) {
    let level = match level {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_target(false)
        .init();
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
