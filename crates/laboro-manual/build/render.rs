//! Markdown to HTML: a page with the table of contents beside it. Links between pages become links between their HTML
//! files; a link to something that is not in the manual becomes its text.

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const CONTENTS: &str = "docs/SUMMARY.md";

pub struct Site {
    /// By path in the repository.
    sources: BTreeMap<String, String>,
    /// By name in the manual.
    drawings: BTreeSet<String>,
}

impl Site {
    pub fn new(sources: BTreeMap<String, String>, drawings: BTreeSet<String>) -> Site {
        Site { sources, drawings }
    }

    /// With their names in the manual.
    pub fn pages(&self) -> impl Iterator<Item = (String, String)> {
        self.sources.keys().map(|path| (name_of(path), self.page(path)))
    }

    fn page(&self, path: &str) -> String {
        let name = name_of(path);
        let up = "../".repeat(name.matches('/').count());
        let title = title(&self.sources[path]);
        let contents = self.contents(&name);
        let text = self.html(path, &name);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title} - Laboro</title>\n<link rel=\"stylesheet\" href=\"{up}style.css\">\n\
             <nav>\n{contents}</nav>\n<main>\n{text}</main>\n</html>\n"
        )
    }

    /// The table of contents, and after it the pages that it does not name yet.
    fn contents(&self, shown_on: &str) -> String {
        let listed = &self.sources[CONTENTS];
        let mut contents = self.html(CONTENTS, shown_on);
        for (path, source) in self.sources.iter().filter(|(path, _)| *path != CONTENTS) {
            let file =
                path.strip_prefix("docs/").filter(|file| !listed.contains(&format!("]({file})")));
            if let Some(target) = file.and_then(|file| self.target(CONTENTS, file, shown_on)) {
                let _ = writeln!(contents, "<p><a href=\"{target}\">{}</a></p>", title(source));
            }
        }
        contents
    }

    /// The source at `path`, with links as they must be on the page `shown_on`.
    fn html(&self, path: &str, shown_on: &str) -> String {
        let parser = Parser::new_ext(&self.sources[path], Options::ENABLE_TABLES);
        let mut events: Vec<Event<'_>> = Vec::new();
        // Of the open links and images whether they lead somewhere.
        let mut open: Vec<bool> = Vec::new();
        let mut heading: Option<usize> = None;
        for event in parser {
            match event {
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = self.target(path, &dest_url, shown_on);
                    open.push(target.is_some());
                    if let Some(target) = target {
                        let dest_url = CowStr::from(target);
                        events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                    }
                }
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let target = self.target(path, &dest_url, shown_on);
                    open.push(target.is_some());
                    if let Some(target) = target {
                        let dest_url = CowStr::from(target);
                        events.push(Event::Start(Tag::Image { link_type, dest_url, title, id }));
                    }
                }
                Event::End(TagEnd::Link | TagEnd::Image) => {
                    if open.pop() == Some(true) {
                        events.push(event);
                    }
                }
                Event::Start(Tag::Heading { .. }) => {
                    heading = Some(events.len());
                    events.push(event);
                }
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(at) = heading.take() {
                        let anchor = anchor(&plain(&events[at..]));
                        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
                            *id = Some(anchor.into());
                        }
                    }
                    events.push(event);
                }
                other => events.push(other),
            }
        }
        let mut out = String::new();
        html::push_html(&mut out, events.into_iter());
        out
    }

    /// Where a link of the source at `path` leads from the page `shown_on`; `None` if that is not in the manual.
    fn target(&self, path: &str, link: &str, shown_on: &str) -> Option<String> {
        if link.starts_with("https://") || link.starts_with('#') {
            return Some(link.to_owned());
        }
        let (file, heading) = match link.split_once('#') {
            Some((file, heading)) => (file, format!("#{heading}")),
            None => (link, String::new()),
        };
        let from = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let full = joined(from, file);
        let readme = format!("{full}/README.md");
        let name = if self.sources.contains_key(&full) {
            name_of(&full)
        } else if self.sources.contains_key(&readme) {
            name_of(&readme)
        } else {
            let drawing = full.strip_prefix("docs/")?;
            self.drawings.get(drawing)?.clone()
        };
        let up = "../".repeat(shown_on.matches('/').count());
        Some(format!("{up}{name}{heading}"))
    }
}

/// What a page of the repository is called in the manual.
fn name_of(path: &str) -> String {
    let name = path.strip_prefix("docs/").unwrap_or(path);
    let name = name.strip_suffix(".md").unwrap_or(name);
    match name.strip_suffix("README") {
        Some("") => "index.html".to_owned(),
        Some(folder @ ("spec/" | "examples/")) => format!("{folder}index.html"),
        Some(folder) => format!("{}.html", folder.trim_end_matches('/')),
        None => format!("{name}.html"),
    }
}

fn joined(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn title(source: &str) -> String {
    let mut events = Parser::new(source).skip_while(|event| {
        !matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }))
    });
    let heading: Vec<Event<'_>> = events
        .by_ref()
        .take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))))
        .collect();
    let text = plain(&heading);
    text.replace('&', "&amp;").replace('<', "&lt;")
}

fn plain(events: &[Event<'_>]) -> String {
    let words = events.iter().filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        _ => None,
    });
    words.collect()
}

/// What a heading is called in links, as on the sites where people read the sources.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}
