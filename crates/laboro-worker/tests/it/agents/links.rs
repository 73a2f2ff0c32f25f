//! Connections that fail, and what becomes of work meanwhile.

use super::hub::Rig;

#[test]
fn tasks_go_on_without_a_connection_and_results_are_told_until_they_are_answered() {
    let mut rig = Rig::new("cut-link", |_| {});
    rig.write("go", "");
    rig.say("start 1 1 echo $$ > pid; while test -e go; do sleep 0.01; done; exit 4");
    rig.say("start 2 1 exit 5");
    rig.expect("ended 2 exit code 5");
    rig.line_of("pid");
    rig.cut();
    rig.meet("hello 1");
    // The first answer was lost with the connection.
    rig.ends(2, "exit code 5");
    rig.cut();
    std::fs::remove_file(rig.dir.at("go")).unwrap();
    rig.meet_either(&["hello ", "hello 1"]);
    rig.ends(1, "exit code 4");
}

#[test]
fn a_hub_that_makes_no_sense_is_tried_again() {
    let mut rig = Rig::new("nonsense", |_| {});
    rig.say("nonsense what");
    rig.meet("hello ");
    rig.say("start 1 1 true");
    rig.ends(1, "success");
}

#[test]
fn a_task_that_prints_without_end_waits_while_nobody_takes_it() {
    let mut rig = Rig::new("pressure", |_| {});
    rig.say("start 1 1 head -c 50000000 /dev/zero; echo done > done");
    let (mut taken, mut untold) = (0, 0);
    while taken < 50_000_000 {
        let line = rig.expect_begin("wrote 1 Out ");
        let bytes: usize = line.split(' ').nth(3).unwrap().parse().unwrap();
        taken += bytes;
        untold += bytes;
        if taken < 40_000_000 {
            // A worker holds no more than a few batches of what a pipe holds.
            assert!(!rig.dir.at("done").exists());
        }
        if taken >= 4 << 20 {
            rig.say(&format!("took {untold}"));
            untold = 0;
        }
    }
    rig.ends(1, "success");
}
