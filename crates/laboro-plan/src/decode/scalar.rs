//! Single values: texts, numbers, truths and lists of them. Says what was expected and what was found.

use std::ops::RangeInclusive;

use super::Decoder;
use crate::node::{Key, Node, Value};

impl Decoder<'_> {
    pub(super) fn wrong_type(&mut self, key: &Key, node: &Node, expected: &str) {
        let found = node.value.kind();
        self.note(node.at, format!("`{}` is {expected}, found {found}", key.text));
    }

    pub fn table<'n>(&mut self, name: &str, node: &'n Node) -> &'n [(Key, Node)] {
        match &node.value {
            Value::Table(entries) => entries,
            other => {
                let found = other.kind();
                self.note(node.at, format!("`{name}` is a table of keys, found {found}"));
                &[]
            }
        }
    }

    /// A text that can become part of a process: no zero byte.
    pub(super) fn text(&mut self, key: &Key, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(text) if text.contains('\0') => {
                self.note(node.at, format!("`{}` holds a zero byte", key.text));
                None
            }
            Value::Text(text) => Some(text.clone()),
            _ => {
                self.wrong_type(key, node, "a string");
                None
            }
        }
    }

    /// A text, or a number or truth as it is spelled.
    pub(super) fn scalar(&mut self, key: &Key, node: &Node) -> Option<String> {
        match &node.value {
            Value::Text(_) => self.text(key, node),
            Value::Number(text) | Value::Date(text) => Some(text.clone()),
            Value::Bool(truth) => Some(truth.to_string()),
            Value::Table(_) | Value::List(_) | Value::Null => {
                let found = node.value.kind();
                self.note(
                    node.at,
                    format!("`{}` holds strings and numbers, found {found}", key.text),
                );
                None
            }
        }
    }

    pub(super) fn texts(&mut self, key: &Key, node: &Node) -> Option<Vec<String>> {
        match &node.value {
            Value::List(items) => items.iter().map(|item| self.text(key, item)).collect(),
            Value::Text(_) => self.text(key, node).map(|text| vec![text]),
            _ => {
                self.wrong_type(key, node, "a list of strings");
                None
            }
        }
    }

    pub(super) fn truth(&mut self, key: &Key, node: &Node) -> Option<bool> {
        match &node.value {
            Value::Bool(truth) => Some(*truth),
            _ => {
                self.wrong_type(key, node, "true or false");
                None
            }
        }
    }

    pub(super) fn integer<N: TryFrom<i64> + Into<i128> + Copy>(
        &mut self,
        key: &Key,
        node: &Node,
        bounds: RangeInclusive<N>,
    ) -> Option<N> {
        let Value::Number(text) = &node.value else {
            self.wrong_type(key, node, "a whole number");
            return None;
        };
        let (low, high): (i128, i128) = ((*bounds.start()).into(), (*bounds.end()).into());
        let number = text.parse::<i64>().ok().filter(|n| (low..=high).contains(&i128::from(*n)));
        let number = number.and_then(|n| N::try_from(n).ok());
        if number.is_none() {
            let message = match i64::try_from(high) {
                Ok(i64::MAX) | Err(_) => format!("a whole number from {low}"),
                Ok(high) => format!("a whole number from {low} to {high}"),
            };
            self.note(node.at, format!("`{}` is {message}, found {text}", key.text));
        }
        number
    }
}
