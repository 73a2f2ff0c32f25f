//! A small dialect of our own for testing what carries it: one message a line, in words.

use bytes::{Bytes, BytesMut};
use laboro_core::*;
use laboro_dialects::session::{Chunk, Delivery, HangUp, Output, Session, SessionContext, Stream};

pub struct Lines {
    context: SessionContext,
    worker: Option<Name>,
    /// Said when this time has come.
    alarm: Option<Time>,
    late: Late,
}

/// What becomes of lines that come when the hub stops.
#[derive(PartialEq)]
enum Late {
    Unheard,
    Answered,
    AnsweredNow,
}

impl Lines {
    pub fn new(context: SessionContext) -> Lines {
        Lines { context, worker: None, alarm: None, late: Late::Unheard }
    }

    fn hear(&mut self, now: Time, line: &str, out: &mut Output) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            _ if self.late == Late::AnsweredNow => out.say_message(b"too late\n"),
            ["answer", "late"] => {
                self.late = Late::Answered;
                out.say_message(b"fine\n");
            }
            ["hello"] => out.say_message(b"hello\n"),
            ["ask"] => out.ask(1, Command::Query(Query::Groups)),
            ["flood", bytes] => {
                let bytes: usize = bytes.parse().unwrap();
                out.say.resize(out.say.len() + bytes, b'x');
                out.end_message();
            }
            ["wake", ms] => self.alarm = Some(now.after_ms(ms.parse().unwrap())),
            ["secret", secret] => {
                match self.context.admission.admit_worker(secret.as_bytes(), self.context.peer, now)
                {
                    Ok(_) => out.say_message(b"welcome\n"),
                    Err(denied) => out.hang_up(HangUp::Denied(denied.0)),
                }
            }
            ["submit", count] => out.ask(2, submit(&self.context.group, count.parse().unwrap())),
            ["join", name] => self.join(name, out),
            ["print", task, text] => {
                let (task, lease, attempt) = parse(task);
                let bytes = Bytes::copy_from_slice(text.as_bytes());
                out.keep.push(Chunk {
                    task,
                    lease,
                    attempt,
                    stream: Stream::Out,
                    offset: None,
                    bytes,
                });
            }
            ["done", task] => {
                let (task, lease, _) = parse(task);
                let lease = LeaseRef::Number { task, lease };
                let result =
                    TaskResult { lease, outcome: Outcome::Success, message: None, memo: None };
                out.ask(4, Command::Report(Report { worker: self.own(), results: vec![result] }));
            }
            ["bye"] => {
                out.say_message(b"goodbye\n");
                out.hang_up(HangUp::Finished);
            }
            _ => {
                out.say_message(b"what?\n");
                out.malformed(format!("{line:?} is not a line of ours"));
            }
        }
    }

    fn join(&mut self, name: &str, out: &mut Output) {
        self.worker = Some(name.into());
        out.ask(
            3,
            Command::Join(Join::new(
                self.context.group.clone(),
                name,
                "lines",
                self.context.session,
            )),
        );
        let route = Route::Push { ahead: 0 };
        out.ask(3, Command::Offer(Offer { worker: self.own(), route, lease_ms: None }));
    }

    fn own(&self) -> WorkerRef {
        let name = self.worker.clone().unwrap();
        WorkerRef::Name { group: self.context.group.clone(), name }
    }
}

impl Session for Lines {
    fn open(&mut self, _: Time, out: &mut Output) {
        out.say_message(b"lines 1\n");
    }

    fn receive(&mut self, now: Time, input: &mut BytesMut, out: &mut Output) {
        while let Some(end) = input.iter().position(|&byte| byte == b'\n') {
            let line = input.split_to(end + 1);
            self.hear(now, std::str::from_utf8(&line[..end]).unwrap_or("rubbish"), out);
        }
    }

    fn deliver(&mut self, _: Time, delivery: Delivery, out: &mut Output) {
        let line = match delivery {
            Delivery::Reply { reply: Reply::Submitted { job, .. }, .. } => {
                format!("submitted {job}\n")
            }
            Delivery::Reply { tag, .. } => format!("answer {tag}\n"),
            Delivery::Work { grants, .. } => {
                let word = |grant: &Grant| {
                    let (job, index) = (grant.task.job.0, grant.task.index);
                    format!("work {job}/{index}/{}/{}\n", grant.lease.0, grant.attempt)
                };
                grants.iter().map(word).collect()
            }
            Delivery::Revoke { .. } | Delivery::Stop { .. } | Delivery::Replaced => "stop\n".into(),
        };
        out.say_message(line.as_bytes());
    }

    fn deadline(&self) -> Option<Time> {
        self.alarm
    }

    fn tick(&mut self, _: Time, out: &mut Output) {
        self.alarm = None;
        out.say_message(b"awake\n");
    }

    fn last_words(&mut self, _: Time, out: &mut Output) {
        if self.late == Late::Answered {
            self.late = Late::AnsweredNow;
            out.say_message(b"stopping\n");
        }
    }

    fn answers_late(&self) -> bool {
        self.late == Late::AnsweredNow
    }

    fn close(&mut self, _: Time, out: &mut Output) {
        if self.worker.is_some() {
            let session = Some(self.context.session);
            let leave = Leave { worker: self.own(), session, how: Leaving::Gone };
            out.ask(5, Command::Leave(leave));
        }
    }
}

fn parse(text: &str) -> (TaskId, LeaseNo, u16) {
    let numbers: Vec<u64> = text.split('/').map(|number| number.parse().unwrap()).collect();
    let [job, index, lease, attempt] = numbers[..] else { panic!("{text}") };
    (TaskId::new(JobId(job as u32), index as u32), LeaseNo(lease), attempt as u16)
}

fn submit(group: &Name, count: u32) -> Command {
    Command::Submit(Submit {
        group: group.clone(),
        job: SubmitTo::New(JobOptions::default()),
        profiles: vec![Profile::default()],
        tasks: Vec::new(),
        arrays: vec![ArraySpec::numbered("", count, Work::Named)],
        unknown_pred: UnknownPred::Refuse,
        if_taken: IfTaken::Refuse,
    })
}
