//! Reading meminfo, well formed and not.

use super::*;

#[test]
fn the_available_line_is_read_in_bytes() {
    let text = "MemTotal:  100 kB\nMemFree:  7 kB\nMemAvailable:   2048 kB\n";
    assert_eq!(available_in(text), Some(2048 * 1024));
}

#[test]
fn a_missing_or_odd_line_is_no_number() {
    assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    assert_eq!(available_in("MemAvailable: lots\n"), None);
    assert_eq!(available_in("MemAvailable: 99999999999999999999 kB\n"), None);
}

#[test]
fn this_machine_has_some() {
    assert!(memory_available().unwrap() > 1 << 20);
}

#[test]
fn a_guard_tells_a_shortage_once_and_waits_as_long_as_it_lasts() {
    let mut guard = MemoryGuard::new(Some(u64::MAX));
    assert!(guard.shortage().unwrap().is_news);
    assert!(!guard.shortage().unwrap().is_news);
    assert_eq!(MemoryGuard::new(Some(1)).shortage(), None);
    assert_eq!(MemoryGuard::new(None).shortage(), None);
}

#[test]
fn the_lowest_limit_of_all_groups_counts() {
    let root = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    assert_eq!(cgroup_limit(root.path()), None);
    write("proc/self/cgroup", "0::/user/job\n");
    assert_eq!(cgroup_limit(root.path()), None);
    write("sys/fs/cgroup/user/job/memory.max", "max\n");
    write("sys/fs/cgroup/user/memory.max", "4096\n");
    write("sys/fs/cgroup/memory.max", "8192\n");
    assert_eq!(cgroup_limit(root.path()), Some(4096));
    write("proc/self/cgroup", "3:cpu,memory:/elsewhere\n1:name=systemd:/x\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
    assert_eq!(cgroup_limit(root.path()), Some(1000));
}
