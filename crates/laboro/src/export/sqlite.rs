//! A database of SQLite with one table, `attempts`. Rows come in order, so that its tree is written page by page from left to
//! right and never changed; only the first page, which says where the tree begins, is written last. SQLite itself would have
//! to be compiled with every build.

use super::TableWriter;
use super::cell::{Cell, CellKind};
use super::columns::Columns;
use super::row::Row;
use std::io::{Error, Result, Write};

const PAGE: usize = 4096;
/// More of a row than this goes to pages of its own.
const LOCAL_MAX: usize = PAGE - 35;
const LOCAL_MIN: usize = (PAGE - 12) * 32 / 255 - 23;
/// Children of an inner page: each takes at most 15 bytes.
const CHILDREN: usize = 250;

const LEAF: u8 = 0x0d;
const INNER: u8 = 0x05;

pub(super) struct SqliteTable {
    columns: Columns,
    /// Pages that are written, the first one among them.
    pages: u32,
    row: u64,
    leaf: LeafPage,
    /// Of each level of the tree above the leaves, the children that have no parent yet: page and largest row.
    levels: Vec<Vec<(u32, u64)>>,
    /// When everything else is written.
    first: Option<Vec<u8>>,
}

#[derive(Default)]
struct LeafPage {
    cells: Vec<Vec<u8>>,
    bytes: usize,
    last: u64,
}

impl SqliteTable {
    pub(super) fn new(columns: Columns) -> SqliteTable {
        let leaf = LeafPage::default();
        SqliteTable { columns, pages: 1, row: 0, leaf, levels: Vec::new(), first: None }
    }

    fn put_page(&mut self, out: &mut dyn Write, page: &[u8]) -> Result<u32> {
        debug_assert_eq!(page.len(), PAGE);
        out.write_all(page)?;
        self.pages = self.pages.checked_add(1).ok_or_else(|| Error::other("too many rows"))?;
        Ok(self.pages)
    }

    /// The cell of a row; what does not fit into its page is written now.
    fn cell(&mut self, payload: &[u8], row: u64, out: &mut dyn Write) -> Result<Vec<u8>> {
        let mut cell = Vec::new();
        put_varint(&mut cell, payload.len() as u64);
        put_varint(&mut cell, row);
        if payload.len() <= LOCAL_MAX {
            cell.extend_from_slice(payload);
            return Ok(cell);
        }
        let with_rest = LOCAL_MIN + (payload.len() - LOCAL_MIN) % (PAGE - 4);
        let local = if with_rest <= LOCAL_MAX { with_rest } else { LOCAL_MIN };
        cell.extend_from_slice(&payload[..local]);
        cell.extend_from_slice(&(self.pages + 1).to_be_bytes());
        let pieces: Vec<&[u8]> = payload[local..].chunks(PAGE - 4).collect();
        for (at, piece) in pieces.iter().enumerate() {
            let next = if at + 1 < pieces.len() { self.pages + 2 } else { 0 };
            let mut page = next.to_be_bytes().to_vec();
            page.extend_from_slice(piece);
            page.resize(PAGE, 0);
            self.put_page(out, &page)?;
        }
        Ok(cell)
    }

    fn flush_leaf(&mut self, out: &mut dyn Write) -> Result<()> {
        let leaf = std::mem::take(&mut self.leaf);
        let page = page_of(LEAF, &leaf.cells, None, 0);
        let number = self.put_page(out, &page)?;
        self.add_child(0, (number, leaf.last), out)
    }

    fn add_child(&mut self, level: usize, child: (u32, u64), out: &mut dyn Write) -> Result<()> {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        self.levels[level].push(child);
        // One more than fits: a page with a single child is never needed.
        if self.levels[level].len() <= CHILDREN {
            return Ok(());
        }
        let children: Vec<(u32, u64)> = self.levels[level].drain(..CHILDREN).collect();
        let parent = self.inner(&children, out)?;
        self.add_child(level + 1, parent, out)
    }

    fn inner(&mut self, children: &[(u32, u64)], out: &mut dyn Write) -> Result<(u32, u64)> {
        let (&(last, largest), others) = children.split_last().expect("an inner page has children");
        let cell = |&(page, row): &(u32, u64)| {
            let mut cell = page.to_be_bytes().to_vec();
            put_varint(&mut cell, row);
            cell
        };
        let cells: Vec<Vec<u8>> = others.iter().map(cell).collect();
        let page = page_of(INNER, &cells, Some(last), 0);
        Ok((self.put_page(out, &page)?, largest))
    }

    /// Closes all levels; gives the page that the tree begins at.
    fn root(&mut self, out: &mut dyn Write) -> Result<u32> {
        if !self.leaf.cells.is_empty() || self.levels.is_empty() {
            self.flush_leaf(out)?;
        }
        let mut level = 0;
        loop {
            let children = std::mem::take(&mut self.levels[level]);
            let is_top = level + 1 == self.levels.len();
            if let ([(only, _)], true) = (children.as_slice(), is_top) {
                return Ok(*only);
            }
            // A single child is its own parent: it goes up as it is.
            let up = match children.as_slice() {
                [] => None,
                [only] => Some(*only),
                several => Some(self.inner(several, out)?),
            };
            level += 1;
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            self.levels[level].extend(up);
        }
    }

    fn schema(&self) -> String {
        let columns: Vec<String> = (self.columns.all.iter())
            .map(|column| {
                let kind = match column.kind {
                    CellKind::Int => "INTEGER",
                    CellKind::Float => "REAL",
                    CellKind::Text => "TEXT",
                };
                format!("\"{}\" {kind}", column.name.replace('"', "\"\""))
            })
            .collect();
        format!("CREATE TABLE attempts ({})", columns.join(", "))
    }
}

impl TableWriter for SqliteTable {
    fn head(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.schema().len() > PAGE - 400 {
            return Err(Error::other("the names of the columns take too much room for SQLite"));
        }
        // Written when everything is known.
        out.write_all(&[0; PAGE])
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let payload = record(&self.columns.cells(row));
        self.row += 1;
        let cell = self.cell(&payload, self.row, out)?;
        let needed = cell.len() + 2;
        if 8 + self.leaf.bytes + needed > PAGE {
            self.flush_leaf(out)?;
        }
        self.leaf.bytes += needed;
        self.leaf.last = self.row;
        self.leaf.cells.push(cell);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let root = self.root(out)?;
        let texts = [Cell::Text("table".into()), Cell::Text("attempts".into())];
        let [kind, name] = texts;
        let entry = [kind, name.clone(), name, Cell::Int(root.into()), Cell::Text(self.schema())];
        let payload = record(&entry);
        let mut cell = Vec::new();
        put_varint(&mut cell, payload.len() as u64);
        put_varint(&mut cell, 1);
        cell.extend_from_slice(&payload);
        let mut page = page_of(LEAF, &[cell], None, 100);
        page[..100].copy_from_slice(&file_header(self.pages));
        self.first = Some(page);
        Ok(())
    }

    fn beginning(&mut self) -> Option<Vec<u8>> {
        self.first.take()
    }
}

fn file_header(pages: u32) -> [u8; 100] {
    let mut header = [0; 100];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"SQLite format 3\0");
    put(16, &(PAGE as u16).to_be_bytes());
    // Versions for writing and reading, no bytes left free, and three numbers that never change.
    put(18, &[1, 1, 0, 64, 32, 32]);
    // Changes; pages; cookie and format of the schema; UTF-8; the version that these are valid for.
    for (at, number) in [(24, 1), (28, pages), (40, 1), (44, 4), (56, 1), (92, 1), (96, 3_040_000)]
    {
        put(at, &u32::to_be_bytes(number));
    }
    header
}

/// Cells lie at the end of a page, the first one last; what points to them is behind the head, which begins at `start`.
fn page_of(kind: u8, cells: &[Vec<u8>], last_child: Option<u32>, start: usize) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut pointers = Vec::new();
    let mut at = PAGE;
    for cell in cells {
        at -= cell.len();
        page[at..at + cell.len()].copy_from_slice(cell);
        pointers.extend_from_slice(&(at as u16).to_be_bytes());
    }
    page[start] = kind;
    page[start + 3..start + 5].copy_from_slice(&(cells.len() as u16).to_be_bytes());
    page[start + 5..start + 7].copy_from_slice(&(at as u16).to_be_bytes());
    let mut behind = start + 8;
    if let Some(child) = last_child {
        page[behind..behind + 4].copy_from_slice(&child.to_be_bytes());
        behind += 4;
    }
    page[behind..behind + pointers.len()].copy_from_slice(&pointers);
    page
}

/// The kinds of all values, then the values.
fn record(cells: &[Cell]) -> Vec<u8> {
    let (mut kinds, mut body) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Cell::Nothing => kinds.push(0),
            Cell::Int(number) => {
                let (kind, bytes) = match number {
                    -0x80..=0x7f => (1, 1),
                    -0x8000..=0x7fff => (2, 2),
                    -0x8000_0000..=0x7fff_ffff => (4, 4),
                    _ => (6, 8),
                };
                kinds.push(kind);
                body.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
            }
            Cell::Float(number) => {
                kinds.push(7);
                body.extend_from_slice(&number.to_be_bytes());
            }
            Cell::Text(text) => {
                put_varint(&mut kinds, text.len() as u64 * 2 + 13);
                body.extend_from_slice(text.as_bytes());
            }
        }
    }
    // The length of the head counts itself.
    let length = if kinds.len() + 1 < 0x80 { kinds.len() + 1 } else { kinds.len() + 2 };
    let mut record = Vec::new();
    put_varint(&mut record, length as u64);
    record.extend(kinds);
    record.extend(body);
    record
}

/// SQLite's own: the highest bits first. Nothing here needs the ninth byte.
fn put_varint(to: &mut Vec<u8>, number: u64) {
    let groups = (64 - number.leading_zeros()).div_ceil(7).max(1);
    for at in (0..groups).rev() {
        let more = if at > 0 { 0x80 } else { 0 };
        to.push((number >> (7 * at)) as u8 & 0x7f | more);
    }
}
