//! Recorded conversations, said again by one side of ours and by the other side of the recording.

use super::golden::{FILES, From, Line, What, differences, read};
use super::rig::{Rig, script};
use crate::runexp::result::{of_wait_status, wait_status};
use crate::runexp::words::{ManagerWord, RunnerWord, WordBuffer};
use crate::runexp::{ManagerDoor, Runner, RunnerOptions};
use crate::session::Stream;
use crate::worker::{Key, News, Order, Orders, TaskEnd, Used, WorkerSide};
use bytes::{Bytes, BytesMut};
use laboro_core::{Conduct, ConductRule, Config, Profile, Time};
use std::collections::{HashMap, VecDeque};

#[test]
fn our_manager_answers_as_the_recorded_one() {
    let differences = differences();
    for file in FILES {
        replay_manager(file, &differences);
    }
}

fn replay_manager(file: &str, differences: &HashMap<(String, usize), String>) {
    let lines = read(file);
    let is_ban = file.contains("ban") || file.contains("eject");
    let rule = if is_ban { ConductRule::Fixed } else { ConductRule::Off };
    let conduct = Conduct { rule, ..Conduct::default() };
    let mut rig = Rig::new(Config { conduct, ..Config::default() });
    rig.door = ManagerDoor::new(&group(&lines)).unwrap();
    let mut jobs = jobs(&lines);
    // Where a runner was sent away, the recorded manager had more to hand out.
    if is_ban {
        jobs.push(("left for others".to_owned(), Bytes::new()));
    }
    let tasks: Vec<_> = jobs.iter().map(|(name, body)| (name.as_str(), script(body))).collect();
    if !tasks.is_empty() {
        rig.submit(&tasks, Profile::default());
    }
    let start = rig.now;
    let mut said: HashMap<u64, VecDeque<Bytes>> = HashMap::new();
    for Line { number, connection, ms, what } in lines {
        rig.now = start.after_ms(ms);
        match what {
            What::Connect => rig.connect(connection),
            What::Close(From::Runner) => rig.close(connection),
            What::Close(From::Manager) => {}
            What::Bytes(From::Runner, bytes) => {
                rig.hears(connection, &bytes);
                said.entry(connection).or_default().extend(rig.said(connection));
            }
            What::Bytes(From::Manager, bytes) => {
                let ours = said.entry(connection).or_default().pop_front().unwrap_or_default();
                let expected = differences.get(&(file.to_owned(), number));
                let expected =
                    expected.map_or(bytes, |ours| Bytes::copy_from_slice(ours.as_bytes()));
                assert_eq!(ours, expected, "{file}:{number}");
            }
        }
    }
    assert!(said.values().all(VecDeque::is_empty), "{file}: {said:?}");
}

fn group(lines: &[Line]) -> String {
    let aligi = lines.iter().find_map(|line| match &line.what {
        What::Bytes(From::Manager, bytes) => bytes.strip_prefix(b"ALIGI "),
        _ => None,
    });
    String::from_utf8(aligi.unwrap().to_vec()).unwrap()
}

/// Names and bodies in the order in which they were handed out.
fn jobs(lines: &[Line]) -> Vec<(String, Bytes)> {
    let mut jobs: Vec<(String, Bytes)> = Vec::new();
    let mut open: HashMap<u64, usize> = HashMap::new();
    for line in lines {
        let What::Bytes(From::Manager, bytes) = &line.what else { continue };
        if let Some(at) = open.remove(&line.connection) {
            jobs[at].1 = bytes.clone();
        } else if let Some(ManagerWord::Laboro { name, size, .. }) = manager_word(bytes) {
            jobs.push((String::from_utf8(name.to_vec()).unwrap(), Bytes::new()));
            if size > 0 {
                open.insert(line.connection, jobs.len() - 1);
            }
        }
    }
    jobs
}

fn manager_word(bytes: &[u8]) -> Option<ManagerWord> {
    let mut heard = WordBuffer::default();
    heard.take_in(&mut BytesMut::from(bytes));
    heard.manager_word().ok().flatten()
}

fn runner_word(bytes: &[u8]) -> Option<RunnerWord> {
    let mut heard = WordBuffer::default();
    heard.take_in(&mut BytesMut::from(bytes));
    heard.runner_word().ok().flatten()
}

#[test]
fn our_runner_speaks_as_the_recorded_one() {
    for file in FILES {
        let lines = read(file);
        for connection in 1..=2 {
            let own = |line: &&Line| line.connection == connection;
            let lines: Vec<Line> = lines.iter().filter(own).cloned().collect();
            if !lines.is_empty() {
                RunnerReplay::new(file, connection, &lines).run(&lines);
            }
        }
    }
}

struct RunnerReplay {
    file: String,
    now: Time,
    runner: Runner,
    said: VecDeque<Bytes>,
    running: HashMap<String, Key>,
    has_parted: bool,
}

impl RunnerReplay {
    fn new(file: &str, connection: u64, lines: &[Line]) -> RunnerReplay {
        let workers = file.split('-').find_map(|word| word.strip_suffix('w')?.parse().ok());
        let mut options = RunnerOptions::new(&format!("r{connection}"), workers.unwrap_or(2));
        if file != "group-mismatch" {
            options.group = group(lines);
        }
        RunnerReplay {
            file: file.to_owned(),
            now: Time(1_000_000),
            runner: Runner::new(options),
            said: VecDeque::new(),
            running: HashMap::new(),
            has_parted: false,
        }
    }

    fn run(mut self, lines: &[Line]) {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            match &line.what {
                What::Connect => {
                    let mut out = Orders::default();
                    self.runner.open(self.now, &mut out);
                    self.take(out);
                }
                What::Close(_) => assert!(self.has_parted, "{}:{}", self.file, line.number),
                What::Bytes(From::Manager, bytes) => {
                    // A job that has ended by now is handed in before more is asked for.
                    if bytes == "RICEVIS" {
                        self.end_next(&lines[at..]);
                    }
                    let mut out = Orders::default();
                    self.runner.receive(self.now, &mut BytesMut::from(&bytes[..]), &mut out);
                    self.take(out);
                }
                What::Bytes(From::Runner, bytes) => {
                    if self.said.is_empty() {
                        self.end_next(&lines[at - 1..]);
                        self.wait();
                    }
                    let ours = self.said.pop_front();
                    let ours = ours.unwrap_or_else(|| panic!("{}:{}", self.file, line.number));
                    match runner_word(bytes) {
                        Some(RunnerWord::Rezulto { name, is_good, .. }) => {
                            let Some(RunnerWord::Rezulto { name: our_name, is_good: ours, size }) =
                                runner_word(&ours)
                            else {
                                panic!("{}:{} {ours:?}", self.file, line.number)
                            };
                            assert_eq!((our_name, ours), (name, is_good), "{}", line.number);
                            assert!(size > 0);
                        }
                        Some(_) => assert_eq!(ours, bytes, "{}:{}", self.file, line.number),
                        None => {
                            let recorded = body(&lines[at - 1..]);
                            at += pieces(&lines[at..]);
                            assert_eq!(
                                essence(&ours),
                                essence(&recorded),
                                "{}:{}",
                                self.file,
                                line.number
                            );
                        }
                    }
                }
            }
        }
        assert!(self.said.is_empty(), "{}: {:?}", self.file, self.said);
    }

    /// If the runner speaks next of a result, its job ends now.
    fn end_next(&mut self, lines: &[Line]) -> Option<()> {
        let is_runners = |line: &&Line| matches!(line.what, What::Bytes(From::Runner, _));
        let at = lines.iter().position(|line| is_runners(&line))?;
        let What::Bytes(_, bytes) = &lines[at].what else { unreachable!() };
        let Some(RunnerWord::Rezulto { name, .. }) = runner_word(bytes) else { return None };
        let key = self.running.remove(std::str::from_utf8(&name).unwrap())?;
        let after: Vec<Line> = lines[at + 1..].iter().filter(is_runners).cloned().collect();
        let recorded = body(&after);
        let status = wait_status(&recorded).expect("a recorded result has a header");
        let bytes = output(&recorded);
        self.tell(News::Wrote { key, stream: Stream::Out, bytes });
        let outcome = of_wait_status(status);
        let how = TaskEnd { outcome, message: None, used: Used::default() };
        self.tell(News::Ended { key, how });
        Some(())
    }

    fn tell(&mut self, news: News) {
        let mut out = Orders::default();
        self.runner.tell(self.now, news, &mut out);
        self.take(out);
    }

    fn wait(&mut self) {
        while self.said.is_empty()
            && let Some(deadline) = self.runner.deadline()
        {
            self.now = deadline;
            let mut out = Orders::default();
            self.runner.tick(self.now, &mut out);
            self.take(out);
        }
    }

    fn take(&mut self, mut out: Orders) {
        self.said.extend(out.take_messages());
        self.has_parted |= out.hang_up.is_some();
        for order in out.orders {
            if let Order::Start(assignment) = order {
                let words = ["bash".into(), "/tmp/script.sh".into()];
                self.runner.launching(assignment.key, &words);
                self.running.insert(assignment.name, assignment.key);
            }
        }
    }
}

/// A body that may stand on several lines: up to the next word of the other side.
fn body(lines: &[Line]) -> Bytes {
    let mut body = BytesMut::new();
    for line in lines {
        match &line.what {
            What::Bytes(From::Runner, bytes) if runner_word(bytes).is_none() => {
                body.extend_from_slice(bytes);
            }
            _ => break,
        }
    }
    body.freeze()
}

fn pieces(lines: &[Line]) -> usize {
    let is_piece = |line: &&Line| matches!(&line.what, What::Bytes(From::Runner, bytes) if runner_word(bytes).is_none());
    lines.iter().take_while(is_piece).count()
}

fn output(result: &Bytes) -> Bytes {
    let mark = b"Program output follows\n\n";
    let at = result.windows(mark.len()).position(|window| window == mark).unwrap();
    result.slice(at + mark.len()..)
}

/// Everything but dates and the name of a temporary file.
fn essence(result: &Bytes) -> (Vec<String>, Bytes) {
    let output = output(result);
    let head = &result[..result.len() - output.len()];
    let lines = String::from_utf8_lossy(head);
    let lines = lines.lines().map(|line| match line.split_once(" -- ") {
        Some((_, after)) => after.to_owned(),
        None if line.starts_with("> bash '") => "> bash".to_owned(),
        None => line.to_owned(),
    });
    (lines.collect(), output)
}
