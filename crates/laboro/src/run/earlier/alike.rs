//! Which elements of two plans are the same: those of ranges by arithmetic, those of lists by walking both at once. Holds
//! no more of a list than where it differs. What earlier runs did with them is not asked here.

use super::Known;
use laboro_plan::Elements;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// What tells its elements apart.
pub(super) enum KnownElements {
    Alike(Elements<'static>),
    /// These of the hashes in a file.
    Stored {
        file: PathBuf,
        from: u64,
        count: u64,
    },
}

impl KnownElements {
    /// In order. What cannot be read any more is not known.
    pub(super) fn hashes(&self) -> Box<dyn Iterator<Item = u128> + '_> {
        match self {
            KnownElements::Alike(elements) => Box::new(elements.hashes()),
            KnownElements::Stored { file, from, count } => {
                let opened = File::open(file).and_then(|mut file| {
                    file.seek(SeekFrom::Start(from * HASH_BYTES))?;
                    Ok(BufReader::with_capacity(1 << 16, file))
                });
                let one = |file: &mut BufReader<File>| {
                    let mut bytes = [0; HASH_BYTES as usize];
                    file.read_exact(&mut bytes).ok()?;
                    Some(u128::from_le_bytes(bytes))
                };
                let all = opened
                    .ok()
                    .into_iter()
                    .flat_map(move |mut file| std::iter::from_fn(move || one(&mut file)));
                Box::new(all.take(usize::try_from(*count).unwrap_or(usize::MAX)))
            }
        }
    }
}

/// In the file.
pub(super) const HASH_BYTES: u64 = 16;

/// Numbers of this plan, and the first of those that they were in another run.
pub(super) type Pair = ((u32, u32), u32);

/// Which of my numbers are which of theirs: the n-th with a value is the n-th with it.
pub(super) fn pairs(wanted: &[(u32, &Elements<'_>)], known: &[Known]) -> Vec<Pair> {
    if let ([(first, mine)], [theirs]) = (wanted, known)
        && let Some(pair) = overlap(*first, mine, theirs)
    {
        return pair.into_iter().collect();
    }
    let mine = wanted.iter().flat_map(|&(first, elements)| elements.hashes().zip(first..));
    let theirs = known.iter().flat_map(|part| part.elements.hashes().zip(part.first..));
    let (mut mine, mut theirs) = (mine.fuse(), theirs.fuse());
    let mut found: Vec<Pair> = Vec::new();
    // What of a list has no counterpart where it is looked for first. Lists mostly differ in a few places.
    let (mut my_rest, mut their_rest) = (Vec::new(), Vec::new());
    let (mut my_window, mut their_window) = (VecDeque::new(), VecDeque::new());
    loop {
        fill(&mut my_window, &mut mine);
        fill(&mut their_window, &mut theirs);
        if my_window.is_empty() || their_window.is_empty() {
            break;
        }
        let alike = my_window.iter().zip(&their_window).take_while(|(one, other)| one.0 == other.0);
        let alike = alike.count();
        let both = my_window.drain(..alike).zip(their_window.drain(..alike));
        both.for_each(|((_, mine), (_, theirs))| add(&mut found, mine, theirs));
        if alike > 0 {
            continue;
        }
        let places = their_window.iter().enumerate().rev();
        let places: HashMap<u128, usize> = places.map(|(at, one)| (one.0, at)).collect();
        let next =
            my_window.iter().enumerate().find_map(|(at, one)| Some((at, *places.get(&one.0)?)));
        let (my_skip, their_skip) = next.unwrap_or((my_window.len(), their_window.len()));
        my_rest.extend(my_window.drain(..my_skip));
        their_rest.extend(their_window.drain(..their_skip));
    }
    my_rest.extend(my_window.into_iter().chain(mine));
    // Without anything to look for nobody need sort millions.
    if !my_rest.is_empty() {
        their_rest.extend(their_window.into_iter().chain(theirs));
        my_rest.sort_unstable();
        their_rest.sort_unstable();
        let mut theirs = their_rest.into_iter().peekable();
        let mut late: Vec<(u32, u32)> = Vec::new();
        for (hash, index) in my_rest {
            while theirs.next_if(|other| other.0 < hash).is_some() {}
            late.extend(theirs.next_if(|other| other.0 == hash).map(|other| (index, other.1)));
        }
        late.sort_unstable();
        late.into_iter().for_each(|(mine, theirs)| add(&mut found, mine, theirs));
        found.sort_unstable();
    }
    found
}

/// How far a list is looked ahead in for where it goes on as before.
const WINDOW: usize = 1024;

fn fill(window: &mut VecDeque<(u128, u32)>, list: &mut impl Iterator<Item = (u128, u32)>) {
    let missing = WINDOW - window.len();
    window.extend(list.take(missing));
}

fn add(found: &mut Vec<Pair>, mine: u32, theirs: u32) {
    match found.last_mut() {
        Some(((first, last), from)) if *last + 1 == mine && *from + (mine - *first) == theirs => {
            *last = mine;
        }
        _ => found.push(((mine, mine), theirs)),
    }
}

/// Ranges of numbers are compared as such. `None`: they have to be looked at one by one.
fn overlap(first: u32, mine: &Elements<'_>, known: &Known) -> Option<Option<Pair>> {
    let &Elements::Numbers { first: a, step, count: mine } = mine else { return None };
    let &KnownElements::Alike(Elements::Numbers { first: b, step: other, count: theirs }) =
        &known.elements
    else {
        return None;
    };
    if step != other || a.abs_diff(b) % step != 0 {
        return None;
    }
    let shift = a.abs_diff(b) / step;
    let (skip_mine, skip_theirs) = if a < b { (shift, 0) } else { (0, shift) };
    let count = mine.saturating_sub(skip_mine).min(theirs.saturating_sub(skip_theirs));
    Some((count > 0).then(|| {
        let begin = first + skip_mine as u32;
        ((begin, begin + (count as u32 - 1)), known.first + skip_theirs as u32)
    }))
}
