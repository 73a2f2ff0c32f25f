//! The journal on real servers.

use super::cluster::Cluster;
use super::world::{begin, submit, tasks};
use crate::{JetStreamJournal, Options};
use laboro_core::{Hub, Ledger};
use std::time::Duration;

fn options(cluster: &Cluster, replicas: usize) -> Options {
    Options {
        monitors: cluster.monitors(),
        replicas,
        lease: Duration::from_secs(1),
        ..Options::new(&cluster.address(), "test")
    }
}

fn open(options: &Options) -> (JetStreamJournal, Hub) {
    let (mut journal, ledger, _) = JetStreamJournal::open(options.clone()).unwrap();
    let (hub, first) = begin(ledger);
    journal.commit_blocking(first).unwrap();
    (journal, hub)
}

fn refusal(options: Options) -> String {
    JetStreamJournal::open(options).expect_err("it is refused").to_string()
}

#[test]
fn what_one_hub_wrote_the_next_one_finds() {
    let cluster = Cluster::start(1);
    let options = options(&cluster, 1);
    let (mut journal, mut hub) = open(&options);
    for n in 0..50 {
        let batch = submit(&mut hub, &format!("task.{n}"), None);
        assert_eq!(journal.commit_blocking(batch).unwrap().len(), 1);
    }
    // More than one message takes.
    let script = (0..2_000_000_u32).map(|n| n as u8).collect();
    journal.commit_blocking(submit(&mut hub, "large", Some(script))).unwrap();
    let written = hub.ledger().describe();
    journal.close().unwrap();

    let (mut journal, ledger, found) = JetStreamJournal::open(options.clone()).unwrap();
    assert_eq!(ledger.describe(), written);
    assert!(found.messages >= 52 && found.snapshot_bytes == 0, "{found:?}");
    let (hub, first) = begin(ledger);
    journal.commit_blocking(first).unwrap();
    journal.condense_blocking().unwrap();
    drop(journal);

    // It said no good-bye, so the next one waits until it is sure to be gone.
    let (journal, ledger, found) = JetStreamJournal::open(options.clone()).unwrap();
    assert_eq!(ledger.describe(), hub.ledger().describe());
    assert!(found.snapshot_bytes > 2_000_000 && found.messages < 10, "{found:?}");
    assert!(found.elapsed >= options.lease, "{found:?}");
    let told = refusal(options);
    assert!(told.contains("another hub of this name is the leader"), "{told}");
    journal.close().unwrap();
}

#[test]
fn a_hub_whose_stream_another_one_wrote_to_acknowledges_nothing_more() {
    let cluster = Cluster::start(1);
    let calm = options(&cluster, 1);
    // This one is heard of too seldom, as if it had been stopped.
    let (mut slow, mut hub) = open(&Options { lease: Duration::from_secs(3600), ..calm.clone() });
    let (journal, ledger, _) = JetStreamJournal::open(calm).unwrap();
    assert_eq!(ledger.life(), 1);
    let told = slow.commit_blocking(submit(&mut hub, "late", None)).unwrap_err().to_string();
    assert!(told.contains("another hub has taken over"), "{told}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let again = runtime.block_on(slow.lost()).to_string();
    assert_eq!(again, told);
    assert!(slow.close().is_err());
    journal.close().unwrap();
}

#[test]
fn servers_that_could_lose_what_they_acknowledge_are_refused() {
    let cluster = Cluster::start_with(1, "sync_interval: 1m", "");
    let told = refusal(options(&cluster, 1));
    assert!(told.contains("sync_interval: always") && told.contains("n0"), "{told}");
    let told = refusal(Options { monitors: Vec::new(), ..options(&cluster, 1) });
    assert!(told.contains("--nats-monitor"), "{told}");
    let accepted = Options { accept_unsynced: true, ..options(&cluster, 1) };
    JetStreamJournal::open(accepted).unwrap().0.close().unwrap();
    let told = refusal(Options {
        accept_unsynced: true,
        replicas: 3,
        name: "other".into(),
        ..options(&cluster, 1)
    });
    assert!(told.contains("replicas"), "{told}");
    let told = refusal(Options { name: "a.b".into(), ..options(&cluster, 1) });
    assert!(told.contains("a.b is not a name"), "{told}");
}

#[test]
fn slow_three_servers_lose_nothing_when_one_or_all_are_killed() {
    let mut cluster = Cluster::start(3);
    let options = Options { lease: Duration::from_secs(3), ..options(&cluster, 3) };
    let (mut journal, mut hub) = open(&options);
    let mut count = 0;
    let mut write = |hub: &mut Hub, journal: &mut JetStreamJournal| {
        for _ in 0..20 {
            count += 1;
            journal.commit_blocking(submit(hub, &format!("task.{count}"), None)).unwrap();
        }
    };
    write(&mut hub, &mut journal);
    let leader = cluster.leader("LABORO_test_JOURNAL").expect("the stream has a leader");
    cluster.kill((leader + 1) % 3);
    write(&mut hub, &mut journal);
    cluster.revive((leader + 1) % 3);
    cluster.wait_until_healthy();
    cluster.kill(leader);
    write(&mut hub, &mut journal);
    cluster.revive(leader);
    write(&mut hub, &mut journal);
    (0..3).for_each(|node| cluster.kill(node));
    (0..3).for_each(|node| cluster.revive(node));
    write(&mut hub, &mut journal);
    let written = hub.ledger().describe();
    journal.close().unwrap();
    let (journal, ledger, _): (_, Ledger, _) = JetStreamJournal::open(options).unwrap();
    assert_eq!((ledger.describe(), tasks(&ledger)), (written, 100));
    journal.close().unwrap();
}
