//! Bytes as hexadecimal digits and back, for fingerprints and tokens.

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && text.len().is_multiple_of(2)).then_some(())?;
    (0..text.len()).step_by(2).map(pair).collect()
}
