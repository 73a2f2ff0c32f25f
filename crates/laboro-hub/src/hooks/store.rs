//! Deliveries and the place in the order of ended jobs, as the hub's thread of hooks looks at them. Each is a document in the
//! journal; what is due and the place are changed together, before anything is done about it.

use super::old_file;
use crate::documents::{DocumentError, Opening, set};
use laboro_api::DeliveryState;
use laboro_core::{DocumentChange, JobId, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// One thing that one receiver is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub number: u64,
    pub event: String,
    pub at_ms: u64,
    pub to: String,
    pub text: String,
    /// Empty when it was delivered: nobody needs it then.
    #[serde(default)]
    pub body: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What signs it, if not what signs all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_file: Option<PathBuf>,
    #[serde(default)]
    pub state: DeliveryState,
    #[serde(default)]
    pub tries: u32,
    /// Not before.
    #[serde(default)]
    pub next_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Delivery {
    /// The same for every try.
    pub fn id(&self) -> String {
        format!("{}-{}", self.at_ms, self.number)
    }
}

/// The last job that was looked at, by when it ended.
pub(super) type Cursor = (Time, JobId);

/// Where the look at ended jobs goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PlaceDocument", into = "PlaceDocument")]
pub(super) struct Place {
    pub cursor: Cursor,
    /// Deliveries that were left out because too many waited.
    pub dropped: u64,
}

#[derive(Serialize, Deserialize)]
struct PlaceDocument {
    cursor: (u64, u32),
    #[serde(default)]
    dropped: u64,
}

impl From<PlaceDocument> for Place {
    fn from(document: PlaceDocument) -> Place {
        let (time, job) = document.cursor;
        Place { cursor: (Time(time), JobId(job)), dropped: document.dropped }
    }
}

impl From<Place> for PlaceDocument {
    fn from(place: Place) -> PlaceDocument {
        let (time, job) = place.cursor;
        PlaceDocument { cursor: (time.0, job.0), dropped: place.dropped }
    }
}

/// Documents of deliveries have their number as a name.
const DELIVERY: &str = "delivery";
const PLACE: &str = "hooks";
const PLACE_NAME: &str = "place";

#[derive(Debug)]
pub(super) struct Store {
    pub place: Place,
    all: BTreeMap<u64, Delivery>,
    /// How many of them wait.
    pending: usize,
}

/// What one change writes.
#[derive(Debug)]
pub(super) struct Update {
    place: Option<Place>,
    deliveries: Vec<Delivery>,
    gone: Vec<u64>,
}

impl Update {
    pub fn changes(&self) -> Vec<DocumentChange> {
        let place = self.place.map(|place| set(PLACE, PLACE_NAME, &place));
        let deliveries = self.deliveries.iter();
        let deliveries = deliveries.map(|one| set(DELIVERY, &one.number.to_string(), one));
        let gone = self.gone.iter();
        let gone = gone.map(|number| DocumentChange::remove(DELIVERY, &number.to_string()));
        place.into_iter().chain(deliveries).chain(gone).collect()
    }
}

/// Deliveries that are over and can still be looked at.
const ENDED_KEPT: usize = 500;
/// They are forgotten several at once.
const ENDED_SPARE: usize = 50;

impl Store {
    /// `now` is where a hub begins that has no hooks yet: what ended before is not told. `file` is that of earlier versions.
    pub fn open(opening: &mut Opening<'_>, file: &Path, now: Time) -> Result<Store, DocumentError> {
        let mut places = opening.read(PLACE)?;
        let deliveries: Vec<(String, Delivery)> = opening.read(DELIVERY)?;
        let mut all: BTreeMap<u64, Delivery> =
            deliveries.into_iter().map(|(_, one)| (one.number, one)).collect();
        let mut place = places.pop().map(|(_, place)| place);
        let mut new = Update { place: None, deliveries: Vec::new(), gone: Vec::new() };
        if let Some(old) = old_file::read(file)? {
            place = place.or(old.place);
            new.deliveries =
                old.deliveries.into_iter().filter(|one| !all.contains_key(&one.number)).collect();
            all.extend(new.deliveries.iter().map(|one| (one.number, one.clone())));
            opening.replaces(file);
        }
        let place = place.unwrap_or(Place { cursor: (now, JobId(u32::MAX)), dropped: 0 });
        new.place = Some(place);
        opening.write(new.changes());
        let pending = all.values().filter(|one| one.state == DeliveryState::Pending).count();
        Ok(Store { place, all, pending })
    }

    pub fn pending(&self) -> usize {
        self.pending
    }

    /// The newest first.
    pub fn all(&self) -> impl Iterator<Item = &Delivery> {
        self.all.values().rev()
    }

    pub fn get(&self, number: u64) -> Option<&Delivery> {
        self.all.get(&number)
    }

    /// Those that wait, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &Delivery> {
        self.all.values().filter(|one| one.state == DeliveryState::Pending)
    }

    /// New ones, which get their numbers here.
    pub fn queued(&self, mut new: Vec<Delivery>, cursor: Option<Cursor>) -> Update {
        let last = self.all.last_key_value().map_or(0, |(number, _)| *number);
        for (delivery, number) in new.iter_mut().zip(last + 1..) {
            delivery.number = number;
        }
        let place = Place { cursor: cursor.unwrap_or(self.place.cursor), ..self.place };
        Update { place: Some(place), deliveries: new, gone: Vec::new() }
    }

    /// One as it is now.
    pub fn changed(&self, delivery: Delivery) -> Update {
        let mut gone = Vec::new();
        if self.all.len() - self.pending > ENDED_KEPT + ENDED_SPARE {
            let is_over = |one: &&Delivery| one.state != DeliveryState::Pending;
            let over = self.all.values().filter(is_over).map(|one| one.number);
            gone = over.filter(|number| *number != delivery.number).take(ENDED_SPARE).collect();
        }
        Update { place: None, deliveries: vec![delivery], gone }
    }

    /// It is on the disk.
    pub fn put(&mut self, update: Update) {
        self.place = update.place.unwrap_or(self.place);
        for number in update.gone {
            self.count(number, usize::wrapping_sub);
            self.all.remove(&number);
        }
        for delivery in update.deliveries {
            let number = delivery.number;
            self.count(number, usize::wrapping_sub);
            self.all.insert(number, delivery);
            self.count(number, usize::wrapping_add);
        }
    }

    fn count(&mut self, number: u64, change: fn(usize, usize) -> usize) {
        let is_pending =
            self.all.get(&number).is_some_and(|one| one.state == DeliveryState::Pending);
        self.pending = change(self.pending, usize::from(is_pending));
    }
}
