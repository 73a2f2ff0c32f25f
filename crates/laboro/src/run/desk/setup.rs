//! What the desk of a run is made of, before there is one.

use crate::files::make_dir;
use crate::run::attempts::Attempts;
use crate::run::collected::ValueTable;
use crate::run::joblog::JobLog;
use crate::run::order::OrderedOutput;
use crate::run::results::ResultFiles;
use crate::run::show::Display;
use crate::run::worker::may_look_ahead;
use crate::run::{Layout, Options};
use laboro_hub::{Asker, Underway};
use laboro_journal::outputs::Writer;
use std::path::Path;

/// What a desk is made of.
pub(crate) struct Setup {
    pub(crate) layout: Layout,
    pub(crate) options: Options,
    pub(crate) asker: Asker,
    pub(crate) outputs: Writer,
    pub(crate) attempts: Attempts,
    pub(crate) display: Display,
    pub(crate) order: Option<OrderedOutput>,
    pub(crate) results: Option<ResultFiles>,
    pub(crate) looks_ahead: bool,
    pub(crate) joblog: Option<JobLog>,
    pub(crate) table: Option<ValueTable>,
    pub(crate) total: u64,
    pub(crate) underway: Underway,
}

impl Setup {
    pub(crate) fn open(
        layout: Layout,
        options: Options,
        asker: Asker,
        outputs: Writer,
        display: Display,
        path: &Path,
    ) -> anyhow::Result<Setup> {
        if let Some(dir) = &options.output_dir {
            make_dir(dir)?;
        }
        let stored = path.join("outputs");
        let results = options.results_dir.as_deref();
        let results = results.map(|dir| ResultFiles::open(dir, &stored)).transpose()?;
        let looks_ahead = may_look_ahead(&layout, &options);
        let attempts = Attempts::open(&stored)?;
        Ok(Setup {
            layout,
            options,
            asker,
            outputs,
            attempts,
            display,
            order: None,
            results,
            looks_ahead,
            joblog: None,
            table: None,
            total: 0,
            underway: Underway::default(),
        })
    }
}
