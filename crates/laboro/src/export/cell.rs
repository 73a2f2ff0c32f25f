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
pub(super) enum CellKind {
    Int,
    Float,
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ExportColumn {
    pub(super) name: String,
    pub(super) kind: CellKind,
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
    pub(super) fn of_kind(self, kind: CellKind) -> Cell {
        match (kind, self) {
            (CellKind::Float, Cell::Int(number)) => Cell::Float(number as f64),
            (CellKind::Text, Cell::Int(number)) => Cell::Text(number.to_string()),
            (CellKind::Text, Cell::Float(number)) => Cell::Text(number.to_string()),
            (CellKind::Int, Cell::Float(_) | Cell::Text(_)) | (CellKind::Float, Cell::Text(_)) => {
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

    pub(super) fn kind(&self) -> Option<CellKind> {
        match self {
            Cell::Nothing => None,
            Cell::Int(_) => Some(CellKind::Int),
            Cell::Float(_) => Some(CellKind::Float),
            Cell::Text(_) => Some(CellKind::Text),
        }
    }
}

impl CellKind {
    /// What holds both.
    pub(super) fn with(self, other: CellKind) -> CellKind {
        match (self, other) {
            (CellKind::Int, CellKind::Int) => CellKind::Int,
            (CellKind::Text, _) | (_, CellKind::Text) => CellKind::Text,
            _ => CellKind::Float,
        }
    }
}
