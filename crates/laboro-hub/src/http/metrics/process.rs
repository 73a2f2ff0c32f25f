//! What the system knows of this process, under the names that Prometheus' own clients use. Where the system does not
//! tell, the metric is left out.

use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

pub(super) fn register(registry: &mut Registry) {
    let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let stat = stat().unwrap_or_default();
    if let Some(seconds) = cpu_seconds(&stat) {
        let spent = ConstCounter::new(seconds);
        registry.register("process_cpu_seconds", "Processor time, user and system", spent);
    }
    if let Some((size, resident)) = memory_bytes() {
        let virtual_bytes = gauge(size);
        registry.register("process_virtual_memory_bytes", "Address space", virtual_bytes);
        registry.register("process_resident_memory_bytes", "Memory in use", gauge(resident));
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // One of them is that of this look.
        let open = open.count().saturating_sub(1) as u64;
        registry.register("process_open_fds", "Open files and connections", gauge(open));
    }
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if let Some(most) = files.current {
        registry.register("process_max_fds", "As many files may be open", gauge(most));
    }
    if let Some(&threads) = stat.get(17) {
        registry.register("process_threads", "Threads", gauge(threads));
    }
}

/// The fields of `/proc/self/stat` behind the program's name, which may hold anything.
fn stat() -> Option<Vec<u64>> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect())
}

fn cpu_seconds(stat: &[u64]) -> Option<f64> {
    let ticks = stat.get(11)? + stat.get(12)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

fn memory_bytes() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut pages = text.split_ascii_whitespace().map_while(|word| word.parse::<u64>().ok());
    let bytes = |pages: u64| pages * rustix::param::page_size() as u64;
    Some((bytes(pages.next()?), bytes(pages.next()?)))
}
