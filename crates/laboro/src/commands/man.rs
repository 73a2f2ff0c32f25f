//! `laboro man`: manual pages, made from the same words as `--help`.

mod markdown;

use crate::args::Man;
use crate::args::help::documented;
use crate::exit::Exit;
use crate::files::make_dir;
use crate::output::{data, print};
use anyhow::Context;
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Man) -> anyhow::Result<Exit> {
    let command = documented();
    if let Some(dir) = &args.html {
        return write_site(dir);
    }
    match &args.dir {
        None if args.markdown => print(markdown::page(command).trim_end())?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            let mut out = data();
            out.write_all(&page)?;
            out.flush()?;
        }
        Some(dir) => {
            make_dir(dir)?;
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("{}: a page cannot be written", dir.display()))?;
        }
    }
    Ok(Exit::Done)
}

fn write_site(dir: &Path) -> anyhow::Result<Exit> {
    for (name, gzip) in laboro_manual::FILES {
        let path = dir.join(name);
        make_dir(path.parent().unwrap_or(dir))?;
        std::fs::write(&path, laboro_manual::unpack(gzip))
            .with_context(|| format!("{}: a page cannot be written", path.display()))?;
    }
    Ok(Exit::Done)
}
