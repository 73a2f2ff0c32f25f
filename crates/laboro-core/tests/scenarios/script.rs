//! Runs a script and compares. A script is text: `at 5` sets the time in milliseconds, `> words` is a
//! command, and below it stand the events (`= ...`) and effects (`< ...`) that must follow, all of them
//! in order. `> tick` lets time pass and nothing else, `> restart` starts the hub again from its events,
//! `config ...` comes first. Lines with `#` are for the reader. The words are in `command.rs` and
//! `show.rs`.

use crate::{command, show};
use laboro_core::*;

/// Runs the script in the file and fails where it differs. With `LABORO_BLESS=1` the file is written
/// anew instead; then every changed line wants a look.
pub fn check(name: &str) {
    let path = format!("{}/tests/scenarios/{name}", env!("CARGO_MANIFEST_DIR"));
    let script = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let played = play(&script);
    if played == script {
        return;
    }
    if std::env::var_os("LABORO_BLESS").is_some() {
        std::fs::write(&path, played).unwrap_or_else(|error| panic!("{path}: {error}"));
        return;
    }
    panic!("{name} goes otherwise:\n{}", difference(&script, &played));
}

/// The script as it goes: the same, with the expected lines as they are.
fn play(script: &str) -> String {
    let mut stage: Option<Stage> = None;
    let mut config = Config::default();
    let mut out = String::new();
    for (at, line) in script.lines().enumerate() {
        if line.starts_with("= ") || line.starts_with("< ") {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        let fail = |what: String| -> ! { panic!("line {}: {what}: {line}", at + 1) };
        if let Some(words) = line.strip_prefix("config ") {
            command::configure(&mut config, words).unwrap_or_else(|what| fail(what));
        } else if let Some(time) = line.strip_prefix("at ") {
            let ms = time.trim().parse().unwrap_or_else(|_| fail("no time".into()));
            stage.get_or_insert_with(|| Stage::new(&config)).now = Time(ms);
        } else if let Some(words) = line.strip_prefix("> ") {
            let stage = stage.get_or_insert_with(|| Stage::new(&config));
            let shown = stage.act(words).unwrap_or_else(|what| fail(what));
            shown.iter().for_each(|line| {
                out.push_str(line);
                out.push('\n');
            });
        } else if !line.is_empty() && !line.starts_with('#') {
            fail("neither a command nor a comment".into());
        }
    }
    out
}

struct Stage {
    hub: Hub,
    /// What a journal would hold.
    events: Vec<(Time, Event)>,
    config: Config,
    now: Time,
    /// Commands are counted; the number is the token.
    count: u64,
}

impl Stage {
    fn new(config: &Config) -> Stage {
        let (hub, batch) = Hub::begin(Ledger::default(), config.clone(), Time(0), 1);
        let events = batch.events.iter().map(|event| (batch.at, event.clone())).collect();
        Stage { hub, events, config: config.clone(), now: Time(0), count: 0 }
    }

    fn act(&mut self, words: &str) -> Result<Vec<String>, String> {
        let batch = match words {
            "tick" => self.hub.step(self.now, Vec::new()),
            "restart" | "restart condensed" => self.restart(words.ends_with("condensed")),
            _ => {
                self.count += 1;
                let (token, command) = (Token(self.count), command::parse(words)?);
                self.hub.step(self.now, vec![Ask { token, command }])
            }
        };
        self.events.extend(batch.events.iter().map(|event| (batch.at, event.clone())));
        self.hub.ledger().check()?;
        let names = show::Names::of(&self.events);
        let mut lines: Vec<String> =
            batch.events.iter().map(|event| format!("= {}", names.event(event))).collect();
        for effect in batch.release(Nowhere.receipt()) {
            lines.extend(names.effect(&effect, self.count).iter().map(|line| format!("< {line}")));
        }
        Ok(lines)
    }

    fn restart(&mut self, condensed: bool) -> Batch {
        let mut state = Ledger::default();
        if condensed {
            self.hub.ledger().condense(&mut |event| state.apply(self.now, &event));
        } else {
            self.events.iter().for_each(|(at, event)| state.apply(*at, event));
        }
        assert_eq!(state.describe(), self.hub.ledger().describe(), "what comes back is what was");
        let (hub, batch) = Hub::begin(state, self.config.clone(), self.now, 1);
        self.hub = hub;
        batch
    }
}

/// The first place where they part, with a few lines around it.
fn difference(expected: &str, played: &str) -> String {
    let (expected, played): (Vec<&str>, Vec<&str>) =
        (expected.lines().collect(), played.lines().collect());
    let same = expected.iter().zip(&played).take_while(|(a, b)| a == b).count();
    let around =
        |lines: &[&str]| lines[same.saturating_sub(4)..(same + 6).min(lines.len())].join("\n");
    format!(
        "line {}\n--- expected\n{}\n--- played\n{}",
        same + 1,
        around(&expected),
        around(&played)
    )
}

/// Nobody waits for what is decided here to be safe.
struct Nowhere;

impl Archive for Nowhere {}
