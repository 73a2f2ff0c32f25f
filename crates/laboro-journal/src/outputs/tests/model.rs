//! Random histories against the simplest store there is: a map in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Op {
    Append(Key, Stream, Vec<u8>),
    End(Key, i32),
    Flush,
    Seal,
    Reopen,
    Forget(u32),
}

#[derive(Default)]
struct Model {
    attempts: BTreeMap<Key, Attempt>,
    forgotten: Vec<u32>,
}

#[derive(Default)]
struct Attempt {
    runs: Vec<(Stream, Vec<u8>)>,
    amounts: Amounts,
    end: Option<End>,
}

const STREAM_BYTES_MAX: u64 = 3000;

fn config() -> Config {
    Config { stream_bytes_max: STREAM_BYTES_MAX, segment_records_max: 40, ..small_segments() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_history_is_read_back_as_it_was(ops in prop::collection::vec(op(), 1..150)) {
        let (dir, mut writer) = store_with(config());
        let mut model = Model::default();
        // From the first moment on, through all that happens.
        let mut old = Reader::open(dir.path()).unwrap();
        let mut follows = BTreeMap::new();
        for op in ops {
            match op {
                Op::Append(key, stream, bytes) if model.takes(key) => {
                    writer.append(key, stream, &bytes).unwrap();
                    model.append(key, stream, &bytes);
                    follows.entry(key).or_insert_with(|| (old.follow(key, Streams::Both), vec![]));
                }
                Op::End(key, code) if model.takes(key) => {
                    let end = writer.end(key, Ending { code, ..Ending::default() }).unwrap();
                    model.end(key, end);
                }
                Op::Append(..) | Op::End(..) => {}
                Op::Flush => writer.flush().unwrap(),
                Op::Seal => writer.seal().unwrap(),
                Op::Reopen => {
                    drop(writer);
                    writer = Writer::open(dir.path(), config()).unwrap();
                }
                Op::Forget(job) => {
                    // Who follows must have looked before: forgotten is forgotten.
                    writer.flush().unwrap();
                    look(&mut follows, &mut old);
                    writer.forget(job..=job).unwrap();
                    model.forgotten.push(job);
                }
            }
        }
        writer.flush().unwrap();
        old.refresh().unwrap();
        model.check(&old);
        model.check(&Reader::open(dir.path()).unwrap());
        look(&mut follows, &mut old);
        for (key, (follow, seen)) in &follows {
            prop_assert_eq!(seen, &model.attempts[key].runs);
            prop_assert_eq!(follow.end().copied(), model.attempts[key].end);
        }
        let running = |(key, attempt): (&Key, &Attempt)| {
            let runs = attempt.end.is_none() && !model.forgotten.contains(&key.job);
            runs.then_some(*key)
        };
        let mut found: Vec<_> = writer.running().collect();
        found.sort();
        prop_assert_eq!(found, model.attempts.iter().filter_map(running).collect::<Vec<_>>());
    }
}

type Follows = BTreeMap<Key, (Follow, Vec<(Stream, Vec<u8>)>)>;

fn look(follows: &mut Follows, reader: &mut Reader) {
    for (follow, seen) in follows.values_mut() {
        while let Some(chunk) = follow.poll(reader) {
            let (stream, bytes) = chunk.unwrap();
            join(seen, stream, &bytes);
        }
    }
}

impl Model {
    /// The store does not remember what has ended; keeping to that is the caller's part.
    fn takes(&self, key: Key) -> bool {
        let ended = self.attempts.get(&key).is_some_and(|attempt| attempt.end.is_some());
        !ended && !self.forgotten.contains(&key.job)
    }

    fn append(&mut self, key: Key, stream: Stream, bytes: &[u8]) {
        let attempt = self.attempts.entry(key).or_default();
        let amount = attempt.amounts.of_mut(stream);
        let kept = bytes.len().min((STREAM_BYTES_MAX - amount.kept) as usize);
        amount.kept += kept as u64;
        amount.dropped += (bytes.len() - kept) as u64;
        if kept > 0 {
            join(&mut attempt.runs, stream, &bytes[..kept]);
        }
    }

    fn end(&mut self, key: Key, end: End) {
        let attempt = self.attempts.entry(key).or_default();
        // A restart forgets how much was dropped before it, so only what is kept can be compared.
        assert_eq!(end.stdout.kept, attempt.amounts.stdout.kept);
        assert_eq!(end.stderr.kept, attempt.amounts.stderr.kept);
        attempt.end = Some(end);
    }

    fn check(&self, reader: &Reader) {
        for (key, attempt) in self.attempts.iter().filter(|(k, _)| !self.forgotten.contains(&k.job))
        {
            assert_eq!(everything(reader, *key), attempt.runs, "{key}");
            assert_eq!(reader.end(*key).unwrap(), attempt.end, "{key}");
            for (stream, streams) in
                [(Stream::Stdout, Streams::Stdout), (Stream::Stderr, Streams::Stderr)]
            {
                let all = stream_of(reader, *key, streams);
                let tail = reader.tail(*key, stream, 100).unwrap();
                assert_eq!(tail, all[all.len().saturating_sub(100)..], "{key} {stream}");
            }
        }
        assert_eq!(reader.damage().count(), 0);
    }
}

fn op() -> impl Strategy<Value = Op> {
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    prop_oneof![
        60 => (any_key(), stream, bytes()).prop_map(|(key, stream, bytes)| Op::Append(key, stream, bytes)),
        20 => (any_key(), any::<i32>()).prop_map(|(key, code)| Op::End(key, code)),
        10 => Just(Op::Flush),
        3 => Just(Op::Seal),
        3 => Just(Op::Reopen),
        1 => (1..4_u32).prop_map(Op::Forget),
    ]
}

fn any_key() -> impl Strategy<Value = Key> {
    (1..4_u32, 0..4_u32, 1..3_u16).prop_map(|(job, index, attempt)| Key { job, index, attempt })
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 1..40),
        2 => prop::collection::vec(any::<u8>(), 500..6000),
    ]
}
