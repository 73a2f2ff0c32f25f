//! `laboro run --dry-run` of a job that was run before: which of its tasks would run, and why. Changes nothing.

use super::earlier::{self, Store};
use super::layout::Layout;
use super::state::{has_job, has_names, id, store_id};
use super::{JOB, Options};
use crate::exit::usage;
use crate::output::{counted, safe, say};
use crate::submit::order;
use laboro_core::{State, TaskId};
use laboro_journal::read_ledger;
use laboro_plan::Plan;
use std::sync::Arc;

/// Tasks that are named one by one.
const NAMED_MAX: usize = 20;

pub(crate) fn foresee(plan: Plan, options: &Options) -> anyhow::Result<()> {
    let plan = Arc::new(plan);
    let layout = Layout::new(&plan, options).map_err(usage)?;
    let (root, id) = (&options.state, id(&options.state, &plan)?);
    let store = Store::open(root, &store_id(root, &plan, options)?);
    let ledger = read_ledger(&root.join(&id).join("journal")).ok().filter(has_job);
    let is_known = store.is_newest(&id) || !has_names(&plan);
    let reason: Box<dyn Fn(u32) -> Option<&'static str>> = match ledger.filter(|_| is_known) {
        _ if options.fresh => Box::new(|_| Some("--fresh runs everything")),
        Some(ledger) => Box::new(move |index| match ledger.state_of(TaskId::new(JOB, index)) {
            Some(State::Done) => None,
            Some(State::Failed) => Some("failed; only with --retry-failed"),
            Some(State::Cancelled) => Some("cancelled; stays so"),
            _ => Some("has not run yet"),
        }),
        None => {
            let contents = plan.contents(&order(&plan));
            let found =
                earlier::find(root, &store, &id, &plan, &contents, &layout.firsts()).carried;
            Box::new(move |index| match earlier::origin(&found, "", index).0 {
                "" => Some("new, changed, or after something that is"),
                _ => None,
            })
        }
    };
    let (mut done, mut named) = (0u32, Vec::new());
    for index in layout.input_order().into_iter().flat_map(|(first, last)| first..=last) {
        match reason(index) {
            None => done += 1,
            Some(why) if named.len() < NAMED_MAX => named.push((index, why)),
            Some(_) => {}
        }
    }
    let total = layout.count();
    if done == 0 {
        // All of it is what was shown.
        return Ok(());
    }
    for (index, why) in &named {
        let name = layout.label(*index).unwrap_or_default();
        say(format_args!("would run: {} ({why})", safe(&name)));
    }
    let more = (total - done) as usize - named.len();
    if more > 0 {
        say(format_args!("would run: {} more", counted(more as u64, "task")));
    }
    say(format_args!("{done} of {total} tasks already done, {} to run", total - done));
    Ok(())
}
