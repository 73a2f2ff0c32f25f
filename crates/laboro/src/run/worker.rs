//! The worker of a run: the same agent that works for hubs elsewhere, with a hub in this process.

use super::collected::ValueTable;
use super::desk::{OUTPUTS_TROUBLE, Setup};
use super::order::OrderedOutput;
use super::side::{Mail, SharedDesk, Side};
use super::signals::Signals;
use super::{JOB, Layout, Options, files};
use crate::exit::usage;
use anyhow::Context;
use laboro_core::{Command, Query, Reply, State};
use laboro_hub::{Handle, Subscription};
use laboro_journal::outputs::{Ending, Key, Writer};
use laboro_worker::agent::{Agent, AgentOptions, Crew, Link, ScratchPlace};
use laboro_worker::{DEFAULT_SHELL, Until};
use std::path::Path;

/// A guardian on its way up.
pub(super) struct Hands {
    crew: Crew,
    launch_ahead: u32,
}

/// The same with how it works.
pub(super) struct ReadyHands {
    crew: Crew,
    options: AgentOptions,
}

/// Enough at the guardian that no slot stands empty.
fn launch_ahead(options: &Options) -> u32 {
    options.slots.clamp(8, 64)
}

impl Hands {
    pub(super) fn start(layout: &Layout, options: &Options) -> anyhow::Result<Hands> {
        let room = files::make_room(options, launch_ahead(options)).map_err(usage)?;
        let launch_ahead = if may_look_ahead(layout, options) { room } else { 0 };
        let crew = Crew::start(Default::default(), options.slots)?;
        Ok(Hands { crew, launch_ahead })
    }

    pub(super) fn nonce(&self) -> &str {
        self.crew.nonce()
    }

    pub(super) fn options(self, setup: &Setup, path: &Path) -> ReadyHands {
        let options = &setup.options;
        let agent = AgentOptions {
            name: "local".to_owned(),
            slots: options.slots,
            shell: DEFAULT_SHELL.into(),
            dir: None,
            scratch: ScratchPlace::In(path.to_owned()),
            task_dirs: false,
            command: Vec::new(),
            nice: None,
            grace: options.grace,
            drain: None,
            haste: options.grace,
            launch_ahead: self.launch_ahead,
            ahead: 0,
            memory_free: options.memory_free,
            delay: options.delay,
            load_max: options.load_max,
            idle_timeout: None,
            time_limit: None,
            // The store has the limit: what is shown as it comes has none.
            output_limit: u64::MAX,
            until: Until::default(),
            limit_by: options.limit_by,
            pin: options.pin,
            items: options.machine.items(),
            shares_signals: false,
            access: None,
        };
        ReadyHands { crew: self.crew, options: agent }
    }
}

/// Tasks of one slot wait for their room at the guardian, which starts the next the moment one ends. With a limit of
/// failures or a memory to watch, nothing may start that is not asked for.
pub(super) fn may_look_ahead(layout: &Layout, options: &Options) -> bool {
    let Options { max_fails, memory_free, halt, delay, load_max, .. } = options;
    let is_watched = memory_free.is_some() || delay.is_some() || load_max.is_some();
    layout.one_slot_each && max_fails.is_none() && halt.is_none() && !is_watched
}

/// Works until all is done, or somebody wants an end to it.
pub(super) async fn work(
    hands: ReadyHands,
    desk: &SharedDesk,
    subscription: Subscription,
) -> anyhow::Result<()> {
    let ReadyHands { crew, options } = hands;
    let words = {
        let desk = desk.clone();
        move |words: &str| desk.lock().display.note(words)
    };
    let side = Box::new(Side(desk.clone()));
    let agent = Agent::new(options, side, Some(crew), Box::new(words))?;
    let mail = Mail { subscription, desk: desk.clone(), deliveries: Vec::new() };
    let mut signals = Signals::listen()?;
    agent.run(Link::within_process(mail), async || signals.next().await).await?;
    match desk.lock().take_fatal() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Attempts that a killed run left open in the store.
pub(super) fn end_lost_outputs(outputs: &mut Writer) -> anyhow::Result<()> {
    let open: Vec<Key> = outputs.running().collect();
    for key in open {
        outputs.end(key, Ending { kind: Ending::LOST, ..Ending::default() })?;
    }
    outputs.flush().context(OUTPUTS_TROUBLE)
}

/// What ended in an earlier run is printed too, so that the whole output is there in order.
pub(super) async fn begin_order(
    setup: &Setup,
    handle: &Handle,
    path: &Path,
) -> anyhow::Result<OrderedOutput> {
    let mut order = OrderedOutput::new(&path.join("outputs"), setup.layout.input_order())?;
    each_ended(handle, |index| order.ended_before(index)).await?;
    setup.display.above(|| order.print_ready())?;
    Ok(order)
}

/// The same for a table of results.
pub(super) async fn begin_table(
    setup: &Setup,
    handle: &Handle,
    path: &Path,
    file: &Path,
    separator: u8,
) -> anyhow::Result<ValueTable> {
    let mut table = ValueTable::open(file, separator, &setup.layout, &path.join("outputs"))?;
    each_ended(handle, |index| table.add(&setup.layout, index)).await?;
    table.flush()?;
    Ok(table)
}

/// Tasks that had ended when this run began.
pub(super) async fn each_ended(
    handle: &Handle,
    mut see: impl FnMut(u32) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for state in [State::Done, State::Failed] {
        let mut from = Some(1);
        while let Some(index) = from {
            let query = Query::Tasks { job: JOB, state: Some(state), from: index, most: 1000 };
            let Reply::Tasks { tasks, next } = handle.ask(Command::Query(query)).await? else {
                break;
            };
            for task in tasks {
                see(task.task.index)?;
            }
            from = next;
        }
    }
    Ok(())
}
