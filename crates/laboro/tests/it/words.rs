//! Texts for people are in plain words: help, messages and the manual have none of those in `words/avoid.txt`. A list is
//! all that a machine can hold; whether a sentence is understood at first sight is seen by reading it.

use crate::rig::Rig;
use std::fs;
use std::path::{Path, PathBuf};

struct Avoided {
    words: String,
    instead: String,
    unless: Vec<String>,
}

fn avoided() -> Vec<Avoided> {
    let lines = include_str!("words/avoid.txt").lines().filter(|line| !line.starts_with('#'));
    let parse = |line: &str| {
        let (words, rest) = line.split_once(" => ").unwrap();
        let (instead, unless) = rest.split_once(" unless ").unwrap_or((rest, ""));
        let unless = unless.split(", ").filter(|word| !word.is_empty()).map(str::to_owned);
        Avoided { words: words.to_owned(), instead: instead.to_owned(), unless: unless.collect() }
    };
    lines.map(parse).collect()
}

impl Avoided {
    /// What stands around the words, where they are wrong. The text has small letters and single spaces.
    fn find(&self, text: &str) -> Option<String> {
        let ends_word = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        let is_whole = |at: usize| {
            let (before, after) = (&text[..at], &text[at + self.words.len()..]);
            ends_word(before.chars().next_back()) && ends_word(after.chars().next())
        };
        let is_right = |at: usize| {
            self.unless.iter().any(|unless| {
                let offset = unless.find(&self.words).unwrap();
                at.checked_sub(offset).is_some_and(|from| text[from..].starts_with(unless))
            })
        };
        let found = text.match_indices(&self.words).map(|(at, _)| at);
        let at = found.into_iter().find(|&at| is_whole(at) && !is_right(at))?;
        let (mut from, mut to) = (at.saturating_sub(60), (at + 80).min(text.len()));
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        while !text.is_char_boundary(to) {
            to += 1;
        }
        Some(text[from..to].to_owned())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(dir: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            files(&path, extension, found);
        } else if name.ends_with(extension) && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// What is in quotes, with everything else left out.
fn quoted(source: &str) -> String {
    let mut quoted = String::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let from = &rest[at..];
        rest = if from.starts_with("//") {
            from.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(after) = from.strip_prefix("'\"'").or(from.strip_prefix("'\\\"'")) {
            after
        } else if !from.starts_with('"') {
            &from[1..]
        } else if let Some(hashes) = raw_hashes(&rest[..at]) {
            let (text, after) = from[1..].split_once(&format!("\"{hashes}")).unwrap();
            quoted.push_str(text);
            quoted.push_str(" | ");
            after
        } else {
            let mut chars = from[1..].char_indices();
            loop {
                match chars.next().unwrap() {
                    (_, '\\') => match chars.next().unwrap().1 {
                        '\n' | 'n' => quoted.push(' '),
                        other => quoted.push(other),
                    },
                    (_, '"') => break,
                    (_, other) => quoted.push(other),
                }
            }
            quoted.push_str(" | ");
            chars.as_str()
        };
    }
    quoted
}

/// Of `r##"`, if that is what comes before the quote.
fn raw_hashes(before: &str) -> Option<&str> {
    let hashes = &before[before.trim_end_matches('#').len()..];
    let word = &before[..before.len() - hashes.len()];
    let start = word.trim_end_matches(['r', 'b']);
    let is_prefix = word.len() > start.len() && word.ends_with('r');
    let is_alone = !start.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (is_prefix && is_alone).then_some(hashes)
}

/// A number in a text and a noun for several, where neither says that there may be one.
fn uncounted(text: &str) -> Option<String> {
    const NOUNS: [&str; 13] = [
        "attempts",
        "connections",
        "events",
        "failures",
        "hubs",
        "jobs",
        "messages",
        "records",
        "requests",
        "results",
        "slots",
        "tasks",
        "workers",
    ];
    /// Before a number of all, or of a limit.
    const FINE: [&str; 8] = ["of", "than", "most", "last", "least", "every", "needs", "newest"];
    let text = text.replace('\n', " ");
    for (at, _) in text.match_indices("} ") {
        let noun = text[at + 2..].split(|c: char| !c.is_ascii_alphabetic()).next();
        let from = text[..at].rfind('{').unwrap_or(at);
        let before = text[..from].trim_end().rsplit([' ', '(']).next();
        let is_fine = before.is_some_and(|word| FINE.contains(&word));
        if noun.is_some_and(|noun| NOUNS.contains(&noun)) && !is_fine {
            let line = text[..at].rsplit(" | ").next().unwrap_or_default();
            return Some(format!("{line}{}", &text[at..(at + 12).min(text.len())]));
        }
    }
    None
}

#[test]
fn numbers_agree_with_their_nouns() {
    assert!(uncounted("ending {running} tasks").is_some());
    assert!(uncounted("{done} of {total} tasks done").is_none());
    // Theirs are texts for those who work on the program, or words of another system.
    let own = [
        "laboro-sim",
        "laboro-fuzz",
        "laboro-bench",
        "ledger/check.rs",
        "ledger/describe.rs",
        "hub/answer.rs",
    ];
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    sources.retain(|path| !own.iter().any(|own| path.to_string_lossy().contains(own)));
    let wrong: Vec<String> = (sources.iter())
        .filter(|path| path.to_string_lossy().contains("/src/"))
        .filter_map(|path| {
            let found = uncounted(&quoted(&fs::read_to_string(path).unwrap()))?;
            Some(format!("{}: `{found}`; use `counted`", path.display()))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn options_have_the_words_of_the_glossary() {
    let rig = Rig::new();
    rig.laboro(["man", "pages"]).run().expect(0);
    let page = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let (_, section) = page.split_once("## Names of JSON keys and options\n").unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let avoided: Vec<&str> = cells.flat_map(|cell| cell.split(['`', ',', ' '])).collect();
    assert!(avoided.contains(&"leased"), "{avoided:?}");
    let mut pages = Vec::new();
    files(&rig.at("pages"), ".1", &mut pages);
    let mut count = 0;
    for path in pages {
        let text = fs::read_to_string(&path).unwrap().replace(r"\-", "-");
        for option in text.split("--").skip(1) {
            let end = option.find(|c: char| !c.is_ascii_lowercase() && c != '-');
            let option = &option[..end.unwrap_or(option.len())];
            let wrong = option.split('-').find(|word| !word.is_empty() && avoided.contains(word));
            assert_eq!(wrong, None, "--{option} in {}: see docs/glossary.md", path.display());
            assert!(!option.ends_with("-max"), "--{option}: a limit begins with --max-");
            count += 1;
        }
    }
    assert!(count > 200, "{count}");
}

#[test]
fn texts_are_in_plain_words() {
    let rig = Rig::new();
    rig.laboro(["man", "pages"]).run().expect(0);
    let (mut pages, mut sources) = (Vec::new(), Vec::new());
    files(&rig.at("pages"), ".1", &mut pages);
    let root = root();
    for dir in ["docs", "spec"] {
        files(&root.join(dir), ".md", &mut pages);
    }
    pages.extend(["README.md", "CHANGELOG.md"].map(|page| root.join(page)));
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let dir = entry.unwrap().path();
        // Theirs are for those who work on the program.
        if !["laboro-sim", "laboro-fuzz", "laboro-bench"].iter().any(|own| dir.ends_with(own)) {
            files(&dir.join("src"), ".rs", &mut sources);
        }
    }
    assert!(pages.len() > 40 && sources.len() > 400, "{} and {}", pages.len(), sources.len());
    let read = |path: &PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    let messages = sources.iter().map(read).map(|(path, text)| (path, quoted(&text)));
    let texts = pages.iter().map(read).chain(messages);
    let avoided = avoided();
    let mut wrong = Vec::new();
    for (path, text) in texts {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for one in &avoided {
            if let Some(place) = one.find(&text) {
                let Avoided { words, instead, .. } = one;
                let path = path.display();
                wrong.push(format!("{path}: \"{words}\" in \"...{place}...\"; write {instead}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
