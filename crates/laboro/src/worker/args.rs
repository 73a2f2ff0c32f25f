//! What can be typed after `laboro worker`. Only shapes and help texts.

use crate::curve::CurveArgs;
use crate::machine::refuse_old;
use clap::{Args as ClapArgs, ValueEnum};
use laboro_dialects::fuq2::Numbering;
use laboro_worker::Pin;
use laboro_worker::agent::LimitBy;
use std::ffi::OsString;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  laboro worker                                run tasks of the hub of this machine
  laboro worker --access access.toml           run tasks of the hub in the access file
  laboro worker -j 8 --with gpu=2 --with-tag bigmem
  laboro worker --time-limit 4h --idle-timeout 10m      in a batch system's job
  laboro worker --ssh node1 --ssh node2 -- -j 16        starts workers on other machines

The first SIGTERM or Ctrl-C stops accepting tasks and waits up to --drain for running ones; a second one ends them.
Unfinished tasks go back to the hub. If the connection is lost, tasks continue, and results are kept until the hub
has them.

Tasks find LABORO_TASK, LABORO_JOB, LABORO_INDEX, LABORO_ATTEMPT, LABORO_SLOTS, LABORO_WORKER and LABORO_SCRATCH
(a directory of their own, removed after them) in their environment, and for --with gpu=2 LABORO_GPU and
CUDA_VISIBLE_DEVICES, or ROCR_VISIBLE_DEVICES where that is what this machine has.

Exit status: 0 all is finished or given back, 2 wrong usage, 3 not everything could be reported, the hub refused the worker, or a task of --from dwork:// could not be started.";

#[derive(Debug, ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Worker {
    /// The hub: its directory on this machine, or HOST:PORT of its native door instead of the one in the
    /// access file.
    pub(crate) hub: Option<String>,

    /// The hub's access file, - for standard input. Default: $LABORO_ACCESS, else that of the hub's directory.
    #[arg(long, value_name = "FILE")]
    pub(crate) access: Option<PathBuf>,

    /// Work for another system: dwork://HOST:PORT, fuq+wss://, fuq+https://, fuq1+tcp://, fuq2+tcp:// or
    /// runexp://. A bare runexp:// is the manager that ~/.runexp names.
    #[arg(long, value_name = "URL", conflicts_with_all = ["hub", "access"])]
    pub(crate) from: Option<String>,

    #[command(flatten)]
    pub(crate) curve: CurveArgs,

    /// With --from dwork://: what to do with a failed task. Default: complete.
    #[arg(long, value_enum, requires = "from")]
    pub(crate) on_failure: Option<OnFailure>,

    /// With --from dwork://: stay when everything is done, and ask again.
    #[arg(long, requires = "from")]
    pub(crate) stay: bool,

    /// With --from fuq+...: the file with the foreman's password, alone or after the word `auth`.
    #[arg(long, value_name = "FILE", requires = "from")]
    pub(crate) auth_file: Option<PathBuf>,

    /// With --from fuq+...: trust the certificates in this file, and certificates that they signed.
    #[arg(long, value_name = "FILE", requires = "from", conflicts_with_all = ["pin", "insecure"])]
    pub(crate) ca: Option<PathBuf>,

    /// With --from fuq+...: trust the certificate with this SHA-256.
    #[arg(long, value_name = "HEX", requires = "from", conflicts_with = "insecure")]
    pub(crate) pin: Option<String>,

    /// With --from fuq+...: do not verify the certificate of the server.
    #[arg(long, requires = "from")]
    pub(crate) insecure: bool,

    /// With --from fuq+... and --ca: the name in the certificate, if not that of the host.
    #[arg(long, value_name = "NAME", requires = "ca")]
    pub(crate) cert_name: Option<String>,

    /// With --from fuq+wss:// or fuq2+tcp://: how the foreman numbers its messages, current, older or oldest.
    #[arg(long, value_name = "WORD", requires = "from", default_value = "current")]
    pub(crate) numbering: Numbering,

    /// With runexp://: what decides whether a script succeeded.
    #[arg(long, value_enum, requires = "from", default_value_t = crate::args::Success::ResLine)]
    pub(crate) success: crate::args::Success,

    /// With runexp://: accept a manager of this version too.
    #[arg(long = "accept-version", value_name = "VERSION", requires = "from")]
    pub(crate) versions: Vec<String>,

    /// How many slots: tasks that run at once. Default: the number of cores.
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    pub(crate) jobs: Option<u32>,

    /// Name of this worker at the hub. Default: host name and process id.
    #[arg(long, visible_alias = "host", value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Something that this machine has and tasks may need: gpu=2, gpu=4,5, licences=200, or memory=64G for what tasks may
    /// take together (default: all of it).
    #[arg(long = "with", value_name = "NAME=VALUE")]
    pub(crate) with: Vec<String>,

    /// A tag that tasks may require.
    #[arg(long = "with-tag", value_name = "TAG")]
    pub(crate) with_tags: Vec<String>,

    /// Print what this worker would offer, and exit.
    #[arg(long, conflicts_with_all = ["from", "ssh"])]
    pub(crate) detect: bool,

    /// With --detect: as JSON.
    #[arg(long, requires = "detect")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) old: OldSpelling,

    /// Run tasks of this group. Default: that of the access file, else `default`.
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// Exit after TIME without work, such as 10m.
    #[arg(long, value_name = "TIME")]
    pub(crate) idle_timeout: Option<String>,

    /// Exit after TIME; do not accept tasks whose time limit exceeds what is left.
    #[arg(long, value_name = "TIME")]
    pub(crate) time_limit: Option<String>,

    /// End, with all that runs, when the process with this number has ended.
    #[arg(long, value_name = "PID", conflicts_with = "ssh")]
    pub(crate) exit_with: Option<i32>,

    /// Time that running tasks have after the first signal.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) drain: String,

    /// Time between SIGTERM and SIGKILL when a task is ended.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) grace: String,

    /// Time without contact after which the hub gives this worker's tasks to others.
    #[arg(long, value_name = "TIME", default_value = "30s", conflicts_with = "from")]
    pub(crate) lease: String,

    /// Start nothing more while less memory than this is available, such as 2G.
    #[arg(long, visible_alias = "mem", value_name = "SIZE")]
    pub(crate) memory_free: Option<String>,

    /// How tasks are kept within the memory and the slots they asked for.
    #[arg(long, value_enum, default_value_t = Limits::Best)]
    pub(crate) limits: Limits,

    /// Give each task processors of its own, as many as it has slots: from one NUMA node where it can be (compact), or from all of them.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, default_missing_value = "compact", require_equals = true)]
    pub(crate) pin_tasks: Option<PinHow>,

    /// Working directory of tasks that name none. Default: this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,

    /// Means the hub's directory everywhere else, so it is not taken here.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) dir: Option<PathBuf>,

    /// Directory below which each task gets a scratch directory. Default: $TMPDIR, else /tmp.
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,

    /// The shell for lines of commands.
    #[arg(long, value_name = "PATH", default_value = laboro_worker::DEFAULT_SHELL)]
    pub(crate) shell: PathBuf,

    /// Run tasks with this niceness.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) nice: Option<i32>,

    /// Output of a task that is sent to the hub, per stream.
    #[arg(long, value_name = "SIZE", default_value = "64M")]
    pub(crate) output_limit: String,

    /// Show what tasks print, line by line, with the task's name before each.
    #[arg(long, conflicts_with = "ssh")]
    pub(crate) tee: bool,

    /// Start a worker on this machine by ssh, and stay in front of it. What follows `--` are its options.
    #[arg(long = "ssh", value_name = "HOST", conflicts_with = "from")]
    pub(crate) ssh: Vec<String>,

    /// With --ssh: where laboro is on the other machines.
    #[arg(long, value_name = "PATH", default_value = "laboro", requires = "ssh")]
    pub(crate) remote_laboro: String,

    /// Print errors only.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Every task is a success at once, without a process: measures everything else.
    #[arg(long, hide = true)]
    pub(crate) no_op: bool,

    /// What to run for tasks that are only a name, {} being the name; with --ssh, the workers' options.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

/// What a task needs everywhere else. Here they meant what the machine has, so they are refused by a message that says
/// both.
#[derive(Debug, ClapArgs)]
pub(crate) struct OldSpelling {
    #[arg(long = "slots", value_name = "N", hide = true)]
    slots: Option<String>,

    #[arg(long = "resource", value_name = "NAME=N", hide = true)]
    resource: Vec<String>,

    #[arg(long = "tag", value_name = "TAG", hide = true)]
    tag: Vec<String>,

    #[arg(long = "memory", value_name = "SIZE", hide = true)]
    memory: Option<String>,
}

impl OldSpelling {
    pub(super) fn refuse(&self) -> anyhow::Result<()> {
        let refused =
            |option: &str, given: &String, has: String| Err(refuse_old(option, given, &has));
        if let Some(given) = &self.slots {
            return refused("slots", given, format!("-j {given}"));
        }
        if let Some(given) = self.resource.first() {
            return refused("resource", given, format!("--with {given}"));
        }
        if let Some(given) = self.tag.first() {
            return refused("tag", given, format!("--with-tag {given}"));
        }
        match &self.memory {
            Some(given) => {
                let has = format!(
                    "--with memory={given}, and what must stay free of it with --memory-free {given}"
                );
                refused("memory", given, has)
            }
            None => Ok(()),
        }
    }
}

/// The hub has no word for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFailure {
    /// Report it as done; its successors run.
    Complete,
    /// Give it back; it runs again until it succeeds.
    Transfer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Limits {
    /// Cgroups where this worker may make them, else as `watch`.
    Best,
    Cgroup,
    /// End a task whose processes take more memory than it asked for.
    Watch,
    /// Let a task reserve no more memory than it asked for, used or not.
    #[value(alias = "rlimit")]
    AddressSpace,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PinHow {
    /// From as few NUMA nodes as can be.
    Compact,
    /// From all NUMA nodes in turn.
    Spread,
}

impl From<PinHow> for Pin {
    fn from(how: PinHow) -> Pin {
        match how {
            PinHow::Compact => Pin::Compact,
            PinHow::Spread => Pin::Spread,
        }
    }
}

impl From<Limits> for LimitBy {
    fn from(limits: Limits) -> LimitBy {
        match limits {
            Limits::Best => LimitBy::Best,
            Limits::Cgroup => LimitBy::Cgroup,
            Limits::Watch => LimitBy::Watch,
            Limits::AddressSpace => LimitBy::AddressSpace,
            Limits::None => LimitBy::Nothing,
        }
    }
}

impl Worker {
    /// Of a runexp manager.
    pub(super) fn is_runner(&self) -> bool {
        self.from.as_deref().is_some_and(|from| from.starts_with("runexp://"))
    }

    /// What people call the other side.
    pub(super) fn hub_word(&self) -> &'static str {
        if self.is_runner() { "manager" } else { "hub" }
    }
}
