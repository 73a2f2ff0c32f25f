//! The smallest program with a runner, for tests that need one to kill: runs a shell script as a
//! task, passes its output on, and is its guardian too.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use laboro_worker::{Launch, Options, Orphans, Runner, RunnerEvent, guardian};

fn main() -> ExitCode {
    guardian::main_if_asked();
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    let mut options = Options::default();
    if arguments.first().is_some_and(|first| first == "--all-orphans") {
        arguments.remove(0);
        options.orphans = Orphans::All;
    }
    let Some(script) = arguments.pop() else {
        eprintln!("usage: runner-probe [--all-orphans] SCRIPT");
        return ExitCode::from(2);
    };
    let argv = ["sh".into(), "-c".into(), script];
    let launch = Launch { env: env::vars_os().collect(), ..Launch::new(1, argv) };
    match run(options, launch) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(255)),
        Err(error) => {
            eprintln!("runner-probe: {error}");
            ExitCode::from(125)
        }
    }
}

fn run(options: Options, launch: Launch) -> Result<i32, Box<dyn std::error::Error>> {
    let (runner, mut events) = Runner::start(options)?;
    runner.launch(launch);
    while let Some(batch) = events.wait(None)? {
        for event in batch {
            match event {
                RunnerEvent::Started { .. } => {}
                RunnerEvent::Output { bytes, .. } => io::stdout().write_all(&bytes)?,
                RunnerEvent::Ended { ending, .. } => return Ok(ending.exit_code()),
            }
        }
        io::stdout().flush()?;
    }
    Ok(125)
}
