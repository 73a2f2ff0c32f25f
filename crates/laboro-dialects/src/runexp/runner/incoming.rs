//! What a manager says, and what a runner makes of it.

use super::job::Running;
use super::{End, Runner, RunnerStage};
use crate::runexp::words::{MESSAGE_BYTES_MAX, ManagerWord, RunnerWord};
use crate::worker::{Assignment, Key, Order, Orders, Parting};
use bytes::BytesMut;
use laboro_core::{Setting, Time, Work};
use std::sync::Arc;

/// No line is slower than 64 KiB a second.
const BODY_BYTES_A_MS: u64 = 64;

impl Runner {
    /// Goes on as far as what was heard allows.
    pub(super) fn go_on(&mut self, now: Time, out: &mut Orders) {
        while out.hang_up.is_none() {
            if let RunnerStage::Taking { left, body, .. } = &mut self.stage {
                if let Some(bytes) = self.heard.body(*left) {
                    *left -= bytes.len() as u64;
                    body.extend_from_slice(&bytes);
                    self.due = Some(now.after_ms(self.options.exchange_ms));
                }
                if *left > 0 {
                    return;
                }
                self.start(now, out);
                continue;
            }
            match self.heard.manager_word() {
                Ok(Some(word)) => self.hear(word, now, out),
                Ok(None) => break,
                Err(error) => out.hang_up(Parting::Malformed(error.to_string())),
            }
        }
        if self.heard.len() > MESSAGE_BYTES_MAX {
            out.hang_up(Parting::Malformed("the manager sends unasked".into()));
        }
    }

    fn hear(&mut self, word: ManagerWord, now: Time, out: &mut Orders) {
        match (&self.stage, word) {
            (RunnerStage::Version, ManagerWord::Versio(version)) => {
                if !self.options.versions.iter().any(|known| known.as_bytes() == version) {
                    let version = version.escape_ascii();
                    let known = self.options.versions.join(", ");
                    let why = format!("the manager speaks version {version}, this runner {known}");
                    out.hang_up(Parting::Refused(why));
                    return;
                }
                self.say(&RunnerWord::Komprenas, out);
                self.expect(RunnerStage::Group, now);
            }
            (RunnerStage::Group, ManagerWord::Aligi(group)) => {
                if group != self.options.group.as_bytes() {
                    let group = group.escape_ascii();
                    let ours = &self.options.group;
                    let why = format!("the manager's group is {group}, this runner's {ours}");
                    out.hang_up(Parting::Refused(why));
                    return;
                }
                self.say(&RunnerWord::Jes, out);
                out.order(Order::welcome(&self.options.host));
                self.quiet_until = Some(now.after_ms(self.options.first_pause_ms));
                self.take_turn();
            }
            (RunnerStage::Asked, ManagerWord::Laboro { name, kind, size }) => {
                if size > self.options.job_bytes_max {
                    let (name, most) = (name.escape_ascii(), self.options.job_bytes_max);
                    let why = format!("the job {name} has {size} bytes, more than {most}");
                    out.hang_up(Parting::Malformed(why));
                    return;
                }
                self.say(&RunnerWord::Preta, out);
                if size == 0 {
                    self.quiet_until = Some(now.after_ms(self.options.empty_pause_ms));
                }
                let body = BytesMut::new();
                self.expect(RunnerStage::Taking { name, kind, left: size, body }, now);
            }
            (RunnerStage::Asked, ManagerWord::Fino) => self.leave_off(End::Finished),
            (RunnerStage::Asked, ManagerWord::Eliri) => self.leave_off(End::Ejected),
            (RunnerStage::Asked, ManagerWord::Atendi) => {
                self.hold_until = Some(now.after_ms(self.options.hold_ms));
                self.take_turn();
            }
            (RunnerStage::Announced, ManagerWord::Preta) => {
                let result = self.results.front().expect("a result is being handed in");
                out.say.extend_from_slice(&result.body);
                out.end_message();
                // The body has to get there first, over a slow line maybe.
                let body_ms = result.body.len() as u64 / BODY_BYTES_A_MS;
                self.expect(RunnerStage::Handing, now.after_ms(body_ms));
            }
            (RunnerStage::Handing, ManagerWord::Ricevis) => {
                self.results.pop_front();
                // The manager may think otherwise of us now.
                self.hold_until = None;
                self.take_turn();
            }
            (_, word) => {
                let why = format!("the manager said `{word}` out of turn");
                out.hang_up(Parting::Malformed(why));
            }
        }
    }

    fn take_turn(&mut self) {
        self.stage = RunnerStage::Free;
        self.due = None;
    }

    /// The worker is not told to drain: it would give back what it was given and has not begun.
    fn leave_off(&mut self, end: End) {
        self.finish(end);
        self.take_turn();
    }

    /// All of a job is there.
    fn start(&mut self, now: Time, out: &mut Orders) {
        let RunnerStage::Taking { name, kind, body, .. } =
            std::mem::replace(&mut self.stage, RunnerStage::Free)
        else {
            unreachable!("a job is started once it was taken");
        };
        self.due = None;
        let kind = String::from_utf8_lossy(&kind);
        let work = Work::script(kind, Arc::from(&body[..]), Arc::new(Setting::default()));
        self.begin(Running::new(name, Arc::new(work), now), out);
    }

    pub(super) fn begin(&mut self, job: Running, out: &mut Orders) {
        let key = Key(self.next_key);
        self.next_key += 1;
        out.order(Order::Start(Box::new(assignment(key, &job))));
        self.running.insert(key, job);
    }
}

fn assignment(key: Key, job: &Running) -> Assignment {
    Assignment {
        key,
        name: String::from_utf8_lossy(&job.name).into_owned(),
        job: 1,
        index: u32::try_from(key.0).unwrap_or(u32::MAX),
        attempt: 1,
        work: Arc::clone(&job.work),
        value: None,
        slots: 1,
        memory: 0,
        time_limit_ms: None,
        resources: Vec::new(),
        role: laboro_core::Role::Only,
        access: None,
    }
}
