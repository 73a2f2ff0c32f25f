//! `laboro hub` with a dwork door, as the tests call it.

use crate::rig::{Live, Ran, Rig, until};
use rustix::process::Signal;

pub struct Hub<'r> {
    rig: &'r Rig,
    live: Option<Live>,
    options: String,
    pub address: String,
}

impl<'r> Hub<'r> {
    /// With these options of the door, such as `,patience_ms=0`.
    pub fn start(rig: &'r Rig, options: &str) -> Hub<'r> {
        let mut hub = Hub { rig, live: None, options: options.to_owned(), address: String::new() };
        hub.start_again();
        hub
    }

    fn start_again(&mut self) {
        let (dir, door) = (self.rig.at("hub"), format!("dwork=127.0.0.1:0{}", self.options));
        let words = ["hub", "--http", "off", "--native", "off", "--door", &door, "--dir"];
        let live = self.rig.laboro(words.into_iter().chain([dir.to_str().unwrap()])).start();
        until("the door listens", || match live.out().split_once("dwork on ") {
            Some((_, rest)) if rest.contains('\n') => {
                self.address = rest.split(',').next().unwrap().to_owned();
                true
            }
            _ => false,
        });
        self.live = Some(live);
    }

    /// As if its machine had lost its power, then back again.
    pub fn kill_and_restart(&mut self) {
        let live = self.live.take().unwrap();
        live.signal(Signal::KILL);
        live.wait();
        self.start_again();
    }

    pub fn dwork(&self, words: &[&str]) -> Ran {
        let words = ["dwork", "-s", &self.address].into_iter().chain(words.iter().copied());
        self.rig.laboro(words).run()
    }

    /// What is printed when all is well.
    #[track_caller]
    pub fn prints(&self, words: &[&str], text: &str) {
        let ran = self.dwork(words);
        ran.expect(0);
        assert_eq!(ran.out(), text);
    }
}
