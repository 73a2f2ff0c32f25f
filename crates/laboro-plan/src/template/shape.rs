//! What of a value, taken as a path, stands in a hole: all of it, its base name, its directory, or that without extensions.

use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Whole,
    Base,
    Directory,
    /// Without so many extensions.
    Stem(u8),
    BaseStem(u8),
    Extension(u8),
}

impl Shape {
    pub(super) fn of(self, value: &[u8]) -> Cow<'_, [u8]> {
        Cow::Borrowed(match self {
            Shape::Whole => value,
            Shape::Base => base(value),
            Shape::Directory => directory(value),
            Shape::Stem(count) => stem(value, count),
            Shape::BaseStem(count) => stem(base(value), count),
            Shape::Extension(count) => extensions(value, count).unwrap_or_default(),
        })
    }
}

fn without_trailing_slashes(path: &[u8]) -> &[u8] {
    let kept = path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    // All slashes: the root, which is its own base name and directory.
    if kept == 0 { &path[..path.len().min(1)] } else { &path[..kept] }
}

fn base(path: &[u8]) -> &[u8] {
    let path = without_trailing_slashes(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) if slash + 1 < path.len() => &path[slash + 1..],
        _ => path,
    }
}

fn directory(path: &[u8]) -> &[u8] {
    let path = without_trailing_slashes(path);
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => without_trailing_slashes(&path[..=slash]),
        None => b".",
    }
}

fn stem(path: &[u8], count: u8) -> &[u8] {
    &path[..path.len() - extensions(path, count).map_or(0, |found| found.len() + 1)]
}

/// The last `count` of them, without the dot before the first; nothing where there are fewer.
fn extensions(path: &[u8], count: u8) -> Option<&[u8]> {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let name = &path[start..];
    let mut dots = name.iter().enumerate().rev().filter(|(_, byte)| **byte == b'.');
    let (dot, _) = dots.nth(usize::from(count) - 1)?;
    (dot > 0 && !name.ends_with(b".")).then(|| &name[dot + 1..])
}
