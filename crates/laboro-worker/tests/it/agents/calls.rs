//! Calls to runners that stay: who gets them, what is told of them, and what a runner's end means for whom.

use std::sync::Arc;
use std::time::Duration;

use laboro_core::{CallWork, Runner, Setting, Work};
use laboro_dialects::worker::Assignment;
use laboro_worker::agent::Farewell;

use super::hub::{Rig, element, task};

const RUNNER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/agents/runner.py");

fn python() -> String {
    std::env::var("LABORO_PYTHON").unwrap_or_else(|_| "python3".into())
}

fn words(words: &[&str]) -> Vec<Box<[u8]>> {
    words.iter().map(|word| word.as_bytes().into()).collect()
}

fn call_of(runner: Runner, code: &str) -> Work {
    let setting = Setting { runner: Some(Arc::new(runner)), ..Setting::default() };
    Work::Call(CallWork { payload: code.as_bytes().into(), setting: Arc::new(setting) })
}

/// The body of a function of `value`.
fn call(body: &str) -> Work {
    let runner = Runner { words: words(&[&python(), RUNNER]), ..Runner::default() };
    call_of(runner, &code(body))
}

fn code(body: &str) -> String {
    format!("def f(value):\n    {}\n", body.replace('\n', "\n    "))
}

fn one_slot(options: &mut laboro_worker::agent::AgentOptions) {
    options.slots = 1;
    options.grace = Duration::from_millis(500);
}

const PID: &str = "return str(os.getpid()).encode()";

/// What a call gave back, when it has ended well.
fn result(rig: &mut Rig, key: u64) -> String {
    rig.ends(key, "success");
    rig.expect_begin(&format!("wrote {key} Result "))
}

fn given(rig: &mut Rig, key: u64) -> String {
    rig.say(&format!("give {key}"));
    let line = result(rig, key);
    line.split(' ').skip(3).collect::<Vec<_>>().join(" ")
}

#[test]
fn calls_go_to_one_process_and_give_something_back() {
    let echo = "return b'<' + value + b'>'";
    let known = vec![
        task(1, call(PID)),
        task(2, call(PID)),
        element(3, 0, b"a\nb", call(echo)),
        element(4, 1, b"", call(echo)),
    ];
    let mut rig = Rig::with("one process", one_slot, known, true);
    let (first, second) = (given(&mut rig, 1), given(&mut rig, 2));
    assert_eq!(first, second);
    assert_eq!(given(&mut rig, 3), r#"5 "<a\nb>""#);
    assert_eq!(given(&mut rig, 4), r#"2 "<>""#);
    rig.say("drain");
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn what_a_call_prints_is_its_own() {
    let code = "print('printed', value.decode())\nos.write(2, b'oh')\nreturn b'x'";
    let known = (1..=5).map(|n| element(n, n as u32, n.to_string().as_bytes(), call(code)));
    let mut rig = Rig::with("prints", one_slot, known.collect(), true);
    (1..=5).for_each(|key| rig.say(&format!("give {key}")));
    for key in 1..=5 {
        assert!(result(&mut rig, key).ends_with(r#" 1 "x""#));
        // Before its end, or it is nobody's.
        let heard = rig.heard().to_vec();
        let said = |stream: &str| -> String {
            let head = format!("wrote {key} {stream} ");
            let pieces = heard.iter().filter_map(|line| line.strip_prefix(head.as_str()));
            pieces.filter_map(|piece| piece.split('"').nth(1)).collect()
        };
        assert_eq!(said("Out"), format!(r"printed {key}\n"), "{heard:?}");
        assert_eq!(said("Err"), "oh", "{heard:?}");
    }
}

#[test]
fn a_failure_has_its_code_its_words_and_a_result() {
    let mut rig =
        Rig::with("fails", one_slot, vec![task(1, call("raise ValueError('no'))"))], true);
    rig.say("give 1");
    let line = rig.expect_begin("ended 1 ");
    assert!(line.starts_with("ended 1 exit code "), "{line}");
    let known = vec![task(2, call("raise ValueError('no')")), task(3, call(PID))];
    drop(rig);
    let mut rig = Rig::with("fails on", one_slot, known, true);
    rig.say("give 2");
    rig.ends(2, "exit code 3: no");
    rig.expect(r#"wrote 2 Result 7 "its own""#);
    given(&mut rig, 3);
}

#[test]
fn a_crash_is_charged_to_the_call_under_way_and_the_others_go_on() {
    let known = vec![
        task(1, call(PID)),
        task(2, call("os.kill(os.getpid(), 9)")),
        task(3, call(PID)),
        task(4, call("os._exit(7)")),
        task(5, call("os._exit(0)")),
        task(6, call(PID)),
    ];
    let mut rig = Rig::with("crash", one_slot, known, true);
    let before = given(&mut rig, 1);
    ["give 2", "give 3"].into_iter().for_each(|line| rig.say(line));
    rig.ends(2, "signal 9: the runner ended during this call by signal 9");
    rig.expect_begin("wrote 2 Err ");
    let line = result(&mut rig, 3);
    assert!(!line.ends_with(&before), "{line} {before}");
    // Never two that wait for a runner to start: on a busy machine the second would go back to the hub.
    ["give 4", "give 5"].into_iter().for_each(|line| rig.say(line));
    rig.ends(4, "exit code 7: the runner ended during this call with exit code 7");
    rig.ends(5, "error: the runner ended during this call");
    given(&mut rig, 6);
}

#[test]
fn a_call_that_takes_too_long_is_ended_with_its_runner() {
    let mut slow = task(1, call("import time\ntime.sleep(600)"));
    slow.time_limit_ms = Some(100);
    let mut rig = Rig::with("slow", one_slot, vec![slow, task(2, call(PID))], true);
    ["give 1", "give 2"].into_iter().for_each(|line| rig.say(line));
    rig.ends(1, "timed out: it took too long");
    result(&mut rig, 2);
}

#[test]
fn a_call_that_is_cancelled_ends_its_runner_and_no_other_call() {
    let known = vec![task(1, call("import time\ntime.sleep(600)")), task(2, call(PID))];
    let mut rig = Rig::with("cancelled call", one_slot, known, true);
    ["give 1", "give 2"].into_iter().for_each(|line| rig.say(line));
    rig.expect("started 1");
    rig.say("cancel 1");
    rig.expect_begin("ended 1 ");
    rig.say("ok 1");
    result(&mut rig, 2);
}

#[test]
fn a_runner_goes_after_so_many_calls_so_much_memory_and_so_long() {
    let limited = |limit: &str, body: &str| {
        let mut runner = Runner { words: words(&[&python(), RUNNER]), ..Runner::default() };
        match limit {
            "calls" => runner.calls_max = Some(2),
            "memory" => runner.memory_max = Some(1),
            _ => runner.idle_ms = Some(0),
        }
        call_of(runner, &code(body))
    };
    let mut known: Vec<Assignment> = (1..=3).map(|key| task(key, limited("calls", PID))).collect();
    known.extend((4..=5).map(|key| task(key, limited("memory", PID))));
    known.extend((6..=7).map(|key| task(key, limited("idle", PID))));
    let mut rig = Rig::with("worn", one_slot, known, true);
    let pids: Vec<String> = (1..=7).map(|key| given(&mut rig, key)).collect();
    assert_eq!(pids[0], pids[1]);
    for pair in pids[1..].windows(2) {
        assert_ne!(pair[0], pair[1], "{pids:?}");
    }
}

#[test]
fn what_is_no_runner_fails_its_calls_and_says_why() {
    let of = |argv: &[&str]| call_of(Runner { words: words(argv), ..Runner::default() }, "");
    let known = vec![
        task(1, of(&["/no/such/runner"])),
        task(2, of(&["/bin/sh", "-c", "echo broken >&2; exit 4"])),
        task(
            3,
            of(&["/bin/sh", "-c", r"printf '\001\000\000\000\011' > $LABORO_ANSWERS; sleep 600"]),
        ),
        task(4, call("say(2, b'12345678')\nreturn b''")),
        task(5, call("return bytes((1 << 20) + 1)")),
        task(6, call("return bytes((1 << 20) + (1 << 17))")),
        task(7, call("return bytes(1 << 20)")),
    ];
    let mut rig = Rig::with("no runner", one_slot, known, true);
    (1..=7).for_each(|key| rig.say(&format!("give {key}")));
    let ends = [
        "error: the runner cannot be started: ",
        "exit code 4: the runner ended before it was ready",
        "error: the runner answered with what the protocol does not have",
        "error: the runner answered a call that is not under way",
        "error: its result has 1048577 bytes; at most 1048576 are kept",
        "error: the runner answered with ",
        "success",
    ];
    for (end, key) in ends.into_iter().zip(1..) {
        let line = rig.expect_begin(&format!("ended {key} "));
        assert!(line.starts_with(&format!("ended {key} {end}")), "{line}");
    }
    rig.expect(r#"wrote 2 Err 7 "broken\n""#);
    rig.expect_begin("wrote 7 Result 1048576 ");
}

#[test]
fn calls_take_slots_as_other_tasks_do() {
    let nap = call("import time\ntime.sleep(600)");
    let mut rig =
        Rig::with("slots of calls", |_| {}, vec![task(1, nap.clone()), task(3, nap)], true);
    rig.say("give 1");
    rig.expect("started 1");
    rig.say("start 2 1 echo two > two; sleep 600");
    rig.expect("started 2");
    rig.say("give 3");
    // Nothing is free, so it is given back after a while.
    rig.returns(3);
    rig.say("stop");
    for key in 1..=2 {
        rig.returns(key);
    }
    assert_eq!(rig.leaves(), Farewell::Finished);
}

#[test]
fn runners_are_gone_when_their_worker_is() {
    let mut rig = Rig::with("gone", one_slot, vec![task(1, call(PID))], true);
    let pid = given(&mut rig, 1);
    let pid = pid.split('"').nth(1).unwrap().to_owned();
    assert!(std::path::Path::new("/proc").join(&pid).exists());
    rig.say("drain");
    assert_eq!(rig.leaves(), Farewell::Finished);
    crate::rig::until("its runner is gone", || !std::path::Path::new("/proc").join(&pid).exists());
}

#[test]
fn a_program_of_its_own_leaves_its_result_in_a_file() {
    let mut rig = Rig::new("result file", |_| {});
    rig.say("start 1 1 printf hello > $LABORO_RESULT");
    rig.ends(1, "success");
    rig.expect(r#"wrote 1 Result 5 "hello""#);
    rig.say("start 2 1 printf bad > $LABORO_RESULT; exit 3");
    rig.ends(2, "exit code 3");
    rig.expect(r#"wrote 2 Result 3 "bad""#);
    rig.say("start 3 1 head -c 1048577 /dev/zero > $LABORO_RESULT");
    rig.expect_begin("ended 3 error: its result has more than 1048576 bytes");
    rig.say("start 4 1 mkfifo \"$LABORO_RESULT\"");
    let line = rig.expect_begin("ended 4 ");
    assert!(line.contains("its result in LABORO_RESULT cannot be read"), "{line}");
}
