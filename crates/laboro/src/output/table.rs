//! Tables for people: aligned, in colour and cut to the width on a terminal, whole and plain elsewhere. What
//! programs read is JSON and made elsewhere.

use comfy_table::{Cell, CellAlignment, Color, ContentArrangement, Row, presets};
use std::io::IsTerminal;

pub(crate) struct Table {
    table: comfy_table::Table,
    columns: &'static [Column],
}

/// A heading and where the cells below it stand.
pub(crate) enum Column {
    Left(&'static str),
    Right(&'static str),
}

/// What a cell is about, by which it gets its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Plain,
    Good,
    Bad,
    Busy,
    /// Waits for a person.
    Stuck,
    /// Of little interest.
    Faint,
}

impl Table {
    pub(crate) fn new(columns: &'static [Column]) -> Table {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        if !in_colour() {
            table.force_no_tty();
            if let Some(width) = terminal_width() {
                table.set_width(width);
            }
        }
        let heading = columns.iter().map(|column| {
            let cell = Cell::new(column.name()).set_alignment(column.alignment());
            cell.add_attribute(comfy_table::Attribute::Bold)
        });
        table.set_header(heading.collect::<Vec<_>>());
        Table { table, columns }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Mood); N]) {
        debug_assert_eq!(N, self.columns.len(), "a cell for each column");
        let cells = cells.into_iter().zip(self.columns).map(|((text, mood), column)| {
            let cell = Cell::new(text).set_alignment(column.alignment());
            match mood.colour() {
                Some(colour) => cell.fg(colour),
                None => cell,
            }
        });
        let mut row = Row::from(cells.collect::<Vec<_>>());
        // A name that is too long is cut, so that a row stays a line.
        row.max_height(1);
        self.table.add_row(row);
    }

    /// Without blanks at the ends of lines.
    pub(crate) fn text(&mut self) -> String {
        let last = self.columns.len() - 1;
        for (at, column) in self.table.column_iter_mut().enumerate() {
            // The first column begins at the edge.
            column.set_padding((0, if at == last { 0 } else { 2 }));
        }
        self.table.trim_fmt()
    }
}

impl Column {
    fn name(&self) -> &'static str {
        match self {
            Column::Left(name) | Column::Right(name) => name,
        }
    }

    fn alignment(&self) -> CellAlignment {
        match self {
            Column::Left(_) => CellAlignment::Left,
            Column::Right(_) => CellAlignment::Right,
        }
    }
}

impl Mood {
    fn colour(self) -> Option<Color> {
        match self {
            Mood::Plain => None,
            Mood::Good => Some(Color::Green),
            Mood::Bad => Some(Color::Red),
            Mood::Busy => Some(Color::Cyan),
            Mood::Stuck => Some(Color::Yellow),
            Mood::Faint => Some(Color::DarkGrey),
        }
    }

    /// A word in its colour, outside of a table.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            _ if !in_colour() => return text.to_owned(),
            Mood::Plain => return text.to_owned(),
            Mood::Good => 32,
            Mood::Bad => 31,
            Mood::Busy => 36,
            Mood::Stuck => 33,
            Mood::Faint => 90,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// As <https://no-color.org> asks for.
fn in_colour() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && std::io::stdout().is_terminal()
}

/// Of a terminal that wants no colour.
fn terminal_width() -> Option<u16> {
    let size =
        std::io::stdout().is_terminal().then(|| rustix::termios::tcgetwinsize(std::io::stdout()));
    size?.ok().map(|size| size.ws_col).filter(|&width| width > 0)
}

#[cfg(test)]
mod tests;
