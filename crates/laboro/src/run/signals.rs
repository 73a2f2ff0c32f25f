//! The signals by which people and systems end programs.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Those of SIGINT, SIGTERM and SIGHUP that this program listens to.
pub(crate) struct Signals([Option<Signal>; 3]);

impl Signals {
    /// A signal that was ignored when the program started stays ignored: that is how `nohup` and shells
    /// that run something in the background ask for it.
    pub(crate) fn listen() -> std::io::Result<Signals> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let ignored = ignored();
        let listen = |kind: SignalKind| match ignored >> (kind.as_raw_value() - 1) & 1 {
            1 => Ok(None),
            _ => signal(kind).map(Some),
        };
        let [interrupt, terminate, hangup] = kinds.map(listen);
        Ok(Signals([interrupt?, terminate?, hangup?]))
    }

    /// For a program to which SIGHUP means something else.
    pub(crate) fn without_hangup() -> std::io::Result<Signals> {
        let Signals([interrupt, terminate, _]) = Signals::listen()?;
        Ok(Signals([interrupt, terminate, None]))
    }

    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            () = received(interrupt) => {}
            () = received(terminate) => {}
            () = received(hangup) => {}
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// One bit for each ignored signal, the first for signal 1.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
