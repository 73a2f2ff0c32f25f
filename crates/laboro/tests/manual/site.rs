//! The manual as a website, as `laboro man --html` writes it and a hub serves it: every link in it leads somewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn links_of_the_website_lead_somewhere() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_laboro");
    assert!(
        Command::new(program).arg("man").arg("--html").arg(dir.path()).status().unwrap().success()
    );
    let mut pages = BTreeMap::new();
    read(dir.path(), "", &mut pages);
    for page in ["index.html", "run.html", "spec/index.html", "examples/monte-carlo.html"] {
        assert!(pages.contains_key(page), "{page} is missing");
    }
    let mut wrong = Vec::new();
    for (page, text) in &pages {
        let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
        let links = values(text, "href=\"").chain(values(text, "src=\""));
        for link in links.filter(|link| !link.starts_with("https://")) {
            let (file, id) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page.clone() } else { resolved(folder, file) };
            let is_there = match pages.get(&target) {
                Some(text) => id.is_empty() || text.contains(&format!("id=\"{id}\"")),
                None => id.is_empty() && dir.path().join(&target).is_file(),
            };
            if !is_there {
                wrong.push(format!("{page}: {link}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn values<'a>(text: &'a str, attribute: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(attribute).skip(1).filter_map(|rest| rest.split('"').next())
}

fn resolved(folder: &str, file: &str) -> String {
    let (up, file) = match file.strip_prefix("../") {
        Some(rest) => (true, rest),
        None => (false, file),
    };
    assert!(!up || !folder.contains('/'), "{folder}/{file}: one folder deep is enough");
    if up || folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") }
}

fn read(dir: &Path, below: &str, pages: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(dir.join(below)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if dir.join(&name).is_dir() {
            read(dir, &name, pages);
        } else if name.ends_with(".html") {
            pages.insert(name.clone(), fs::read_to_string(dir.join(&name)).unwrap());
        }
    }
}
