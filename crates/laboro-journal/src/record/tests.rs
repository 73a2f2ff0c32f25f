//! Records go to bytes and come back; what is not a record is refused in words.

mod golden;
mod hostile;
mod round_trip;
mod samples;
pub(crate) mod strategies;

use super::{Decoder, Encoder, RecordError};
use laboro_core::{Event, Time};

fn encoded(at: Time, events: &[Event]) -> Vec<u8> {
    Encoder::default().batch(at, events).to_vec()
}

fn decoded(bytes: &[u8]) -> Result<(Time, Vec<Event>), RecordError> {
    let mut decoder = Decoder::default();
    let events = decoder.record(bytes)?;
    Ok((events.at(), events.collect::<Result<_, _>>()?))
}
