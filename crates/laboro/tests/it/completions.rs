//! Completions and manual pages are made from what can be typed.

use crate::rig::Rig;

#[test]
fn every_shell_gets_completions_that_know_the_commands() {
    let rig = Rig::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ran = rig.laboro(["completions", shell]).run();
        ran.expect(0);
        assert!(ran.out().contains("journal"), "{shell}");
    }
    rig.laboro(["completions", "ksh"]).run().expect(2).says("possible values");
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let rig = Rig::new();
    assert!(rig.laboro(["man"]).run().expect(0).out().contains(".TH laboro"));
    rig.laboro(["man", "pages/man1"]).run().expect(0);
    for page in ["laboro.1", "laboro-run.1", "laboro-journal-check.1"] {
        assert!(rig.at("pages/man1").join(page).exists(), "{page}");
    }
}
