//! msgpack going out: every value in its smallest form.

use bytes::{BufMut, BytesMut};

#[inline]
pub(crate) fn write_uint(to: &mut BytesMut, n: u64) {
    if n < 0x80 {
        to.put_u8(n as u8);
    } else if let Ok(n) = u8::try_from(n) {
        to.put_slice(&[0xCC, n]);
    } else if let Ok(n) = u16::try_from(n) {
        let [a, b] = n.to_be_bytes();
        to.put_slice(&[0xCD, a, b]);
    } else if let Ok(n) = u32::try_from(n) {
        let [a, b, c, d] = n.to_be_bytes();
        to.put_slice(&[0xCE, a, b, c, d]);
    } else {
        let mut form = [0xCF; 9];
        form[1..].copy_from_slice(&n.to_be_bytes());
        to.put_slice(&form);
    }
}

pub(crate) fn write_int(to: &mut BytesMut, n: i64) {
    if let Ok(n) = u64::try_from(n) {
        write_uint(to, n);
    } else if n >= -32 {
        to.put_i8(n as i8);
    } else if let Ok(n) = i8::try_from(n) {
        to.put_u8(0xD0);
        to.put_i8(n);
    } else if let Ok(n) = i16::try_from(n) {
        to.put_u8(0xD1);
        to.put_i16(n);
    } else if let Ok(n) = i32::try_from(n) {
        to.put_u8(0xD2);
        to.put_i32(n);
    } else {
        to.put_u8(0xD3);
        to.put_i64(n);
    }
}

pub(crate) fn write_nil(to: &mut BytesMut) {
    to.put_u8(0xC0);
}

pub(crate) fn write_bool(to: &mut BytesMut, yes: bool) {
    to.put_u8(if yes { 0xC3 } else { 0xC2 });
}

/// Text is whatever bytes the submitter wrote: the originals do not check either.
pub(crate) fn write_str(to: &mut BytesMut, text: &[u8]) {
    match text.len() {
        length @ 0..=31 => to.put_u8(0xA0 | length as u8),
        length => write_length(to, length, Some(0xD9), 0xDA),
    }
    to.put_slice(text);
}

pub(crate) fn write_bin(to: &mut BytesMut, bytes: &[u8]) {
    write_length(to, bytes.len(), Some(0xC4), 0xC5);
    to.put_slice(bytes);
}

#[inline]
pub(crate) fn write_array(to: &mut BytesMut, length: usize) {
    match length {
        0..=15 => to.put_u8(0x90 | length as u8),
        _ => write_length(to, length, None, 0xDC),
    }
}

pub(crate) fn write_map(to: &mut BytesMut, length: usize) {
    match length {
        0..=15 => to.put_u8(0x80 | length as u8),
        _ => write_length(to, length, None, 0xDE),
    }
}

/// `form8`, where there is one, has one byte of length; `form16` two, and the one after it four.
fn write_length(to: &mut BytesMut, length: usize, form8: Option<u8>, form16: u8) {
    match (form8, u8::try_from(length), u16::try_from(length)) {
        (Some(form), Ok(length), _) => to.put_slice(&[form, length]),
        (_, _, Ok(length)) => {
            to.put_u8(form16);
            to.put_u16(length);
        }
        _ => {
            to.put_u8(form16 + 1);
            to.put_u32(u32::try_from(length).expect("messages stay far below 4 GiB"));
        }
    }
}
