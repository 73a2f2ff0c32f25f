//! A template as text again, for a worker elsewhere that has only an element's values and its place. Keys of a
//! matrix become numbers of columns, and what would be read as a placeholder and is none is doubled.

use super::{Hole, Meaning, Of, Piece, Shape, Template, Vocabulary, token};
use crate::values::{Items, Values};

/// What the text is written for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    /// Columns without keys, as many as the array has.
    pub values: &'a Values,
    /// It knows the first placeholders only, and need not know others.
    pub is_early: bool,
    /// An array without a name calls its elements by their index.
    pub is_named: bool,
}

impl<'a> Reader<'a> {
    fn vocabulary(self) -> Vocabulary<'a> {
        match self.is_early {
            true => Vocabulary::Early(self.values),
            false => Vocabulary::Values(self.values),
        }
    }
}

impl Template {
    pub(crate) fn write_for(&self, reader: Reader<'_>) -> Vec<u8> {
        let mut text = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => write_plain(plain, reader.vocabulary(), &mut text),
                Piece::Hole(hole) => hole.write_for(reader, &mut text),
            }
        }
        text
    }
}

impl Hole {
    fn write_for(self, reader: Reader<'_>, text: &mut Vec<u8>) {
        let is_range = matches!(reader.values.columns(), [column] if matches!(column.items, Items::Numbers(_)));
        let of = match self.of {
            Of::Index => "#".to_owned(),
            Of::Seq if is_range => String::new(),
            Of::Seq => "#".to_owned(),
            Of::Name if reader.is_named => "name".to_owned(),
            Of::Name => "#".to_owned(),
            Of::Slot => "%".to_owned(),
            Of::AllValues => String::new(),
            Of::Column(column) => (column + 1).to_string(),
        };
        let shape = match (self.shape, self.of) {
            (Shape::Whole, _) => "",
            (Shape::Base, _) => "/",
            (Shape::Directory, _) => "//",
            (Shape::Stem(1), _) => ".",
            (Shape::Stem(2), _) => "..",
            (Shape::Stem(_), _) => "...",
            (Shape::BaseStem(1), _) => "/.",
            (Shape::BaseStem(2), _) => "/..",
            (Shape::BaseStem(_), _) => "/...",
            (Shape::Extension(1), Of::AllValues) => "ext",
            (Shape::Extension(1), _) => ":ext",
            (Shape::Extension(2), _) => "+..",
            (Shape::Extension(_), _) => "+...",
        };
        text.extend_from_slice(format!("{{{of}{shape}}}").as_bytes());
    }
}

fn write_plain(plain: &[u8], vocabulary: Vocabulary<'_>, text: &mut Vec<u8>) {
    let mut at = 0;
    while at < plain.len() {
        let found = token(plain, at, vocabulary);
        match found {
            Some(token) if matches!(token.meaning, Meaning::Hole(..)) => {
                text.push(b'{');
                text.extend_from_slice(&plain[at..at + token.length]);
                text.push(b'}');
                at += token.length;
            }
            // What is doubled already is one brace, and then something to be doubled.
            _ => {
                text.push(plain[at]);
                at += 1;
            }
        }
    }
}
