//! `--runs DIR`: scripts and their result files, as the runexp programs have them.

use crate::rig::Rig;

fn rig() -> Rig {
    let rig = Rig::new();
    rig.write("runs/good.sh", "echo words; echo lost >&2; echo RES: fine\nexit 7\n");
    rig.write("runs/deep/er/bad name.sh", "echo 'RES: ok'; echo 'RES:  FAILED here'\n");
    rig.write("runs/silent.sh", "true\n");
    rig.write("runs/notes.txt", "not a script");
    rig
}

#[test]
fn a_res_line_decides_and_results_are_written() {
    let rig = rig();
    let ran = rig.run(["--runs", "runs"]);
    ran.expect(1).says("1 of 3 tasks done, 2 failed");
    ran.says("silent failed (error)").says("it did not say RES: with a good word");
    let good = rig.lines("outputs/good.res");
    assert_eq!(good[0], "runexp summary: success");
    assert_eq!(good[1], "");
    assert!(good[2].contains(" -- [") && good[2].ends_with("] Running good"), "{}", good[2]);
    assert!(good[3].starts_with("> bash "), "{}", good[3]);
    assert!(good[4].ends_with(" -- Finished running"));
    assert_eq!(good[5], "Program exited with status 1792");
    assert_eq!(good[6..], ["Program output follows", "", "words", "RES: fine", "lost"]);
    assert_eq!(rig.lines("outputs/deep/er/bad name.res")[0], "runexp summary: failure");
    assert_eq!(rig.lines("outputs/silent.res")[0], "runexp summary: failure");
    let table = ["deep/er/bad name", "0", "good", "1", "silent", "0"];
    assert_eq!(rig.lines("outputs/runexp.am"), table);
}

#[test]
fn failed_scripts_run_again_by_request_and_the_table_follows() {
    let rig = rig();
    rig.run(["--runs", "runs"]).expect(1);
    rig.run(["--runs", "runs"]).expect(1).says("nothing to do: 1 of 3");
    std::fs::remove_file(rig.at("outputs/runexp.am")).unwrap();
    rig.run(["--runs", "runs", "--retry-failed"]).expect(1).says("2 failed");
    // Also what this run did not do again.
    assert_eq!(rig.lines("outputs/runexp.am").len(), 6);
    rig.write("runs/silent.sh", "echo RES:now\n");
    rig.run(["--runs", "runs"]).expect(1).says("2 of 3 tasks done");
    assert_eq!(rig.lines("outputs/runexp.am")[4..], ["silent", "1"]);
}

#[test]
fn the_exit_code_decides_when_asked() {
    let rig = rig();
    rig.run(["--runs", "runs", "--success", "exit-code"]).expect(1).says("2 of 3 tasks done");
    assert_eq!(rig.lines("outputs/good.res")[0], "runexp summary: failure");
    assert_eq!(rig.lines("outputs/silent.res")[0], "runexp summary: success");
}

#[test]
fn what_cannot_be_told_apart_is_refused() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "");
    rig.write("runs/a.m", "");
    rig.run(["--runs", "runs"]).expect(2).says("would both be the task `a`");
    rig.run(["--runs", "nowhere"]).expect(2).says("nowhere");
}
