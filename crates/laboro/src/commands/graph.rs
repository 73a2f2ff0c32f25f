//! `laboro graph`: draws a job file, or a job of a hub.

mod hub;

use crate::args::graph::{Graph, GraphFormat};
use crate::exit::{Exit, usage};
use crate::files::write_output;
use crate::selector::JobRef;
use laboro_plan::Plan;

pub(crate) fn run(args: &Graph) -> anyhow::Result<Exit> {
    let plan = plan(args)?;
    let extension = args.output.as_ref().and_then(|path| path.extension()?.to_str());
    let by_name = match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => Some(GraphFormat::Svg),
        Some("dot" | "gv") => Some(GraphFormat::Dot),
        Some(picture @ ("png" | "pdf" | "jpg" | "jpeg" | "gif" | "webp" | "ps" | "eps")) => {
            return Err(usage(format!(
                "a .{picture} cannot be drawn: write an .svg, or `--format dot` for `dot -T{picture}`"
            )));
        }
        _ => None,
    };
    let graph = plan.graph();
    let drawing = match by_name.unwrap_or(args.format) {
        GraphFormat::Text => graph.text(),
        GraphFormat::Svg => graph.svg(),
        GraphFormat::Dot => graph.dot(),
    };
    write_output(args.output.as_deref(), &drawing)?;
    Ok(Exit::Done)
}

/// A file, if there is one and nobody says otherwise.
fn plan(args: &Graph) -> anyhow::Result<Plan> {
    let is_said = args.place.says_hub()?.is_some();
    let is_meant = |job: &&str| is_said || (is_job(job) && !args.file.exists());
    if let Some(job) = args.file.to_str().filter(is_meant) {
        return hub::plan(args, job);
    }
    let plan = Plan::open(&args.file).map_err(usage)?;
    plan.validate().map_err(usage)?;
    Ok(plan)
}

/// What cannot be a slip in the name of a file.
fn is_job(text: &str) -> bool {
    matches!(JobRef::parse(text), Ok(JobRef::Number(_) | JobRef::Last))
}
