//! What is read from files and request bodies: job files, settings, the journal, kept output, the HTTP API.

pub(crate) mod api;
mod damage;
pub(crate) mod journal;
pub(crate) mod kept;
pub(crate) mod outputs;
pub(crate) mod plan;
pub(crate) mod settings;
pub(crate) mod times;
