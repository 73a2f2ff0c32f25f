//! The dashboard in a headless Chromium, against a hub and workers of the real program.

use crate::rig::{Rig, node_modules, not_tried, until};
use std::path::PathBuf;
use std::process::Command;

#[test]
fn people_see_and_press_what_they_should_in_a_browser() {
    let rig = Rig::new();
    let dir = rig.at("hub");
    let dir = dir.to_str().unwrap();
    let any = "127.0.0.1:0";
    let words = ["hub", "--dir", dir, "--http", any, "--native", any, "--durability", "os"];
    let told = ["--log-level", "debug", "--log-format", "json"];
    let hub = rig.laboro(words.into_iter().chain(told)).start();
    until("the hub listens", || hub.out().contains("native on"));
    let out = hub.out();
    let address = out.lines().find_map(|line| line.strip_prefix("http on ")).unwrap();
    let access = rig.at("hub/access.toml");
    let worker = |name: &str| {
        let words = ["worker", "--access", access.to_str().unwrap(), "--name", name, "-j", "2"];
        let has = ["--with", "cards=[a,b]", "--with", "licences=200", "--with", "memory=1G"];
        rig.laboro(words.into_iter().chain(has)).start()
    };
    let _workers = [worker("plain"), worker("<b>bold</b>")];
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("LABORO_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.arg(here.join("tests/it/dashboard/browser.py"));
    command.args([address, rig.dir().to_str().unwrap(), env!("CARGO_BIN_EXE_laboro")]);
    let mut call = rig.call(command).env("PYTHONDONTWRITEBYTECODE", "1");
    match node_modules() {
        Some(modules) => call = call.env("LABORO_NODE_MODULES", modules.to_str().unwrap()),
        None => not_tried("axe-core, which looks for barriers, cannot be had from npm"),
    }
    let ran = call.run();
    ran.expect(0);
    assert_eq!(ran.out().trim(), "good");
    let log = hub.err();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_batch = |line: &&serde_json::Value| line["message"] == "batch";
    assert!(lines.iter().any(|line| line["events"].as_u64() > Some(0)), "{log}");
    assert!(lines.iter().filter(is_batch).all(|line| line["level"] == "DEBUG"), "{log}");
}
