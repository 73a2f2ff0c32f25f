//! Every frame as its golden bytes have it, both ways, and what is none.

use super::*;

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../../spec/golden/runner/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

fn written(write: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut to = BytesMut::new();
    write(&mut to);
    to.to_vec()
}

fn read(bytes: &[u8]) -> Result<Option<Answer>, BadAnswer> {
    take_answer(&mut BytesMut::from(bytes))
}

#[test]
fn a_worker_says_what_the_page_says() {
    let call =
        Call { id: 258, job: 3, task: 7, index: 2, attempt: 1, name: "fit.2", value: Some(b"xy") };
    assert_eq!(written(|to| write_payload(to, b"fn")), golden("payload"));
    assert_eq!(written(|to| write_call(to, &call)), golden("call"));
    let alone = Call { value: None, ..call };
    assert_eq!(written(|to| write_call(to, &alone)), golden("call-alone"));
    assert_eq!(written(|to| write_skip(to, 258)), golden("skip"));
}

#[test]
fn a_runner_says_what_the_page_says() {
    let cases = [
        ("ready", Answer::Ready { ahead: 8, words: "python 3.11".into() }),
        ("done", Answer::Done { id: 258, result: Bytes::from_static(b"ok") }),
        (
            "failed",
            Answer::Failed {
                id: 258,
                code: 1,
                message: "no".into(),
                result: Bytes::from_static(b"E"),
            },
        ),
        ("skipped", Answer::Skipped { id: 258 }),
    ];
    for (name, answer) in cases {
        let bytes = golden(name);
        assert_eq!(read(&bytes), Ok(Some(answer)), "{name}");
        for cut in 0..bytes.len() {
            assert_eq!(read(&bytes[..cut]), Ok(None), "{name} up to {cut}");
        }
    }
}

#[test]
fn what_is_no_answer_is_told() {
    assert_eq!(read(&[1, 0, 0, 0, 9]), Err(BadAnswer::Unknown(9)));
    assert_eq!(read(&[0, 0, 0, 0]), Err(BadAnswer::Short));
    assert_eq!(read(&[3, 0, 0, 0, 2, 1, 1]), Err(BadAnswer::Short));
    assert_eq!(read(&[255, 255, 255, 0]), Err(BadAnswer::TooLarge(0xff_ffff)));
    assert_eq!(read(&[9, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0]), Err(BadAnswer::Version(2)));
    let mut long = vec![17, 0, 0, 0, 3, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    long.extend([200, 0, 0, 0]);
    assert_eq!(read(&long), Err(BadAnswer::Short));
}

#[test]
fn no_bytes_are_too_strange() {
    let mut seed: u32 = 1;
    for _ in 0..20_000 {
        let mut from = BytesMut::new();
        for _ in 0..24 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            from.put_u8((seed >> 24) as u8 & if seed & 3 == 0 { 0xff } else { 7 });
        }
        while let Ok(Some(_)) = take_answer(&mut from) {}
    }
}
