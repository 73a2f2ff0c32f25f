//! `laboro graph`: draws a job file.

use crate::args::{Graph, GraphFormat};
use crate::exit::{Exit, usage};
use anyhow::Context;
use laboro_plan::Plan;
use std::io::Write;

pub(crate) fn run(args: &Graph) -> anyhow::Result<Exit> {
    let plan = Plan::open(&args.file).map_err(usage)?;
    plan.validate().map_err(usage)?;
    let by_name = args.output.as_ref().and_then(|path| match path.extension()?.to_str()? {
        "svg" => Some(GraphFormat::Svg),
        "dot" | "gv" => Some(GraphFormat::Dot),
        _ => None,
    });
    let graph = plan.graph();
    let drawing = match by_name.unwrap_or(args.format) {
        GraphFormat::Text => graph.text(),
        GraphFormat::Svg => graph.svg(),
        GraphFormat::Dot => graph.dot(),
    };
    match &args.output {
        Some(path) => std::fs::write(path, drawing)
            .with_context(|| format!("{} cannot be written", path.display()))?,
        None => std::io::stdout().write_all(drawing.as_bytes())?,
    }
    Ok(Exit::Done)
}
