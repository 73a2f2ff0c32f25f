//! The job files of `examples/` run as they are.

use crate::rig::{Ran, Rig};
use std::path::Path;

fn example(name: &str) -> (Rig, Ran) {
    let rig = Rig::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    std::fs::copy(examples.join(name), rig.at(name)).unwrap();
    let ran = rig.run(["-k", name]);
    ran.expect(0);
    (rig, ran)
}

#[test]
fn hello_draws_a_picture() {
    let (_, ran) = example("hello.txt");
    let picture = ran.out();
    assert!(picture.lines().count() > 20 && picture.lines().all(|line| line.len() == 78));
    assert!(picture.contains("@@@@@"), "{picture}");
}

#[test]
fn pipeline_retries_its_fetch_and_reports() {
    let (rig, ran) = example("pipeline.toml");
    assert!(ran.out().contains("different numbers by quarter:"), "{}", ran.out());
    assert!(ran.out().contains("done, in pipeline-out:"), "{}", ran.out());
    ran.says("fetch failed (exit code 75)").says("will be tried again").says("not there yet");
    let attempt = rig.laboro(["logs", "--json", "fetch"]).run().out();
    assert!(attempt.contains("\"attempt\":2"), "{attempt}");
}

#[test]
fn sweep_gives_one_line_for_each_number_of_samples() {
    let (rig, _) = example("sweep.toml");
    assert_eq!(rig.lines("sweep-out/summary.txt").len(), 3);
}

#[test]
fn json_tasks_hand_files_to_each_other() {
    let (rig, ran) = example("tasks.jsonl");
    assert_eq!(rig.lines("sorted.txt"), ["be", "not", "or", "to"]);
    assert!(ran.out().contains("TO\nBE\n") && ran.out().ends_with("done, 6 words\n"));
}
