//! Where a hub is, or hubs of which one leads: the places the client was given, and those it was sent to. The one that
//! answered last is tried first.

use super::Target;
use hyper::Uri;
use std::sync::{Mutex, PoisonError};

pub(super) type Place = (String, u16);

/// Hubs that are told of are added up to here.
const PLACES_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Places {
    known: Mutex<Vec<Place>>,
    is_one_hub: bool,
}

impl Places {
    pub fn of(target: &Target) -> Places {
        let mut places = vec![(target.host.clone(), target.port)];
        places.extend_from_slice(&target.others);
        Places { known: Mutex::new(places), is_one_hub: target.is_one_hub }
    }

    pub fn all(&self) -> Vec<Place> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Of several hubs another one may take over.
    pub fn are_several_hubs(&self) -> bool {
        !self.is_one_hub && self.known.lock().unwrap_or_else(PoisonError::into_inner).len() > 1
    }

    pub fn prefer(&self, place: Place) {
        let mut places = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|other| *other != place);
        places.insert(0, place);
        places.truncate(PLACES_MAX);
    }
}

/// Of a whole address, as in `Location`.
pub(super) fn place(address: &str) -> Option<Place> {
    let uri: Uri = address.parse().ok()?;
    let host = uri.host()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host.to_owned(), uri.port_u16()?))
}
