//! What a person may give to be run: files of commands, flows, JSON tasks, directories of scripts and argument
//! lists, all turned into one `Plan`. Reads what it is asked to read; starts nothing and knows no hub.

#![forbid(unsafe_code)]
// Fields and variants that their names and types explain are left out, type by type.
#![warn(missing_docs)]

mod arguments;
mod carried;
mod content;
mod decode;
mod fingerprint;
mod flow;
mod foreign;
mod graph;
mod jsonl;
mod lines;
mod mistake;
mod node;
mod open;
mod options;
mod plan;
mod preview;
mod quantity;
mod runs;
mod settings;
mod template;
mod validate;
mod values;
mod warning;
mod work;

pub use arguments::{
    ArgumentError, ArgumentForm, ArgumentOptions, Separator, Source, TableError, ValueSource,
};
pub use carried::{Filler, VALUE_AS_LINE};
pub use content::{Elements, PartContent};
pub use fingerprint::Fingerprint;
pub use flow::parse_flow;
pub use graph::Graph;
pub use jsonl::{JsonTasks, parse_jsonl};
pub use lines::{Ending, parse_lines, parse_list, read_list};
pub use mistake::{Mistake, Mistakes, Position};
pub use plan::{After, Array, Element, Job, On, Part, Plan, PlanError, Task};
pub use quantity::{QuantityError, RequestedAmount, parse_amount, parse_duration, parse_size};
pub use runs::{Run, find_runs, read_runs};
pub use settings::{Output, Settings, Stdin, Variant};
pub use template::{Misread, ShellError, Template};
pub use validate::NAME_BYTES_MAX;
pub use values::{Column, Items, List, Numbers, Pairing, Values, ValuesError};
pub use warning::Warning;
pub use work::{Script, ScriptKind, Work};

#[cfg(test)]
mod tests;
