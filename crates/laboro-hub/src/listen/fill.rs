//! Elements of arrays for workers that fill in no placeholders themselves: their work with the values in it. The
//! hub looks at values nowhere else.

use laboro_core::{CommandWork, Element, Grant, Program, Setting, Values, Work};
use laboro_dialects::runexp::Filled;
use laboro_plan::Filler;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

/// `Err` says in words why there is nothing to run.
pub(crate) fn fill(grant: &Grant) -> Result<Filled, String> {
    let (Some(element), Some(work)) = (&grant.element, grant.work.as_deref()) else {
        return Err("there is nothing to fill in".into());
    };
    let value = value(element).ok_or("it has no value")?;
    let name = String::from_utf8_lossy(grant.name.bytes());
    let name = match &*name {
        "" => format!("{}/{}", grant.task.job, grant.task.number()),
        name => format!("{name}.{}", u64::from(element.position) + 1),
    };
    let filler = Filler::new(&name, element.position.into(), &value);
    let filler = filler.map_err(|error| error.to_string())?;
    let (work, arguments) = match work {
        Work::Command(CommandWork { program, setting }) => {
            let program = self::program(program, &filler)?;
            let setting = self::setting(setting, &filler);
            (Work::Command(CommandWork { program, setting }), Vec::new())
        }
        Work::Script(script) => {
            let setting = setting(&script.setting, &filler);
            let (kind, body) = (script.kind.clone(), Arc::clone(&script.body));
            (Work::script(kind, body, setting), words([&b"{}"[..]], &filler))
        }
        other => (other.clone(), Vec::new()),
    };
    Ok(Filled { work, arguments })
}

fn value(element: &Element) -> Option<Vec<u8>> {
    match &element.values {
        Values::Numbers { first, step } => {
            let number = first.wrapping_add(step.wrapping_mul(i64::from(element.position)));
            Some(number.to_string().into_bytes())
        }
        Values::List(list) => list.get(element.position as usize).map(<[u8]>::to_vec),
    }
}

fn program(program: &Program, filler: &Filler<'_>) -> Result<Program, String> {
    Ok(match program {
        Program::Shell(line) => {
            let line = filler.line(line).map_err(|error| error.to_string())?;
            Program::Shell(line.into_vec().into())
        }
        Program::Argv(argv) => Program::Argv(words(argv, filler).iter().collect()),
    })
}

fn words<'a>(words: impl IntoIterator<Item = &'a [u8]>, filler: &Filler<'_>) -> Vec<Box<[u8]>> {
    let mut filled = Vec::new();
    words.into_iter().for_each(|word| filler.argument(word, &mut filled));
    filled.into_iter().map(|word| word.into_vec().into()).collect()
}

fn setting(setting: &Setting, filler: &Filler<'_>) -> Arc<Setting> {
    Arc::new(setting.map(|text| filler.text(text).into_vec().into()))
}
