//! `laboro submit`: gives tasks to a hub. Here the command line is turned into a job; `crate::submit` sends it.

use super::logs::{WantedLogs, print_job, tee_job};
use super::wait::{WaitOutput, until_over};
use crate::args::hub::Submit;
use crate::begin;
use crate::exit::{Exit, usage};
use crate::hub_client::talk;
use crate::input;
use crate::output::{counted, print, say};
use crate::resolve::{self, Chosen, Which};
use crate::submit::{Terms, add, name_of, predecessors, submit};
use crate::view::{clock, now_ms};
use laboro_api::{SubmitJob, Submitted, Text};
use laboro_plan::Plan;

pub(crate) fn run(args: &Submit) -> anyhow::Result<Exit> {
    let plan = input::plan(&args.input, &args.task.settings()?, "submit", 1)?;
    if args.check {
        return Ok(input::say_checked(&plan));
    }
    if args.dry_run {
        return input::preview(&plan);
    }
    let mut terms = Terms::new(args)?;
    let job = job_of(args, &plan)?;
    let begin_ms = job.begin_ms;
    let is_quiet = args.quiet || args.json;
    talk(&args.hub, async |hub| {
        terms.come_after(predecessors(hub, &args.after).await?);
        let submitted = match &args.add {
            Some(open) => {
                let open = resolve::job(hub, open).await?;
                add(hub, open, &plan, &terms, is_quiet).await?
            }
            None => submit(hub, job, &plan, &terms, is_quiet).await?,
        };
        tell(args, begin_ms, &submitted)?;
        if !args.wait {
            return Ok(Exit::Done);
        }
        if args.keep_order || args.output_dir.is_some() {
            let all = Chosen { job: submitted.job, which: Which::Job };
            let dir = args.output_dir.as_deref();
            print_job(hub, &all, WantedLogs { follow: true, dir, ..WantedLogs::default() }).await?;
        }
        if args.tee {
            tee_job(hub, submitted.job).await?;
        }
        let shown =
            if args.json { WaitOutput::Json } else { WaitOutput::Words { quiet: args.quiet } };
        until_over(hub, vec![submitted.job], None, shown).await
    })
}

/// What the command line says comes before what the plan says.
pub(crate) fn job_of(args: &Submit, plan: &Plan) -> anyhow::Result<SubmitJob> {
    let fails_max = plan.job.fails_max.map(|most| u32::try_from(most).unwrap_or(u32::MAX));
    let name = args.name.clone().or_else(|| plan.job.name.clone());
    let file = args.input.file.as_deref().or(args.input.runs.as_deref());
    if args.max_running == Some(0) {
        return Err(usage("--max-running 0: nothing would ever run; --hold starts nothing yet"));
    }
    if args.key.as_deref() == Some("") {
        return Err(usage("--key '': a key has at least one letter; is a variable not set?"));
    }
    Ok(SubmitJob {
        group: args.group.clone().or_else(|| plan.job.group.clone()).map(Text::from),
        name: name.or_else(|| name_of(file)).map(Text::from),
        open: args.open,
        held: args.hold,
        begin_ms: begin_of(args.begin.as_deref().or(plan.job.begin.as_deref()))?,
        max_running: args.max_running,
        max_fails: args.max_fails.or(fails_max),
        key: args.key.clone().map(Text::from),
        on_end: args.on_end.clone(),
        ..SubmitJob::default()
    })
}

/// Told where it is past: such a job begins at once.
fn begin_of(text: Option<&str>) -> anyhow::Result<Option<u64>> {
    let Some(text) = text else { return Ok(None) };
    let now = begin::now();
    let moment = begin::parse(text, &now).map_err(|told| usage(format!("--begin {told}")))?;
    if moment < now.timestamp() {
        say(format_args!("--begin {text} is past: the job begins now"));
    }
    Ok(Some(u64::try_from(moment.as_millisecond()).unwrap_or(0)))
}

fn tell(args: &Submit, job_begin: Option<u64>, submitted: &Submitted) -> anyhow::Result<()> {
    let Submitted { job, count, again, .. } = *submitted;
    let tasks = match job_begin.filter(|&begin| begin > now_ms()) {
        Some(begin) => format!("{}, begins {}", counted(count, "task"), clock(begin)),
        None => counted(count, "task"),
    };
    if args.json {
        print(serde_json::to_string(submitted)?)?;
    } else if args.quiet {
        print(job)?;
    } else if again {
        print(format_args!("job {job} already exists: {tasks}"))?;
    } else if args.add.is_some() {
        print(format_args!("job {job}: {tasks} added"))?;
    } else {
        print(format_args!("job {job}: {tasks}"))?;
    }
    Ok(())
}
