//! Which columns a table has beside those that all have: the values of elements, and the parts of results.

use super::cell::{Cell, CellKind, ExportColumn};
use super::row::{COLUMNS, Row, TaskResult, values};
use crate::exit::usage;
use serde_json::Value;

/// All columns of a table, in their order.
#[derive(Debug)]
pub(super) struct Columns {
    /// As many as the elements have values.
    values: usize,
    has_results: bool,
    /// Keys of results that are objects.
    keys: Vec<String>,
    pub(super) all: Vec<ExportColumn>,
}

/// More keys than this stay in the text of the result.
const KEYS_MAX: usize = 100;

/// What the results of a job have in common; fed with all of them.
#[derive(Debug, Default)]
pub(super) struct ResultShape {
    has_any: bool,
    /// In the order in which they were met.
    keys: Vec<(String, Option<CellKind>)>,
}

impl ResultShape {
    pub(super) fn see(&mut self, result: &TaskResult) {
        self.has_any = true;
        let Some(Value::Object(object)) = &result.json else { return };
        for (key, value) in object {
            let kind = Cell::of_json(value).kind();
            let Some(at) = self.keys.iter().position(|(known, _)| known == key) else {
                if self.keys.len() < KEYS_MAX {
                    self.keys.push((key.clone(), kind));
                }
                continue;
            };
            let known = &mut self.keys[at].1;
            *known = match (*known, kind) {
                (Some(known), Some(kind)) => Some(known.with(kind)),
                (known, kind) => known.or(kind),
            };
        }
    }
}

impl Columns {
    /// `names` are for the values, else those `kept` with the job; values that have none are `value_1`, `value_2` and so on.
    pub(super) fn new(
        values: usize,
        names: &[String],
        kept: &[String],
        results: ResultShape,
    ) -> anyhow::Result<Columns> {
        if names.len() > values {
            return Err(usage(format!(
                "--columns has {} names, and the elements of this job have {values} values",
                names.len()
            )));
        }
        let fixed =
            COLUMNS.iter().map(|&(name, kind)| ExportColumn { name: name.to_owned(), kind });
        let mut all: Vec<ExportColumn> = fixed.collect();
        for at in 0..values {
            let is_known = |name: &str| all.iter().any(|column| column.name == name);
            let kept = kept.get(at).filter(|name| names.is_empty() && !name.is_empty());
            let kept = kept.map(|name| match is_known(name) {
                true => format!("value_{name}"),
                false => name.clone(),
            });
            let name = names.get(at).cloned().or(kept.filter(|name| !is_known(name)));
            let name = name.unwrap_or_else(|| format!("value_{}", at + 1));
            if name.is_empty() || is_known(&name) {
                return Err(usage(format!(
                    "--columns: {name:?} is empty or the name of another column"
                )));
            }
            all.push(ExportColumn { name, kind: CellKind::Text });
        }
        if results.has_any {
            all.push(ExportColumn { name: "result".to_owned(), kind: CellKind::Text });
        }
        let mut keys = Vec::new();
        for (key, kind) in results.keys {
            let column = ExportColumn {
                name: format!("result_{key}"),
                kind: kind.unwrap_or(CellKind::Text),
            };
            // SQLite and many others do not tell capitals from small letters in names.
            let is_new = |other: &ExportColumn| !other.name.eq_ignore_ascii_case(&column.name);
            if all.iter().all(is_new) {
                all.push(column);
                keys.push(key);
            }
        }
        Ok(Columns { values, has_results: results.has_any, keys, all })
    }

    /// One cell for each column, of the column's kind.
    pub(super) fn cells(&self, row: &Row<'_>) -> Vec<Cell> {
        let mut cells = row.cells();
        let mut own = values(row.task).into_iter();
        for _ in 0..self.values {
            let value = own.next().map(|value| String::from_utf8_lossy(&value).into_owned());
            cells.push(value.map_or(Cell::Nothing, Cell::Text));
        }
        if self.has_results {
            cells.push(row.result.map_or(Cell::Nothing, |result| Cell::Text(result.text.clone())));
        }
        for key in &self.keys {
            cells.push(row.result.map_or(Cell::Nothing, |result| result.field(key)));
        }
        cells.into_iter().zip(&self.all).map(|(cell, column)| cell.of_kind(column.kind)).collect()
    }
}
