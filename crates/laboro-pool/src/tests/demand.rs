//! For which tasks an allocation is worth asking.

use super::*;
use laboro_core::Request;

fn wanted(spec: &PoolSpec, coming: u32, backlog: &[Backlog]) -> u32 {
    share_out(&[(Shape::of(spec), coming, 100)], backlog)[0]
}

fn needing(slots: u32, gpus: u64, count: u64) -> Backlog {
    let resources = if gpus > 0 { vec![("gpu".into(), Request::whole(gpus))] } else { Vec::new() };
    Backlog { needs: Needs { slots, resources, ..Needs::default() }.into(), ..tasks(count) }
}

#[test]
fn there_are_as_many_as_have_something_to_do() {
    let spec = spec(PoolKind::Slurm);
    for (ready, coming, more) in
        [(0, 0, 0), (1, 0, 1), (4, 0, 1), (5, 0, 2), (400, 0, 100), (9, 2, 1), (8, 2, 0)]
    {
        assert_eq!(wanted(&spec, coming, &[tasks(ready)]), more, "{ready} ready, {coming} coming");
    }
}

#[test]
fn nothing_is_started_for_tasks_that_can_never_fit() {
    let spec = PoolSpec { resources: [("gpu".to_owned(), 2)].into(), ..spec(PoolKind::Slurm) };
    assert_eq!(wanted(&spec, 0, &[needing(5, 0, 10)]), 0, "more slots than a worker has");
    assert_eq!(wanted(&spec, 0, &[needing(1, 3, 10)]), 0, "more gpus");
    assert_eq!(wanted(&spec, 0, &[needing(1, 1, 10)]), 5, "two at once");
    let tagged = Needs { tags: vec!["bigmem".into()], ..Needs::default() };
    assert_eq!(wanted(&spec, 0, &[Backlog { needs: tagged.into(), ..tasks(1) }]), 0);
}

#[test]
fn nothing_is_started_for_tasks_that_take_longer_than_an_allocation_lasts() {
    let spec = PoolSpec { time_limit_ms: Some(3_600_000), ..spec(PoolKind::Slurm) };
    let limited = |minutes: u64| Backlog { limit_ms: Some(minutes * 60_000), ..tasks(1) };
    assert_eq!(wanted(&spec, 0, &[limited(58)]), 1);
    // A minute is kept for giving tasks back, and some seconds for saying so.
    assert_eq!(wanted(&spec, 0, &[limited(59)]), 0);
    let told = Shape::of(&spec).lacks(&Needs::default(), Some(3_600_000)).unwrap();
    assert!(told.contains("3600 s") && told.contains("3530 s"), "{told}");
}

#[test]
fn different_tasks_share_an_allocation() {
    let spec = spec(PoolKind::Slurm);
    assert_eq!(wanted(&spec, 0, &[needing(2, 0, 1), needing(1, 0, 2)]), 1);
    assert_eq!(wanted(&spec, 0, &[needing(2, 0, 1), needing(1, 0, 3)]), 2);
}

#[test]
fn pools_of_one_group_do_not_start_twice_for_the_same_tasks() {
    let (small, large) = (spec(PoolKind::Slurm), PoolSpec { slots: 64, ..spec(PoolKind::Pbs) });
    let shapes = [(Shape::of(&small), 0, 1), (Shape::of(&large), 0, 1)];
    assert_eq!(share_out(&shapes, &[tasks(4)]), [1, 0]);
    assert_eq!(share_out(&shapes, &[tasks(5)]), [1, 1]);
    let coming = [(Shape::of(&small), 0, 1), (Shape::of(&large), 1, 1)];
    assert_eq!(share_out(&coming, &[tasks(60)]), [0, 0], "what is coming is enough");
}

#[test]
fn what_a_task_lacks_is_said_in_words() {
    let shape = Shape::of(&PoolSpec { memory_bytes: Some(1 << 30), ..spec(PoolKind::Slurm) });
    let lacks = |needs: Needs| shape.lacks(&needs, None).unwrap_or_default();
    assert_eq!(lacks(Needs::default()), "");
    assert!(
        lacks(Needs { slots: 9, ..Needs::default() }).contains("9 slots, and its workers have 4")
    );
    assert!(lacks(Needs { memory: 2 << 30, ..Needs::default() }).contains("memory"));
    assert!(lacks((*needing(1, 1, 1).needs).clone()).contains("1 gpu, and its workers have 0"));
    assert!(lacks(Needs { tags: vec!["x".into()], ..Needs::default() }).contains("tag x"));
}
