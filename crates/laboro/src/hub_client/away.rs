//! A hub that goes away for a while: whoever waits at it anyway waits for it to come back, with longer and longer
//! pauses, and is told once.

use super::told;
use crate::output::say;
use laboro_api::client::ClientError;
use std::time::{Duration, Instant};

/// How long it has been away, if it is.
#[derive(Debug, Default)]
pub(crate) struct Away {
    since: Option<Instant>,
    pause: Duration,
}

/// A machine that starts anew takes this long; whoever is away longer is not coming back by itself.
const PATIENCE: Duration = Duration::from_secs(600);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MOST: Duration = Duration::from_secs(5);

impl Away {
    /// The hub has answered.
    pub(crate) fn is_back(&mut self) {
        if self.since.is_some() {
            say("laboro: the hub is back");
        }
        *self = Away::default();
    }

    /// Waits a little if the hub may come back; else this is the end of it.
    pub(crate) async fn pause(&mut self, error: ClientError) -> anyhow::Result<()> {
        let since = *self.since.get_or_insert_with(|| {
            if error.is_away() {
                say(format_args!("laboro: {error}; waiting for it to come back"));
            }
            Instant::now()
        });
        if !error.is_away() || since.elapsed() > PATIENCE {
            return Err(told(error));
        }
        self.pause = (self.pause * 2).clamp(PAUSE_FIRST, PAUSE_MOST);
        tokio::time::sleep(self.pause).await;
        Ok(())
    }
}
