//! What a node that polls asks, and when.

use super::*;
use laboro_dialects::worker::Used;

const NOW: Time = Time(1_000_000);

struct Rig {
    side: Polling,
    orders: Orders,
}

impl Rig {
    fn new(slots: u32) -> Rig {
        let mut rig = Rig { side: Polling::new("w".into(), slots), orders: Orders::default() };
        rig.side.open(NOW, &mut rig.orders);
        rig
    }

    /// What was asked since the last call.
    fn asked(&mut self) -> Vec<NodeRequest> {
        let said = self.orders.take_bytes();
        let lines = said[..].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    fn answer(&mut self, id: u64, status: u16, body: Value) {
        self.hear(&Answered { id, status, body, is_repeated: false });
    }

    fn hear(&mut self, answered: &Answered) {
        let mut line = serde_json::to_vec(answered).unwrap();
        line.push(b'\n');
        self.side.receive(NOW, &mut BytesMut::from(&line[..]), &mut self.orders);
    }

    /// One task was given and has ended; its result is what was asked last.
    fn result(slots: u32) -> (Rig, NodeRequest) {
        let mut rig = Rig::new(slots);
        let id = rig.asked()[0].id;
        rig.answer(id, 200, tasks(&[1]));
        let key = rig.started()[0].0;
        rig.end(key, Outcome::Success);
        let update = rig.asked().remove(0);
        assert_eq!(update.path.as_deref(), Some("job/update"));
        (rig, update)
    }

    fn started(&mut self) -> Vec<(Key, String)> {
        let orders = self.orders.orders.drain(..);
        orders
            .filter_map(|order| match order {
                Order::Start(start) => Some((start.key, start.name)),
                _ => None,
            })
            .collect()
    }

    /// Goodbye is said, and answered with this.
    fn part(&mut self, status: u16) {
        assert_eq!(self.orders.hang_up, None);
        let [goodbye] = &self.asked()[..] else { panic!("a goodbye") };
        assert_eq!(goodbye.path.as_deref(), Some("node/leave"));
        self.answer(goodbye.id, status, Value::Null);
    }

    fn end(&mut self, key: Key, outcome: Outcome) {
        let how = TaskEnd { outcome, message: None, used: Used::default() };
        self.side.tell(NOW, News::Ended { key, how }, &mut self.orders);
    }
}

fn tasks(numbers: &[i64]) -> Value {
    let task = |&task: &i64| json!({ "task": task, "job_id": 3, "name": "sim", "command": "/x" });
    numbers.iter().map(task).collect()
}

#[test]
fn each_free_slot_asks_once_and_a_result_asks_for_the_next_task() {
    let mut rig = Rig::new(2);
    let polls = rig.asked();
    assert_eq!(polls.len(), 2);
    assert_eq!(polls[0].path.as_deref(), Some("job/request"));
    rig.answer(polls[0].id, 200, tasks(&[7]));
    let [(key, name)] = &rig.started()[..] else { panic!("one is started") };
    assert_eq!(name, "sim.7");
    assert!(rig.asked().is_empty(), "one slot works and the other waits");
    rig.end(*key, Outcome::Exit(3));
    let [update] = &rig.asked()[..] else { panic!("one update and nothing else") };
    assert_eq!(
        update.body,
        json!({
            "job_id": 3, "task": 7, "success": false,
            "status": "error encountered: exit status 3", "newjob": { "nproc": 1 },
        })
    );
    assert!(!rig.side.is_settled());
    rig.answer(update.id, 200, tasks(&[8]));
    assert!(rig.side.is_settled());
    assert_eq!((rig.started().len(), rig.asked().len()), (1, 0));
}

#[test]
fn a_result_that_waits_for_work_is_known_to_be_taken_by_saying_it_again() {
    for status in [200, 500, 400] {
        let (mut rig, update) = Rig::result(1);
        let later = rig.side.deadline().unwrap();
        rig.side.tick(later, &mut rig.orders);
        let [again] = &rig.asked()[..] else { panic!("the result alone") };
        assert_eq!((&again.body["task"], &again.body["newjob"]), (&json!(1), &Value::Null));
        assert!(!rig.side.is_settled() && rig.side.deadline().is_none());
        rig.answer(again.id, status, Value::Null);
        assert!(rig.side.is_settled(), "{status}");
        assert!(rig.asked().is_empty(), "its request waits for work");
        rig.answer(update.id, 200, tasks(&[2]));
        assert_eq!(rig.started().len(), 1);
    }
}

#[test]
fn a_worker_that_leaves_does_not_wait_for_work_to_know_that_its_result_is_taken() {
    let (mut rig, update) = Rig::result(1);
    rig.side.tell(NOW, News::Draining, &mut rig.orders);
    let [again] = &rig.asked()[..] else { panic!("the result alone") };
    assert_eq!(again.body["newjob"], Value::Null);
    rig.answer(again.id, 503, Value::Null);
    assert!(rig.asked().is_empty(), "not at once");
    let later = rig.side.deadline().unwrap();
    rig.side.tick(later, &mut rig.orders);
    let id = rig.asked()[0].id;
    rig.answer(id, 500, Value::Null);
    let [withdrawn, goodbye] = &rig.asked()[..] else { panic!("no more work, and goodbye") };
    assert_eq!((withdrawn.id, &withdrawn.path), (update.id, &None));
    rig.answer(goodbye.id, 404, Value::Null);
    assert_eq!(rig.orders.hang_up, Some(Parting::Finished));
}

#[test]
fn what_is_given_to_a_worker_that_leaves_is_run() {
    let (mut rig, update) = Rig::result(1);
    rig.side.tell(NOW, News::Draining, &mut rig.orders);
    let again = rig.asked()[0].id;
    rig.answer(update.id, 200, tasks(&[2]));
    let [(key, _)] = rig.started()[..] else { panic!("a foreman gives it to nobody else") };
    rig.answer(again, 500, Value::Null);
    rig.end(key, Outcome::Success);
    let [update] = &rig.asked()[..] else { panic!("one update") };
    assert_eq!((&update.body["task"], &update.body["newjob"]), (&json!(2), &Value::Null));
    rig.answer(update.id, 200, json!([]));
    rig.part(404);
    assert_eq!(rig.orders.hang_up, Some(Parting::Finished));
}

/// An original says 500 to a result that it has, for ever.
#[test]
fn a_result_that_the_foreman_has_already_holds_up_nobody() {
    let (mut rig, _) = Rig::result(2);
    rig.side.lost(NOW);
    rig.side.open(NOW, &mut rig.orders);
    let [again, polls @ ..] = &rig.asked()[..] else { panic!("the result") };
    assert_eq!((&again.body["task"], &again.body["newjob"]), (&json!(1), &Value::Null));
    assert!(polls.len() == 2 && polls.iter().all(|poll| poll.body == json!({ "nproc": 1 })));
    rig.answer(again.id, 500, Value::Null);
    assert!(rig.side.is_settled());
    assert_eq!((rig.asked().len(), rig.side.deadline()), (0, None), "nothing is waited for");

    // The bridge may have said it twice, when a connection was closed in the same moment.
    let (mut rig, update) = Rig::result(1);
    rig.hear(&Answered { id: update.id, status: 500, body: Value::Null, is_repeated: true });
    assert!(rig.side.is_settled());
    assert_eq!(rig.asked()[0].path.as_deref(), Some("job/request"));
}

#[test]
fn a_result_that_the_foreman_cannot_store_is_said_once_more_while_others_work() {
    let (mut rig, update) = Rig::result(1);
    rig.answer(update.id, 500, Value::Null);
    assert!(!rig.side.is_settled());
    assert_eq!(rig.asked()[0].path.as_deref(), Some("job/request"), "its slot is free");
    let later = rig.side.deadline().unwrap();
    rig.side.tick(later, &mut rig.orders);
    let again = rig.asked()[0].id;
    rig.answer(again, 500, Value::Null);
    assert!(rig.side.is_settled());
}

#[test]
fn nothing_to_do_and_trouble_are_waited_out() {
    for (status, body) in [(200, json!([])), (200, Value::Null), (500, Value::Null)] {
        let mut rig = Rig::new(1);
        let id = rig.asked()[0].id;
        rig.answer(id, status, body);
        assert!(rig.asked().is_empty());
        let later = NOW.after_ms(PAUSE_MS);
        assert_eq!(rig.side.deadline(), Some(later));
        rig.side.tick(later, &mut rig.orders);
        assert_eq!(rig.asked().len(), 1);
    }
}

#[test]
fn results_without_an_answer_are_told_again_on_the_next_connection() {
    let mut rig = Rig::new(1);
    let id = rig.asked()[0].id;
    rig.answer(id, 200, tasks(&[1]));
    let key = rig.started()[0].0;
    rig.end(key, Outcome::Success);
    rig.asked();
    rig.side.lost(NOW);
    rig.side.open(NOW, &mut rig.orders);
    let [again, _poll] = &rig.asked()[..] else { panic!("the update, and the slot asks") };
    assert_eq!(again.body["task"], 1);
    rig.answer(again.id, 200, tasks(&[]));
    assert!(rig.side.is_settled());
}

#[test]
fn a_result_that_the_foreman_cannot_take_now_is_told_again() {
    for (status, is_kept) in [(503, true), (500, true), (403, true), (400, false), (404, false)] {
        let mut rig = Rig::new(1);
        let id = rig.asked()[0].id;
        rig.answer(id, 200, tasks(&[1]));
        let key = rig.started()[0].0;
        rig.side.tell(NOW, News::Draining, &mut rig.orders);
        rig.end(key, Outcome::Success);
        let id = rig.asked()[0].id;
        rig.answer(id, status, Value::Null);
        assert_eq!(rig.side.is_settled(), !is_kept, "{status}");
        if is_kept {
            assert!(rig.asked().is_empty(), "not at once");
            let later = rig.side.deadline().unwrap();
            rig.side.tick(later, &mut rig.orders);
            let again = rig.asked();
            assert_eq!(again[0].body["task"], 1);
            rig.answer(again[0].id, 200, json!([]));
            assert!(rig.side.is_settled());
        }
        rig.part(404);
        assert!(rig.orders.hang_up.is_some(), "{status}");
    }
}

#[test]
fn a_stop_ends_it_once_everything_is_told() {
    let mut rig = Rig::new(2);
    let ids: Vec<u64> = rig.asked().iter().map(|asked| asked.id).collect();
    rig.answer(ids[0], 200, tasks(&[1]));
    let key = rig.started()[0].0;
    let stop = json!([{ "task": -1, "job_id": 0, "name": "::stop::" }]);
    rig.answer(ids[1], 200, stop);
    assert!(matches!(rig.orders.orders[..], [Order::Drain]));
    assert_eq!(rig.orders.hang_up, None);
    rig.end(key, Outcome::Success);
    let [update] = &rig.asked()[..] else { panic!("one update") };
    assert_eq!(update.body["newjob"], Value::Null);
    rig.answer(update.id, 200, json!([]));
    rig.part(200);
    assert_eq!(rig.orders.hang_up, Some(Parting::Finished));
}

#[test]
fn who_drains_takes_back_its_requests() {
    let mut rig = Rig::new(2);
    rig.asked();
    rig.side.tell(NOW, News::Draining, &mut rig.orders);
    let said = rig.asked();
    let [withdrawn @ .., goodbye] = &said[..] else { panic!("both and a goodbye") };
    assert!(withdrawn.len() == 2 && withdrawn.iter().all(|asked| asked.path.is_none()));
    rig.answer(goodbye.id, 404, Value::Null);
    assert_eq!(rig.orders.hang_up, Some(Parting::Finished));
}

#[test]
fn what_is_not_finished_goes_back_where_that_can_be_said_and_has_failed_elsewhere() {
    for (status, is_understood) in [(200, true), (404, false)] {
        let mut rig = Rig::new(1);
        let id = rig.asked()[0].id;
        rig.answer(id, 200, tasks(&[1]));
        let key = rig.started()[0].0;
        rig.side.tell(NOW, News::Draining, &mut rig.orders);
        assert!(rig.asked().is_empty(), "it still runs");
        rig.side.tell(NOW, News::Returned(key), &mut rig.orders);
        rig.part(status);
        if !is_understood {
            let [update] = &rig.asked()[..] else { panic!("one update") };
            assert_eq!((&update.body["task"], &update.body["success"]), (&json!(1), &json!(false)));
            rig.answer(update.id, 200, json!([]));
        }
        assert_eq!(rig.orders.hang_up, Some(Parting::Finished));
    }
}

#[test]
fn until_it_leaves_what_comes_back_is_begun_again() {
    let mut rig = Rig::new(1);
    let id = rig.asked()[0].id;
    rig.answer(id, 200, tasks(&[1]));
    let key = rig.started()[0].0;
    rig.side.tell(NOW, News::Returned(key), &mut rig.orders);
    assert_eq!(rig.started().len(), 1);
    assert!(rig.asked().is_empty());
}

#[test]
fn what_makes_no_sense_ends_the_connection() {
    for body in [json!({ "a": 1 }), json!([3]), json!([{ "task": "x" }])] {
        let mut rig = Rig::new(1);
        let id = rig.asked()[0].id;
        rig.answer(id, 200, body);
        assert!(matches!(rig.orders.hang_up, Some(Parting::Malformed(_))));
    }
    let mut rig = Rig::new(1);
    let id = rig.asked()[0].id;
    rig.answer(id, 200, tasks(&[0]));
    let [update] = &rig.asked()[..] else { panic!("a task that cannot be is told so") };
    assert_eq!(update.body["success"], false);
}
