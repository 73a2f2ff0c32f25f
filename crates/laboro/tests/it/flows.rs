//! Flows: dependencies, sweeps and settings.

use crate::rig::Rig;

fn flow(text: &str) -> Rig {
    let rig = Rig::new();
    rig.write("flow.toml", text);
    rig
}

#[test]
fn tasks_run_after_what_they_wait_for() {
    let rig = flow(
        r#"
        [[task]]
        name = "last"
        after = ["left", "right"]
        command = "echo last >> order"
        [[task]]
        name = "left"
        after = ["first"]
        command = "echo middle >> order"
        [[task]]
        name = "right"
        after = ["first"]
        command = "echo middle >> order"
        [[task]]
        name = "first"
        command = "echo first >> order"
        "#,
    );
    rig.run(["flow.toml"]).expect(0);
    assert_eq!(rig.lines("order"), ["first", "middle", "middle", "last"]);
}

#[test]
fn sweeps_name_their_elements_and_fill_in_their_values() {
    let rig = flow(
        r#"
        [[task]]
        name = "each"
        foreach = ["a b", "c"]
        command = ["echo", "{name}={}"]
        [[task]]
        name = "grid"
        matrix = { x = [1, 2], y = "5-6" }
        command = "echo {name}={x}/{y}"
        "#,
    );
    let ran = rig.run(["-k", "flow.toml"]);
    let grid = "grid.1=1/5\ngrid.2=1/6\ngrid.3=2/5\ngrid.4=2/6\n";
    assert_eq!(ran.expect(0).out(), format!("each.1=a b\neach.2=c\n{grid}"));
}

#[test]
fn an_element_waits_for_its_own_partner_only() {
    let rig = flow(
        r#"
        [[task]]
        name = "make"
        foreach = ["1", "2"]
        command = "test {} = 1 || exit 1"
        [[task]]
        name = "use"
        foreach = ["1", "2"]
        after = ["each:make"]
        command = "echo used {}"
        "#,
    );
    let ran = rig.run(["-k", "flow.toml"]);
    assert_eq!(ran.expect(1).out(), "used 1\n");
    ran.says("2 of 4 tasks done, 1 failed, 1 blocked");
}

#[test]
fn a_failure_blocks_what_waits_for_it_unless_that_runs_anyway() {
    let rig = flow(
        r#"
        [[task]]
        name = "bad"
        command = "exit 9"
        [[task]]
        name = "blocked"
        after = ["bad"]
        command = "echo never"
        [[task]]
        name = "anyway"
        after = ["bad"]
        even_if_failed = true
        command = "echo anyway"
        [[task]]
        name = "last"
        after = ["blocked"]
        even_if_failed = true
        command = "echo last"
        "#,
    );
    let ran = rig.run(["-k", "flow.toml"]);
    ran.expect(1);
    assert_eq!(ran.out(), "anyway\nlast\n");
    ran.says("2 of 4 tasks done, 1 failed, 1 blocked");
}

#[test]
fn what_was_blocked_runs_once_its_predecessor_is_retried() {
    let rig = flow(
        r#"
        [[task]]
        name = "bad"
        command = "test -e mended"
        [[task]]
        name = "next"
        after = ["bad"]
        command = "echo next"
        "#,
    );
    rig.run(["flow.toml"]).expect(1);
    rig.write("mended", "");
    let ran = rig.run(["-k", "--retry-failed", "flow.toml"]);
    assert_eq!(ran.expect(0).out(), "next\n");
}

#[test]
fn settings_reach_the_process_and_defaults_fill_in() {
    let rig = flow(
        r#"
        [defaults]
        env = { A = "default", B = "default" }
        dir = "sub"
        [[task]]
        name = "settings"
        env = { B = "own {not a placeholder}" }
        stdin = "some words"
        command = "echo $A $B; pwd | sed 's:.*/::'; cat; echo"
        [[task]]
        name = "from-file"
        stdin = { file = "words" }
        dir = "."
        command = ["cat"]
        [[task]]
        name = "to-files"
        foreach = ["x"]
        output = { stdout = "{name}.stdout", stderr = "{name}.stderr" }
        command = "echo {}; echo bad {} >&2"
        [[task]]
        name = "to-one"
        output = { stdout = "both", stderr = "both" }
        command = "echo 1; echo 2 >&2; echo 3"
        [[task]]
        name = "script"
        interpreter = "python3"
        script = """
import sys, os
print("python", sys.argv[1:], os.environ["A"])
"""
        foreach = ["it's {}"]
        "#,
    );
    rig.write("sub/.keep", "");
    rig.write("words", "from a file\n");
    let ran = rig.run(["-k", "-j1", "flow.toml"]);
    let script = "python [\"it's {}\"] default\n";
    let expected =
        format!("default own {{not a placeholder}}\nsub\nsome words\nfrom a file\n{script}");
    assert_eq!(ran.expect(0).out(), expected);
    assert_eq!(rig.read("sub/to-files.1.stdout"), "x\n");
    assert_eq!(rig.read("sub/to-files.1.stderr"), "bad x\n");
    assert_eq!(rig.read("sub/both"), "1\n2\n3\n");
}

#[test]
fn higher_priority_goes_first_and_slots_are_never_exceeded() {
    let rig = flow(
        r#"
        [[task]]
        name = "low"
        priority = -1
        slots = 2
        command = "echo low >> order"
        [[task]]
        name = "high"
        priority = 5
        slots = 2
        command = "echo high >> order"
        [[task]]
        name = "middle"
        slots = 2
        command = "echo middle >> order"
        "#,
    );
    rig.run(["-j2", "flow.toml"]).expect(0);
    assert_eq!(rig.lines("order"), ["high", "middle", "low"]);
    rig.run(["-j1", "--fresh", "flow.toml"]).expect(2).says("needs 2 slots, and -j gives 1");
}

#[test]
fn only_the_exit_codes_worth_it_are_tried_again() {
    let rig = flow(
        r#"
        [defaults]
        attempts = 3
        retry_on = [75]
        [[task]]
        name = "later"
        command = "echo $LABORO_ATTEMPT >> later; test $LABORO_ATTEMPT = 3 || exit 75"
        [[task]]
        name = "never"
        command = "echo $LABORO_ATTEMPT >> never; exit 1"
        "#,
    );
    rig.run(["flow.toml"]).expect(1).says("1 of 2 tasks done, 1 failed");
    assert_eq!(rig.lines("later"), ["1", "2", "3"]);
    assert_eq!(rig.lines("never"), ["1"]);
}

#[test]
fn a_flow_can_limit_its_failures() {
    let rig = flow(
        r#"
        [job]
        max_fails = 1
        [[task]]
        name = "bad"
        foreach = "1-50"
        command = "echo {} >> tried; exit 1"
        "#,
    );
    rig.run(["-j1", "flow.toml"]).expect(1).says("stopped after too many failures");
    assert_eq!(rig.lines("tried"), ["1", "2"]);
    rig.run(["-j1", "--max-fails", "0", "flow.toml"]).expect(1);
    assert_eq!(rig.lines("tried"), ["1", "2", "3"]);
}

#[test]
fn what_no_machine_like_this_can_run_is_said_before_anything_runs() {
    let task = |needs: &str| format!("[[task]]\nname = \"t\"\ncommand = \"touch ran\"\n{needs}\n");
    for (needs, words) in [
        ("slots = 99", "raise -j"),
        ("resources = { gpu = 2 }", "--with gpu=2"),
        ("tags = [\"fast\"]", "--with-tag fast"),
        ("memory = \"900T\"", "900.0 TiB of memory"),
    ] {
        let rig = flow(&task(needs));
        rig.run(["-j2", "flow.toml"]).expect(2).says(words);
        assert!(!rig.at("ran").exists());
    }
    let rig = flow(&task("tags = [\"fast\"]"));
    rig.run(["--with-tag", "fast", "flow.toml"]).expect(0);
}
