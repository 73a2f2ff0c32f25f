//! Shows a job file: `show FILE [run|text|dot|svg|print]`. For looking at plans without a hub.

use std::error::Error;
use std::path::Path;

use laboro_plan::Plan;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, how) = match arguments.as_slice() {
        [path] => (path, "run"),
        [path, how] => (path, how.as_str()),
        _ => return Err("usage: show FILE [run|text|dot|svg|print]".into()),
    };
    let plan = Plan::open(Path::new(path))?;
    match how {
        "run" => plan.dry_run(&mut std::io::stdout().lock())?,
        "text" => print!("{}", plan.graph().text()),
        "dot" => print!("{}", plan.graph().dot()),
        "svg" => print!("{}", plan.graph().svg()),
        "print" => println!("{}", plan.fingerprint()),
        other => return Err(format!("`{other}` is none of run, text, dot, svg, print").into()),
    }
    Ok(())
}
