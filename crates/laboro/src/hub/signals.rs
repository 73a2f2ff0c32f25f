//! What a hub is asked from outside: signals that end it, the end of the process that it belongs to, SIGHUP, by which
//! service managers ask a program to read its settings again, and SIGUSR1, by which logrotate asks for a new log file.

use crate::process_watch::ProcessWatch;
use crate::run::Signals;
use std::io::IsTerminal;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) struct HubSignals {
    ends: Signals,
    owner: ProcessWatch,
    /// `None`: SIGHUP ends it like the others.
    reload: Option<Signal>,
    reopen_log: Signal,
}

impl HubSignals {
    /// In a terminal SIGHUP says that the terminal is gone.
    pub(super) fn listen(exit_with: Option<i32>) -> anyhow::Result<HubSignals> {
        let owner = ProcessWatch::open(exit_with)?;
        let reopen_log = signal(SignalKind::user_defined1())?;
        if std::io::stdin().is_terminal() {
            return Ok(HubSignals { ends: Signals::listen()?, owner, reload: None, reopen_log });
        }
        let reload = Some(signal(SignalKind::hangup())?);
        Ok(HubSignals { ends: Signals::without_hangup()?, owner, reload, reopen_log })
    }

    /// That it is to end. What asks for a reload meanwhile is not heard.
    pub(super) async fn end(&mut self) {
        tokio::select! {
            () = self.ends.next() => {}
            () = self.owner.ended() => {}
        }
    }

    pub(super) async fn next(&mut self) -> SignalAsked {
        let HubSignals { ends, owner, reload, reopen_log } = self;
        let reload = async {
            match reload {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = ends.next() => SignalAsked::End,
            () = owner.ended() => SignalAsked::End,
            () = reload => SignalAsked::Reload,
            _ = reopen_log.recv() => SignalAsked::ReopenLog,
        }
    }
}

pub(super) enum SignalAsked {
    End,
    Reload,
    ReopenLog,
}
