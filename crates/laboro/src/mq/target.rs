//! Whom to connect to, and as whom, as it is typed; and what to say when that fails.

use super::args::To;
use crate::curve::advised;
use crate::exit::usage;
use laboro_clients::mq::{BrokerLink, Target};
use laboro_dialects::zmtp::Options;
use laboro_net::Clock;

pub(super) fn target(to: &To) -> anyhow::Result<Target> {
    if to.identity.as_ref().is_some_and(|name| name.is_empty() || name.len() > 240) {
        return Err(usage("--identity: a name has 1 to 240 bytes"));
    }
    let target = Target::at(&to.server).map_err(usage)?;
    Ok(target.named(to.identity.clone(), to.curve.mechanism()?))
}

pub(super) async fn open(target: &Target, clock: Clock) -> anyhow::Result<BrokerLink> {
    open_as(target, target.options(), clock).await
}

/// Under a name that stays the same.
pub(super) async fn open_as(
    target: &Target,
    options: Options,
    clock: Clock,
) -> anyhow::Result<BrokerLink> {
    let opened = BrokerLink::open_as(target, options, clock).await;
    opened.map_err(|error| advised(target.mechanism(), error, "is a server running there?"))
}
