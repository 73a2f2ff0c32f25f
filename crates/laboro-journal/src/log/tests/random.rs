//! Random histories and random damage: what opens is the beginning of what was committed.

use proptest::prelude::*;

use super::*;

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let size = prop_oneof![4 => 0..200usize, 2 => 200..3000usize, 1 => 3000..20_000usize];
    prop::collection::vec(
        (size, any::<u8>()).prop_map(|(size, fill)| {
            (0..size).map(|at| fill.wrapping_add((at % 251) as u8)).collect()
        }),
        1..25,
    )
}

#[derive(Debug, Clone)]
enum Harm {
    Flip(prop::sample::Index),
    Truncate(prop::sample::Index),
    Zero(prop::sample::Index, usize),
    Noise(prop::sample::Index, Vec<u8>),
    Remove,
}

fn harms() -> impl Strategy<Value = Harm> {
    prop_oneof![
        4 => any::<prop::sample::Index>().prop_map(Harm::Flip),
        2 => any::<prop::sample::Index>().prop_map(Harm::Truncate),
        2 => (any::<prop::sample::Index>(), 1..5000usize)
            .prop_map(|(at, count)| Harm::Zero(at, count)),
        2 => (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..500))
            .prop_map(|(at, noise)| Harm::Noise(at, noise)),
        1 => Just(Harm::Remove),
    ]
}

impl Harm {
    /// Does it, and returns the first byte that may be different now.
    fn strike(&self, path: &Path) -> u64 {
        let mut bytes = fs::read(path).unwrap();
        let at = match self {
            Harm::Remove => {
                fs::remove_file(path).unwrap();
                return 0;
            }
            Harm::Flip(at) => {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << (at % 8);
                at
            }
            Harm::Truncate(at) => {
                let at = at.index(bytes.len());
                bytes.truncate(at);
                at
            }
            Harm::Zero(at, count) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + count);
                bytes[at..end].fill(0);
                at
            }
            Harm::Noise(at, noise) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + noise.len());
                bytes[at..end].copy_from_slice(&noise[..end - at]);
                at
            }
        };
        fs::write(path, bytes).unwrap();
        at as u64
    }
}

/// How many records end before byte `at` of the segment, and how many are in earlier ones.
fn records_before(dir: &Path, segment: &Path, at: u64) -> u64 {
    let first: u64 = segment.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let listing = Listing::read(dir).unwrap();
    let walked = walk(&listing, u64::MAX, &mut |_, _, _| Ok(())).unwrap();
    let file = directory::NumberedFile::new(first, segment.to_owned());
    let mut source = Source::open(&file).unwrap();
    let head = source.head(FileKind::Segment).unwrap();
    let mut end = 64;
    let mut expected = scan::Expected { salt: head.salt, number: first, chain: head.chain };
    assert!(walked.damage.is_none());
    while let scan::Next::Record(record) = scan::next(&mut source, end, expected).unwrap() {
        if end + 32 + u64::from(record.length) > at {
            break;
        }
        end += record.stride();
        expected.number += 1;
        expected.chain = record.check;
    }
    expected.number - 1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_committed_comes_back_in_order(rounds in prop::collection::vec(payloads(), 1..4)) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::Os, ..small() };
        let mut all = Vec::new();
        for payloads in rounds {
            let (mut log, recovery, told) = open_with(dir.path(), options.clone(), None).unwrap();
            prop_assert!(recovery.warnings.is_empty());
            prop_assert_eq!(&told.records, &all);
            for payload in payloads {
                all.push((log.commit(&payload).unwrap(), payload));
            }
        }
        prop_assert_eq!(open(dir.path()).unwrap().2.records, all);
    }

    #[test]
    fn after_any_damage_a_log_gives_a_true_beginning_or_refuses(
        payloads in payloads(),
        which in any::<prop::sample::Index>(),
        harm in harms(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { durability: Durability::Os, ..small() };
        let (mut log, ..) = open_with(dir.path(), options, None).unwrap();
        let all: Vec<_> =
            payloads.iter().map(|payload| (log.commit(payload).unwrap(), payload.clone())).collect();
        log.close().unwrap();
        let segments = files(dir.path(), ".log");
        let segment = &segments[which.index(segments.len())];
        let original = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), original.path());
        let at = harm.strike(segment);
        let undamaged =
            records_before(original.path(), &original.path().join(segment.file_name().unwrap()), at);

        match open(dir.path()) {
            Ok((_, _, told)) => {
                prop_assert!(all.starts_with(&told.records));
                prop_assert!(told.records.len() as u64 >= undamaged);
            }
            Err(LogError::Corrupt { .. } | LogError::NewerVersion { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
        match repair(dir.path()) {
            Ok(done) => {
                let (_, recovery, told) = open(dir.path()).unwrap();
                prop_assert_eq!(recovery.last_number, done.last_number);
                prop_assert!(all.starts_with(&told.records));
                prop_assert!(told.records.len() as u64 >= undamaged);
            }
            Err(LogError::NewerVersion { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
