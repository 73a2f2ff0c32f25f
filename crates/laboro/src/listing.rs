//! A list on its way out: as a table for people or as JSON lines for programs, with an end to it. Holds no more
//! than what a table shows.

use crate::args::hub::RowArgs;
use crate::exit::Exit;
use crate::output::table::{Column, Mood, Table};
use crate::output::{Data, data, print, say};
use serde::Serialize;
use std::io::{BufWriter, Write};

pub(crate) struct Listing {
    form: ListForm,
    /// `None`: all.
    most: Option<u64>,
    shown: u64,
    is_cut: bool,
}

enum ListForm {
    Table(Box<Table>),
    Json(BufWriter<Data>),
}

/// As many as a person looks at.
const ROWS: u64 = 50;

/// What a hub gives at once.
const PAGE_MAX: u64 = 1000;

impl Listing {
    pub(crate) fn new(rows: &RowArgs, columns: &'static [Column]) -> Listing {
        Listing::of(rows.json, rows.limit, columns)
    }

    pub(crate) fn of(json: bool, limit: Option<u64>, columns: &'static [Column]) -> Listing {
        let usual = if json { 0 } else { ROWS };
        let most = limit.unwrap_or(usual);
        let form = match json {
            true => ListForm::Json(BufWriter::new(data())),
            false => ListForm::Table(Box::new(Table::new(columns))),
        };
        Listing { form, most: (most > 0).then_some(most), shown: 0, is_cut: false }
    }

    /// How many to ask for at once: one more than is shown tells whether there are more.
    pub(crate) fn page(&self) -> Option<u32> {
        let page = self.most.map_or(PAGE_MAX, |most| most.saturating_add(1).min(PAGE_MAX));
        u32::try_from(page).ok()
    }

    /// False when there is no need for more.
    pub(crate) fn add<const N: usize>(
        &mut self,
        item: &impl Serialize,
        row: impl FnOnce() -> [(String, Mood); N],
    ) -> anyhow::Result<bool> {
        if self.most.is_some_and(|most| self.shown >= most) {
            self.is_cut = true;
            return Ok(false);
        }
        self.shown += 1;
        match &mut self.form {
            ListForm::Table(table) => table.row(row()),
            ListForm::Json(out) => {
                serde_json::to_writer(&mut *out, item).map_err(std::io::Error::from)?;
                out.write_all(b"\n")?;
            }
        }
        Ok(true)
    }

    /// `none` is said where there is nothing to show.
    pub(crate) fn finish(self, none: &str) -> anyhow::Result<Exit> {
        match self.form {
            ListForm::Json(mut out) => out.flush()?,
            ListForm::Table(_) if self.shown == 0 => say(none),
            ListForm::Table(mut table) => print(table.text())?,
        }
        if self.is_cut {
            say(format_args!("… and more; --limit 0 shows all"));
        }
        Ok(Exit::Done)
    }
}
