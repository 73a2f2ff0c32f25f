//! A tree of what a flow or a JSON line says, in one shape for both: in the order written, with places where
//! the format tells them and numbers as they were spelled. Gives no meaning to anything.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::mistake::{Position, Source};

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: Position,
    pub value: Value,
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub text: String,
    pub at: Position,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Table(Vec<(Key, Node)>),
    List(Vec<Node>),
    Text(String),
    /// As spelled, so that `0.10` stays `0.10` as a value of a sweep.
    Number(String),
    Bool(bool),
    Date(String),
    Null,
}

impl Value {
    /// With its article, for "expected …, found …".
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Table(_) => "a table",
            Value::List(_) => "a list",
            Value::Text(_) => "a string",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::Date(_) => "a date",
            Value::Null => "null",
        }
    }
}

impl Node {
    pub fn from_toml(source: &Source<'_>, table: &Spanned<DeTable<'_>>) -> Node {
        let value = Value::Table(entries(source, table.get_ref()));
        Node { at: source.position(table.span()), value }
    }

    /// JSON tells no places, so each node is at its line.
    pub fn from_json(line: u32, text: &[u8]) -> Result<Node, serde_json::Error> {
        let mut node: Node = serde_json::from_slice(text)?;
        node.place(Position::line(line));
        Ok(node)
    }

    fn place(&mut self, at: Position) {
        self.at = at;
        match &mut self.value {
            Value::Table(entries) => {
                for (key, node) in entries {
                    key.at = at;
                    node.place(at);
                }
            }
            Value::List(nodes) => nodes.iter_mut().for_each(|node| node.place(at)),
            _ => {}
        }
    }
}

fn entries(source: &Source<'_>, table: &DeTable<'_>) -> Vec<(Key, Node)> {
    let mut found: Vec<_> = table.iter().collect();
    found.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let text: &std::borrow::Cow<'_, str> = key.get_ref();
        let key = Key { text: text.to_string(), at: source.position(key.span()) };
        (key, node(source, value))
    };
    found.into_iter().map(entry).collect()
}

fn node(source: &Source<'_>, value: &Spanned<DeValue<'_>>) -> Node {
    let at = source.position(value.span());
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => {
            Value::Number(number.as_str().trim_start_matches('+').to_owned())
        }
        DeValue::Integer(number) => Value::Number(decimal(number.as_str(), number.radix())),
        DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
        DeValue::Boolean(truth) => Value::Bool(*truth),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| node(source, item)).collect()),
        DeValue::Table(table) => Value::Table(entries(source, table)),
    };
    Node { at, value }
}

/// `0xff` as a count or an exit code is a number like any other.
fn decimal(digits: &str, radix: u32) -> String {
    u64::from_str_radix(digits, radix).map_or_else(|_| digits.to_owned(), |n| n.to_string())
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        let value = deserializer.deserialize_any(JsonVisitor)?;
        Ok(Node { at: Position::default(), value })
    }
}

struct JsonVisitor;

const SCANNED_MAX: usize = 16;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number.to_string()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = items.next_element()? {
            nodes.push(node);
        }
        Ok(Value::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some((text, node)) = map.next_entry::<String, Node>()? {
            // Most tables are small, and a look along them is cheaper than a hash of every key.
            let known = match entries.len() {
                0..SCANNED_MAX => entries.iter().any(|(key, _)| key.text == text),
                SCANNED_MAX => {
                    seen.extend(entries.iter().map(|(key, _)| key.text.clone()));
                    !seen.insert(text.clone())
                }
                _ => !seen.insert(text.clone()),
            };
            if known {
                return Err(A::Error::custom(format!("key `{text}` is given twice")));
            }
            entries.push((Key { text, at: Position::default() }, node));
        }
        Ok(Value::Table(entries))
    }
}
