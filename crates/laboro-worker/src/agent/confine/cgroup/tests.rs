//! What is written where. The kernel's own part needs a machine that lets us.

use super::*;

struct Base(PathBuf);

impl Base {
    fn new(name: &str, controllers: &str, members: &str) -> Base {
        let path = std::env::temp_dir().join(format!("laboro-cg-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("cgroup.controllers"), controllers).unwrap();
        fs::write(path.join("cgroup.procs"), members).unwrap();
        Base(path)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_task_gets_a_group_with_the_memory_and_processors_it_asked_for() {
    let base = Base::new("limits", "cpuset cpu io memory pids\n", "7\n8\n");
    let cgroups = Cgroups::in_base(&base.0, 7, |pid| pid == 8).unwrap();
    assert_eq!(base.read("cgroup.subtree_control"), "+memory +cpu");
    cgroups.make(3, 1 << 30, 2).unwrap();
    cgroups.enter(3, 99);
    assert_eq!(base.read("laboro-7-3/memory.max"), "1073741824");
    assert_eq!(base.read("laboro-7-3/cpu.max"), "200000 100000");
    assert_eq!(base.read("laboro-7-3/cgroup.procs"), "99");
}

#[test]
fn a_kill_for_want_of_memory_is_noticed() {
    let base = Base::new("oom", "cpu memory", "7\n");
    let cgroups = Cgroups::in_base(&base.0, 7, |_| false).unwrap();
    cgroups.make(1, 0, 1).unwrap();
    assert_eq!(cgroups.leave(1), None);
    fs::write(cgroups.of(1).join("memory.events"), "low 0\noom 1\noom_kill 1\n").unwrap();
    assert!(cgroups.leave(1).is_some_and(|excess| excess.words.contains("of memory")));
}

#[test]
fn a_group_shared_with_others_or_without_controllers_is_left_alone() {
    let base = Base::new("shared", "cpu memory", "7\n12\n");
    let why = Cgroups::in_base(&base.0, 7, |_| false).unwrap_err();
    assert!(why.starts_with("process 12 is in the same cgroup"), "{why}");
    assert!(!base.0.join("cgroup.subtree_control").exists());
    let base = Base::new("bare", "pids", "7\n");
    let why = Cgroups::in_base(&base.0, 7, |_| false).unwrap_err();
    assert!(why.ends_with("has no memory and cpu controllers"), "{why}");
}
