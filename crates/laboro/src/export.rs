//! `laboro export`: one row for each attempt of the tasks of a job, for programs that work with tables. What stands in the
//! columns is in `row`, how they are written in `csv` and here.

mod row;
mod table;

use crate::args::hub::{Export, ExportFormat};
use crate::exit::{Exit, refused, usage};
use crate::hub_client::{Hub, TaskPages, look};
use crate::output::{counted, say};
use crate::resolve::{self, Which};
use anyhow::Context;
use laboro_api::{Job, Parts, TaskState};
use row::{Row, rows};
use std::fs::File;
use std::io::{BufWriter, Stdout, Write};
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
        let values = if format == ExportFormat::Csv { value_columns(hub, &job).await? } else { 0 };
        let mut table: Box<dyn Table> = match format {
            ExportFormat::Csv => Box::new(CsvTable { values }),
            ExportFormat::Jsonl => Box::new(JsonLines),
            ExportFormat::Joblog => Box::new(JobLogTable),
        };
        table.head(&mut sink.out)?;
        let mut count = 0;
        for (first, last) in ranges {
            let mut tasks = TaskPages::new(hub, job.job, state, first, Some(1000));
            while let Some(task) = tasks.next().await? {
                if task.task > last {
                    break;
                }
                for row in rows(&job, &task) {
                    table.row(&row, &mut sink.out)?;
                    count += 1;
                }
            }
        }
        sink.finish(args.output.as_deref())?;
        if args.output.is_some() {
            say(format_args!("job {}: {}", job.job, counted(count, "row")));
        }
        Ok(Exit::Done)
    })
}

/// What was asked for, else what the name of the file says.
fn format(args: &Export) -> anyhow::Result<ExportFormat> {
    let ending =
        args.output.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    match (args.format, ending) {
        (Some(format), _) => Ok(format),
        (None, None | Some("csv")) => Ok(ExportFormat::Csv),
        (None, Some("jsonl" | "ndjson")) => Ok(ExportFormat::Jsonl),
        (None, Some("joblog")) => Ok(ExportFormat::Joblog),
        (None, Some(other)) => Err(usage(format!(
            ".{other} is not a format that can be written: say .csv, .jsonl or .joblog, or --format"
        ))),
    }
}

/// One form of a table.
trait Table {
    fn head(&mut self, out: &mut dyn Write) -> std::io::Result<()>;
    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> std::io::Result<()>;
}

/// Where the rows go: standard output, or a file that takes its name when it is whole.
struct Sink {
    out: Box<dyn Write>,
}

impl Sink {
    fn open(path: Option<&Path>) -> anyhow::Result<Sink> {
        let Some(path) = path else {
            let out: BufWriter<Stdout> = BufWriter::new(std::io::stdout());
            return Ok(Sink { out: Box::new(out) });
        };
        let draft = draft(path);
        let file = File::create(&draft)
            .with_context(|| format!("{} cannot be written", draft.display()))?;
        Ok(Sink { out: Box::new(BufWriter::with_capacity(1 << 16, file)) })
    }

    fn finish(mut self, path: Option<&Path>) -> anyhow::Result<()> {
        self.out.flush()?;
        drop(self.out);
        match path {
            None => Ok(()),
            Some(path) => std::fs::rename(draft(path), path)
                .with_context(|| format!("{} cannot be written", path.display())),
        }
    }
}

fn draft(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

/// So many arrays are looked at for the number of their values.
const ARRAYS_LOOKED_AT: usize = 1000;

/// How many values the elements of its arrays have at most: the elements of one array have equally many.
async fn value_columns(hub: &Hub, job: &Job) -> anyhow::Result<usize> {
    let (mut most, mut looked_at, mut from) = (0, 0, Some(1));
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
        }
        from = page.next;
    }
    Ok(most)
}
