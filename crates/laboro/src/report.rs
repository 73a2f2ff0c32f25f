//! `laboro report`: one page about a job that can be sent around. It holds everything it shows and asks nobody
//! for anything; there is no script in it.

mod drawing;
mod facts;
mod html;
mod page;
mod remembered;

#[cfg(test)]
mod tests;

use crate::args::hub::Report;
use crate::exit::Exit;
use crate::files::write_output;
use crate::hub_client::look;
use crate::output::say;
use crate::resolve;
use facts::ReportFacts;

pub(crate) fn run(args: &Report) -> anyhow::Result<Exit> {
    look(&args.place, async |hub| {
        let job = resolve::job(hub, &args.job).await?;
        let facts = ReportFacts::gather(hub, job).await?;
        if facts.job.ended_ms.is_none() {
            say(format_args!("job {job} has not ended; the report shows its present state"));
        }
        let page = page::draw(&facts) + "\n";
        if let Some(path) = write_output(args.output.as_deref(), &page)? {
            say(format_args!("{} is written", path.display()));
        }
        Ok(Exit::Done)
    })
}
