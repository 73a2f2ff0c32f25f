//! A lease that ends by itself gets one more period after a restart: the one it was given, however often the
//! hub restarts.

use laboro_core::*;

fn step(hub: &mut Hub, history: &mut Vec<(Time, Event)>, now: u64, command: Command) {
    let batch = hub.step(Time(now), vec![Ask { token: Token(1), command }]);
    history.extend(batch.events.iter().map(|event| (batch.at, event.clone())));
}

fn restart(history: &mut Vec<(Time, Event)>, now: u64) -> Hub {
    let mut ledger = Ledger::default();
    history.iter().for_each(|(at, event)| ledger.apply(*at, event));
    // Half of the restarts are from a snapshot.
    if now.is_multiple_of(200) {
        let mut condensed = Ledger::default();
        ledger.condense(&mut |event| condensed.apply(Time(0), &event));
        assert_eq!(condensed.describe(), ledger.describe());
        ledger = condensed;
    }
    let (hub, batch) = Hub::begin(ledger, Config::default(), Time(now), 1);
    history.extend(batch.events.iter().map(|event| (batch.at, event.clone())));
    hub
}

#[test]
fn every_restart_gives_the_same_period() {
    let mut history = Vec::new();
    let mut hub = restart(&mut history, 0);
    let arrays = vec![ArraySpec::numbered("a", 1, Work::Named)];
    let submit = Submit { arrays, ..Submit::new("default") };
    step(&mut hub, &mut history, 0, Command::Submit(submit));
    let join = Join::new("default", "w", "test", SessionId(1));
    step(&mut hub, &mut history, 0, Command::Join(join));
    let worker = WorkerRef::Name { group: "default".into(), name: "w".into() };
    let route = Route::Answer { most: 1, patience: Patience::None };
    let offer = Offer { worker, route, lease_ms: Some(1000) };
    step(&mut hub, &mut history, 0, Command::Offer(offer));
    assert_eq!(hub.next_deadline(), Some(Time(1000)));
    for now in [100, 200, 300, 400, 500] {
        let hub = restart(&mut history, now);
        assert_eq!(hub.next_deadline(), Some(Time(now + 1000)));
    }
}
