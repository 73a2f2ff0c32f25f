//! Everything a person may give to be run, read into one plan: the same for a run on this machine and for a
//! hub. Also the values of options that have units. Decides nothing about where it runs.

mod blocks;

use crate::args::input::{Input, PipeArgs};
use crate::exit::{Exit, usage};
use crate::output::{counted, data, say};
use blocks::{BLOCK_BYTES_MAX, Cut, spool};
use laboro_plan::{
    ArgumentForm, ArgumentOptions, Column, Ending, Pairing, Part, Plan, QuantityError,
    RequestedAmount, Separator, Settings, Source, Stdin, ValueSource, parse_amount, parse_lines,
    parse_size, read_runs,
};
use std::io::{BufReader, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// `options` are for tasks that leave them open; `slots` is how many commands share values that are spread; `command` is what was typed after `laboro`, for the hint.
pub(crate) fn plan(
    input: &Input,
    options: &Settings,
    command: &str,
    slots: u32,
) -> anyhow::Result<Plan> {
    let mut plan = read(input, command, slots)?;
    if let Some(found) = plan.misread(options).filter(|_| !input.literal_braces) {
        return Err(usage(format!("--workdir: {found}")));
    }
    plan.apply(options);
    plan.validate().map_err(usage)?;
    Ok(plan)
}

fn read(input: &Input, command: &str, slots: u32) -> anyhow::Result<Plan> {
    let array = input.array.as_deref().map(Column::parse_numbers).transpose().map_err(usage)?;
    if let Some(dir) = &input.runs {
        return read_runs(dir).map_err(usage);
    }
    if let Some(file) = &input.lines {
        refuse_array(array.is_some())?;
        return match file.as_os_str() == "-" {
            true => lines_from_stdin(),
            false => Plan::open_lines(file).map_err(usage),
        };
    }
    if let Some(file) = &input.file {
        refuse_array(array.is_some())?;
        if file.as_os_str() == "-" {
            return lines_from_stdin();
        }
        return Plan::open(file).map_err(usage);
    }
    let asks_for_stdin = input.null || input.stdin_values;
    if input.words.is_empty() && input.arg_file.is_empty() && !asks_for_stdin {
        if stdin_has_values() {
            return lines_from_stdin();
        }
        return Err(usage(format!(
            "nothing to run: give a job file, or a command after `--`\nTry: laboro {command} -- echo {{}} ::: a b c",
        )));
    }
    let mut form = match input.words.is_empty() {
        // Each value is a command.
        true => ArgumentForm { command: Vec::new(), sources: Vec::new() },
        false => ArgumentForm::parse(&input.words).map_err(usage)?,
    };
    let files = input.arg_file.iter().map(|file| Source {
        from: match file.as_os_str() == "-" {
            true => ValueSource::Pipe,
            false => ValueSource::File(file.clone()),
        },
        is_linked: false,
    });
    form.sources.splice(..0, files);
    let has_array = array.is_some();
    let options = ArgumentOptions {
        array,
        pairing: if input.zip { Pairing::Zip } else { Pairing::Product },
        literal_braces: input.literal_braces,
        separator: input.colsep.as_deref().map(Separator::parse).transpose().map_err(usage)?,
        has_header: input.header.is_some(),
        per_command: input.values_per_command().unwrap_or(1),
        spread_over: (input.spread || input.spread_words).then_some(slots as usize),
        refuses_parts: input.spread_words || input.max_replace_args.is_some_and(|count| count > 1),
        is_shuffled: input.shuf,
        ending: if input.null { Ending::Zero } else { Ending::Line },
        ..ArgumentOptions::default()
    };
    let names_stdin = form.sources.iter().any(|source| source.from == ValueSource::Pipe);
    let has_other_values = has_array || !form.sources.is_empty();
    if asks_for_stdin && has_other_values && !names_stdin {
        let option = if input.null { "-0" } else { "--stdin-values" };
        return Err(usage(format!(
            "{option} reads values from standard input, but there are other values too: leave {option} out, or write `:::: -` where they belong"
        )));
    }
    let is_implied = !has_other_values && form.takes_values() && !input.literal_braces;
    let reads_stdin = names_stdin || asks_for_stdin || (is_implied && stdin_has_values());
    let mut pipe = reads_stdin.then(|| BufReader::new(std::io::stdin().lock()));
    let pipe = pipe.as_mut().map(|pipe| pipe as &mut dyn std::io::BufRead);
    let plan = form.plan(&options, pipe).map_err(usage)?;
    if !reads_stdin && stdin_has_more() {
        say("laboro: standard input was not read (--stdin-values takes values from it)");
    }
    say_unused(&plan);
    Ok(plan)
}

/// `--pipe`: each task gets a piece of standard input, from a file in this directory; `writes` makes them.
pub(crate) fn plan_of_blocks(
    input: &Input,
    pipe: &PipeArgs,
    options: &Settings,
    dir: &Path,
    writes: bool,
) -> anyhow::Result<Plan> {
    let form = ArgumentForm::parse(&input.words).map_err(usage)?;
    if !form.sources.is_empty() {
        return Err(usage(
            "--pipe gives tasks standard input, and there are other values too: keep one of them",
        ));
    }
    if form.takes_values() && !input.literal_braces {
        return Err(usage(
            "with --pipe there are no values: a block is the standard input of its task, {#} its number (--literal-braces passes the braces on as they are)",
        ));
    }
    let bytes = quantity("--block", pipe.block.as_deref(), parse_size)?.unwrap_or(BLOCK_BYTES);
    let bytes = usize::try_from(bytes).ok().filter(|bytes| (1..=BLOCK_BYTES_MAX).contains(bytes));
    let end = match (&pipe.recend, &pipe.recstart) {
        (Some(end), _) => unescaped(end),
        (None, Some(_)) => Vec::new(),
        (None, None) => b"\n".to_vec(),
    };
    let start = pipe.recstart.as_deref().map(unescaped).unwrap_or_default();
    if end.is_empty() && start.is_empty() {
        return Err(usage("--recend '' needs --recstart: something must tell records apart"));
    }
    let cut = Cut {
        bytes: bytes.ok_or_else(|| usage("--block: from 1 byte to 1G"))?,
        records: input.values_per_command(),
        end,
        start,
    };
    let names = spool(&mut std::io::stdin().lock(), &cut, Some(dir).filter(|_| writes))?;
    let place = dir.join("{}").into_os_string();
    let form_options = ArgumentOptions {
        literal_braces: input.literal_braces,
        appends: false,
        settings: Settings { stdin: Some(Stdin::File(place)), ..Settings::default() },
        ..ArgumentOptions::default()
    };
    if names.is_empty() {
        return Err(usage("--pipe: standard input is empty, so there is nothing to run"));
    }
    let mut lines = std::io::Cursor::new(names.join("\n"));
    let mut plan = form.plan(&form_options, Some(&mut lines)).map_err(usage)?;
    plan.apply(options);
    plan.validate().map_err(usage)?;
    Ok(plan)
}

const BLOCK_BYTES: u64 = 1 << 20;

/// As people type what they cannot: `\n`, `\t`, `\r`, `\0` and `\\`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next().filter(|_| c == '\\');
        let known = match next {
            Some('n') => Some('\n'),
            Some('t') => Some('\t'),
            Some('r') => Some('\r'),
            Some('0') => Some('\0'),
            Some('\\') => Some('\\'),
            _ => None,
        };
        if known.is_some() {
            rest.next();
        }
        bytes.extend(known.unwrap_or(c).to_string().bytes());
    }
    bytes
}

fn refuse_array(is_given: bool) -> anyhow::Result<()> {
    match is_given {
        true => Err(usage("--array goes with a command after `--`, not with a job file")),
        false => Ok(()),
    }
}

fn lines_from_stdin() -> anyhow::Result<Plan> {
    parse_lines("-", BufReader::new(std::io::stdin())).map_err(usage)
}

/// A pipe, a file or a socket may hold values; a terminal and /dev/null do not.
fn stdin_has_values() -> bool {
    std::fs::metadata("/dev/stdin").is_ok_and(|stdin| {
        let kind = stdin.file_type();
        kind.is_fifo() || kind.is_file() || kind.is_socket()
    })
}

/// Something was piped here that nobody reads. A file is often that of a loop around this command.
fn stdin_has_more() -> bool {
    let is_pipe = std::fs::metadata("/dev/stdin").is_ok_and(|stdin| stdin.file_type().is_fifo());
    is_pipe && rustix::io::ioctl_fionread(std::io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Lists side by side end with the shortest, as in GNU parallel: that is easily overlooked.
fn say_unused(plan: &Plan) {
    for part in &plan.parts {
        let Part::Array(array) = part else { continue };
        for (column, unused) in array.values.unused() {
            let (unused, column) = (counted(unused, "value"), column + 1);
            say(format_args!(
                "laboro: {unused} of list {column} not used: the list it goes with is shorter"
            ));
        }
    }
}

/// `--check`: what is wrong was said when the plan was read.
pub(crate) fn say_checked(plan: &Plan) -> Exit {
    say(format_args!("{}: {}, nothing wrong", plan.source, counted(plan.task_count(), "task")));
    Exit::Done
}

/// `--dry-run`.
pub(crate) fn preview(plan: &Plan) -> anyhow::Result<Exit> {
    let mut out = std::io::BufWriter::new(data());
    plan.dry_run(&mut out)?;
    out.flush()?;
    Ok(Exit::Done)
}

/// The value of an option, or words that name the option.
pub(crate) fn quantity<T>(
    option: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> anyhow::Result<Option<T>> {
    let parsed = text.map(parse).transpose();
    parsed.map_err(|error| usage(format!("{option}: {error}")))
}

/// The value of `-j`: a number, or one that goes by the cores of this machine.
pub(crate) fn slots(text: &str) -> Result<u32, String> {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let number = |digits: &str| {
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| is_number)
    };
    let slots = if let Some(percent) = text.strip_suffix('%') {
        number(percent).map(|percent| (cores.saturating_mul(percent) / 100).max(1))
    } else if let Some(more) = text.strip_prefix('+') {
        number(more).map(|more| cores.saturating_add(more))
    } else if let Some(fewer) = text.strip_prefix('-') {
        number(fewer).map(|fewer| cores.saturating_sub(fewer).max(1))
    } else {
        number(text)
    };
    let slots = slots.and_then(|slots| u32::try_from(slots).ok());
    slots.ok_or_else(|| {
        "write a number, 50% of the cores, or +2 or -1 relative to the cores".to_owned()
    })
}

/// The values of `--resource`.
pub(crate) fn resources(texts: &[String]) -> anyhow::Result<Vec<(String, RequestedAmount)>> {
    let parse = |text: &String| {
        let parsed = text.split_once('=').and_then(|(name, wanted)| {
            let wanted = parse_amount(wanted).ok()?;
            let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
            (is_name && wanted != RequestedAmount::Parts(0)).then(|| (name.to_owned(), wanted))
        });
        let wrong = || usage(format!("--resource {text}: write gpu=2, gpu=0.5 or gpu=all"));
        parsed.ok_or_else(wrong)
    };
    texts.iter().map(parse).collect()
}
