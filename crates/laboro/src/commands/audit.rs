//! `laboro audit`: who changed what at a hub, newest first.

use crate::args::hub::Audit;
use crate::exit::Exit;
use crate::hub_client::{Hub, talk};
use crate::listing::Listing;
use crate::output::safe;
use crate::output::table::{Column, Mood};
use crate::view::clock;
use laboro_api::{AuditEntry, AuditPage, BASE};

const COLUMNS: &[Column] = &[
    Column::Left("when"),
    Column::Left("who"),
    Column::Left("role"),
    Column::Left("from"),
    Column::Right("status"),
    Column::Left("action"),
    Column::Left("detail"),
];

pub(crate) fn run(args: &Audit) -> anyhow::Result<Exit> {
    talk(&args.hub, async |hub| {
        let mut listing = Listing::new(&args.rows, COLUMNS);
        list(hub, args, &mut listing).await?;
        listing.finish("nothing was changed yet")
    })
}

async fn list(hub: &Hub, args: &Audit, listing: &mut Listing) -> anyhow::Result<()> {
    let mut before = None;
    loop {
        let from = before.map_or(String::new(), |before| format!("&before={before}"));
        let page: AuditPage = hub.get(&format!("audit?limit=1000{from}")).await?;
        for entry in page.entries.iter().filter(|entry| is_wanted(entry, args)) {
            if !listing.add(entry, || row(entry))? {
                return Ok(());
            }
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(()),
        }
    }
}

fn is_wanted(entry: &AuditEntry, args: &Audit) -> bool {
    let by = |name: &String| entry.token == *name || entry.owner.as_ref() == Some(name);
    args.by.as_ref().is_none_or(by) && args.job.is_none_or(|job| is_about(entry, job))
}

/// Its path names the job, or, of a submit, its detail does.
fn is_about(entry: &AuditEntry, job: u32) -> bool {
    let path = path(entry);
    let mut words = path.split('/').skip_while(|word| *word != "jobs").skip(1);
    let submitted = format!("job {job},");
    words.next() == Some(job.to_string().as_str())
        || entry.detail.as_ref().is_some_and(|detail| detail.starts_with(&submitted))
}

/// Without what all of them begin with.
fn path(entry: &AuditEntry) -> &str {
    let path = entry.action.split_once(' ').map_or("", |(_, path)| path);
    path.strip_prefix(BASE).unwrap_or(path)
}

fn row(entry: &AuditEntry) -> [(String, Mood); 7] {
    let who = match &entry.owner {
        Some(owner) => format!("{owner} ({})", entry.token),
        None => entry.token.clone(),
    };
    let action = match entry.action.split_once(' ') {
        Some((verb, _)) if entry.action.contains('/') => format!("{verb} {}", path(entry)),
        _ => entry.action.clone(),
    };
    let mood = if entry.status < 400 { Mood::Plain } else { Mood::Bad };
    [
        (clock(entry.at_ms), Mood::Plain),
        (safe(&who), Mood::Plain),
        (safe(&entry.role), Mood::Plain),
        (entry.peer.as_deref().map(safe).unwrap_or_default(), Mood::Faint),
        (entry.status.to_string(), mood),
        (safe(&action), Mood::Plain),
        (entry.detail.as_deref().map(safe).unwrap_or_default(), Mood::Plain),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_about_the_job_of_its_path_or_of_its_detail() {
        let entry = |action: &str, detail: Option<&str>| AuditEntry {
            action: action.into(),
            detail: detail.map(str::to_owned),
            ..AuditEntry::default()
        };
        assert!(is_about(&entry("POST /api/v1/jobs/7/cancel", None), 7));
        assert!(is_about(&entry("DELETE /api/v1/jobs/7", None), 7));
        assert!(is_about(&entry("POST /api/v1/jobs", Some("job 7, 3 tasks")), 7));
        assert!(!is_about(&entry("POST /api/v1/jobs/70/cancel", Some("tasks 7")), 7));
        assert!(!is_about(&entry("POST /api/v1/jobs", Some("job 71, 7 tasks")), 7));
        assert!(!is_about(&entry("token made", Some("7")), 7));
    }
}
