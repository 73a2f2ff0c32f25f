//! Parquet, as little of it as a table needs: plain encoding, no compression, a page per column and group of rows, every
//! column optional. The library for it would take longer to build than the rest of this program.

use super::TableWriter;
use super::cell::{Cell, CellKind};
use super::columns::Columns;
use super::row::Row;
use std::io::{Result, Write};

const MAGIC: &[u8] = b"PAR1";
/// Rows that are held in memory, and about how many bytes of them.
const GROUP_ROWS: usize = 50_000;
const GROUP_BYTES: usize = 16 << 20;

/// Numbers of the format: types, encodings and what else has one.
const INT64: i64 = 2;
const DOUBLE: i64 = 5;
const BYTE_ARRAY: i64 = 6;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const UNCOMPRESSED: i64 = 0;
const DATA_PAGE: i64 = 0;

pub(super) struct ParquetTable {
    columns: Columns,
    group: Vec<Chunk>,
    rows: usize,
    rows_total: i64,
    /// Bytes that are written.
    at: i64,
    groups: Vec<RowGroup>,
}

/// One column of the rows that are held.
#[derive(Default)]
struct Chunk {
    is_there: Vec<bool>,
    values: Vec<u8>,
}

struct RowGroup {
    rows: i64,
    chunks: Vec<WrittenChunk>,
}

struct WrittenChunk {
    at: i64,
    bytes: i64,
}

impl ParquetTable {
    pub(super) fn new(columns: Columns) -> ParquetTable {
        let group = columns.all.iter().map(|_| Chunk::default()).collect();
        ParquetTable { columns, group, rows: 0, rows_total: 0, at: 0, groups: Vec::new() }
    }

    fn put(&mut self, out: &mut dyn Write, bytes: &[u8]) -> Result<()> {
        self.at += bytes.len() as i64;
        out.write_all(bytes)
    }

    fn write_group(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let group = std::mem::take(&mut self.group);
        let mut written = Vec::new();
        for chunk in &group {
            let levels = levels(&chunk.is_there);
            let size = (levels.len() + chunk.values.len()) as i64;
            let mut header = Thrift::default();
            header.int(1, DATA_PAGE);
            header.int(2, size);
            header.int(3, size);
            header.within(5, |page| {
                page.int(1, chunk.is_there.len() as i64);
                page.int(2, PLAIN);
                page.int(3, RLE);
                page.int(4, RLE);
            });
            let header = header.end();
            let at = self.at;
            self.put(out, &header)?;
            self.put(out, &levels)?;
            self.put(out, &chunk.values)?;
            written.push(WrittenChunk { at, bytes: self.at - at });
        }
        self.groups.push(RowGroup { rows: self.rows as i64, chunks: written });
        self.rows_total += self.rows as i64;
        self.rows = 0;
        self.group = self.columns.all.iter().map(|_| Chunk::default()).collect();
        Ok(())
    }

    fn footer(&self) -> Vec<u8> {
        let mut file = Thrift::default();
        file.int(1, 1);
        file.list(2, self.columns.all.len() + 1, Thrift::STRUCT, |file| {
            file.element(|root| {
                root.text(4, "schema");
                root.int(5, self.columns.all.len() as i64);
            });
            for column in &self.columns.all {
                file.element(|element| {
                    element.int(1, type_of(column.kind));
                    element.int(3, OPTIONAL);
                    element.text(4, &column.name);
                    if column.kind == CellKind::Text {
                        element.int(6, UTF8);
                    }
                });
            }
        });
        file.long(3, self.rows_total);
        file.list(4, self.groups.len(), Thrift::STRUCT, |file| {
            for group in &self.groups {
                file.element(|element| self.group_footer(element, group));
            }
        });
        file.text(6, concat!("laboro version ", env!("CARGO_PKG_VERSION")));
        file.end()
    }

    fn group_footer(&self, to: &mut Thrift, group: &RowGroup) {
        to.list(1, group.chunks.len(), Thrift::STRUCT, |to| {
            for (chunk, column) in group.chunks.iter().zip(&self.columns.all) {
                to.element(|to| {
                    to.long(2, chunk.at);
                    to.within(3, |to| {
                        to.int(1, type_of(column.kind));
                        to.list(2, 2, Thrift::I32, |to| {
                            to.number(PLAIN);
                            to.number(RLE);
                        });
                        to.list(3, 1, Thrift::BINARY, |to| to.bytes(column.name.as_bytes()));
                        to.int(4, UNCOMPRESSED);
                        to.long(5, group.rows);
                        to.long(6, chunk.bytes);
                        to.long(7, chunk.bytes);
                        to.long(9, chunk.at);
                    });
                });
            }
        });
        to.long(2, group.chunks.iter().map(|chunk| chunk.bytes).sum());
        to.long(3, group.rows);
    }
}

impl TableWriter for ParquetTable {
    fn head(&mut self, out: &mut dyn Write) -> Result<()> {
        self.put(out, MAGIC)
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        let mut held = 0;
        for (cell, chunk) in self.columns.cells(row).iter().zip(&mut self.group) {
            chunk.is_there.push(*cell != Cell::Nothing);
            match cell {
                Cell::Nothing => {}
                Cell::Int(number) => chunk.values.extend_from_slice(&number.to_le_bytes()),
                Cell::Float(number) => chunk.values.extend_from_slice(&number.to_le_bytes()),
                Cell::Text(text) => {
                    chunk.values.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    chunk.values.extend_from_slice(text.as_bytes());
                }
            }
            held += chunk.values.len();
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || held >= GROUP_BYTES {
            self.write_group(out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.write_group(out)?;
        let footer = self.footer();
        out.write_all(&footer)?;
        out.write_all(&(footer.len() as u32).to_le_bytes())?;
        out.write_all(MAGIC)
    }
}

fn type_of(kind: CellKind) -> i64 {
    match kind {
        CellKind::Int => INT64,
        CellKind::Float => DOUBLE,
        CellKind::Text => BYTE_ARRAY,
    }
}

/// Which values are there, a bit each, as one run behind its length.
fn levels(is_there: &[bool]) -> Vec<u8> {
    let mut run = Vec::new();
    put_varint(&mut run, (is_there.len().div_ceil(8) as u64) << 1 | 1);
    for eight in is_there.chunks(8) {
        run.push(eight.iter().enumerate().fold(0, |byte, (at, &bit)| byte | u8::from(bit) << at));
    }
    let mut all = (run.len() as u32).to_le_bytes().to_vec();
    all.extend(run);
    all
}

fn put_varint(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Thrift's compact protocol, which headers and footer are written in.
#[derive(Default)]
struct Thrift {
    bytes: Vec<u8>,
    last: i16,
}

impl Thrift {
    const I32: u8 = 5;
    const I64: u8 = 6;
    const BINARY: u8 = 8;
    const LIST: u8 = 9;
    const STRUCT: u8 = 12;

    /// Fields come in the order of their numbers, none more than 15 after the last.
    fn field(&mut self, number: i16, kind: u8) {
        self.bytes.push(((number - self.last) as u8) << 4 | kind);
        self.last = number;
    }

    fn number(&mut self, number: i64) {
        put_varint(&mut self.bytes, (number << 1 ^ number >> 63).cast_unsigned());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        put_varint(&mut self.bytes, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn int(&mut self, field: i16, number: i64) {
        self.field(field, Thrift::I32);
        self.number(number);
    }

    fn long(&mut self, field: i16, number: i64) {
        self.field(field, Thrift::I64);
        self.number(number);
    }

    fn text(&mut self, field: i16, text: &str) {
        self.field(field, Thrift::BINARY);
        self.bytes(text.as_bytes());
    }

    fn within(&mut self, field: i16, write: impl FnOnce(&mut Thrift)) {
        self.field(field, Thrift::STRUCT);
        self.element(write);
    }

    fn element(&mut self, write: impl FnOnce(&mut Thrift)) {
        let outer = std::mem::take(&mut self.last);
        write(self);
        self.bytes.push(0);
        self.last = outer;
    }

    fn list(&mut self, field: i16, count: usize, kind: u8, write: impl FnOnce(&mut Thrift)) {
        self.field(field, Thrift::LIST);
        match count {
            0..15 => self.bytes.push((count as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                put_varint(&mut self.bytes, count as u64);
            }
        }
        write(self);
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
