//! `laboro man`: manual pages, made from the same words as `--help`.

mod markdown;

use crate::args::Man;
use crate::args::help::documented;
use crate::exit::Exit;
use crate::files::make_dir;
use crate::output::print;
use anyhow::Context;
use std::io::Write;

pub(crate) fn run(args: &Man) -> anyhow::Result<Exit> {
    let command = documented();
    match &args.dir {
        None if args.markdown => print(markdown::page(command).trim_end())?,
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
