//! `laboro completions`: what a shell needs to complete our commands.

use crate::args::{Args, Completions};
use crate::exit::Exit;
use crate::output::data;
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &Completions) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "laboro", &mut text);
    // Not written by the library itself, which would panic when nobody reads.
    let mut out = data();
    out.write_all(&text)?;
    out.flush()?;
    Ok(Exit::Done)
}
