//! What stands in one place of a table, and what the places of a column have in common.

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Nothing,
    Int(i64),
    Float(f64),
    Text(String),
}

/// What a column holds, beside places where there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Float,
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: Kind,
}

impl Cell {
    pub(super) fn int(number: Option<impl TryInto<i64>>) -> Cell {
        number.and_then(|number| number.try_into().ok()).map_or(Cell::Nothing, Cell::Int)
    }

    pub(super) fn text(text: impl Into<String>) -> Cell {
        let text: String = text.into();
        if text.is_empty() { Cell::Nothing } else { Cell::Text(text) }
    }

    pub(super) fn json(&self) -> Option<Value> {
        match self {
            Cell::Nothing => None,
            Cell::Int(number) => Some((*number).into()),
            Cell::Float(number) => Some((*number).into()),
            Cell::Text(text) => Some(text.as_str().into()),
        }
    }

    /// As it is written in CSV.
    pub(super) fn written(&self) -> String {
        match self {
            Cell::Nothing => String::new(),
            Cell::Int(number) => number.to_string(),
            Cell::Float(number) => number.to_string(),
            Cell::Text(text) => text.clone(),
        }
    }

    /// As a column of this kind holds it: what does not fit is not there.
    pub(super) fn of_kind(self, kind: Kind) -> Cell {
        match (kind, self) {
            (Kind::Float, Cell::Int(number)) => Cell::Float(number as f64),
            (Kind::Text, Cell::Int(number)) => Cell::Text(number.to_string()),
            (Kind::Text, Cell::Float(number)) => Cell::Text(number.to_string()),
            (Kind::Int, Cell::Float(_) | Cell::Text(_)) | (Kind::Float, Cell::Text(_)) => {
                Cell::Nothing
            }
            (_, cell) => cell,
        }
    }

    /// Of a result: what is neither a number nor a text stands as it is written in JSON.
    pub(super) fn of_json(value: &Value) -> Cell {
        match value {
            Value::Null => Cell::Nothing,
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Cell::Int(whole),
                (None, Some(number)) => Cell::Float(number),
                (None, None) => Cell::Text(number.to_string()),
            },
            Value::String(text) => Cell::Text(text.clone()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => Cell::Text(value.to_string()),
        }
    }

    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            Cell::Nothing => None,
            Cell::Int(_) => Some(Kind::Int),
            Cell::Float(_) => Some(Kind::Float),
            Cell::Text(_) => Some(Kind::Text),
        }
    }
}

impl Kind {
    /// What holds both.
    pub(super) fn with(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Int, Kind::Int) => Kind::Int,
            (Kind::Text, _) | (_, Kind::Text) => Kind::Text,
            _ => Kind::Float,
        }
    }
}
