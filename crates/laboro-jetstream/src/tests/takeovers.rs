//! Several hubs and one stream, with pauses at the worst moments: nothing that was acknowledged is lost, and
//! nobody reads what is not true any more.

use super::model::Model;
use super::world::{LEASE, begin, encoded, ledger, submit, tasks};
use crate::journal::{Lease, StreamError};
use crate::lead::{Led, Terms, Wish, take_lead};
use crate::message::Kind;
use crate::pen::{Pen, PenError};
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

struct Sea {
    journal: Model,
    snapshots: Model,
    dice: Cell<u64>,
    acknowledged: RefCell<Vec<String>>,
    takeovers: Cell<u64>,
}

impl Sea {
    fn below(&self, limit: u64) -> u64 {
        self.dice.set(self.dice.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        (self.dice.get() >> 33) % limit
    }

    fn terms(&self, wish: Wish) -> Terms {
        let writer = self.below(u64::MAX >> 1);
        Terms {
            writer,
            part_bytes: 100,
            lease: LEASE,
            patience: Duration::from_secs(60),
            wish,
            about: Default::default(),
        }
    }

    async fn lead(&self, wish: Wish) -> Result<Led<Model>, StreamError> {
        let (follow, _) = watch::channel(Default::default());
        let mut snapshots = self.snapshots.clone();
        take_lead(self.journal.clone(), &mut snapshots, &self.terms(wish), &follow).await
    }

    /// Leads until another one does, or it is tired of it.
    async fn hub(&self, name: &str) -> Result<(), PenError> {
        let Ok(Led { mut pen, reader }) = self.lead(Wish::Follow).await else { return Ok(()) };
        self.takeovers.set(self.takeovers.get() + 1);
        let lease = Lease::new(LEASE);
        let (mut hub, first) = begin(reader.replay.ledger);
        self.write(&mut pen, &lease, &encoded(&first)).await?;
        for n in 0..self.below(30) {
            let task = format!("{name}.{}.{n}", hub.ledger().life());
            let batch = submit(&mut hub, &task, None);
            let before = self.acknowledged.borrow().len() as u64;
            self.write(&mut pen, &lease, &encoded(&batch)).await?;
            self.acknowledged.borrow_mut().push(task);
            self.pause().await;
            if lease.is_held() {
                let known = self.acknowledged.borrow().len() as u64;
                assert!(tasks(hub.ledger()) >= known.max(before), "{name} read what is not true");
            }
        }
        if self.below(2) == 0 {
            pen.word(Kind::Bye, &[]).await?;
        }
        Ok(())
    }

    async fn write(
        &self,
        pen: &mut Pen<Model>,
        lease: &Lease,
        bytes: &[u8],
    ) -> Result<(), PenError> {
        while pen.written().elapsed() > LEASE / 3 && self.below(2) == 0 {
            pen.word(Kind::Alive, &[]).await?;
        }
        pen.record(bytes).await?;
        lease.renew(pen.written());
        Ok(())
    }

    /// Now and then as long as if it had been stopped.
    async fn pause(&self) {
        let ms = if self.below(12) == 0 { self.below(10_000) } else { self.below(400) };
        sleep(Duration::from_millis(ms)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_leads_and_however_often_nothing_acknowledged_is_lost() {
    let mut takeovers = 0;
    let seeds = std::env::var("LABORO_SEEDS").ok().and_then(|text| text.parse().ok());
    for seed in 0..seeds.unwrap_or(25) {
        let sea = Sea {
            journal: Model::new(seed).with_trouble(seed % 40, 300),
            snapshots: Model::new(seed),
            dice: Cell::new(seed.wrapping_mul(77) | 1),
            acknowledged: RefCell::default(),
            takeovers: Cell::new(0),
        };
        let life = |name: &'static str| async {
            for _ in 0..4 {
                // Fenced, without an answer for too long, or killed at any point: a new one starts.
                let killed = Duration::from_millis(1000 + sea.below(40_000));
                let _ = tokio::time::timeout(killed, sea.hub(name)).await;
                sea.pause().await;
            }
        };
        tokio::join!(life("a"), life("b"), life("c"));
        let (journal, snapshots) = (sea.journal.clone(), sea.snapshots.clone());
        let text = std::thread::spawn(move || ledger(&journal, &snapshots).describe());
        let text = text.join().unwrap();
        for task in sea.acknowledged.borrow().iter() {
            assert!(text.contains(task.as_str()), "seed {seed}: {task} is lost");
        }
        takeovers += sea.takeovers.get();
    }
    assert!(takeovers > 4 * seeds.unwrap_or(25), "{takeovers} takeovers show too little");
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_says_good_bye_is_followed_at_once_and_a_dead_one_after_its_lease() {
    let sea = Sea {
        journal: Model::new(1),
        snapshots: Model::new(1),
        dice: Cell::new(9),
        acknowledged: RefCell::default(),
        takeovers: Cell::new(0),
    };
    let begun = tokio::time::Instant::now();
    let mut first = sea.lead(Wish::Lead).await.unwrap();
    first.pen.word(Kind::Bye, &[]).await.unwrap();
    let _dead = sea.lead(Wish::Lead).await.unwrap();
    assert!(begun.elapsed() < Duration::from_millis(500));
    let _next = sea.lead(Wish::Lead).await.unwrap();
    assert!(begun.elapsed() >= LEASE && begun.elapsed() < 2 * LEASE, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn while_another_hub_leads_one_that_does_not_follow_is_refused() {
    let sea = Sea {
        journal: Model::new(1),
        snapshots: Model::new(1),
        dice: Cell::new(9),
        acknowledged: RefCell::default(),
        takeovers: Cell::new(0),
    };
    let mut first = sea.lead(Wish::Lead).await.unwrap();
    let alive = async {
        loop {
            sleep(LEASE / 3).await;
            first.pen.word(Kind::Alive, &[]).await.unwrap();
        }
    };
    let told = tokio::select! {
        () = alive => unreachable!(),
        told = sea.lead(Wish::Lead) => told.err().unwrap().to_string(),
    };
    assert!(told.contains("another hub of this name is the leader (life 1)"), "{told}");
}
