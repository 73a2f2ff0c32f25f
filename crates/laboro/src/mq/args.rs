//! What can be typed after `laboro mq`. Only shapes and help texts.

use crate::curve::CurveArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Mq {
    #[command(subcommand)]
    pub(super) command: MqCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum MqCommand {
    /// Start a server: pass requests of clients to workers in turn.
    Server(Box<ServerArgs>),
    /// Start a worker: register with a server and answer requests.
    Worker(Box<MqWorkerArgs>),
    /// Send requests to the workers behind a server.
    Client(Box<ClientArgs>),
    /// Show the table of a running server: its workers and their slots.
    Workers(WorkersArgs),
    /// Make a pair of keys for CURVE.
    Keys(KeysArgs),
}

#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Where it listens. Port 0 takes a free one and prints it.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6714")]
    pub(super) listen: String,

    /// How it calls itself: the string that clients of the original connect to. Default: tcp://ADDRESS.
    #[arg(long, value_name = "NAME")]
    pub(super) identity: Option<String>,

    /// Listen where other machines can come, though they need not prove who they are.
    #[arg(long)]
    pub(super) insecure: bool,

    /// Requests that may wait for a worker, as far as --queue-bytes has room: 256M is full with 695 000 of the smallest.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(super) queue: usize,

    /// All of them together, such as 256M.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(super) queue_bytes: u64,

    /// How long a request may wait.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = time)]
    pub(super) ttl: Duration,

    /// How long a worker whose connection is lost keeps its place.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    pub(super) grace: Duration,

    /// Ask a worker whether it is there after TIME of silence. 0s: never.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = time)]
    pub(super) probe: Duration,

    /// Free a slot after TIME if its worker has not done so. Default: never.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) slot_time: Option<Duration>,

    /// Accept at most this many workers.
    #[arg(long, alias = "workers-max", value_name = "N", default_value_t = 10_000)]
    pub(super) max_workers: usize,

    /// Accept at most this many connections.
    #[arg(long, alias = "connections-max", value_name = "N", default_value_t = 10_000)]
    pub(super) max_connections: usize,

    /// A peer that leaves more than this unread is cut off.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub(super) unread_bytes: u64,

    /// All peers together; beyond it the one that has left the most unread is cut off.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub(super) unread_bytes_all: u64,

    /// Speak CURVE; the keys are in this file.
    #[arg(long, value_name = "FILE")]
    pub(super) curve_key_file: Option<PathBuf>,

    /// With --curve-key-file: only those with this public key, or these. Default: everyone with a key.
    #[arg(long, value_name = "KEY", requires = "curve_key_file", allow_hyphen_values = true)]
    pub(super) curve_allow: Vec<String>,

    /// Take commands: workers, quit.
    #[arg(long)]
    pub(super) console: bool,

    #[command(flatten)]
    pub(super) words: SpeechArgs,
}

#[derive(Debug, Args)]
pub(super) struct MqWorkerArgs {
    #[command(flatten)]
    pub(super) to: To,

    /// How many requests at once.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(super) slots: u32,

    /// For requests that the example does not know: a shell line that gets the arguments as its input and
    /// prints the answer.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "console")]
    pub(super) exec: Option<String>,

    /// Keep the program running, one for each slot, and exchange frames with their lengths before them.
    #[arg(long, requires = "exec")]
    pub(super) long_lived: bool,

    /// Time limit of a request; then its program is ended and there is no answer.
    #[arg(long, value_name = "TIME", value_parser = time, requires = "exec")]
    pub(super) time_limit: Option<Duration>,

    /// Pack the data of streams.
    #[arg(long)]
    pub(super) pack: bool,

    /// Take commands: register, bulk, endbulk, deregister, quit.
    #[arg(long)]
    pub(super) console: bool,

    #[command(flatten)]
    pub(super) words: SpeechArgs,
}

#[derive(Debug, Args)]
pub(super) struct ClientArgs {
    #[command(flatten)]
    pub(super) to: To,

    /// Time limit of an answer.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = time, global = true)]
    pub(super) timeout: Duration,

    /// Take commands: ping, pingt, data, bulkping, bulkdata, quit.
    #[arg(long)]
    pub(super) console: bool,

    #[command(flatten)]
    pub(super) words: SpeechArgs,

    #[command(subcommand)]
    pub(super) action: Option<Action>,
}

#[derive(Debug, Clone, Subcommand)]
pub(super) enum Action {
    /// A PING, which has no answer.
    Ping,
    /// A PING that a worker answers.
    Pingt,
    /// Data of 1024 ones, or as many as are asked for.
    Data {
        /// How many ones.
        #[arg(default_value_t = 1024)]
        ones: u32,
    },
    /// So many answered PINGs, ten at once.
    Bulkping {
        /// How many.
        count: u64,
    },
    /// So many requests for data, all at once.
    Bulkdata {
        /// How many.
        count: u64,
    },
    /// A command of your own and its arguments; prints the answer. Options go before `send`.
    Send {
        /// The command, then its arguments: one frame each.
        #[arg(required = true, allow_hyphen_values = true)]
        frames: Vec<std::ffi::OsString>,
        /// No answer is wanted.
        #[arg(long)]
        untracked: bool,
    },
}

#[derive(Debug, Args)]
pub(super) struct WorkersArgs {
    #[command(flatten)]
    pub(super) to: To,

    #[command(flatten)]
    pub(super) words: SpeechArgs,
}

#[derive(Debug, Args)]
pub(super) struct KeysArgs {
    /// Write them to this file, for its owner only, and print the public one alone.
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

/// Which server.
#[derive(Debug, Args)]
pub(super) struct To {
    /// The address of the server.
    #[arg(
        short,
        long,
        value_name = "ADDRESS",
        default_value = "tcp://127.0.0.1:6714",
        global = true
    )]
    pub(super) server: String,

    /// How this side calls itself. Default: the server's address and a random number.
    #[arg(long, value_name = "NAME", global = true)]
    pub(super) identity: Option<String>,

    #[command(flatten)]
    pub(super) curve: CurveArgs,
}

/// How much is said, and in which form.
#[derive(Debug, Args)]
pub(super) struct SpeechArgs {
    /// Log level: 0 errors, 1 basic information, 2 and more details.
    #[arg(short, long = "debug", value_name = "N", default_value_t = 1, global = true)]
    pub(super) debug: u8,

    /// Data as JSON, one object per line.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    laboro_plan::parse_duration(text).map_err(|error| error.to_string())
}

fn size(text: &str) -> Result<u64, String> {
    laboro_plan::parse_size(text).map_err(|error| error.to_string())
}
