//! Links within the repository lead to a file that is there, and to a heading that it has. Addresses elsewhere are not
//! asked: a test must not fail because a server of others does.

use crate::{folders_in, pages_in, repository};
use std::fs;

#[test]
fn links_within_the_repository_lead_somewhere() {
    let mut pages = Vec::new();
    for folder in ["", "docs", "examples", "spec", "spec/journal"] {
        pages.extend(pages_in(folder));
    }
    for example in folders_in("examples") {
        pages.extend(pages_in(&example));
    }
    for page in ["README.md", "docs/run.md", "spec/journal/README.md"] {
        assert!(pages.iter().any(|found| found == page), "{page} was not found");
    }
    let wrong: Vec<String> = pages.iter().flat_map(|page| wrong_links(page)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn wrong_links(page: &str) -> Vec<String> {
    let path = repository().join(page);
    let text = fs::read_to_string(&path).unwrap();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let mut wrong = Vec::new();
    for link in links.filter(|link| !link.starts_with("https://")) {
        let (file, heading) = link.split_once('#').unwrap_or((link, ""));
        let target = match file {
            "" => path.clone(),
            file => path.parent().unwrap().join(file),
        };
        if !target.exists() {
            wrong.push(format!("{page}: {link} is not there"));
        } else if !heading.is_empty()
            && !fs::read_to_string(target).unwrap().lines().any(|line| anchor(line) == heading)
        {
            wrong.push(format!("{page}: {link} has no such heading"));
        }
    }
    wrong
}

/// What a heading is called in links; nothing for other lines.
fn anchor(line: &str) -> String {
    let heading = line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'));
    let kept =
        heading.unwrap_or_default().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
