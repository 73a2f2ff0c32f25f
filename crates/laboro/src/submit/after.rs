//! What `--after` means: the tasks of another job that must be done before, or some of them.

use crate::exit::usage;
use crate::hub_client::Hub;
use crate::output::safe;
use crate::resolve::{self, Which};
use laboro_api::{After, Parts};

/// Each task that has nothing before it gets all of these.
const MOST: usize = 10_000;

pub(crate) async fn predecessors(hub: &Hub, words: &[String]) -> anyhow::Result<Vec<After>> {
    let mut found = Vec::new();
    for text in words {
        let chosen = resolve::any(hub, text, None).await?;
        let job = chosen.job;
        let ranges = match &chosen.which {
            Which::Job => vec![(1, u32::MAX)],
            Which::Ranges(ranges) => ranges.clone(),
            Which::InState(_) => {
                let text = safe(text);
                return Err(usage(format!("--after {text}: name the tasks, not a state")));
            }
        };
        for range in ranges {
            let before = found.len();
            add(hub, job, range, &mut found).await?;
            if found.len() == before {
                return Err(usage(format!("--after {}: there is no such task", safe(text))));
            }
            if found.len() > MOST {
                let text = safe(text);
                return Err(usage(format!(
                    "--after {text}: more than {MOST} tasks: make them an array, or come after the last of them"
                )));
            }
        }
    }
    Ok(found)
}

/// Arrays that are inside the range are one thing, whatever their size.
async fn add(
    hub: &Hub,
    job: u32,
    (first, last): (u32, u32),
    found: &mut Vec<After>,
) -> anyhow::Result<()> {
    // A task inside an array is found by the array's first number.
    let mut from = Some(if first == 1 { 1 } else { first });
    if last != u32::MAX && first != 1 {
        for task in first..=last.min(first.saturating_add(MOST as u32)) {
            found.push(After::Task { job, task });
        }
        return Ok(());
    }
    while let Some(at) = from {
        let page: Parts = hub.get(&format!("jobs/{job}/parts?from={at}&limit=1000")).await?;
        for part in page.parts {
            let end = part.first + (part.count.max(1) - 1);
            if part.first > last {
                return Ok(());
            }
            if end > last {
                found.extend((part.first..=last).map(|task| After::Task { job, task }));
                return Ok(());
            }
            found.push(match part.state {
                Some(_) => After::Task { job, task: part.first },
                None => After::Array { job, first: part.first },
            });
        }
        from = page.next.filter(|_| found.len() <= MOST);
    }
    Ok(())
}
