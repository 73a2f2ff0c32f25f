//! What can be typed to say what is to be run, in every command that takes tasks.

use clap::Args as ClapArgs;
use std::ffi::OsString;
use std::path::PathBuf;

/// What is to be run; the same for every command that takes tasks.
#[derive(Debug, ClapArgs)]
pub(crate) struct Input {
    /// A job file: .toml is a flow, .jsonl one JSON task per line, anything else one command per line.
    #[arg(conflicts_with_all = ["runs", "words"])]
    pub(crate) file: Option<PathBuf>,

    /// Run every line of this file as a task, also if it looks like a script or something else.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "runs", "words"])]
    pub(crate) lines: Option<PathBuf>,

    /// Run every .sh and .m file below this directory. `laboro run` writes results to outputs/ beside it.
    #[arg(long, value_name = "DIR", conflicts_with = "words")]
    pub(crate) runs: Option<PathBuf>,

    /// Run the command once per number: 1-1000, 0-100:10 or 1,2,50-100. {} is the number; $LABORO_INDEX counts from 1.
    #[arg(long, value_name = "FIRST-LAST[:STEP]")]
    pub(crate) array: Option<String>,

    /// Read values from this file, one per line, as `:::: FILE` does. - is standard input.
    #[arg(short = 'a', long, value_name = "FILE", conflicts_with_all = ["file", "runs"])]
    pub(crate) arg_file: Vec<PathBuf>,

    /// Split each value into columns {1} {2} … at this text: , or \t, or \s+ for any blanks. A .csv or .tsv file
    /// is split by itself where --header is given.
    #[arg(short = 'C', long, value_name = "TEXT", conflicts_with_all = ["file", "runs"])]
    pub(crate) colsep: Option<String>,

    /// The first value or line has the names of the columns: `--header :` and then {sample}, {seed}.
    #[arg(long, value_name = ":", value_parser = [":"], conflicts_with_all = ["file", "runs"])]
    pub(crate) header: Option<String>,

    /// Values per command: {1} {2} … or all of them as {} (default 1).
    #[arg(short = 'n', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with_all = ["file", "runs", "colsep", "header"])]
    pub(crate) max_args: Option<u32>,

    /// The same as -n; refuses {} within a word, which GNU parallel would repeat for each value. With --pipe: records per
    /// block.
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000),
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args"])]
    pub(crate) max_replace_args: Option<u32>,

    /// Give each command as many values as it takes to keep all slots busy, and no more than a command line holds.
    #[arg(short = 'm', long = "spread",
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args", "max_replace_args", "array"])]
    pub(crate) spread: bool,

    /// The same as -m; refuses {} within a word, which GNU parallel would repeat for each value.
    #[arg(short = 'X',
        conflicts_with_all = ["file", "runs", "colsep", "header", "max_args", "max_replace_args", "array", "spread"])]
    pub(crate) spread_words: bool,

    /// Take the values in a shuffled order, the same each time.
    #[arg(long, conflicts_with_all = ["file", "runs", "header", "array"])]
    pub(crate) shuf: bool,

    /// Take the values of several lists side by side instead of all combinations.
    #[arg(long)]
    pub(crate) zip: bool,

    /// Read values from standard input, each ended by a NUL byte, as `find -print0` writes them.
    #[arg(short = '0', long)]
    pub(crate) null: bool,

    /// Read values from standard input, one per line. A command with {} and no other values does so by itself.
    #[arg(long)]
    pub(crate) stdin_values: bool,

    /// Pass braces that look like an unknown placeholder on to the command, instead of refusing them.
    #[arg(long)]
    pub(crate) literal_braces: bool,

    /// The command and its values.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) words: Vec<OsString>,
}

impl Input {
    /// `-n` or `-N`.
    pub(crate) fn values_per_command(&self) -> Option<usize> {
        self.max_args.or(self.max_replace_args).map(|count| count as usize)
    }
}

/// Standard input in pieces, one for each task.
#[derive(Debug, ClapArgs)]
pub(crate) struct PipeArgs {
    /// Cut standard input into blocks of whole lines and run the command once per block, with the block as its input.
    #[arg(long, visible_alias = "spreadstdin", requires = "words",
        conflicts_with_all = ["array", "arg_file", "colsep", "header", "spread", "shuf", "zip", "null", "stdin_values"])]
    pub(crate) pipe: bool,

    /// With --pipe: how large a block is at most. With -N it has so many records instead. Default: 1M.
    #[arg(long, visible_aliases = ["blocksize", "block-size"], value_name = "SIZE", requires = "pipe",
        conflicts_with = "max_args")]
    pub(crate) block: Option<String>,

    /// With --pipe: what a record ends with. Default: a new line, or nothing with --recstart.
    #[arg(long, value_name = "TEXT", requires = "pipe")]
    pub(crate) recend: Option<String>,

    /// With --pipe: what a record begins with, such as '>'.
    #[arg(long, value_name = "TEXT", requires = "pipe")]
    pub(crate) recstart: Option<String>,
}
