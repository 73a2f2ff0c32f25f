//! A hub with a fuq door, and Python to talk to it.

use crate::rig::{Call, Live, Ran, Rig, until};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;

pub struct Hub<'a> {
    rig: &'a Rig,
    pub live: Live,
    pub address: String,
    pub password: String,
}

/// What a script came to.
pub struct Said {
    pub ran: Ran,
}

impl Said {
    pub fn says_good(&self) {
        self.ran.expect(0);
        assert_eq!(self.ran.out().trim(), "good");
    }
}

pub fn python(rig: &Rig, script: &str, arguments: &[&str]) -> Call {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let made = here.join("../../target/python/bin/python3");
    let named = std::env::var_os("LABORO_PYTHON").map(PathBuf::from);
    let program = named.unwrap_or(if made.exists() { made } else { "python3".into() });
    let mut command = Command::new(program);
    command.arg(here.join("tests/fuq").join(script)).args(arguments);
    rig.call(command)
}

impl Hub<'_> {
    pub fn start<'a>(rig: &'a Rig, options: &str) -> Hub<'a> {
        Hub::start_with(rig, options, &[])
    }

    pub fn start_with<'a>(rig: &'a Rig, options: &str, more: &[&str]) -> Hub<'a> {
        Hub::start_at(rig, "127.0.0.1:0", options, more)
    }

    /// Kills it and starts it again at the same address.
    pub fn killed(self, options: &str, more: &[&str]) -> Self {
        let Hub { rig, live, address, .. } = self;
        live.signal(Signal::KILL);
        live.wait();
        Hub::start_at(rig, &address, options, more)
    }

    /// The same, as it is told to.
    pub fn stopped(self, options: &str, more: &[&str]) -> Self {
        let (rig, address) = (self.rig, self.address.clone());
        self.ends_well();
        Hub::start_at(rig, &address, options, more)
    }

    fn start_at<'a>(rig: &'a Rig, address: &str, options: &str, more: &[&str]) -> Hub<'a> {
        let door = format!("--door=fuq={address}{options}");
        let always = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
        let words = always.iter().copied().chain(["--durability=os", &door]);
        let live = rig.laboro(words.chain(more.iter().copied())).start();
        until("it listens", || live.out().contains("fuq on "));
        let out = live.out();
        let line = out.lines().find_map(|line| line.strip_prefix("fuq on ")).unwrap();
        let address = line.split(',').next().unwrap().to_owned();
        let password = rig.read("hub/fuq.auth");
        let password = password.strip_prefix("auth ").unwrap().trim().to_owned();
        Hub { rig, live, address, password }
    }

    pub fn call(&self, case: &str, more: &[&str]) -> Call {
        let always = [self.address.as_str(), "hub/tls.pem", &self.password, case];
        python(self.rig, "client.py", &[&always, more].concat())
    }

    pub fn python(&self, case: &str, more: &[&str]) -> Said {
        Said { ran: self.call(case, more).run() }
    }

    /// A job that writes its number to its log.
    pub fn queue(&self, name: &str, tasks: u32) {
        let dir = self.rig.dir().to_str().unwrap();
        self.rig.write("say", "#!/bin/sh\necho task $1\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.rig.at("say"), mode).unwrap();
        std::fs::create_dir_all(self.rig.at("logs")).unwrap();
        self.python("queue", &[name, &tasks.to_string(), dir]).says_good();
    }

    /// Of all jobs, oldest first.
    pub fn statuses(&self) -> Vec<String> {
        let said = self.python("statuses", &[]);
        said.ran.expect(0);
        said.ran.out().split_whitespace().map(str::to_owned).collect()
    }

    pub fn ends_well(self) {
        self.live.signal(Signal::TERM);
        let ran = self.live.wait();
        ran.expect(0);
        assert!(!ran.err().contains("ERROR"), "{}", ran.err());
        assert!(!ran.err().contains("panicked"), "{}", ran.err());
    }
}
