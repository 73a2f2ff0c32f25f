//! Files that are not lists of commands, known by their first bytes or by the ending of their name: the lines of a
//! script are not tasks. Says what to type instead. A wrong guess costs one more word (`--lines FILE`); the other
//! way round a script would be run line by line, all lines at once.

use std::path::Path;

use crate::plan::PlanError;

/// The program that a file with this ending is for. Endings of lists (`.txt`, `.list`, `.cmds`, none) are not here.
const PROGRAMS: [(&str, &str); 27] = [
    ("sh", "sh"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("ksh", "ksh"),
    ("dash", "dash"),
    ("csh", "csh"),
    ("fish", "fish"),
    ("sbatch", "bash"),
    ("slurm", "bash"),
    ("pbs", "bash"),
    ("sge", "bash"),
    ("qsub", "bash"),
    ("lsf", "bash"),
    ("py", "python3"),
    ("r", "Rscript"),
    ("pl", "perl"),
    ("rb", "ruby"),
    ("jl", "julia"),
    ("js", "node"),
    ("lua", "lua"),
    ("php", "php"),
    ("awk", "awk -f"),
    ("sed", "sed -f"),
    ("tcl", "tclsh"),
    ("nf", "nextflow run"),
    ("smk", "snakemake -s"),
    ("mk", "make -f"),
];

const TABLES: [&str; 2] = ["csv", "tsv"];

const OTHERS: [&str; 22] = [
    "json", "yaml", "yml", "xml", "html", "md", "ini", "cfg", "ipynb", "sql", "gz", "zip", "c",
    "h", "cc", "cpp", "rs", "go", "java", "f90", "ts", "cwl",
];

/// Refuses what is not a list of commands.
pub(crate) fn refuse_foreign(path: &Path, first_bytes: &[u8]) -> Result<(), PlanError> {
    let name = path.display();
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    let ending = ending.as_deref().unwrap_or_default();
    let program = PROGRAMS.iter().find(|(of, _)| *of == ending);
    let (why, instead) = if first_bytes.starts_with(b"#!") {
        let here = path.parent().is_none_or(|parent| parent.as_os_str().is_empty());
        let here = if here { "./" } else { "" };
        ("begins with `#!`, so it is a script".to_owned(), format!("laboro run -- {here}{name}"))
    } else if let Some((_, program)) = program {
        (
            format!("is a script by its ending `.{ending}`"),
            format!("laboro run -- {program} {name}"),
        )
    } else if TABLES.contains(&ending) {
        ("is a table by its ending".to_owned(), format!("laboro run -- COMMAND {{}} :::: {name}"))
    } else if OTHERS.contains(&ending) {
        let instead = "write a flow (.toml) or one JSON task per line (.jsonl)";
        (format!("is not a list of commands by its ending `.{ending}`"), instead.to_owned())
    } else {
        return Ok(());
    };
    Err(PlanError::Foreign { path: name.to_string(), why, instead })
}
