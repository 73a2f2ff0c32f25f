//! As much msgpack as the fuq payloads need: the smallest form of every number going out, every form coming
//! in. Reading never allocates for more than the bytes that are there, and skipping does not recurse.
//! Written by hand: it is small, and the order of keys and the forms of numbers are the dialect's own.

mod reader;
mod writer;

pub(crate) use reader::{PackError, PackReader};
pub(crate) use writer::{
    write_array, write_bin, write_bool, write_int, write_map, write_nil, write_str, write_uint,
};
