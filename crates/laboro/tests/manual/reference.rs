//! docs/commands.md is what the program says of itself.

use crate::repository;
use std::process::Command;

#[test]
fn the_reference_of_commands_is_up_to_date() {
    let program = env!("CARGO_BIN_EXE_laboro");
    let printed = Command::new(program).args(["man", "--markdown"]).output().unwrap();
    assert!(printed.status.success());
    let made = String::from_utf8(printed.stdout).unwrap();
    let path = repository().join("docs/commands.md");
    if std::env::var_os("LABORO_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == kept,
        "docs/commands.md is not what `--help` says. Type: \
         LABORO_UPDATE=1 cargo nextest run --workspace -E 'test(is_up_to_date)'"
    );
}
