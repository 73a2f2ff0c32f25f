//! `laboro mq` from outside: three real processes and the dialogue of their consoles, programs of libzmq in the
//! role of each, and what happens when something goes wrong.

mod dialogue;
mod door;
mod faults;
mod libzmq;
mod programs;
pub mod rig;
