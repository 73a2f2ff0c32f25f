//! Whose memory the kernel's count is. It counts the peak of the process that starts a program as the program's own,
//! and that process is the guardian: what is not above the guardian's own peak says nothing of a task.

use std::fs;

/// The kernel adds pages up for each processor apart, and sums them up only now and then.
const SLACK_KIB: u64 = 512;

#[derive(Debug, Default)]
pub(super) struct Peak {
    /// The guardian's, when it was last looked at. It only grows.
    own_kib: u64,
}

impl Peak {
    /// The memory of a task of which the kernel said this; 0 if it was the guardian's.
    pub fn of_task(&mut self, counted_kib: u64) -> u64 {
        if counted_kib > self.own_kib + SLACK_KIB {
            self.own_kib = own_peak_kib().unwrap_or(0).max(self.own_kib);
        }
        if counted_kib > self.own_kib + SLACK_KIB { counted_kib } else { 0 }
    }
}

fn own_peak_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_above_our_own_is_not_the_tasks() {
        let own = own_peak_kib().expect("the kernel tells");
        let mut peak = Peak::default();
        assert_eq!(peak.of_task(own), 0);
        assert_eq!(peak.of_task(own / 2), 0);
        assert_eq!(peak.of_task(own + 100_000), own + 100_000);
    }
}
