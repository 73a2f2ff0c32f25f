//! What a batch job gives a worker that runs in it: processors, memory and time, as its scheduler tells them in the
//! environment. What was typed counts more. Asks nobody but Slurm for the time that is left, where it has not told it.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Allocation {
    /// For people.
    pub(super) job: String,
    pub(super) slots: Option<u32>,
    pub(super) memory_bytes: Option<u64>,
    /// Until the scheduler ends the job.
    pub(super) left: Option<Duration>,
}

/// Tasks that run when a job is ended are lost; those of a worker that leaves before are given back.
const MARGIN: Duration = Duration::from_secs(30);

/// For a controller that is busy.
const PATIENCE: Duration = Duration::from_secs(5);

impl Allocation {
    /// `None`: this is not a batch job.
    pub(super) fn of_process() -> Option<Allocation> {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let mut found = Allocation::read(get, SystemTime::now())?;
        if found.left.is_none()
            && let Some(job) = get("SLURM_JOB_ID")
        {
            found.left = time_left(&job);
        }
        Some(found)
    }

    fn read(get: impl Fn(&str) -> Option<String>, now: SystemTime) -> Option<Allocation> {
        let number = |name: &str| get(name).and_then(|text| text.trim().parse::<u64>().ok());
        let slots =
            |name: &str| number(name).and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
        let megabytes = |count: u64| count.saturating_mul(1 << 20);
        if let Some(job) = get("SLURM_JOB_ID") {
            let slots = slots("SLURM_CPUS_ON_NODE");
            let per_cpu = || Some(number("SLURM_MEM_PER_CPU")?.saturating_mul(slots?.into()));
            let memory = number("SLURM_MEM_PER_NODE").or_else(per_cpu);
            let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let left = number("SLURM_JOB_END_TIME")
                .map(|end| Duration::from_secs(end).saturating_sub(since_epoch));
            let memory_bytes = memory.filter(|&count| count > 0).map(megabytes);
            return Some(Allocation { job: format!("Slurm job {job}"), slots, memory_bytes, left });
        }
        if let Some(job) = get("PBS_JOBID") {
            // NCPUS is what PBS Pro and OpenPBS say, the other one Torque.
            let slots = slots("NCPUS").or_else(|| slots("PBS_NUM_PPN"));
            let left = number("PBS_WALLTIME").map(Duration::from_secs);
            return Some(Allocation {
                job: format!("PBS job {job}"),
                slots,
                memory_bytes: None,
                left,
            });
        }
        let job = get("JOB_ID").filter(|_| get("SGE_TASK_ID").is_some())?;
        let slots = slots("NSLOTS");
        Some(Allocation { job: format!("SGE job {job}"), slots, memory_bytes: None, left: None })
    }

    /// When to leave, so that what runs can be given back.
    pub(super) fn time_limit(&self) -> Option<Duration> {
        self.left.map(|left| left.saturating_sub(MARGIN.min(left / 4)))
    }

    pub(super) fn words(&self) -> String {
        let mut words = format!("in {}", self.job);
        let mut add = |text: String| {
            words.push_str(", ");
            words.push_str(&text);
        };
        if let Some(slots) = self.slots {
            add(crate::output::counted(slots, "slot"));
        }
        if let Some(memory) = self.memory_bytes {
            add(format!("{} of memory", crate::output::bytes(memory)));
        }
        if let Some(left) = self.left {
            add(format!("{} left", crate::output::duration(left)));
        }
        words
    }
}

/// As `squeue` tells it; without an answer in time it is not known.
fn time_left(job: &str) -> Option<Duration> {
    let mut squeue = Command::new("squeue");
    squeue.args(["-h", "-j", job, "-o", "%L"]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = squeue.stdout(Stdio::piped()).spawn().ok()?;
    let by = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > by {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    parse_left(text.trim())
}

/// `[DAYS-][HOURS:]MINUTES:SECONDS`; other words say that there is no end.
fn parse_left(text: &str) -> Option<Duration> {
    let (days, rest) = text.split_once('-').unwrap_or(("0", text));
    let parts: Option<Vec<u64>> = rest.split(':').map(|part| part.parse().ok()).collect();
    let seconds = match parts?[..] {
        [minutes, seconds] => minutes * 60 + seconds,
        [hours, minutes, seconds] => hours * 3600 + minutes * 60 + seconds,
        _ => return None,
    };
    Some(Duration::from_secs(days.parse::<u64>().ok()? * 86_400 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Option<Allocation> {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Allocation::read(get, SystemTime::UNIX_EPOCH + Duration::from_secs(1000))
    }

    #[test]
    fn each_scheduler_tells_what_its_job_has() {
        let slurm = [
            ("SLURM_JOB_ID", "7"),
            ("SLURM_CPUS_ON_NODE", "8"),
            ("SLURM_MEM_PER_CPU", "512"),
            ("SLURM_JOB_END_TIME", "4600"),
        ];
        let found = read(&slurm).unwrap();
        assert_eq!((found.slots, found.memory_bytes), (Some(8), Some(4 << 30)));
        assert_eq!(found.left, Some(Duration::from_secs(3600)));
        assert_eq!(found.time_limit(), Some(Duration::from_secs(3570)));
        assert_eq!(found.words(), "in Slurm job 7, 8 slots, 4.0 GiB of memory, 1h00m left");
        let pbs = read(&[("PBS_JOBID", "9.host"), ("NCPUS", "4"), ("PBS_WALLTIME", "60")]).unwrap();
        assert_eq!((pbs.slots, pbs.time_limit()), (Some(4), Some(Duration::from_secs(45))));
        let sge = read(&[("JOB_ID", "3"), ("SGE_TASK_ID", "undefined"), ("NSLOTS", "2")]).unwrap();
        assert_eq!((sge.slots, sge.left), (Some(2), None));
        assert_eq!(read(&[("JOB_ID", "3")]), None, "others have jobs, too");
        assert_eq!(
            read(&[("SLURM_JOB_ID", "7"), ("SLURM_MEM_PER_NODE", "0")]).unwrap().memory_bytes,
            None
        );
    }

    #[test]
    fn the_time_that_is_left_is_read_as_squeue_tells_it() {
        for (text, seconds) in [("59:58", 3598), ("1:00:00", 3600), ("1-02:00:01", 93_601)] {
            assert_eq!(parse_left(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["UNLIMITED", "NOT_SET", "INVALID", ""] {
            assert_eq!(parse_left(text), None, "{text}");
        }
    }
}
