//! The resource `mem` of `hq`. HyperQueue counts it in MiB, and aiida-hyperqueue asks so; Nextflow's executor was written
//! for a version that counted in bytes. No task that Nextflow starts gets along with less than 8 MiB, and no machine has
//! 8 TiB, so the number itself tells which is meant.

const BYTES_FROM: u64 = 8 << 20;

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let number: u64 =
        text.parse().map_err(|_| format!("--resource mem={text}: a whole number of MiB"))?;
    Ok(if number >= BYTES_FROM { number } else { number << 20 })
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn memory_is_in_mib_or_where_that_cannot_be_in_bytes() {
        assert_eq!(bytes("256"), Ok(256 << 20));
        assert_eq!(bytes("2147483648"), Ok(2 << 30));
        assert_eq!(bytes("8388607"), Ok(8_388_607 << 20));
        assert!(bytes("2 GB").is_err());
    }
}
