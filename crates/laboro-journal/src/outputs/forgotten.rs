//! The jobs nobody needs any more, in a file a person can read: one range a line.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use super::Error;
use super::jobs::Jobs;
use super::segment;

pub(super) fn load(dir: &Path) -> Result<Jobs, Error> {
    let path = dir.join("forgotten");
    let text = match fs::read_to_string(&path).map_err(Error::at(&path)) {
        Ok(text) => text,
        Err(error) if error.is_gone() => return Ok(Jobs::default()),
        Err(error) => return Err(error),
    };
    let mut jobs = Jobs::default();
    let mut offset = 0;
    for line in text.lines() {
        let range = line
            .split_once(' ')
            .and_then(|(first, last)| Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?));
        let damaged = || Error::Damaged { file: path.clone(), offset, what: "no range of jobs" };
        jobs.insert(range.ok_or_else(damaged)?);
        offset += line.len() as u64 + 1;
    }
    Ok(jobs)
}

pub(super) fn save(dir: &Path, jobs: &Jobs) -> Result<(), Error> {
    let line = |range: &RangeInclusive<u32>| format!("{} {}\n", range.start(), range.end());
    let text: String = jobs.ranges().iter().map(line).collect();
    segment::place(dir, &dir.join("forgotten"), text.as_bytes()).map(drop)
}
