//! Directories that come and go.

use super::*;

fn base(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("laboro-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn a_tasks_directory_is_there_while_it_runs_and_gone_with_all_in_it_after() {
    let base = base("come-and-go");
    let mut scratch = Scratch::open(&ScratchPlace::Among(base.clone()), None).unwrap();
    let (empty, full) = (scratch.make(1).unwrap(), scratch.make(2).unwrap());
    fs::create_dir(full.join("deep")).unwrap();
    fs::write(full.join("deep/file"), "x").unwrap();
    scratch.remove(1);
    scratch.remove(2);
    assert!(!empty.exists());
    drop(scratch);
    assert!(!full.exists());
    assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
    fs::remove_dir(&base).unwrap();
}

#[test]
fn what_a_killed_worker_left_is_removed_and_what_a_living_one_has_is_not() {
    let base = base("abandoned");
    let dead = base.join("laboro-scratch-1-dead");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join(LOCK), "").unwrap();
    let other = base.join("somebody-elses");
    fs::create_dir(&other).unwrap();
    let living = Scratch::open(&ScratchPlace::Among(base.clone()), None).unwrap();
    let next = Scratch::open(&ScratchPlace::Among(base.clone()), None).unwrap();
    assert!(!dead.exists());
    assert!(other.exists());
    assert!(living.path.exists() && next.path.exists());
    drop((living, next));
    fs::remove_dir_all(&base).unwrap();
}
