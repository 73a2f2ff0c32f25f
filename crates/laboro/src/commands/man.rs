//! `laboro man`: manual pages, made from the same words as `--help`.

use crate::args::{Args, Man};
use crate::exit::Exit;
use crate::files::make_dir;
use anyhow::Context;
use clap::CommandFactory;
use std::io::Write;

pub(crate) fn run(args: &Man) -> anyhow::Result<Exit> {
    let command = Args::command();
    match &args.dir {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            std::io::stdout().lock().write_all(&page)?;
        }
        Some(dir) => {
            make_dir(dir)?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("{}: a page cannot be written", dir.display()))?;
        }
    }
    Ok(Exit::Done)
}
