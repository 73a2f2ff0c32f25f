//! A whole hub from outside its crate: started, stopped, started again, and visited by strangers and by
//! workers over TLS.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod crowd;
mod ended;
mod lives;
mod loads;
mod quotas;
mod rig;
mod slow;
mod versions;
