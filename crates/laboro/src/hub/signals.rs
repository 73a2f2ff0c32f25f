//! The signals of a hub: those that end it, and SIGHUP, by which service managers ask a program to read its settings again.

use crate::run::Signals;
use std::io::IsTerminal;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct HubSignals {
    ends: Signals,
    /// `None`: SIGHUP ends it like the others.
    reload: Option<Signal>,
}

impl HubSignals {
    /// In a terminal SIGHUP says that the terminal is gone.
    pub(super) fn listen() -> std::io::Result<HubSignals> {
        if std::io::stdin().is_terminal() {
            return Ok(HubSignals { ends: Signals::listen()?, reload: None });
        }
        let reload = Some(signal(SignalKind::hangup())?);
        Ok(HubSignals { ends: Signals::without_hangup()?, reload })
    }

    /// That it is to end. What asks for a reload meanwhile is not heard.
    pub(super) async fn end(&mut self) {
        self.ends.next().await;
    }

    pub(super) async fn next(&mut self) -> Asked {
        let HubSignals { ends, reload } = self;
        let reload = async {
            match reload {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = ends.next() => Asked::End,
            () = reload => Asked::Reload,
        }
    }
}

pub(super) enum Asked {
    End,
    Reload,
}
