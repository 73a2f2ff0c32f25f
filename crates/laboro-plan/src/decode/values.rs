//! What an array runs over: `foreach` and `matrix`. Reads list files, and only those named.

use super::Decoder;
use crate::lines::read_list;
use crate::mistake::Position;
use crate::node::{Key, Node, Value};
use crate::template::{KEY_BYTES_MAX, RESERVED};
use crate::values::{Column, List, Pairing, Values, ValuesError};

impl Decoder<'_> {
    pub(super) fn task_values(
        &mut self,
        foreach: Option<(&Key, &Node)>,
        matrix: Option<(&Key, &Node)>,
        zip: Option<(&Key, bool)>,
    ) -> Option<Values> {
        let pairing = match zip {
            Some((_, true)) => Pairing::Zip,
            _ => Pairing::Product,
        };
        if let (Some((key, _)), None) = (zip, matrix) {
            self.note(key.at, "`zip` is for a `matrix`, and this task has none");
        }
        match (foreach, matrix) {
            (Some(_), Some((key, _))) => {
                self.note(key.at, "the task has both `foreach` and `matrix`: keep one");
                None
            }
            (Some((key, node)), None) => self.foreach(key, node),
            (None, Some((key, node))) => self.matrix(key, node, pairing),
            (None, None) => None,
        }
    }

    fn foreach(&mut self, key: &Key, node: &Node) -> Option<Values> {
        let tuples = match &node.value {
            Value::List(items) => {
                items.first().is_some_and(|item| matches!(item.value, Value::List(_)))
            }
            _ => false,
        };
        if tuples {
            return self.tuples(key, node);
        }
        let column = self.column(key, node)?;
        self.combine(node.at, key, vec![column], Pairing::Product)
    }

    /// `[["a", 1], ["b", 2]]`: `{1}` is `a` then `b`, `{2}` is `1` then `2`.
    fn tuples(&mut self, key: &Key, node: &Node) -> Option<Values> {
        let Value::List(items) = &node.value else { return None };
        let mut lists: Vec<List> = Vec::new();
        for (number, item) in items.iter().enumerate() {
            let Value::List(tuple) = &item.value else {
                self.note(item.at, "`foreach` mixes single values and tuples");
                return None;
            };
            if number == 0 {
                lists.resize_with(tuple.len(), List::default);
            }
            if tuple.len() != lists.len() {
                let (first, found) = (lists.len(), tuple.len());
                self.note(item.at, format!("this tuple has {found} values, the first one {first}"));
                return None;
            }
            for (list, value) in lists.iter_mut().zip(tuple) {
                let value_text = self.scalar(key, value)?;
                let pushed = list.push(value_text.as_bytes());
                self.checked(value.at, key, pushed)?;
            }
        }
        let columns = lists.into_iter().map(Column::list).collect();
        self.combine(node.at, key, columns, Pairing::Zip)
    }

    fn matrix(&mut self, key: &Key, node: &Node, pairing: Pairing) -> Option<Values> {
        let mut columns = Vec::new();
        let mut whole = true;
        for (name, node) in self.table(&key.text, node) {
            let word = name
                .text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
            let letter = name.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if RESERVED.contains(&name.text.as_str()) {
                let message =
                    format!("`{{{0}}}` already has a meaning: rename the key `{0}`", name.text);
                self.note(name.at, message);
                whole = false;
            } else if !word || !letter || name.text.len() > KEY_BYTES_MAX {
                let message = "a matrix key is letters, digits, `_` and `-`, begins with a letter and has at most 64";
                self.note(name.at, message);
                whole = false;
            }
            match self.column(name, node) {
                Some(column) => columns.push(Column { key: Some(name.text.clone()), ..column }),
                None => whole = false,
            }
        }
        if !whole || !matches!(node.value, Value::Table(_)) {
            return None;
        }
        self.combine(node.at, key, columns, pairing)
    }

    fn column(&mut self, key: &Key, node: &Node) -> Option<Column> {
        match &node.value {
            Value::List(items) => {
                let mut list = List::default();
                for item in items {
                    let value = self.scalar(key, item)?;
                    let pushed = list.push(value.as_bytes());
                    self.checked(item.at, key, pushed)?;
                }
                let filled = if list.is_empty() { Err(ValuesError::Empty) } else { Ok(()) };
                self.checked(node.at, key, filled)?;
                Some(Column::list(list))
            }
            Value::Text(range) => {
                let numbers = Column::parse_numbers(range);
                self.checked(node.at, key, numbers)
            }
            Value::Table(entries) => match entries.as_slice() {
                [(file, path)] if file.text == "file" => self.list_file(file, path),
                _ => {
                    let message = format!("a table as `{}` has the one key `file`", key.text);
                    self.note(node.at, message);
                    None
                }
            },
            _ => {
                self.wrong_type(key, node, "a list, a range such as \"1-100\" or { file = \"…\" }");
                None
            }
        }
    }

    fn list_file(&mut self, key: &Key, node: &Node) -> Option<Column> {
        let path = self.base.join(self.text(key, node)?);
        match read_list(&path) {
            Ok(list) if list.is_empty() => {
                self.note(node.at, format!("{} has no values", path.display()));
                None
            }
            Ok(list) => Some(Column::list(list)),
            Err(error) => {
                self.note(node.at, error.to_string());
                None
            }
        }
    }

    fn combine(
        &mut self,
        at: Position,
        key: &Key,
        columns: Vec<Column>,
        pairing: Pairing,
    ) -> Option<Values> {
        let values = Values::new(columns, pairing);
        self.checked(at, key, values)
    }

    fn checked<T>(&mut self, at: Position, key: &Key, result: Result<T, ValuesError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.note(at, format!("`{}`: {error}", key.text));
                None
            }
        }
    }
}
