//! Frames and bodies of fuq and of Laboro's own workers.

use laboro_dialects::{fuq1, fuq2};

pub(crate) fn first(bytes: &[u8]) {
    fuq1::probe(bytes);
}

pub(crate) fn frames(bytes: &[u8]) {
    fuq2::probe_frames(bytes);
}

pub(crate) fn bodies(bytes: &[u8]) {
    fuq2::probe_bodies(bytes);
}

pub(crate) fn native(bytes: &[u8]) {
    fuq2::probe_native(bytes);
}
