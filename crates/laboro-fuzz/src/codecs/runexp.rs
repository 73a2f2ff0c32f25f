//! Words of runexp, and the text that a result is.

use bytes::BytesMut;
use laboro_dialects::runexp::result::{
    ResLine, of_wait_status, summary, to_wait_status, wait_status,
};
use laboro_dialects::runexp::words::WordBuffer;

pub(crate) fn words(bytes: &[u8]) {
    let (cut, text) = bytes.split_at(bytes.len().min(1));
    let cut = cut.first().map_or(0, |&cut| usize::from(cut)).min(text.len());
    runner(text, cut);
    manager(text, cut);
    result(text, cut);
}

fn runner(text: &[u8], cut: usize) {
    let mut heard = WordBuffer::default();
    for piece in [&text[..cut], &text[cut..]] {
        heard.take_in(&mut BytesMut::from(piece));
        while let Ok(Some(word)) = heard.runner_word() {
            let (mut written, mut again) = (BytesMut::new(), WordBuffer::default());
            word.write(&mut written);
            again.take_in(&mut written);
            assert_eq!(again.runner_word(), Ok(Some(word)));
        }
        assert!(heard.len() <= text.len());
    }
}

fn manager(text: &[u8], cut: usize) {
    let mut heard = WordBuffer::default();
    for piece in [&text[..cut], &text[cut..]] {
        heard.take_in(&mut BytesMut::from(piece));
        while let Ok(Some(word)) = heard.manager_word() {
            let (mut written, mut again) = (BytesMut::new(), WordBuffer::default());
            word.write(&mut written);
            again.take_in(&mut written);
            assert_eq!(again.manager_word(), Ok(Some(word)));
        }
    }
}

fn result(text: &[u8], cut: usize) {
    let _ = summary(text);
    if let Some(status) = wait_status(text) {
        let outcome = of_wait_status(status);
        let _ = to_wait_status(outcome);
    }
    let (mut whole, mut pieces) = (ResLine::default(), ResLine::default());
    whole.take(text);
    pieces.take(&text[..cut]);
    pieces.take(&text[cut..]);
    assert_eq!(whole.said(), pieces.said(), "where a text is cut does not matter");
    assert_eq!(whole.is_good(), pieces.is_good());
}
