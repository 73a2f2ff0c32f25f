//! The forms of a table that are text: CSV, JSON lines, and the log of GNU parallel.

use super::TableWriter;
use super::cell::Cell;
use super::columns::Columns;
use super::row::{COLUMNS, Row, values};
use laboro_api::OutcomeKind;
use serde_json::{Map, Value, json};
use std::io::{Result, Write};

pub(super) struct CsvTable {
    pub(super) columns: Columns,
}

impl TableWriter for CsvTable {
    fn head(&mut self, out: &mut dyn Write) -> Result<()> {
        line(out, self.columns.all.iter().map(|column| column.name.as_bytes()))
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let cells: Vec<String> = self.columns.cells(row).iter().map(Cell::written).collect();
        line(out, cells.iter().map(String::as_bytes))
    }
}

fn line<'a>(out: &mut dyn Write, cells: impl Iterator<Item = &'a [u8]>) -> Result<()> {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        write_cell(out, cell)?;
    }
    out.write_all(b"\r\n")
}

/// A text that a spreadsheet would take for a formula gets an apostrophe, which it takes for "this is text".
fn write_cell(out: &mut dyn Write, cell: &[u8]) -> Result<()> {
    let is_number = std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok());
    let is_formula =
        !is_number && matches!(cell.first(), Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r'));
    let is_plain = !is_formula && !cell.iter().any(|byte| b",\"\r\n".contains(byte));
    if is_plain {
        return out.write_all(cell);
    }
    out.write_all(b"\"")?;
    if is_formula {
        out.write_all(b"'")?;
    }
    for part in cell.split_inclusive(|&byte| byte == b'"') {
        out.write_all(part)?;
        if part.ends_with(b"\"") {
            out.write_all(b"\"")?;
        }
    }
    out.write_all(b"\"")
}

/// One object a line; numbers are numbers, and what is not known is not there.
pub(super) struct JsonLines;

impl TableWriter for JsonLines {
    fn head(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let mut object = Map::new();
        for (&(name, _), cell) in COLUMNS.iter().zip(row.cells()) {
            if let Some(value) = cell.json() {
                object.insert(name.to_owned(), value);
            }
        }
        let own = values(row.task);
        if !own.is_empty() {
            let texts = own.iter().map(|value| String::from_utf8_lossy(value).into_owned());
            object.insert("values".to_owned(), json!(texts.collect::<Vec<_>>()));
        }
        if let Some(result) = row.result {
            let value = result.json.clone().unwrap_or_else(|| Value::from(result.text.as_str()));
            object.insert("result".to_owned(), value);
        }
        serde_json::to_writer(&mut *out, &object).map_err(std::io::Error::from)?;
        out.write_all(b"\n")
    }
}

/// The columns of `parallel --joblog`.
pub(super) struct JobLogTable;

impl TableWriter for JobLogTable {
    fn head(&mut self, out: &mut dyn Write) -> Result<()> {
        out.write_all(
            b"Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n",
        )
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let Some(attempt) = row.attempt else { return Ok(()) };
        let Some(outcome) = attempt.outcome else { return Ok(()) };
        let code = outcome.code.unwrap_or(0);
        let (exit, signal) = match outcome.kind {
            OutcomeKind::Success => (0, 0),
            OutcomeKind::Exit => (code, 0),
            OutcomeKind::Signal => (0, code),
            // As parallel has it for what it ended itself.
            OutcomeKind::TimedOut => (-1, 15),
            OutcomeKind::Memory => (-1, 9),
            OutcomeKind::Error | OutcomeKind::Lost | OutcomeKind::Unknown => (-1, 0),
        };
        let started = attempt.started_ms as f64 / 1000.0;
        let took = row.wall_us().unwrap_or(0) as f64 / 1e6;
        let (host, label) =
            (attempt.worker_name.to_string(), row.task.label.replace(['\n', '\t'], " "));
        let number = row.task.task;
        writeln!(
            out,
            "{number}\t{}\t{started:.3}\t{took:>10.3}\t0\t0\t{exit}\t{signal}\t{label}",
            host.replace(['\n', '\t'], " ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cell: &str) -> String {
        let mut out = Vec::new();
        write_cell(&mut out, cell.as_bytes()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_cell_is_a_formula_or_another_cell() {
        for (cell, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("-1.5e3", "-1.5e3"),
            ("+7", "+7"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("=1+1", "\"'=1+1\""),
            ("=cmd|' /C calc'!A0", "\"'=cmd|' /C calc'!A0\""),
            ("@SUM(1)", "\"'@SUM(1)\""),
            ("-x", "\"'-x\""),
            ("+x", "\"'+x\""),
            ("\t=1", "\"'\t=1\""),
        ] {
            assert_eq!(written(cell), expected, "{cell:?}");
        }
    }
}
