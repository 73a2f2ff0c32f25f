//! The smallest program with a runner, for tests that need one to kill: runs a shell script as a
//! task, or as many, passes their output on, and is their guardian too. Ends with the first task.

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
    let mut times = Some(1);
    if arguments.first().is_some_and(|first| first == "--times") && arguments.len() > 1 {
        arguments.remove(0);
        times = arguments.remove(0).to_str().and_then(|times| times.parse().ok());
    }
    let (Some(script), Some(times)) = (arguments.pop(), times) else {
        eprintln!("usage: runner-probe [--all-orphans] [--times COUNT] SCRIPT");
        return ExitCode::from(2);
    };
    let argv = ["sh".into(), "-c".into(), script];
    let env: Vec<_> = env::vars_os().collect();
    let launches =
        (1..=times).map(|id| Launch { env: env.clone(), ..Launch::new(id, argv.iter().cloned()) });
    match run(options, launches) {
        Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(255)),
        Err(error) => {
            eprintln!("runner-probe: {error}");
            ExitCode::from(125)
        }
    }
}

fn run(
    options: Options,
    launches: impl Iterator<Item = Launch>,
) -> Result<i32, Box<dyn std::error::Error>> {
    let (runner, mut events) = Runner::start(options)?;
    launches.for_each(|launch| runner.launch(launch));
    while let Some(batch) = events.wait(None)? {
        for event in batch {
            match event {
                RunnerEvent::Started { .. } => {}
                RunnerEvent::Output { bytes, .. } => io::stdout().write_all(&bytes)?,
                RunnerEvent::Ended { ending, .. } => return Ok(ending.exit_code()),
                RunnerEvent::NoRoom { why, .. } => eprintln!("runner-probe: {why}"),
                RunnerEvent::Room => {}
            }
        }
        io::stdout().flush()?;
    }
    Ok(125)
}
