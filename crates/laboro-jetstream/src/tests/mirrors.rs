//! Files of one hub come to the next, and only from the one that leads.

use super::cluster::Cluster;
use crate::{Mirror, Options};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Store {
    dir: TempDir,
    mirror: Option<Mirror>,
}

impl Store {
    fn new() -> Store {
        Store { dir: TempDir::new().unwrap(), mirror: None }
    }

    fn path(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("{number:010}.out"))
    }

    fn add(&self, number: u32, bytes: &[u8]) {
        let mut all = std::fs::read(self.path(number)).unwrap_or_default();
        all.extend_from_slice(bytes);
        std::fs::write(self.path(number), all).unwrap();
    }

    fn has(&self, number: u32, bytes: &[u8]) -> bool {
        std::fs::read(self.path(number)).is_ok_and(|found| found == bytes)
    }

    fn follow(&mut self, options: &Options) {
        let dir: &Path = self.dir.path();
        self.mirror = Some(Mirror::follow(options.clone(), dir.to_owned(), Some(1 << 30)).unwrap());
    }

    fn lead(&mut self) {
        let mirror = self.mirror.as_mut().unwrap();
        mirror.lead();
        mirror.ship();
    }

    fn close(&mut self) {
        self.mirror.take().unwrap().close();
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_hub_kept_the_next_one_has_and_one_that_was_overtaken_adds_nothing() {
    let cluster = Cluster::start(1);
    let options = Options { replicas: 1, ..Options::new(&cluster.address(), "test") };
    let (mut a, mut b) = (Store::new(), Store::new());
    // More than one message takes, and kept before anybody asked for copies.
    let large: Vec<u8> = (0..1_500_000_u32).map(|n| n as u8).collect();
    a.add(1, &large);
    a.add(2, b"second");
    a.follow(&options);
    a.lead();
    a.add(3, b"third");
    b.follow(&options);
    until("all is there", || b.has(1, &large) && b.has(2, b"second") && b.has(3, b"third"));
    std::fs::remove_file(a.path(2)).unwrap();
    until("what is gone is gone there too", || !b.path(2).exists());

    b.lead();
    a.add(3, b" by the wrong one");
    b.add(3, b" by the right one");
    b.close();
    a.close();
    a.follow(&options);
    until("the right one counts", || a.has(3, b"third by the right one"));
    let mut c = Store::new();
    c.follow(&options);
    c.lead();
    assert!(c.has(1, &large) && c.has(3, b"third by the right one") && !c.path(2).exists());
}

#[test]
fn what_was_not_copied_when_nobody_else_went_on_is_copied_later() {
    let cluster = Cluster::start(1);
    let options = Options { replicas: 1, ..Options::new(&cluster.address(), "test") };
    let mut a = Store::new();
    a.follow(&options);
    a.lead();
    a.add(1, b"copied");
    a.close();
    a.add(1, b" and not");
    a.follow(&options);
    a.lead();
    a.close();
    let mut b = Store::new();
    b.follow(&options);
    b.lead();
    assert!(b.has(1, b"copied and not"));
}
