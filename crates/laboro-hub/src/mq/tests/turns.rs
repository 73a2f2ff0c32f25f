//! Requests, answers and slots.

use super::*;

#[test]
fn a_request_goes_to_the_worker_and_its_answer_to_the_client() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("10");
    let mut client = server.dial("client");
    client.ask(b"12345678");
    let asked = worker.receive();
    let frames: Vec<&[u8]> = asked.slices().collect();
    assert_eq!(frames, [b"", &b"LMQv100"[..], &[4], b"12345678", &[1], b"", b"client"]);
    worker.answer(&asked);
    let answer = client.receive();
    let frames: Vec<&[u8]> = answer.slices().collect();
    assert_eq!(frames, [b"", &b"LMQv100"[..], &[6], b"12345678", b"", b"worker"]);
    worker.sync();
    let line = &server.now().workers[0];
    assert_eq!(
        (line.address.as_str(), line.free, line.slots, line.messages),
        ("worker", 10, 10, 1)
    );
}

#[test]
fn thirteen_requests_to_ten_slots_are_thirteen_answers_in_order() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("10");
    let mut client = server.dial("client");
    (0..13u8).for_each(|id| client.ask(&[id]));
    client.sync();
    assert_eq!((server.now().waiting, server.now().workers[0].free), (3, 0));
    for id in 0..13 {
        let asked = worker.receive();
        assert_eq!(asked.get(3).unwrap()[..], [id]);
        worker.answer(&asked);
    }
    for id in 0..13 {
        assert_eq!(client.receive().get(3).unwrap()[..], [id]);
    }
    assert_eq!(worker.sync(), []);
    assert_eq!((server.now().waiting, server.now().workers[0].free), (0, 10));
}

#[test]
fn more_increments_than_requests_make_no_slots() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("3");
    (0..10_000).for_each(|_| worker.increment());
    worker.sync();
    assert_eq!(server.now().workers[0].free, 3);
    assert_eq!(server.dropped("no_slot_taken"), 10_000);
}

#[test]
fn ids_of_any_size_come_back_as_they_were() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("1");
    let mut client = server.dial("client");
    for bytes in [0, 1, 8, 255, 256, 511, 512, 4096, 65_535, 65_536] {
        let id = vec![0xa5; bytes];
        client.ask(&id);
        let asked = worker.receive();
        assert_eq!(asked.get(3).unwrap()[..], id);
        worker.answer(&asked);
        assert_eq!(client.receive().get(3).unwrap()[..], id);
    }
}

#[test]
fn ids_that_look_like_commands_are_ids() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("10");
    let mut client = server.dial("client");
    for id in [&[1][..], &[7], &[8], &[9], &[10], b"LMQv100", b"mqs_more", b"WORKER"] {
        client.ask(id);
        let asked = worker.receive();
        worker.answer(&asked);
        assert_eq!(client.receive().get(3).unwrap()[..], *id);
    }
    worker.sync();
    let table = server.now();
    assert_eq!((table.workers.len(), table.workers[0].free), (1, 10));
}

#[test]
fn a_worker_that_comes_back_under_its_name_keeps_its_place() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("2");
    drop(worker);
    server.until(|table| table.workers[0].away);
    let mut client = server.dial("client");
    client.ask(b"1");
    client.sync();
    assert_eq!(server.now().waiting, 1);
    let mut worker = server.dial("worker");
    let asked = worker.receive();
    worker.answer(&asked);
    assert_eq!(client.receive().get(3).unwrap()[..], *b"1");
}

#[test]
fn the_table_is_told_over_the_wire() {
    let server = door(|_| ());
    let mut worker = server.dial("worker");
    worker.register("7");
    let mut client = server.dial("client");
    client.send(&[TABLE_ADDRESS, b"", b"LMQv100", &[4], b"id", b"table", b""]);
    let answer = client.receive();
    let table: BrokerTable = serde_json::from_slice(answer.get(4).unwrap()).unwrap();
    assert_eq!((table.workers[0].address.as_str(), table.workers[0].slots), ("worker", 7));
    client.send(&[TABLE_ADDRESS, b"nonsense"]);
    client.sync();
}
