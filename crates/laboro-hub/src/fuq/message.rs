//! What peers say in JSON, read as the original reads it: keys in upper or lower case, missing ones and null are
//! zero, what is not known is skipped, and what follows the first value is not looked at.

use serde_json::{Map, Value};

/// One object of what was said.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Map<String, Value>);

/// In words for the peer: what was wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unclear(pub String);

impl Message {
    pub(super) fn parse(body: &[u8]) -> Result<Message, Unclear> {
        let mut values = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => Message::of(value),
            Some(Err(error)) => Err(Unclear(format!("this is not JSON: {error}"))),
            None => Err(Unclear("the body is empty".into())),
        }
    }

    fn of(value: Value) -> Result<Message, Unclear> {
        match value {
            Value::Object(fields) => Ok(Message(fields)),
            Value::Null => Ok(Message::default()),
            _ => Err(Unclear("an object is wanted".into())),
        }
    }

    /// Exactly this key, or else one that differs in case.
    fn get(&self, key: &str) -> Option<&Value> {
        let close = || self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
        self.0.get(key).or_else(|| close().map(|(_, value)| value)).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn text(&self, key: &str) -> Result<String, Unclear> {
        match self.get(key) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(Unclear(format!("{key} is to be text"))),
        }
    }

    pub(super) fn number(&self, key: &str) -> Result<i64, Unclear> {
        match self.get(key) {
            None => Ok(0),
            Some(value) => {
                value.as_i64().ok_or_else(|| Unclear(format!("{key} is to be a whole number")))
            }
        }
    }

    /// A job's number uses all 64 bits.
    pub(super) fn job(&self, key: &str) -> Result<u64, Unclear> {
        self.get(key).map_or(Ok(0), job)
    }

    pub(super) fn jobs(&self, key: &str) -> Result<Vec<u64>, Unclear> {
        self.list(key)?.iter().map(job).collect()
    }

    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, Unclear> {
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.clone()),
            _ => Err(Unclear(format!("{key} is to be a list of texts"))),
        };
        self.list(key)?.iter().map(text).collect()
    }

    fn list(&self, key: &str) -> Result<&[Value], Unclear> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(values)) => Ok(values),
            Some(_) => Err(Unclear(format!("{key} is to be a list"))),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Unclear> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(Unclear(format!("{key} is to be true or false"))),
        }
    }

    /// An object within; an empty one where there is none.
    pub(super) fn inner(&self, key: &str) -> Result<Message, Unclear> {
        Message::of(self.get(key).cloned().unwrap_or_default())
            .map_err(|_| Unclear(format!("{key} is to be an object")))
    }
}

fn job(value: &Value) -> Result<u64, Unclear> {
    value.as_u64().ok_or_else(|| Unclear("a job has a number".into()))
}
