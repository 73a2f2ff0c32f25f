//! `laboro export`: one row for each attempt of the tasks of a job, for programs that work with tables. What stands in the
//! columns is in `row` and `columns`; how they are written in `table`, `parquet` and `sqlite`. Tasks and their results come
//! in the same order, so that no more than a few rows are in memory.

mod cell;
mod columns;
mod parquet;
mod results;
mod row;
mod sqlite;
mod table;

use crate::args::hub::{Export, ExportFormat};
use crate::exit::{Exit, refused, usage};
use crate::hub_client::{Hub, TaskPages, look};
use crate::output::{counted, data, say};
use crate::resolve::{self, Which};
use anyhow::Context;
use columns::{Columns, ResultShape};
use laboro_api::{Job, Parts, TaskState};
use parquet::ParquetTable;
use results::ResultStream;
use row::{Row, rows};
use sqlite::SqliteTable;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use table::{CsvTable, JobLogTable, JsonLines};

pub(crate) fn run(args: &Export) -> anyhow::Result<Exit> {
    let format = format(args)?;
    look(&args.place, async |hub| {
        let chosen = resolve::any(hub, &args.job, None).await?;
        let (state, ranges) = match chosen.which {
            Which::Job => (None, vec![(1, u32::MAX)]),
            Which::InState(state) => (Some(TaskState::from(state)), vec![(1, u32::MAX)]),
            Which::Ranges(ranges) => (None, ranges),
        };
        let job = hub.job(chosen.job).await?;
        let mut sink = Sink::open(args.output.as_deref())?;
        let mut table: Box<dyn TableWriter> = match format {
            ExportFormat::Jsonl => Box::new(JsonLines),
            ExportFormat::Joblog => Box::new(JobLogTable),
            ExportFormat::Csv | ExportFormat::Parquet | ExportFormat::Sqlite => {
                let columns = columns(hub, &job, &args.columns).await?;
                match format {
                    ExportFormat::Parquet => Box::new(ParquetTable::new(columns)),
                    ExportFormat::Sqlite => Box::new(SqliteTable::new(columns)),
                    _ => Box::new(CsvTable { columns }),
                }
            }
        };
        table.head(&mut sink.out)?;
        let mut count = 0;
        for (first, last) in ranges {
            let mut tasks = TaskPages::new(hub, job.job, state, first, Some(1000));
            let mut results = ResultStream::of(hub, job.job, first, last).await?;
            while let Some(task) = tasks.next().await? {
                if task.task > last {
                    break;
                }
                let result = results.of_task(task.task).await?;
                for row in rows(&job, &task, result.as_ref()) {
                    table.row(&row, &mut sink.out)?;
                    count += 1;
                }
            }
        }
        table.end(&mut sink.out)?;
        sink.finish(args.output.as_deref(), table.beginning())?;
        if args.output.is_some() {
            say(format_args!("job {}: {}", job.job, counted(count, "row")));
        }
        Ok(Exit::Done)
    })
}

/// The values of elements by their names, and what results have in common, for which all of them are read once.
async fn columns(hub: &Hub, job: &Job, names: &[String]) -> anyhow::Result<Columns> {
    let mut shape = ResultShape::default();
    let mut results = ResultStream::of(hub, job.job, 1, u32::MAX).await?;
    while let Some((_, result)) = results.next().await? {
        shape.see(&result);
    }
    let (values, kept) = value_columns(hub, job).await?;
    Columns::new(values, names, &kept, shape)
}

/// What was asked for, else what the name of the file says.
fn format(args: &Export) -> anyhow::Result<ExportFormat> {
    let format = format_of(args)?;
    if format == ExportFormat::Sqlite && args.output.is_none() {
        return Err(usage("a database cannot be written to standard output: say -o FILE.sqlite"));
    }
    if !args.columns.is_empty() && matches!(format, ExportFormat::Jsonl | ExportFormat::Joblog) {
        return Err(usage("--columns is for CSV, Parquet and SQLite: here values have no names"));
    }
    Ok(format)
}

fn format_of(args: &Export) -> anyhow::Result<ExportFormat> {
    let ending =
        args.output.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    match (args.format, ending) {
        (Some(format), _) => Ok(format),
        (None, None | Some("csv")) => Ok(ExportFormat::Csv),
        (None, Some("jsonl" | "ndjson")) => Ok(ExportFormat::Jsonl),
        (None, Some("joblog")) => Ok(ExportFormat::Joblog),
        (None, Some("parquet")) => Ok(ExportFormat::Parquet),
        (None, Some("sqlite" | "sqlite3" | "db")) => Ok(ExportFormat::Sqlite),
        (None, Some(other)) => Err(usage(format!(
            ".{other} is not a format that can be written: say .csv, .jsonl, .parquet, .sqlite or .joblog, or --format"
        ))),
    }
}

/// One form of a table.
trait TableWriter {
    fn head(&mut self, out: &mut dyn Write) -> std::io::Result<()>;
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> std::io::Result<()>;

    /// After the last row.
    fn end(&mut self, _: &mut dyn Write) -> std::io::Result<()> {
        Ok(())
    }

    /// What the file begins with, if that was not known before.
    fn beginning(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// Where the rows go: standard output, or a file that takes its name when it is whole.
struct Sink {
    out: Box<dyn Write>,
}

impl Sink {
    fn open(path: Option<&Path>) -> anyhow::Result<Sink> {
        let Some(path) = path else {
            return Ok(Sink { out: Box::new(BufWriter::new(data())) });
        };
        let draft = draft(path);
        let file = File::create(&draft)
            .with_context(|| format!("{} cannot be written", draft.display()))?;
        Ok(Sink { out: Box::new(BufWriter::with_capacity(1 << 16, file)) })
    }

    fn finish(mut self, path: Option<&Path>, beginning: Option<Vec<u8>>) -> anyhow::Result<()> {
        self.out.flush()?;
        drop(self.out);
        let Some(path) = path else { return Ok(()) };
        let draft = draft(path);
        let finished = || {
            if let Some(beginning) = beginning {
                let mut file = File::options().write(true).open(&draft)?;
                file.seek(SeekFrom::Start(0))?;
                file.write_all(&beginning)?;
            }
            std::fs::rename(&draft, path)
        };
        finished().with_context(|| format!("{} cannot be written", path.display()))
    }
}

fn draft(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// So many arrays are looked at for the number of their values.
const ARRAYS_LOOKED_AT: usize = 1000;

/// How many values the elements of its arrays have at most, and what they are called where all arrays that have names for
/// them have the same: the elements of one array have equally many.
async fn value_columns(hub: &Hub, job: &Job) -> anyhow::Result<(usize, Vec<String>)> {
    let (mut most, mut looked_at, mut from) = (0, 0, Some(1));
    let mut names: Option<Vec<String>> = None;
    while let Some(first) = from {
        let page: Parts =
            hub.get(&format!("jobs/{}/parts?from={first}&limit=1000", job.job)).await?;
        for part in page.parts.iter().filter(|part| part.state.is_none()) {
            looked_at += 1;
            if looked_at > ARRAYS_LOOKED_AT {
                return Err(refused(
                    "the job has too many arrays for a table of values: export it with --format jsonl",
                ));
            }
            let task = hub.task(job.job, part.first).await?;
            most = most.max(row::values(&task).len());
            let own = task.work.map_or(Vec::new(), |work| work.value_names);
            let own: Vec<String> = own.iter().map(ToString::to_string).collect();
            match &mut names {
                _ if own.is_empty() => {}
                None => names = Some(own),
                Some(known) if *known != own => known.clear(),
                Some(_) => {}
            }
        }
        from = page.next;
    }
    Ok((most, names.unwrap_or_default()))
}
