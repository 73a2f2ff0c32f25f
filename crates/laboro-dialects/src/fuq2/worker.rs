//! The worker's side of the conversation: at a Laboro hub (`native`), and at an original foreman (`plain`).
//! Both keep what they have said until it is answered, and say it again on the next connection.

mod incoming;
mod native;
mod plain;
mod settings;

pub use native::NativeWorker;
pub use plain::{PlainSettings, PlainWorker};
pub use settings::WorkerSettings;
