//! The example of the original, command by command, with three processes and their consoles.

use super::rig::Program;

/// The rows of a table that a console prints, without its heading, up to the line that ends it.
fn rows(server: &mut Program) -> Vec<String> {
    server.say("workers");
    server.until("address");
    let mut rows = Vec::new();
    loop {
        let line = server.line();
        if line.contains("requests wait") {
            return rows;
        }
        rows.push(line);
    }
}

#[test]
fn the_example_goes_from_register_to_quit() {
    let mut server =
        Program::laboro(&["server", "--listen", "127.0.0.1:0", "--console", "-d", "0"]);
    let line = server.until("rrmq on ");
    let address = format!("tcp://{}", line.strip_prefix("rrmq on ").unwrap());
    let mut worker = Program::laboro(&["worker", "-s", &address, "--console", "-d", "2"]);
    let mut client = Program::laboro(&["client", "-s", &address, "--console", "-d", "1"]);

    worker.say("register");
    worker.until("registered with");
    let table = rows(&mut server);
    assert_eq!(table.len(), 1);
    assert!(table[0].starts_with(&format!("{address}:")), "{}", table[0]);

    client.say("pingt");
    client.until("PING was answered in");
    client.say("ping");
    client.until("which has no answer");

    worker.say("bulk");
    worker.until("9 of 9 more workers have registered");
    assert_eq!(rows(&mut server).len(), 10);

    for (command, kind) in [("bulkping 100", "PING"), ("bulkdata 100", "STREAM")] {
        client.say(command);
        assert_eq!(client.line(), ".".repeat(50));
        let heading: Vec<String> = words(&client.line());
        assert_eq!(heading, ["type", "total", "successes"]);
        assert_eq!(words(&client.line()), [kind, "100", "100"]);
    }

    worker.say("endbulk");
    let mut messages = 0;
    for number in 1..=9 {
        let line = words(&worker.until(&format!("worker {number}:")));
        messages += line[2].parse::<u32>().unwrap();
    }
    // 202 requests in turn, of which the parent had some too.
    assert!((170..=182).contains(&messages), "{messages}");
    worker.until("9 workers deregistered");
    assert_eq!(rows(&mut server).len(), 1);

    worker.say("deregister");
    worker.until("deregistered");
    crate::rig::until("the worker is out of the table", || rows(&mut server).is_empty());
    for program in [&mut worker, &mut server, &mut client] {
        program.say("quit");
    }
    for program in [worker, server, client] {
        assert_eq!(program.end().0, 0);
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_end_of_input_ends_a_console_and_deregisters() {
    let server = super::rig::Server::start(&[]);
    let mut worker = Program::laboro(&["worker", "-s", &server.address, "--console", "-d", "0"]);
    worker.say("register");
    worker.say("nonsense");
    worker.until("registered with");
    assert_eq!(worker.end().0, 0);
    assert_eq!(server.table()["workers"], serde_json::json!([]));
    let client = Program::laboro(&["client", "-s", &server.address, "--console", "-d", "0"]);
    assert_eq!(client.end().0, 0);
}

#[test]
fn an_unknown_command_says_what_there_is() {
    let rig = crate::rig::Rig::new();
    let server = rig.laboro(["mq", "server", "--listen", "127.0.0.1:0", "--console"]);
    let ran = server.input("wrokers\n\nworkers\n").run();
    ran.expect(0).says("there is no command wrokers; there are workers, quit");
    assert!(ran.out().contains("0 workers"), "{}", ran.out());
}

#[test]
fn options_may_stand_before_or_after_what_is_asked() {
    let server = super::rig::Server::start(&[]);
    let _worker = server.worker(&[]);
    let rig = crate::rig::Rig::new();
    let (before, after) = (["-s", &server.address, "--timeout", "9s"], ["bulkping", "10"]);
    for words in [[before.as_slice(), &after].concat(), [after.as_slice(), &before].concat()] {
        let ran = rig.laboro([&["mq", "client", "--json"][..], &words].concat()).run();
        assert_eq!(ran.expect(0).events()[0]["successes"], 10);
        let ran = rig.laboro([&["mq", "client"][..], &words, &["--json"]].concat()).run();
        assert_eq!(ran.expect(0).events()[0]["successes"], 10);
    }
}

#[test]
fn an_interrupted_test_says_how_far_it_came() {
    let server = super::rig::Server::start(&[]);
    let rig = crate::rig::Rig::new();
    let call = ["mq", "client", "-s", &server.address, "bulkping", "1000"];
    let client = rig.laboro(call).start();
    crate::rig::until("its requests wait", || server.table()["waiting"] == 10);
    client.signal(rustix::process::Signal::INT);
    let ran = client.wait();
    ran.expect(130).says("interrupted: 0 of 1000 are over");
    let table: Vec<String> = ran.out().lines().skip(1).flat_map(words).collect();
    assert_eq!(table, ["type", "total", "successes", "PING", "0", "0"]);
}

#[test]
fn without_a_server_a_client_says_so() {
    let rig = crate::rig::Rig::new();
    let ran = rig.laboro(["mq", "client", "-s", "127.0.0.1:1", "pingt"]).run();
    ran.expect(3).says("is a server running there?");
    rig.laboro(["mq", "client", "-s", "nowhere", "pingt"]).run().expect(2).says("tcp://HOST:PORT");
    let open = rig.laboro(["mq", "server", "--listen", "0.0.0.0:0"]).run();
    open.expect(2).says("--insecure");
}
