//! `laboro completions`: what a shell needs to complete our commands.

use crate::args::{Args, Completions};
use crate::exit::Exit;
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &Completions) -> anyhow::Result<Exit> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "laboro", &mut text);
    // Not written by the library itself, which would panic when nobody reads.
    std::io::stdout().lock().write_all(&text)?;
    Ok(Exit::Done)
}
