//! The life of allocations: queued, running, over; and what goes wrong with them.

use super::*;

fn pool() -> Pool {
    Pool::new(spec(PoolKind::Slurm), 0)
}

fn listed(id: &str, state: ListedState) -> Listed {
    Listed { id: id.into(), state, name: None, note: None }
}

fn named(number: u64) -> String {
    format!("laboro-long-ab12-{number}")
}

/// As the batch system says, with nobody connected.
fn hear(pool: &mut Pool, list: &[Listed], now_ms: u64) {
    for over in pool.listed(list, named, |_| false, now_ms) {
        pool.over(&over, Some("sh: laboro: not found"), now_ms);
    }
}

#[test]
fn an_allocation_is_queued_runs_works_and_ends() {
    let mut pool = pool();
    assert_eq!(pool.room(0), 2, "its backlog");
    pool.submitting(1, 0);
    pool.submitted(1, Ok("77".into()), 10);
    assert_eq!((pool.queued(), pool.coming(), pool.room(10)), (1, 1, 1));
    let waits = Listed { note: Some("Priority".into()), ..listed("77", ListedState::Queued) };
    hear(&mut pool, &[waits], 720_000);
    assert_eq!(pool.reason(&[tasks(9)], 720_010), "1 queued since 12 min (Priority)");
    pool.submitting(2, 720_010);
    pool.submitted(2, Ok("78".into()), 720_020);
    assert!(pool.reason(&[], 720_030).ends_with("; backlog full"), "{}", pool.reason(&[], 720_030));
    hear(
        &mut pool,
        &[listed("77", ListedState::Running), listed("78", ListedState::Queued)],
        721_000,
    );
    pool.worked(1, 722_000);
    assert_eq!((pool.running(), pool.coming()), (1, 1));
    for at in [800_000, 810_000] {
        hear(&mut pool, &[listed("78", ListedState::Queued)], at);
    }
    assert_eq!(
        (pool.running(), pool.queued(), pool.failures),
        (0, 1, 0),
        "it has worked: no failure"
    );
}

#[test]
fn a_busy_or_broken_batch_system_is_waited_for_and_never_given_up() {
    let mut pool = pool();
    let mut now = 0;
    let mut waits = Vec::new();
    for number in 1..9 {
        assert!(pool.room(now) > 0);
        pool.submitting(number, now);
        pool.submitted(
            number,
            Err("sbatch: error: Slurm temporarily unable to accept job".into()),
            now,
        );
        assert_eq!(pool.room(now), 0);
        waits.push((pool.wait_until_ms - now) / 1000);
        now = pool.wait_until_ms;
    }
    assert_eq!(waits, [5, 15, 45, 135, 405, 900, 900, 900]);
    let told = pool.reason(&[tasks(1)], now - 60_000);
    assert!(
        told.contains("waits 1 min after 8 failures") && told.contains("temporarily"),
        "{told}"
    );
    // The first that works makes all of it good.
    pool.submitting(9, now);
    pool.submitted(9, Ok("1".into()), now);
    assert_eq!(pool.room(now), 0, "one at a time until one has worked");
    pool.worked(9, now);
    assert_eq!((pool.failures, pool.room(now)), (0, 2));
}

#[test]
fn one_that_ends_before_its_worker_came_is_a_failure_with_its_own_words() {
    let mut pool = pool();
    pool.submitting(1, 0);
    pool.submitted(1, Ok("77".into()), 0);
    hear(&mut pool, &[], 1000);
    assert_eq!(pool.failures, 0, "it may not be shown yet");
    hear(&mut pool, &[], 16_000);
    assert_eq!((pool.failures, pool.allocations.len()), (1, 0));
    let told = pool.trouble.clone().unwrap();
    assert!(told.contains("allocation 77") && told.contains("laboro: not found"), "{told}");
}

#[test]
fn preemption_and_scancel_are_no_reason_to_wait() {
    let mut pool = pool();
    for number in 1..20 {
        pool.submitting(number, 0);
        pool.submitted(number, Ok(number.to_string()), 0);
        pool.worked(number, 0);
        for at in [1000, 2000] {
            hear(&mut pool, &[], at);
        }
        assert_eq!((pool.failures, pool.room(2000)), (0, 2));
    }
}

#[test]
fn while_the_batch_system_says_nothing_nothing_is_lost_and_nothing_started() {
    let mut pool = pool();
    pool.submitting(1, 0);
    pool.submitted(1, Ok("77".into()), 0);
    for at in 0..60 {
        pool.not_listed(
            "slurm_load_jobs error: Unable to contact slurm controller".into(),
            at * 1000,
        );
    }
    assert_eq!((pool.allocations.len(), pool.room(60_000)), (1, 0));
    let told = pool.reason(&[tasks(1)], 60_000);
    assert!(told.contains("for 1 min") && told.contains("Unable to contact"), "{told}");
    hear(&mut pool, &[listed("77", ListedState::Running)], 61_000);
    assert_eq!((pool.running(), pool.room(61_000)), (1, 2));
    let about_it = pool.events.iter().filter(|event| event.text.contains("list")).count();
    assert_eq!(about_it, 2, "said once, and once that it is over");
}

#[test]
fn one_whose_worker_is_connected_is_there_whatever_is_listed() {
    let mut pool = pool();
    pool.submitting(1, 0);
    pool.submitted(1, Ok("77".into()), 0);
    pool.worked(1, 1000);
    for at in [20_000, 30_000, 40_000] {
        assert_eq!(pool.listed(&[], named, |_| true, at).len(), 0);
    }
    assert_eq!(pool.listed(&[], named, |_| false, 50_000).len(), 1);
}

#[test]
fn a_killed_hub_finds_what_it_was_submitting_by_its_name() {
    let mut before = pool();
    before.submitting(1, 0);
    before.submitting(2, 0);
    let kept = serde_json::to_string(&before).unwrap();
    let mut pool: Pool = serde_json::from_str(&kept).unwrap();
    assert_eq!(pool.coming(), 2, "both count as coming until it is known");
    let found = Listed { name: Some(named(1)), ..listed("90", ListedState::Queued) };
    hear(&mut pool, std::slice::from_ref(&found), 10_000);
    assert_eq!(pool.allocations[0].id.as_deref(), Some("90"));
    for at in [20_000, 121_000] {
        hear(&mut pool, std::slice::from_ref(&found), at);
    }
    assert_eq!(pool.allocations.len(), 1, "the other was never submitted");
    assert_eq!(pool.failures, 0);
}

#[test]
fn a_pool_that_is_removed_or_paused_starts_nothing() {
    let mut pool = pool();
    pool.submitting(1, 0);
    pool.submitted(1, Ok("77".into()), 0);
    pool.standing = Standing::Paused;
    assert_eq!((pool.room(0), pool.allocations.len()), (0, 1));
    assert!(pool.reason(&[tasks(1)], 0).contains("resume"));
    pool.standing = Standing::Removing;
    assert_eq!(pool.cancelling(0), ["77"]);
    for at in [16_000, 17_000] {
        hear(&mut pool, &[], at);
    }
    assert_eq!((pool.allocations.len(), pool.failures), (0, 0));
}

#[test]
fn a_file_of_an_earlier_version_opens_for_ever() {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/golden/pools/1.json");
    let text = std::fs::read_to_string(path).unwrap();
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("pools.json");
    assert!(State::read(&path).unwrap().is_none());
    laboro_net::secret_file::replace(&path, &text).unwrap();
    let mut state = State::read(&path).unwrap().unwrap();
    let pool = state.find_mut("long").unwrap();
    assert_eq!((pool.spec.slots, pool.allocations.len(), pool.failures), (64, 2, 1));
    assert_eq!(pool.allocations[0].id.as_deref(), Some("4711"));
    assert!(pool.allocations[1].id.is_none());
}
