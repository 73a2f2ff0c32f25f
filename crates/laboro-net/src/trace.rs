//! Trace context as the W3C has it: which trace something belongs to, and which span it is a part of. Jobs carry it in the
//! variables that other programs know, `TRACEPARENT` and `TRACESTATE`, so it is in the journal and reaches every worker.
//! Exports nothing.

use std::fmt;

pub const PARENT: &str = "TRACEPARENT";
pub const STATE: &str = "TRACESTATE";
/// The same as a header of a request.
pub const HEADER: &str = "traceparent";

const SAMPLED: u8 = 1;

/// A span and its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    pub flags: u8,
}

impl TraceParent {
    /// A span of this trace that is recorded.
    pub fn recorded(trace: u128, span: u64) -> TraceParent {
        TraceParent { trace, span, flags: SAMPLED }
    }

    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Later versions begin with what version 00 is.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let parts: Vec<&str> = text.split('-').collect();
        let [version, trace, span, flags, more @ ..] = parts.as_slice() else { return None };
        if hex(version, 2)? == 0xff || (*version == "00" && !more.is_empty()) {
            return None;
        }
        let (trace, span) = (hex(trace, 32)?, hex(span, 16)? as u64);
        let flags = hex(flags, 2)? as u8;
        (trace != 0 && span != 0).then_some(TraceParent { trace, span, flags })
    }

    /// The span of one attempt, where this one is its job's: hub and worker find the same without a word.
    #[must_use]
    pub fn of_attempt(self, task: u32, attempt: u16) -> TraceParent {
        let place = u64::from(task) << 16 | u64::from(attempt);
        TraceParent { span: mixed(self.span ^ mixed(place)).max(1), ..self }
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Says in `TRACESTATE` that attempts are spans of their own, and of which span the job's is a part; 0: of none.
pub fn state(before: u64) -> String {
    format!("laboro={before:016x}")
}

/// What `state` says. `None`: attempts are no spans.
pub fn read_state(text: &str) -> Option<u64> {
    let own = text.split(',').find_map(|entry| entry.trim().strip_prefix("laboro="))?;
    Some(hex(own, 16)? as u64)
}

/// So many digits, none of them large.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_good = text.len() == digits && text.bytes().all(is_digit);
    is_good.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

/// The steps of splitmix64: another number for each, that looks like none before.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_standard_allows_is_read_and_nothing_else() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let parent = TraceParent::parse(good).expect("the example of the standard");
        assert!(parent.is_sampled());
        assert_eq!(parent.to_string(), good);
        assert_eq!(TraceParent::parse(&format!("01{}-more", &good[2..])), Some(parent));
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_state_says_what_is_before_the_job() {
        assert_eq!(read_state(&state(0xb7ad)), Some(0xb7ad));
        assert_eq!(read_state("other=1, laboro=0000000000000000"), Some(0));
        for none in ["", "other=1", "laboro=", "laboro=x"] {
            assert_eq!(read_state(none), None, "{none}");
        }
    }

    #[test]
    fn attempts_have_spans_of_their_own() {
        let job = TraceParent::recorded(7, 9);
        let attempts = (1..100_u32).flat_map(|task| (1..100_u16).map(move |one| (task, one)));
        let spans: std::collections::HashSet<u64> =
            attempts.map(|(task, attempt)| job.of_attempt(task, attempt).span).collect();
        assert_eq!(spans.len(), 99 * 99);
        // Workers of other versions compute the same.
        assert_eq!(job.of_attempt(1, 1).span, GOLDEN);
    }

    const GOLDEN: u64 = 0xcc30_93c1_281d_0668;
}
