//! The heart of the hub: gather, step, commit, deliver. Everything moves one way. Generic over the world
//! and the journal, so that a simulator runs this very loop.

use laboro_core::{Ask, Effect, Hub, Time};
use laboro_journal::{Journal, JournalError};

/// What brings commands and takes effects.
pub trait World {
    /// Waits until something arrives or the deadline comes, then takes all that is there. `None` ends the
    /// loop.
    fn gather(&mut self, deadline: Option<Time>) -> impl Future<Output = Option<(Time, Vec<Ask>)>>;

    /// Effects of one batch, in order. Never waits: who cannot take an effect loses its session.
    fn deliver(&mut self, effects: Vec<Effect>);
}

/// Runs until the world ends or the journal fails. After a failure memory is ahead of the journal: the
/// caller must not go on with this hub.
pub async fn run<W: World, J: Journal>(
    hub: &mut Hub,
    world: &mut W,
    journal: &mut J,
) -> Result<(), JournalError> {
    while let Some((now, asks)) = world.gather(hub.next_deadline()).await {
        let batch = hub.step(now, asks);
        if batch.is_empty() {
            continue;
        }
        let effects = journal.commit(batch).await?;
        world.deliver(effects);
    }
    Ok(())
}
