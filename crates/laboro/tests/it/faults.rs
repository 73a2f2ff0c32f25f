//! What happens to real processes when something outside of them goes wrong: they are killed or stand still, the way
//! between them is cut, the disk is full, files run out, memory runs out, clocks jump. More of the kind, with thousands of peers, is in
//! `bench/faults`.

mod cable;
mod cuts;
mod local;
mod machine;
mod outputs;
mod peers;
mod stage;
mod time;

use crate::rig::{LABORO, Live, Ran, Rig, until};
use rustix::process::Signal;
use std::process::Command;

/// `laboro hub` as a process of its own, always at the same addresses.
struct Hub<'r> {
    rig: &'r Rig,
    live: Live,
    doors: Vec<String>,
}

impl<'r> Hub<'r> {
    /// With these doors, such as `dwork`, or `dwork` and its options.
    fn start(rig: &'r Rig, doors: &[&str], config: &str) -> Hub<'r> {
        Hub::start_in(rig, &[], &[], doors, config)
    }

    /// Below a command that gives it its surroundings, and with these variables.
    fn start_in(
        rig: &'r Rig,
        before: &[&str],
        variables: &[(&str, &str)],
        doors: &[&str],
        config: &str,
    ) -> Hub<'r> {
        if !config.is_empty() {
            rig.write("hub.toml", config);
        }
        let mut words: Vec<String> =
            ["hub", "--dir=hub", "--durability=os"].map(str::to_owned).to_vec();
        if !config.is_empty() {
            words.push("--config=hub.toml".to_owned());
        }
        // Where it was before, so that workers find it again.
        let known = rig.lines("addresses");
        let place = |door: &str| {
            let known = known.iter().find_map(|line| line.strip_prefix(&format!("{door} ")));
            known.unwrap_or("127.0.0.1:0").to_owned()
        };
        words.push(format!("--http={}", place("http")));
        words.push(format!("--native={}", place("native")));
        for door in doors {
            let (dialect, options) = door.split_once(',').unwrap_or((door, ""));
            let comma = if options.is_empty() { "" } else { "," };
            words.push(format!("--door={dialect}={}{comma}{options}", place(dialect)));
        }
        let mut command = match before {
            [] => Command::new(LABORO),
            [program, rest @ ..] => {
                let mut command = Command::new(program);
                command.args(rest).arg(LABORO);
                command
            }
        };
        command.args(&words);
        let mut call = rig.call(command);
        for (name, value) in variables {
            call = call.env(name, value);
        }
        let live = call.start();
        let doors: Vec<String> = ["native", "http"]
            .into_iter()
            .chain(doors.iter().map(|door| door.split(',').next().unwrap()))
            .map(str::to_owned)
            .collect();
        let hub = Hub { rig, live, doors };
        until("it listens", || hub.doors.iter().all(|door| hub.find(door).is_some()));
        let lines: Vec<String> =
            hub.doors.iter().map(|door| format!("{door} {}\n", hub.address(door))).collect();
        rig.write("addresses", lines.concat());
        hub
    }

    fn find(&self, door: &str) -> Option<String> {
        let out = self.live.out();
        // Only whole lines.
        let out = &out[..out.rfind('\n')? + 1];
        let line = out.lines().find_map(|line| line.strip_prefix(&format!("{door} on ")))?;
        let address = line.split([',', ' ']).next()?;
        Some(address.trim_start_matches("https://").trim_end_matches('/').to_owned())
    }

    fn address(&self, door: &str) -> String {
        self.find(door).unwrap_or_else(|| panic!("no door {door} in {}", self.live.out()))
    }

    fn laboro(&self, words: &[&str]) -> Ran {
        self.rig
            .laboro(words.iter().copied())
            .env("LABORO_DIR", self.rig.at("hub").to_str().unwrap())
            .run()
    }

    /// Goes well; gives what was printed.
    #[track_caller]
    fn out(&self, words: &[&str]) -> String {
        self.laboro(words).expect(0).out().trim_end().to_owned()
    }

    /// A worker of the hub itself, with one slot.
    fn worker(&self, name: &str, more: &[&str]) -> Live {
        let access = self.rig.at("hub/access.toml");
        let always = ["worker", "--access", access.to_str().unwrap(), "--name", name];
        let words = always.iter().chain(&["--scratch", ".", "-j", "1"]).chain(more);
        self.rig.laboro(words.copied()).start()
    }

    fn kill(self) {
        self.live.signal(Signal::KILL);
        self.live.wait();
    }

    fn stop(self) {
        self.live.signal(Signal::TERM);
        self.live.wait().expect(0);
    }
}
