//! What is written is read back, what is not known is skipped or refused as it says of itself, and no bytes panic.

use super::{FieldError, Fields, Writer};
use crate::{Amount, Backoff, Name, Needs, Profile, Request, Runner, Setting, Stdin, Warning};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Box<[u8]>> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Vec::into_boxed_slice)
}

fn stdin() -> impl Strategy<Value = Stdin> {
    prop_oneof![Just(Stdin::Null), text().prop_map(Stdin::Text), text().prop_map(Stdin::File)]
}

fn setting() -> impl Strategy<Value = Setting> {
    let path = || prop::option::of(text());
    let env = prop::collection::vec((text(), text()), 0..3);
    let numbers = (any::<Option<i32>>(), any::<Option<u32>>(), any::<Option<u32>>());
    let wrap = prop::collection::vec(text(), 0..3);
    let names = prop::collection::vec(text(), 0..3);
    let programs = (prop::option::of(runner()), path(), wrap, prop::option::of(warning()), names);
    (path(), env, stdin(), path(), path(), numbers, programs).prop_map(
        |(
            dir,
            env,
            stdin,
            stdout,
            stderr,
            (nice, umask, placeholders),
            (runner, shell, wrap, warning, value_names),
        )| {
            Setting {
                dir,
                env,
                stdin,
                stdout,
                stderr,
                nice,
                umask,
                runner: runner.map(Into::into),
                shell,
                wrap,
                warning,
                placeholders,
                value_names,
            }
        },
    )
}

fn warning() -> impl Strategy<Value = Warning> {
    (1u8..=64, any::<u64>()).prop_map(|(signal, before_ms)| Warning { signal, before_ms })
}

fn runner() -> impl Strategy<Value = Runner> {
    let words = prop::collection::vec(text(), 0..3);
    (words, any::<Option<u64>>(), any::<Option<u32>>(), any::<Option<u64>>()).prop_map(
        |(words, idle_ms, calls_max, memory_max)| Runner { words, idle_ms, calls_max, memory_max },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    let labels = || prop::collection::vec("[a-z]{1,3}", 0..3);
    let needs = (any::<u32>(), any::<u64>(), labels(), labels());
    let requests = prop::collection::vec(0u64..30_000, 3);
    let needs = (needs, requests, 0usize..3);
    let numbers = (any::<i32>(), any::<u16>(), any::<u16>(), any::<[u64; 2]>());
    let limits = (any::<Option<u64>>(), any::<Option<u64>>());
    let rest = (prop::collection::vec(any::<i32>(), 0..3), limits, any::<bool>());
    (needs, numbers, rest).prop_map(
        |(
            ((slots, memory, resources, tags), requests, variants),
            (priority, attempts, lost_max, [first_ms, most_ms]),
            (retry_on, (time_limit_ms, time_request_ms), runs_anyway),
        )| Profile {
            needs: {
                let request = |parts| match parts {
                    0 => Request::All,
                    parts => Request::Some(Amount::of_parts(parts)),
                };
                let names = resources.iter().map(|name| Name::from(name.as_str()));
                let mut needs = Needs {
                    slots,
                    memory,
                    resources: names.zip(requests.into_iter().map(request)).collect(),
                    tags: tags.iter().map(|tag| tag.as_str().into()).collect(),
                    ..Needs::default()
                };
                needs.resources.sort();
                needs.variants = vec![needs.clone(); variants];
                needs.nodes = u32::from(lost_max) * u32::from(runs_anyway);
                needs
            },
            priority,
            attempts,
            lost_max,
            backoff: Backoff { first_ms, most_ms },
            retry_on,
            time_limit_ms,
            time_request_ms,
            runs_anyway,
        },
    )
}

fn read(bytes: &[u8]) -> Result<Setting, FieldError> {
    let mut setting = Setting::default();
    setting.decode(bytes).map(|()| setting)
}

proptest! {
    #[test]
    fn settings_and_profiles_come_back_as_they_were(setting in setting(), profile in profile()) {
        let mut bytes = Vec::new();
        setting.encode(&mut bytes);
        prop_assert_eq!(read(&bytes), Ok(setting.clone()));

        // On the wire the first four have places of their own.
        let (mut tail, mut head) = (Vec::new(), Setting::default());
        setting.encode_tail(&mut tail);
        head.dir.clone_from(&setting.dir);
        head.env.clone_from(&setting.env);
        head.set_both_streams(setting.both_streams().map(Into::into));
        if let Stdin::Text(_) = setting.stdin {
            head.stdin.clone_from(&setting.stdin);
        }
        prop_assert_eq!(head.decode(&tail), Ok(()));
        prop_assert_eq!(head, setting);

        let mut bytes = Vec::new();
        profile.encode(&mut bytes);
        prop_assert_eq!(Profile::decode(&bytes), Ok(profile));
    }

    #[test]
    fn no_bytes_are_too_strange_to_be_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read(&bytes);
        let _ = Profile::decode(&bytes);
    }
}

#[test]
fn what_is_as_usual_takes_no_room() {
    let mut bytes = Vec::new();
    Setting::default().encode(&mut bytes);
    Profile::default().encode(&mut bytes);
    assert_eq!(bytes, []);
}

#[test]
fn a_field_of_a_newer_version_is_skipped_unless_it_must_be_understood() {
    let written = |must_understand| {
        let mut bytes = Vec::new();
        let mut to = Writer { to: &mut bytes, must_understand };
        to.bytes(60, b"something new");
        to.bytes(1_000_000, b"something much later");
        to.bytes(1, b"/d");
        bytes
    };
    let setting = Setting { dir: Some(Box::from(&b"/d"[..])), ..Setting::default() };
    assert_eq!(read(&written(Fields::NONE)), Ok(setting));
    assert_eq!(read(&written(Fields::NONE.with(60))), Err(FieldError::Unknown(60)));
}

#[test]
fn one_file_for_both_streams_is_understood_by_every_worker() {
    let path = |path: &[u8]| Some(Box::from(path));
    let needed = |stdout, stderr| {
        let setting = Setting { stdout, stderr, ..Setting::default() };
        setting.must_understand().words().collect::<Vec<_>>()
    };
    assert_eq!(needed(path(b"a"), path(b"a")), [""; 0]);
    assert_eq!(needed(path(b"a"), path(b"b")), ["stdout file", "stderr file"]);
    assert_eq!(needed(None, path(b"a")), ["stderr file"]);
}
