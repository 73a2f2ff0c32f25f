//! Options about what each task needs of a machine, the same for `run` and `submit`: what a flow says with the keys of
//! its defaults. What a machine has is said with others.

use crate::input::{quantity, resources};
use clap::Args as ClapArgs;
use laboro_plan::{Settings, parse_duration, parse_size};

#[derive(Debug, ClapArgs)]
pub(crate) struct NeedsArgs {
    /// Slots that each task takes (default 1).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) slots: Option<u32>,

    /// Memory that each task needs, such as 2G (default: none is reserved).
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,

    /// Resource that each task needs: gpu=1, gpu=0.5 or gpu=all. May be given several times.
    #[arg(long = "resource", value_name = "NAME=N")]
    pub(crate) resources: Vec<String>,

    /// Run only on workers with this tag.
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,

    /// Take N whole workers at once for each task. It runs on the first, which finds the hosts of all in LABORO_NODE_FILE.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) nodes: Option<u32>,

    /// Start a task only on a worker that stays for TIME, such as 2h. Default: its time limit.
    #[arg(long, value_name = "TIME")]
    pub(crate) time_request: Option<String>,
}

impl NeedsArgs {
    /// For `Plan::apply`.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            slots: self.slots,
            memory_bytes: quantity("--memory", self.memory.as_deref(), parse_size)?,
            resources: resources(&self.resources)?,
            tags: self.tags.clone(),
            nodes: self.nodes,
            time_request: quantity("--time-request", self.time_request.as_deref(), parse_duration)?,
            ..Settings::default()
        })
    }
}
