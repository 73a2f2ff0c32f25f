//! The data that the example programs ask for and send: records of an offset, a count and so many ones.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// So many ones, in one record.
pub fn data(ones: u32) -> Bytes {
    let mut data = BytesMut::with_capacity(8 + ones as usize);
    if ones > 0 {
        data.put_u32_le(0);
        data.put_u32_le(ones);
        data.put_bytes(1, ones as usize);
    }
    data.freeze()
}

/// How many ones there are; `None` when the data is anything else.
pub fn ones(mut data: &[u8]) -> Option<u64> {
    let mut ones = 0;
    while !data.is_empty() {
        if data.len() < 8 {
            return None;
        }
        let _offset = data.get_u32_le();
        let count = data.get_u32_le();
        let (record, rest) = data.split_at_checked(usize::try_from(count).ok()?)?;
        if record.iter().any(|&byte| byte != 1) {
            return None;
        }
        ones += u64::from(count);
        data = rest;
    }
    Some(ones)
}
