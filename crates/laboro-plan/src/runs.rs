//! A directory of runs: every `.sh` and `.m` file below it is a script of its own, named by its path without
//! the extension. Links are followed, but never back into a directory that the walk came from.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::mistake::{Mistake, Mistakes, Position};
use crate::plan::{Part, Plan, PlanError, Task};
use crate::settings::Settings;
use crate::validate::NAME_BYTES_MAX;
use crate::work::{Script, ScriptKind, Work};

pub const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// All scripts of a directory together: they are held in memory until they are submitted.
pub const SCRIPTS_BYTES_MAX: u64 = 1 << 30;

/// One script of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Run {
    /// In any bytes that a file's name may have.
    pub name: OsString,
    pub kind: ScriptKind,
    pub body: Arc<[u8]>,
}

/// As a plan, whose names are text.
pub fn read_runs(directory: &Path) -> Result<Plan, PlanError> {
    let mut plan = Plan::new(directory.display().to_string());
    let mut mistakes = Vec::new();
    let settings = Arc::new(Settings::default());
    for Run { name, kind, body } in find_runs(directory)? {
        match name.into_string() {
            Ok(name) => plan.parts.push(Part::Task(Task {
                name,
                work: Work::Script(Script { kind, body, arguments: Vec::new() }),
                after: Vec::new(),
                settings: Arc::clone(&settings),
                at: Position::default(),
            })),
            Err(name) => {
                let message = format!("{}: the name is not UTF-8", name.display());
                mistakes.push(Mistake::new(Position::default(), message));
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(Mistakes::new(plan.source, mistakes, |_| None).into());
    }
    Ok(plan)
}

/// All of them, in the order of their names.
pub fn find_runs(directory: &Path) -> Result<Vec<Run>, PlanError> {
    let source = directory.display().to_string();
    let mut found = Vec::new();
    let mut mistakes = Vec::new();
    for path in files_below(directory)? {
        let below = path.strip_prefix(directory).expect("the walk stays below its directory");
        let kind = match extension(&path) {
            Some("sh") => ScriptKind::Bash,
            Some("m") => ScriptKind::Matlab,
            _ => continue,
        };
        match run_name(below) {
            Ok(name) => found.push((name, kind, path)),
            Err(message) => mistakes.push(Mistake::new(Position::default(), message)),
        }
    }
    found.sort_by(|a, b| (&a.0, &a.2).cmp(&(&b.0, &b.2)));
    for pair in found.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let [a, b] = [&pair[0].2, &pair[1].2].map(|path| path.display());
        let name = pair[0].0.display();
        let message = format!("{a} and {b} would both be the task `{name}`: rename one");
        mistakes.push(Mistake::new(Position::default(), message));
    }
    if found.is_empty() && mistakes.is_empty() {
        mistakes.push(Mistake::new(Position::default(), "no file below it ends in .sh or .m"));
    }
    if !mistakes.is_empty() {
        return Err(Mistakes::new(source, mistakes, |_| None).into());
    }
    let mut runs = Vec::with_capacity(found.len());
    let mut total = 0;
    for (name, kind, path) in found {
        let body = read_bounded(&path, SCRIPT_BYTES_MAX)?;
        total += body.len() as u64;
        if total > SCRIPTS_BYTES_MAX {
            return Err(PlanError::TooLarge { path: source, max: SCRIPTS_BYTES_MAX });
        }
        runs.push(Run { name, kind, body: Arc::from(body) });
    }
    Ok(runs)
}

/// The path below the directory without its last extension, if it can be a task's name.
fn run_name(below: &Path) -> Result<OsString, String> {
    let shown = below.display();
    let bytes = below.as_os_str().as_bytes();
    let name = bytes.iter().rposition(|byte| *byte == b'.').map_or(bytes, |dot| &bytes[..dot]);
    if name.is_empty() || name.ends_with(b"/") {
        return Err(format!("{shown}: nothing but an extension is not a name"));
    }
    if name.contains(&b'\n') {
        return Err(format!("{shown}: the name holds a new line"));
    }
    if name.len() > NAME_BYTES_MAX {
        let length = name.len();
        return Err(format!("{shown}: the name has {length} bytes, more than {NAME_BYTES_MAX}"));
    }
    Ok(OsStr::from_bytes(name).to_owned())
}

/// The extension, also of a file that is nothing else, such as `.sh`.
fn extension(path: &Path) -> Option<&str> {
    let name = path.file_name()?.as_encoded_bytes();
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    std::str::from_utf8(&name[dot + 1..]).ok()
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>, PlanError> {
    let shown = directory.display().to_string();
    let wrong = |path: &Path, source| {
        let path = path.display().to_string();
        PlanError::Read { path, source }
    };
    let mut files = Vec::new();
    let mut waiting = vec![(directory.to_owned(), None)];
    let mut links = 0;
    while let Some((directory, came_from)) = waiting.pop() {
        let found = fs::metadata(&directory).map_err(|error| wrong(&directory, error))?;
        let id = (found.dev(), found.ino());
        if is_on(came_from.as_ref(), id) {
            continue;
        }
        let trail = Rc::new(Trail { id, came_from });
        for entry in fs::read_dir(&directory).map_err(|error| wrong(&directory, error))? {
            let entry = entry.map_err(|error| wrong(&directory, error))?;
            let path = entry.path();
            let kind = entry.file_type().map_err(|error| wrong(&path, error))?;
            if kind.is_dir() {
                waiting.push((path, Some(Rc::clone(&trail))));
            } else if kind.is_file() || (kind.is_symlink() && path.is_file()) {
                files.push(path);
            } else if kind.is_symlink() && path.is_dir() {
                links += 1;
                if links > LINKS_MAX {
                    return Err(PlanError::TooManyLinks { path: shown, max: LINKS_MAX });
                }
                waiting.push((path, Some(Rc::clone(&trail))));
            }
        }
    }
    Ok(files)
}

/// Links that lead to each other make more paths than anybody means, though none of them is a circle.
const LINKS_MAX: u32 = 100_000;

/// A directory and those that lead to it. Only these are no place to go: the same one may be found by two links,
/// and its scripts are then there twice.
struct Trail {
    /// Device and inode.
    id: (u64, u64),
    came_from: Option<Rc<Trail>>,
}

fn is_on(trail: Option<&Rc<Trail>>, id: (u64, u64)) -> bool {
    let mut steps = std::iter::successors(trail, |step| step.came_from.as_ref());
    steps.any(|step| step.id == id)
}

pub(crate) fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>, PlanError> {
    use std::io::Read;
    let shown = || path.display().to_string();
    let mut body = Vec::new();
    let file = fs::File::open(path).map_err(|source| PlanError::Read { path: shown(), source })?;
    file.take(max + 1)
        .read_to_end(&mut body)
        .map_err(|source| PlanError::Read { path: shown(), source })?;
    if body.len() as u64 > max {
        return Err(PlanError::TooLarge { path: shown(), max });
    }
    Ok(body)
}
