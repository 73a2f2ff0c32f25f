//! `laboro worker`: runs what a hub gives it, here or by ssh on other machines. The work itself is done by
//! `laboro_worker::agent`; here is what was typed, whom it is about, and what is said to people.

pub(crate) mod args;

mod access;
mod allocation;
mod detect;
mod front;
mod fuq;
mod settings;
mod source;
pub(crate) mod ssh;
mod teed;

use crate::exit::{Exit, usage};
use crate::output::{safe, say};
use crate::process_watch::ProcessWatch;
use crate::run::Signals;
use anyhow::anyhow;
use args::Worker;
use laboro_worker::agent::{Agent, AgentOptions, Crew, Farewell};
use source::Source;

pub(crate) fn run(args: &Worker) -> anyhow::Result<Exit> {
    if let Some(dir) = &args.dir {
        let dir = dir.display();
        return Err(usage(format!(
            "--dir {dir}: for the hub's directory say `laboro worker {dir}`; for where tasks run say --workdir {dir}"
        )));
    }
    if !args.ssh.is_empty() {
        let (access, _) = access::find(args)?;
        let (access, lent) = access::for_others(args, access)?;
        let exit = ssh::run(args, &access.text());
        if let Some(lent) = lent {
            lent.take_back()?;
        }
        return exit;
    }
    let allocation = allocation::Allocation::of_process();
    let mut options = settings::agent_options(args, allocation.as_ref())?;
    if args.detect {
        detect::run(args, &options, allocation.as_ref())?;
        return Ok(Exit::Done);
    }
    if let Some(allocation) = allocation.as_ref().filter(|_| !args.quiet) {
        say(format_args!("{}: {}", safe(&options.name), safe(&allocation.words())));
    }
    settings::make_room(&options).map_err(usage)?;
    // Before anything else is started, and before there are threads.
    let crew = match args.no_op {
        true => None,
        false => Some(Crew::start(Default::default(), options.slots)?),
    };
    let mut source = source::open(args, &mut options, allocation.as_ref())?;
    if args.tee {
        source.side = Box::new(teed::Teed::new(source.side));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work(args, options, crew, source))
}

async fn work(
    args: &Worker,
    options: AgentOptions,
    crew: Option<Crew>,
    source: Source,
) -> anyhow::Result<Exit> {
    let Source { side, connect, front } = source;
    let mut signals = Signals::listen()?;
    let mut front = front.map(front::Front::listen).transpose()?;
    let owner = ProcessWatch::open(args.exit_with)?;
    let (name, is_quiet) = (safe(&options.name), args.quiet);
    let words = move |words: &str| {
        if !is_quiet {
            say(format_args!("{name}: {}", safe(words)));
        }
    };
    let agent = Agent::new(options, side, crew, Box::new(words))?;
    let signal = async || {
        tokio::select! {
            () = signals.next() => {}
            () = front::asked(&mut front) => {}
            // Each time that it is asked: nobody waits for what still runs.
            () = owner.ended() => {}
        }
    };
    match agent.run(connect(), signal).await? {
        Farewell::Finished => Ok(Exit::Done),
        Farewell::Unsettled => {
            let hub = args.hub_word();
            say(format_args!(
                "laboro: the {hub} was not told everything; it may run those tasks again"
            ));
            Ok(Exit::Trouble)
        }
        Farewell::Unable(why) => Err(anyhow!("{}", safe(&why))),
        Farewell::Refused(why) => {
            Err(anyhow!("the {} refuses this worker: {}", args.hub_word(), safe(&why)))
        }
    }
}
