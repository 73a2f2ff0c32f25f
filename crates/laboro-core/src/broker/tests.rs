//! What the broker promises: turns, slots, the queue, workers that come and go.

mod properties;

use super::*;

const NOW: Time = Time(1_000_000);

/// A broker and what it has done, with peers named by letters.
struct Scene {
    broker: Broker<u32>,
    acts: Vec<Act<u32>>,
}

fn peer(name: &str) -> PeerId {
    PeerId(u64::from(name.as_bytes()[0]))
}

fn scene(config: BrokerConfig) -> Scene {
    Scene { broker: Broker::new(config, 7), acts: Vec::new() }
}

impl Scene {
    /// Workers with so many slots each, registered in this order.
    fn with_workers(workers: &[(&str, u32)]) -> Scene {
        let mut scene = scene(BrokerConfig::default());
        workers.iter().for_each(|(name, slots)| scene.register(name, *slots));
        scene
    }

    fn open(&mut self, name: &str) {
        self.broker.open(NOW, peer(name), Name::from(name), &mut self.acts);
    }

    fn register(&mut self, name: &str, slots: u32) {
        if self.broker.identity(peer(name)).is_none() {
            self.open(name);
        }
        self.broker.register(NOW, peer(name), slots, &mut self.acts).unwrap();
    }

    fn increment(&mut self, name: &str) {
        self.broker.increment(NOW, peer(name), &mut self.acts);
    }

    fn request(&mut self, number: u32) {
        // What is refused is seen in the counters.
        let _ = self.broker.request(NOW, number, 10, |kept| kept, &mut self.acts);
    }

    fn requests(&mut self, numbers: std::ops::Range<u32>) -> String {
        numbers.for_each(|number| self.request(number));
        self.sent()
    }

    fn tick(&mut self, now: Time) {
        self.broker.tick(now, &mut self.acts);
    }

    /// What was sent since, as `1a 2b`: the number and to whom.
    fn sent(&mut self) -> String {
        self.broker.check();
        let mut text = Vec::new();
        for act in self.acts.drain(..) {
            text.push(match act {
                Act::Send { to, message } => format!("{message}{}", letter(to)),
                Act::Probe { to } => format!("{}?", letter(to)),
                Act::Close { peer } => format!("-{}", letter(peer)),
            });
        }
        text.join(" ")
    }

    /// The table as `a1/10`: name, free and all slots; `~` when away.
    fn table(&self) -> String {
        let row = |row: WorkerRow| {
            let away = if row.is_away { "~" } else { "" };
            format!("{}{away}{}/{}", row.identity, row.free, row.slots)
        };
        self.broker.workers().map(row).collect::<Vec<_>>().join(" ")
    }

    fn dropped(&self, why: Dropped) -> u64 {
        self.broker.counters().dropped(why)
    }
}

fn letter(peer: PeerId) -> char {
    char::from(u8::try_from(peer.0).unwrap())
}

#[test]
fn requests_go_round() {
    let mut scene = Scene::with_workers(&[("a", 10), ("b", 10), ("c", 10)]);
    assert_eq!(scene.requests(1..6), "1a 2b 3c 4a 5b");
    assert_eq!(scene.table(), "c9/10 a8/10 b8/10");
}

#[test]
fn busy_workers_are_passed_over_and_go_to_the_end() {
    let mut scene = Scene::with_workers(&[("a", 1), ("b", 1), ("c", 3)]);
    assert_eq!(scene.requests(1..5), "1a 2b 3c 4c");
    assert_eq!(scene.table(), "a0/1 b0/1 c1/3");
    scene.increment("b");
    assert_eq!(scene.requests(5..6), "5b");
    assert_eq!(scene.table(), "c1/3 a0/1 b0/1");
}

#[test]
fn what_waits_is_sent_as_soon_as_a_slot_is_free_and_in_order() {
    let mut scene = Scene::with_workers(&[("a", 1)]);
    assert_eq!(scene.requests(1..5), "1a");
    assert_eq!(scene.broker.waiting(), (3, 30));
    scene.increment("a");
    assert_eq!(scene.sent(), "2a");
    scene.register("b", 1);
    assert_eq!(scene.sent(), "3b");
    scene.register("b", 5);
    assert_eq!(scene.sent(), "4b");
    assert_eq!(scene.broker.waiting(), (0, 0));
}

#[test]
fn thirteen_requests_to_ten_slots_reach_the_worker_once_each() {
    let mut scene = Scene::with_workers(&[("a", 10)]);
    assert_eq!(scene.requests(1..14), "1a 2a 3a 4a 5a 6a 7a 8a 9a 10a");
    for _ in 0..13 {
        scene.increment("a");
    }
    assert_eq!(scene.sent(), "11a 12a 13a");
    assert_eq!(scene.table(), "a10/10");
}

#[test]
fn a_request_before_any_worker_waits_for_one() {
    let mut scene = Scene::with_workers(&[]);
    assert_eq!(scene.requests(1..3), "");
    scene.register("a", 1);
    assert_eq!(scene.sent(), "1a");
}

#[test]
fn registering_again_overwrites_the_slots_and_keeps_the_place() {
    let mut scene = Scene::with_workers(&[("a", 2), ("b", 2), ("c", 2)]);
    assert_eq!(scene.requests(1..2), "1a");
    scene.register("c", 7);
    assert_eq!(scene.table(), "b2/2 c7/7 a1/2");
}

#[test]
fn slots_never_exceed_what_was_registered() {
    let mut scene = Scene::with_workers(&[("a", 2)]);
    scene.increment("a");
    scene.open("x");
    scene.increment("x");
    assert_eq!(scene.table(), "a2/2");
    assert_eq!(scene.dropped(Dropped::NoSlotTaken), 1);
    assert_eq!(scene.dropped(Dropped::NotRegistered), 1);
}

#[test]
fn too_many_slots_and_too_many_workers_are_refused() {
    let config = BrokerConfig { workers_max: 1, slots_max: 5, ..BrokerConfig::default() };
    let mut scene = scene(config);
    scene.open("a");
    scene.open("b");
    let mut register = |name, slots| scene.broker.register(NOW, peer(name), slots, &mut scene.acts);
    assert_eq!(register("a", 6), Err(Dropped::BadSlots));
    assert_eq!(register("a", 5), Ok(()));
    assert_eq!(register("b", 5), Err(Dropped::TableFull));
    assert_eq!(register("z", 5), Err(Dropped::UnknownPeer));
    assert_eq!(scene.table(), "a5/5");
}

#[test]
fn who_deregisters_gets_nothing_more() {
    let mut scene = Scene::with_workers(&[("a", 10), ("b", 10)]);
    scene.broker.deregister(peer("a"));
    scene.broker.deregister(peer("a"));
    assert_eq!(scene.requests(1..3), "1b 2b");
    assert_eq!(scene.dropped(Dropped::NotRegistered), 1);
    scene.register("a", 1);
    assert_eq!(scene.requests(3..4), "3b");
    assert_eq!(scene.table(), "a1/1 b7/10");
}

#[test]
fn the_queue_has_limits_and_drops_the_newest() {
    let config =
        BrokerConfig { queue_messages_max: 3, queue_bytes_max: 25, ..BrokerConfig::default() };
    let mut scene = scene(config);
    assert_eq!(scene.requests(1..4), "");
    assert_eq!(scene.dropped(Dropped::QueueBytes), 1);
    assert!(scene.broker.request(NOW, 4, 1, |kept| kept, &mut scene.acts).is_ok());
    assert!(scene.broker.request(NOW, 5, 1, |kept| kept, &mut scene.acts).is_err());
    assert_eq!(scene.dropped(Dropped::QueueFull), 1);
    scene.register("a", 9);
    assert_eq!(scene.sent(), "1a 2a 4a");
}

#[test]
fn what_waits_too_long_is_dropped() {
    let mut scene = Scene::with_workers(&[]);
    scene.request(1);
    let until = NOW.after_ms(BrokerConfig::default().queue_ms);
    assert_eq!(scene.broker.deadline(), Some(until));
    scene.tick(Time(until.0 - 1));
    assert_eq!(scene.broker.waiting().0, 1);
    scene.tick(until);
    assert_eq!(scene.broker.waiting(), (0, 0));
    assert_eq!(scene.dropped(Dropped::Expired), 1);
    assert_eq!(scene.broker.deadline(), None);
}

#[test]
fn an_addressed_message_goes_to_whoever_has_that_name_and_takes_no_slot() {
    let mut scene = Scene::with_workers(&[("a", 1)]);
    scene.open("x");
    for (to, number) in [("a", 1), ("x", 2), ("nobody", 3)] {
        let _ = scene.broker.pass(&Name::from(to), number, &mut scene.acts);
    }
    assert_eq!(scene.sent(), "1a 2x");
    assert_eq!(scene.table(), "a1/1");
    assert_eq!(scene.dropped(Dropped::NoRoute), 1);
}

#[test]
fn a_worker_that_is_away_is_skipped_and_keeps_its_place() {
    let mut scene = Scene::with_workers(&[("a", 2), ("b", 2)]);
    scene.broker.close(NOW, peer("a"));
    assert_eq!(scene.requests(1..4), "1b 2b");
    assert_eq!(scene.table(), "a~2/2 b0/2");
    scene.open("a");
    assert_eq!(scene.sent(), "3a");
    assert_eq!(scene.table(), "b0/2 a1/2");
}

#[test]
fn a_worker_that_stays_away_is_forgotten() {
    let mut scene = Scene::with_workers(&[("a", 2)]);
    scene.broker.close(NOW, peer("a"));
    scene.tick(NOW.after_ms(59_999));
    assert_eq!(scene.table(), "a~2/2");
    scene.tick(NOW.after_ms(60_000));
    assert_eq!(scene.table(), "");
    assert_eq!(scene.broker.counters().lost, 1);
    scene.open("a");
    assert_eq!(scene.requests(1..2), "");
}

#[test]
fn a_worker_that_says_nothing_is_asked_and_then_given_up() {
    let mut scene = Scene::with_workers(&[("a", 2), ("b", 2)]);
    assert_eq!(scene.broker.deadline(), Some(NOW.after_ms(30_000)));
    scene.broker.hear(NOW.after_ms(20_000), peer("b"));
    scene.tick(NOW.after_ms(30_000));
    assert_eq!(scene.sent(), "a?");
    scene.tick(NOW.after_ms(39_999));
    assert_eq!(scene.sent(), "");
    scene.tick(NOW.after_ms(40_000));
    assert_eq!(scene.sent(), "-a");
    assert_eq!(scene.table(), "a~2/2 b2/2");
    scene.tick(NOW.after_ms(50_000));
    assert_eq!(scene.sent(), "b?");
    scene.broker.hear(NOW.after_ms(50_001), peer("b"));
    scene.tick(NOW.after_ms(60_001));
    assert_eq!(scene.sent(), "");
    // What is said of a connection that was given up comes too late.
    scene.broker.close(NOW.after_ms(60_002), peer("a"));
    scene.tick(NOW.after_ms(100_000));
    assert_eq!(scene.table(), "b2/2");
}

#[test]
fn a_name_that_comes_again_takes_the_place_of_the_old_connection() {
    let mut scene = Scene::with_workers(&[("a", 2)]);
    assert_eq!(scene.requests(1..2), "1a");
    scene.broker.open(NOW, peer("A"), Name::from("a"), &mut scene.acts);
    assert_eq!(scene.sent(), "-a");
    assert_eq!(scene.requests(2..4), "2A");
    scene.broker.close(NOW, peer("a"));
    scene.increment("A");
    assert_eq!(scene.sent(), "3A");
}

#[test]
fn slots_come_back_by_themselves_where_that_is_wanted() {
    let mut scene = scene(BrokerConfig { slot_ms: Some(1000), ..BrokerConfig::default() });
    scene.register("a", 1);
    assert_eq!(scene.requests(1..3), "1a");
    scene.tick(NOW.after_ms(999));
    assert_eq!(scene.sent(), "");
    scene.tick(NOW.after_ms(1000));
    assert_eq!(scene.sent(), "2a");
    assert_eq!(scene.broker.counters().slots_lapsed, 1);
    scene.increment("a");
    assert_eq!(scene.table(), "a1/1");
}

#[test]
fn the_table_says_how_many_requests_each_worker_got_and_how_fast() {
    let mut scene = Scene::with_workers(&[("a", 100), ("b", 100)]);
    scene.requests(0..60);
    let rates = |scene: &Scene, ms| -> Vec<(u64, f64)> {
        let now = NOW.after_ms(ms);
        scene.broker.workers().map(|row| (row.passed.total, row.passed.per_s(now))).collect()
    };
    assert_eq!(rates(&scene, 0), [(30, 3.0), (30, 3.0)]);
    assert_eq!(rates(&scene, 15_000), [(30, 1.5), (30, 1.5)]);
    assert_eq!(rates(&scene, 30_000), [(30, 0.0), (30, 0.0)]);
}
