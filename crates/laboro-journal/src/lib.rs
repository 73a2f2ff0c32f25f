//! What Laboro remembers on disk. It decides nothing: it keeps what it is given and gives it back.

pub mod outputs;
