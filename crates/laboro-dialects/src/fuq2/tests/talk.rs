//! The numbers of a conversation: the rules one by one, as scripts of both sides, and a seeded simulation in
//! which both ask at once.

use crate::fuq2::frame::{self, Frame};
use crate::fuq2::header::{AT_ONCE, MessageHeader, MessageKind, Numbering, Trouble};
use crate::fuq2::talk::{Meaning, Side, Talk, Wear};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

fn message(kind: MessageKind, seq: u32) -> Frame {
    let header = MessageHeader { kind, subtype: 0, seq, padding: 0, arg0: 0 };
    Frame { header, body: Bytes::new() }
}

/// Plays a script at one side. `> JOB 3`: the peer says it. `ask UPDATE`: we ask. `answer 3`: we answer.
/// Every line that makes something happen is followed by what happened, as `< ...`.
fn check(side: Side, script: &str) {
    let mut talk = Talk::new(side, Numbering::Current);
    talk.meet_laboro(true);
    let mut shown = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if line.starts_with('<') {
            continue;
        }
        shown.push_str(line);
        shown.push('\n');
        for happened in play(&mut talk, line) {
            shown.push_str(&format!("< {happened}\n"));
        }
    }
    let wanted: String = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|l| l.to_owned() + "\n")
        .collect();
    assert_eq!(shown, wanted, "the new script is:\n{shown}");
}

fn play(talk: &mut Talk, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut say = BytesMut::new();
    let mut happened = Vec::new();
    match words[..] {
        [">", kind, seq] => {
            let (kind, arg0) = match kind {
                "STOPNOW" => (MessageKind::Stop, AT_ONCE),
                kind => (kind_of(kind), 0),
            };
            let mut heard = message(kind, seq.parse().unwrap());
            heard.header.arg0 = arg0;
            happened.push(show_heard(&talk.hear(heard)));
            while let Some(queued) = talk.next_queued() {
                happened.push(format!("do {:?} {}", queued.header.kind, queued.header.seq));
            }
        }
        ["ask", _] if !talk.may_ask() => happened.push("may not".into()),
        ["ask", "RESET"] => talk.ask_reset(&mut say),
        ["ask", kind] => {
            talk.ask(&mut say, kind_of(kind), 0);
        }
        ["answer", seq] => talk.answer(&mut say, seq.parse().unwrap(), 0),
        ["reset?"] => {
            let anew = talk.answer_reset(&mut say);
            happened.push(if anew { "anew".into() } else { "not yet".into() });
        }
        _ => panic!("what is {line}?"),
    }
    while let Ok(Some(said)) = frame::take(&mut say, Numbering::Current, 0) {
        let MessageHeader { kind, seq, arg0, .. } = said.header;
        happened.push(match kind {
            MessageKind::Reset => format!("say RESET {seq} after {arg0}"),
            kind => format!("say {kind:?} {seq}"),
        });
    }
    happened
}

fn kind_of(word: &str) -> MessageKind {
    match word {
        "OK" => MessageKind::Ok,
        "HELLO" => MessageKind::Hello,
        "JOB" => MessageKind::Job,
        "UPDATE" => MessageKind::Update,
        "CANCEL" => MessageKind::Cancel,
        "STOP" => MessageKind::Stop,
        "ERROR" => MessageKind::Error,
        "RESET" => MessageKind::Reset,
        _ => panic!("what is {word}?"),
    }
}

fn show_heard(heard: &Meaning) -> String {
    match heard {
        Meaning::Request(message) => format!("do {:?} {}", message.header.kind, message.header.seq),
        Meaning::Response(message) => format!("answered {}", message.header.seq),
        Meaning::Nothing => "nothing".into(),
        Meaning::Greeting => "greeting".into(),
        Meaning::Overflow(seq) => format!("overflow {seq}"),
        Meaning::BadSeq { seq, why } => format!("{seq} {why}"),
        Meaning::Anew => "anew".into(),
    }
}

#[test]
fn numbers_rise_above_everything_said_by_anyone() {
    check(
        Side::Worker,
        "ask HELLO
         < say Hello 0
         > OK 0
         < answered 0
         > JOB 7
         < do Job 7
         ask UPDATE
         < may not
         answer 7
         < say Ok 7
         ask UPDATE
         < say Update 8
         > OK 8
         < answered 8
         ask UPDATE
         < say Update 10",
    );
    check(
        Side::Foreman,
        "> HELLO 40
         < do Hello 40
         answer 40
         < say Ok 40
         ask JOB
         < say Job 41",
    );
}

#[test]
fn a_request_above_ours_waits_and_one_below_is_answered() {
    check(
        Side::Worker,
        "ask UPDATE
         < say Update 0
         > JOB 1
         < nothing
         > STOP 3
         < nothing
         > OK 0
         < answered 0
         < do Job 1
         < do Stop 3",
    );
    check(
        Side::Foreman,
        "ask JOB
         < say Job 1
         > UPDATE 0
         < do Update 0
         answer 0
         < say Ok 0
         > UPDATE 2
         < nothing
         > OK 1
         < answered 1
         < do Update 2",
    );
}

#[test]
fn stop_at_once_waits_for_nobody() {
    check(
        Side::Worker,
        "ask UPDATE
         < say Update 0
         > JOB 1
         < nothing
         > STOPNOW 3
         < do Stop 3
         answer 3
         < say Ok 3",
    );
}

#[test]
fn wrong_numbers_are_told() {
    check(
        Side::Worker,
        "> JOB 2
         < 2 has the wrong parity
         > JOB 5
         < do Job 5
         > JOB 5
         < 5 does not rise
         > JOB 3
         < 3 does not rise
         > RESET 4
         < 4 answers no RESET",
    );
    // A request must also be above the last response of its side.
    check(
        Side::Worker,
        "ask HELLO
         < say Hello 0
         > OK 0
         < answered 0
         ask UPDATE
         < say Update 2
         > OK 2
         < answered 2
         > JOB 1
         < 1 does not rise",
    );
}

#[test]
fn an_ok_that_answers_nothing_is_a_greeting() {
    check(
        Side::Worker,
        "> OK 1
         < greeting
         > OK 0
         < greeting
         > ERROR 2
         < nothing
         ask HELLO
         < say Hello 0",
    );
}

#[test]
fn a_reset_is_answered_when_everything_below_it_is() {
    check(
        Side::Foreman,
        "> UPDATE 4
         < do Update 4
         > RESET 6
         < nothing
         reset?
         < not yet
         > UPDATE 8
         < 8 comes after a RESET
         answer 4
         < say Ok 4
         reset?
         < anew
         < say RESET 6 after 4
         > HELLO 0
         < do Hello 0",
    );
}

#[test]
fn after_our_reset_what_is_below_is_answered_and_what_is_above_is_dropped() {
    check(
        Side::Worker,
        "ask UPDATE
         < say Update 0
         > OK 0
         < answered 0
         ask RESET
         < say RESET 2 after 0
         > JOB 1
         < do Job 1
         answer 1
         < say Ok 1
         > JOB 3
         < nothing
         ask UPDATE
         < may not
         > RESET 2
         < anew
         ask HELLO
         < say Hello 0",
    );
}

#[test]
fn of_two_resets_the_lower_counts() {
    let sides = |worker: &str, foreman: &str| {
        check(Side::Worker, worker);
        check(Side::Foreman, foreman);
    };
    sides(
        "ask RESET
         < say RESET 0 after 0
         > RESET 1
         < nothing
         > RESET 0
         < anew",
        "ask RESET
         < say RESET 1 after 0
         > RESET 0
         < nothing
         reset?
         < anew
         < say RESET 0 after 0",
    );
}

#[test]
fn a_full_queue_says_overflow() {
    let mut talk = Talk::new(Side::Worker, Numbering::Current);
    let mut say = BytesMut::new();
    talk.ask(&mut say, MessageKind::Update, 0);
    for n in 0..16 {
        assert_eq!(talk.hear(message(MessageKind::Job, 2 * n + 1)), Meaning::Nothing);
    }
    assert_eq!(talk.hear(message(MessageKind::Job, 33)), Meaning::Overflow(33));
    talk.hear(message(MessageKind::Ok, 0));
    assert_eq!(std::iter::from_fn(|| talk.next_queued()).count(), 16);
}

#[test]
fn numbers_that_run_out_are_reset_or_the_connection_is() {
    let mut talk = Talk::new(Side::Worker, Numbering::Current);
    talk.reset_from(6);
    let mut say = BytesMut::new();
    for seq in [0, 2, 4, 6] {
        assert_eq!(talk.wear(), Wear::Fine);
        talk.ask(&mut say, MessageKind::Update, 0);
        talk.hear(message(MessageKind::Ok, seq));
    }
    assert_eq!(talk.wear(), Wear::Reconnect, "an original does not know RESET");
    talk.meet_laboro(true);
    assert_eq!(talk.wear(), Wear::Reset);

    let mut talk = Talk::new(Side::Worker, Numbering::Current);
    talk.meet_laboro(true);
    talk.hear(message(MessageKind::Job, u32::MAX));
    assert_eq!(talk.wear(), Wear::Reconnect, "no number is left for a RESET");
}

/// One side of the simulation: asks at random, answers at random times, starts anew when it must.
struct Player {
    talk: Talk,
    inbox: VecDeque<Frame>,
    to_answer: Vec<u32>,
    under_way: Vec<u32>,
    asked: u32,
    done: u32,
    anew: u32,
}

impl Player {
    fn new(side: Side) -> Player {
        let mut talk = Talk::new(side, Numbering::Current);
        talk.reset_from(60);
        talk.meet_laboro(true);
        let (inbox, to_answer, under_way) = (VecDeque::new(), Vec::new(), Vec::new());
        Player { talk, inbox, to_answer, under_way, asked: 0, done: 0, anew: 0 }
    }

    fn turn(&mut self, dice: u32) -> BytesMut {
        let mut say = BytesMut::new();
        match dice % 4 {
            0 | 1 => {
                if let Some(message) = self.inbox.pop_front() {
                    self.hear(message);
                }
            }
            2 if !self.to_answer.is_empty() => {
                let seq = self.to_answer.remove(0);
                self.talk.answer(&mut say, seq, 0);
            }
            _ if self.talk.may_ask() => match self.talk.wear() {
                Wear::Reset => self.talk.ask_reset(&mut say),
                Wear::Fine => {
                    self.under_way.push(self.talk.ask(&mut say, MessageKind::Stop, 0));
                    self.asked += 1;
                }
                Wear::Reconnect => panic!("a RESET comes in time"),
            },
            _ => {}
        }
        if self.talk.answer_reset(&mut say) {
            self.start_anew();
        }
        say
    }

    fn hear(&mut self, message: Frame) {
        match self.talk.hear(message) {
            Meaning::Request(request) => self.to_answer.push(request.header.seq),
            Meaning::Response(response) => {
                let before = self.under_way.len();
                self.under_way.retain(|&seq| seq != response.header.seq);
                assert_eq!(self.under_way.len(), before - 1, "one answer a request");
                self.done += 1;
            }
            Meaning::Nothing => {}
            Meaning::Anew => self.start_anew(),
            other => panic!("nobody does anything wrong: {other:?}"),
        }
        while let Some(request) = self.talk.next_queued() {
            self.to_answer.push(request.header.seq);
        }
    }

    /// What was dropped is asked again, so it does not count.
    fn start_anew(&mut self) {
        assert!(self.to_answer.is_empty(), "everything below a RESET is answered");
        self.asked -= self.under_way.drain(..).count() as u32;
        self.anew += 1;
    }
}

#[test]
fn both_sides_ask_at_once_and_nothing_is_lost() {
    for seed in 1..200u64 {
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut roll = move || {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice >> 33) as u32
        };
        let mut players = [Player::new(Side::Worker), Player::new(Side::Foreman)];
        for _ in 0..4000 {
            let who = (roll() % 2) as usize;
            let mut said = players[who].turn(roll());
            while let Ok(Some(message)) = frame::take(&mut said, Numbering::Current, 0) {
                players[1 - who].inbox.push_back(message);
            }
        }
        let [worker, foreman] = &players;
        assert!(worker.anew > 2 && foreman.anew > 2, "seed {seed}: numbers ran out");
        for player in &players {
            assert!(player.done > 100, "seed {seed}: {} answers", player.done);
            let open = player.under_way.len() as u32;
            assert_eq!(player.asked, player.done + open, "seed {seed}: a request was lost");
        }
    }
}

#[test]
fn errors_have_the_numbers_of_the_page() {
    for (trouble, code) in [
        (Trouble::Overflow, 1),
        (Trouble::NoProcs, 2),
        (Trouble::BadSeq, 3),
        (Trouble::NoSuchJob, 4),
        (Trouble::Refused, 5),
        (Trouble::NotNow, 6),
        (Trouble::Other(77), 77),
    ] {
        assert_eq!((trouble.code(), Trouble::of(code)), (code, trouble));
    }
}
