//! Anything is killed at any time, under load, and the books are checked.

use super::pair::Pair;
use crate::rig::{Live, until};
use rustix::process::Signal;

/// So many rounds; `LABORO_ROUNDS` asks for others.
const ROUNDS: u64 = 2;

#[test]
fn slow_nothing_acknowledged_is_lost_whatever_is_killed() {
    let mut pair = Pair::new(3);
    let worker = pair.worker();
    let thieves = pair.python("thieves.py", &[&pair.dwork(), "enough"]).start();
    let rounds = std::env::var("LABORO_ROUNDS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("LABORO_SEED").ok().and_then(|text| text.parse().ok());
    let mut dice: u64 = seed.unwrap_or(7);
    for round in 0..rounds.unwrap_or(ROUNDS) {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let line = format!("sleep 0.1; echo $1 >> ran.{round}");
        let key = format!("round {round}");
        let mut submit = vec!["submit", "--quiet", "--key", &key, "--array", "1-60", "--"];
        submit.extend(["sh", "-c", &line, "x", "{}"]);
        // The same words with the same key until they are acknowledged.
        let mut job = String::new();
        until("the job is taken", || {
            let ran = pair.call(&submit);
            job = ran.out().trim().to_owned();
            ran.status.success()
        });
        let ran = format!("ran.{round}");
        until("some have run", || pair.rig.lines(&ran).len() > 8);
        let done = pair.done(&job);
        pair.disturb((dice >> 33) as usize);
        pair.refill();
        let waited = pair.call(&["wait", &job, "--timeout", "50s", "--quiet"]);
        assert!(
            waited.status.success(),
            "round {round}: {}\nworker: {}",
            waited.err(),
            worker.err()
        );
        let runs = pair.rig.sorted_lines(&ran);
        let mut each = runs.clone();
        each.dedup();
        assert_eq!(each.len(), 60, "round {round}");
        for task in done {
            let count = runs.iter().filter(|run| **run == task).count();
            assert_eq!(count, 1, "round {round}: task {task} was done and ran again");
        }
    }
    let jobs = pair.call(&["jobs", "--json", "--limit", "0"]).events();
    // And one for everything that came by dwork.
    let made = rounds.unwrap_or(ROUNDS) + 1;
    assert_eq!(jobs.len() as u64, made, "a submit counted twice or not at all");
    pair.rig.write("enough", "");
    let stolen = thieves.wait();
    eprintln!("{}", stolen.expect(0).out());
}

impl Pair {
    /// The numbers of tasks whose end was acknowledged, as the hub says.
    fn done(&self, job: &str) -> Vec<String> {
        let ran = self.call(&["tasks", &format!("{job}/done"), "--json"]);
        ran.events().iter().map(|task| task["task"].to_string()).collect()
    }

    fn disturb(&mut self, dice: usize) {
        let leads = if self.leads(0) { 0 } else { 1 };
        eprintln!("{dice}: {}, hub {leads} leads", dice % 5);
        match dice % 5 {
            0 => {
                let leader = self.cluster.leader("LABORO_it_JOURNAL").unwrap_or(0);
                self.cluster.kill(leader);
                self.cluster.revive(leader);
            }
            1 => {
                let node = (dice / 5) % 3;
                self.cluster.kill(node);
                self.cluster.revive(node);
            }
            2 => {
                self.signal(leads, Signal::KILL);
                self.replace(leads);
            }
            3 => {
                self.signal(leads, Signal::STOP);
                until("the other leads", || self.leads(1 - leads));
                self.signal(leads, Signal::CONT);
                let ended = self.hubs[leads].take().unwrap().wait();
                ended.expect(3).says("another hub has taken over");
                self.replace(leads);
            }
            _ => {
                (0..3).for_each(|node| self.cluster.kill(node));
                (0..3).for_each(|node| self.cluster.revive(node));
            }
        }
        self.cluster.wait_until_healthy();
    }

    /// A hub whose server of NATS was killed may have been overtaken or got no answer, and has ended then.
    fn refill(&mut self) {
        for n in 0..2 {
            if self.hubs[n].as_mut().is_some_and(Live::has_ended) {
                let ended = self.hubs[n].take().unwrap().wait();
                // On a machine that stands still for long it may be NATS that did not answer.
                let told = ended.expect(3).err();
                let is_silent = told.contains("no clear answer from NATS");
                assert!(is_silent || told.contains("another hub has taken over"), "{told}");
                eprintln!("hub {n} has ended: {}", told.lines().last().unwrap_or_default());
                self.start(n);
            }
        }
    }

    /// Once another one leads, this one starts again and follows.
    fn replace(&mut self, n: usize) {
        drop(self.hubs[n].take());
        until("the other leads", || self.leads(1 - n));
        self.start(n);
    }
}
