//! Hooks: whom the hub tells what, and what those who submit may have it call.

use crate::hooks::{Sending, Target};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HookSettings {
    /// URLs, and all below them, that jobs of tokens with the role submit may have called. Empty: none.
    pub allow_urls: Vec<String>,
    /// Addresses, or @HOST for all of a host, that such jobs may have mailed. Empty: none.
    pub allow_mail: Vec<String>,
    /// How often a delivery is tried before it counts as failed.
    pub max_tries: u32,
    /// The pause after the first try; each is twice as long as the one before, up to 30 minutes.
    pub retry_ms: u64,
    /// A try that takes longer has failed.
    pub time_limit_ms: u64,
    /// Deliveries that wait. Ends of jobs beyond that wait in the journal; other events are dropped, and counted.
    pub max_pending: usize,
    /// The program that takes mails.
    pub sendmail: String,
    /// The sender of mails. Not given: what sendmail makes of the hub's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mail_from: Option<String>,
    /// What signs deliveries to URLs, for receivers to check. Not given: `hook.secret` in the hub's directory, which is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
}

impl Default for HookSettings {
    fn default() -> HookSettings {
        let sending = Sending::default();
        HookSettings {
            allow_urls: Vec::new(),
            allow_mail: Vec::new(),
            max_tries: 12,
            retry_ms: 1000,
            time_limit_ms: 30_000,
            max_pending: 10_000,
            sendmail: sending.sendmail,
            mail_from: None,
            secret_file: None,
        }
    }
}

impl HookSettings {
    pub(crate) fn sending(&self) -> Sending {
        Sending {
            time_limit: Duration::from_millis(self.time_limit_ms),
            sendmail: self.sendmail.clone(),
            mail_from: self.mail_from.clone(),
        }
    }
}

/// One `[[hook]]`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookRule {
    pub on: Vec<HookEvent>,
    /// A URL, `mail:ADDRESS`, or a shell line for the hub's machine.
    pub to: String,
    /// Only jobs, workers and pools of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Instead of that of all hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    JobDone,
    JobFailed,
    JobCancelled,
    /// Too many of its tasks failed; it waits for a person.
    JobStopped,
    /// It held tasks and has not come back in time.
    WorkerLost,
    WorkerEjected,
    DiskLow,
    PoolTrouble,
}

impl HookEvent {
    pub fn word(self) -> &'static str {
        match self {
            HookEvent::JobDone => "job_done",
            HookEvent::JobFailed => "job_failed",
            HookEvent::JobCancelled => "job_cancelled",
            HookEvent::JobStopped => "job_stopped",
            HookEvent::WorkerLost => "worker_lost",
            HookEvent::WorkerEjected => "worker_ejected",
            HookEvent::DiskLow => "disk_low",
            HookEvent::PoolTrouble => "pool_trouble",
        }
    }
}

/// What is wrong with the hooks of a settings file.
pub(super) fn check(hooks: &HookSettings, rules: &[HookRule]) -> Result<(), String> {
    for (at, rule) in rules.iter().enumerate() {
        let number = at + 1;
        Target::parse(&rule.to).map_err(|why| format!("hook {number}: to: {why}"))?;
        if rule.on.is_empty() {
            return Err(format!("hook {number}: on is empty: it would never be called"));
        }
    }
    for url in &hooks.allow_urls {
        match Target::parse(url) {
            Ok(Target::Url(uri)) if uri.query().is_none() => {}
            _ => return Err(format!("hooks.allow_urls: {url:?} is not a URL without a query")),
        }
    }
    let counts = [
        ("max_tries", u64::from(hooks.max_tries)),
        ("time_limit_ms", hooks.time_limit_ms),
        ("retry_ms", hooks.retry_ms),
        ("max_pending", hooks.max_pending as u64),
    ];
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(format!("hooks.{name} = 0: nothing would be delivered")),
        None => Ok(()),
    }
}
