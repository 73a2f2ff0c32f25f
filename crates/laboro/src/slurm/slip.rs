//! What a task that came by `sbatch` is told of its Slurm job: everything that is only known where it runs, such as the
//! names of its files, is worked out there from this. Travels in variables, as text that no placeholder is found in.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laboro_api::Text;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub(super) struct Slip {
    pub(super) name: String,
    pub(super) user: String,
    pub(super) account: String,
    pub(super) partition: String,
    pub(super) submit_dir: String,
    pub(super) submit_host: String,
    pub(super) work_dir: String,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) input: Option<String>,
    pub(super) appends: bool,
    /// As it was typed.
    pub(super) array: Option<String>,
    pub(super) ntasks: u32,
    pub(super) cpus_per_task: u32,
    pub(super) memory_bytes: u64,
    pub(super) limit_ms: Option<u64>,
    pub(super) signal: Option<Signal>,
    /// What must be so of other jobs when it starts, beyond their being over.
    pub(super) conditions: Vec<Condition>,
    pub(super) comment: String,
    pub(super) env: BTreeMap<String, Text>,
    pub(super) arguments: Vec<String>,
    /// The arguments are a command for `srun`, and there is no script to speak of.
    pub(super) is_step: bool,
}

/// A signal so long before the end.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Signal {
    pub(super) number: i32,
    pub(super) before_ms: u64,
    /// To the script alone, and else to what it started.
    pub(super) to_script: bool,
}

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Condition {
    pub(super) job: u32,
    /// Of one element.
    pub(super) task: Option<u32>,
    pub(super) must: Must,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Must {
    Succeed,
    Fail,
}

/// The first one; further ones have a number behind it.
pub(super) const VARIABLE: &str = "LABORO_SLURM";

/// Less than the kernel takes in one variable.
const PIECE: usize = 100_000;

impl Slip {
    pub(super) fn variables(&self) -> anyhow::Result<BTreeMap<String, Text>> {
        let text = STANDARD.encode(serde_json::to_vec(self)?);
        let pieces = text.as_bytes().chunks(PIECE).enumerate();
        Ok(pieces.map(|(at, piece)| (variable(at), Text::new(piece))).collect())
    }

    /// `None`: it did not come by `sbatch`.
    pub(super) fn read(get: impl Fn(&str) -> Option<Vec<u8>>) -> anyhow::Result<Option<Slip>> {
        let mut text = Vec::new();
        for at in 0.. {
            match get(&variable(at)) {
                Some(piece) => text.extend(piece),
                None => break,
            }
        }
        if text.is_empty() {
            return Ok(None);
        }
        let bytes = STANDARD.decode(text).context("$LABORO_SLURM is damaged")?;
        Ok(Some(serde_json::from_slice(&bytes).context("$LABORO_SLURM is damaged")?))
    }

    /// Of the process that this is.
    pub(super) fn of_process() -> anyhow::Result<Slip> {
        let get =
            |name: &str| std::env::var_os(name).map(std::os::unix::ffi::OsStringExt::into_vec);
        match Slip::read(get)? {
            Some(slip) => Ok(slip),
            None => bail!("$LABORO_SLURM is not set: this is for tasks that came by sbatch"),
        }
    }
}

fn variable(at: usize) -> String {
    match at {
        0 => VARIABLE.to_owned(),
        at => format!("{VARIABLE}_{at}"),
    }
}

/// Elements of arrays have numbers of their own above all those of jobs, because scripts make unique names of them.
const RAW: u64 = 100_000_000;

/// The number that stands for an element, by its place from 1.
pub(super) fn raw(job: u32, place: Option<u32>) -> u64 {
    match place {
        Some(place) => u64::from(job) * RAW + u64::from(place),
        None => job.into(),
    }
}

/// The other way round.
pub(super) fn from_raw(raw: u64) -> Option<(u32, Option<u32>)> {
    if raw < RAW {
        return Some((u32::try_from(raw).ok()?, None));
    }
    Some((u32::try_from(raw / RAW).ok()?, Some(u32::try_from(raw % RAW).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_arrives_as_it_was_however_long() {
        let long = "x{}".repeat(90_000);
        let env = [("A".to_owned(), Text::from(long))].into_iter().collect();
        let slip = Slip { name: "fit {}".into(), env, ..Slip::default() };
        let variables = slip.variables().unwrap();
        assert!(variables.len() > 2, "{}", variables.len());
        assert!(variables.values().all(|value| !value.bytes().contains(&b'{')));
        let read = Slip::read(|name| variables.get(name).map(|v| v.bytes().to_vec())).unwrap();
        assert_eq!(read, Some(slip));
    }

    #[test]
    fn an_element_has_a_number_of_its_own() {
        assert_eq!(from_raw(raw(12, Some(3))), Some((12, Some(3))));
        assert_eq!(from_raw(raw(12, None)), Some((12, None)));
    }
}
