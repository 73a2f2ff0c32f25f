//! What a task finds around it.

use crate::rig::Rig;
use crate::workers::hub::HubRig;
use laboro_core::Profile;

#[test]
fn a_task_knows_who_it_is() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        r#"
        [defaults]
        output = { stdout = "{name}.env" }
        [[task]]
        name = "one"
        foreach = ["a", "b"]
        command = "env"
        [[task]]
        name = "two"
        foreach = ["c", "d", "e"]
        command = "env"
        [[task]]
        name = "alone"
        slots = 2
        resources = { gpu = 2, "licence-x" = 1 }
        command = "env"
        "#,
    );
    let resources = ["--with", "gpu=4", "--with", "licence-x=1"];
    rig.run(["-j2", "flow.toml"].iter().chain(&resources)).expect(0);
    let value = |task: &str, name: &str| {
        let lines = rig.lines(&format!("{task}.env"));
        lines.iter().find_map(|line| line.strip_prefix(&format!("{name}="))).map(str::to_owned)
    };
    for (task, index) in
        [("one.1", "1"), ("one.2", "2"), ("two.1", "1"), ("two.3", "3"), ("alone", "1")]
    {
        assert_eq!(value(task, "LABORO_TASK").as_deref(), Some(task));
        assert_eq!(value(task, "LABORO_INDEX").as_deref(), Some(index), "{task}");
        assert_eq!(value(task, "LABORO_JOB").as_deref(), Some("1"));
        assert_eq!(value(task, "LABORO_ATTEMPT").as_deref(), Some("1"));
    }
    assert_eq!(value("one.1", "LABORO_SLOTS").as_deref(), Some("1"));
    assert_eq!(value("alone", "LABORO_SLOTS").as_deref(), Some("2"));
    assert_eq!(value("alone", "LABORO_GPU").as_deref(), Some("0,1"));
    assert_eq!(value("alone", "LABORO_LICENCE_X").as_deref(), Some("0"));
    assert_eq!(value("one.1", "LABORO_GPU"), None);
}

const ACCESS: &str = "echo ${LABORO_ACCESS-no} ${LABORO_TOKEN-no} ${LABORO_DIR-no} > seen";

#[test]
fn what_gives_access_to_a_hub_does_not_reach_tasks_unless_they_ask_for_it() {
    let rig = Rig::new();
    let with_access = |words: &[&str]| {
        let call = rig.laboro(words).env("LABORO_DIR", "/hub").env("LABORO_TOKEN", "t");
        call.env("LABORO_ACCESS", "/access").run()
    };
    with_access(&["run", "--", ACCESS]).expect(0);
    assert_eq!(rig.lines("seen"), ["no no no"]);
    let flow = format!(
        "[[task]]\nname = \"t\"\ncommand = '{ACCESS}'\nenv = {{ LABORO_DIR = \"/own\" }}\n"
    );
    rig.write("flow.toml", flow);
    with_access(&["run", "flow.toml"]).expect(0);
    assert_eq!(rig.lines("seen"), ["no no /own"]);
}

#[test]
fn what_gives_access_to_a_hub_does_not_reach_the_tasks_of_a_worker() {
    let hub = HubRig::new();
    let access = hub.access();
    let words = ["worker", "--access", &access, "--name", "one", "--scratch", ".", "-j1"];
    let worker = hub.rig.laboro(words).env("LABORO_DIR", "/hub").env("LABORO_TOKEN", "t");
    let _worker = worker.env("LABORO_ACCESS", "/access").start();
    hub.until_done(hub.submit(1, ACCESS, Profile::default()));
    assert_eq!(hub.rig.lines("seen"), ["no no no"]);
}

#[test]
fn tasks_at_the_same_time_never_share_a_resource() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        r#"
        [[task]]
        name = "t"
        foreach = "1-30"
        resources = { gpu = 1 }
        command = "mkdir held.$LABORO_GPU && rmdir held.$LABORO_GPU"
        "#,
    );
    rig.run(["-j4", "--with", "gpu=2", "flow.toml"]).expect(0);
}

#[test]
fn gpus_keep_their_numbers_and_a_persons_choice_stands() {
    let rig = Rig::new();
    rig.write(
        "flow.toml",
        r#"
        [[task]]
        name = "given"
        resources = { gpu = 0.5 }
        command = "echo $LABORO_GPU $CUDA_VISIBLE_DEVICES > given"
        [[task]]
        name = "chosen"
        resources = { gpu = "all" }
        env = { CUDA_VISIBLE_DEVICES = "7" }
        command = "echo $LABORO_GPU $CUDA_VISIBLE_DEVICES > chosen"
        [[task]]
        name = "other"
        resources = { gpu = 9 }
        command = "echo ${LABORO_GPU-none} > other"
        [[task.variant]]
        slots = 2
        "#,
    );
    let run = rig.laboro(["run", "-j2", "--with", "gpu=2", "flow.toml"]);
    let ran = run.env("CUDA_VISIBLE_DEVICES", "4,5").run();
    ran.expect(0);
    assert!(!ran.err().contains("stay what they were"), "{}", ran.err());
    assert_eq!(rig.lines("given"), ["4 4"]);
    assert_eq!(rig.lines("chosen"), ["4,5 7"]);
    assert_eq!(rig.lines("other"), ["none"]);
    let run = rig.laboro(["run", "--with", "gpu=3", "flow.toml"]);
    run.env("CUDA_VISIBLE_DEVICES", "4,5").run().expect(2).says("shows only 2");
}

#[test]
fn the_environment_and_the_directory_are_passed_on() {
    let rig = Rig::new();
    let ran = rig
        .laboro(["run", "-k", "--", "sh", "-c", "echo $FROM_OUTSIDE; pwd -P"])
        .env("FROM_OUTSIDE", "here")
        .run();
    let dir = rig.dir().canonicalize().unwrap();
    assert_eq!(ran.expect(0).out(), format!("here\n{}\n", dir.display()));
}

#[test]
fn niceness_reaches_the_task() {
    let rig = Rig::new();
    // Set right after the spawn, so the first look may be too early.
    let look = "until [ \"$(nice)\" = 7 ]; do :; done; nice";
    assert_eq!(rig.run(["-k", "--nice", "7", "--", look]).expect(0).out(), "7\n");
}

#[test]
fn values_of_any_bytes_arrive_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let rig = Rig::new();
    let value = OsStr::from_bytes(b"a\xff\xfeb \"'\n\\x");
    let words = ["run", "-k", "--", "printf", "%s", "{}", ":::"].map(OsStr::new);
    let ran = rig.laboro(words.into_iter().chain([value])).run();
    assert_eq!(ran.expect(0).out, value.as_bytes());
    let words = ["run", "-k", "--", "printf %s {} ; :", ":::"].map(OsStr::new);
    let ran = rig.laboro(words.into_iter().chain([value])).run();
    assert_eq!(ran.expect(0).out, value.as_bytes());
}

#[test]
fn a_pinned_task_has_processors_of_its_own() {
    let rig = Rig::new();
    let line = "echo $LABORO_CPUS $OMP_NUM_THREADS $(grep Cpus_allowed_list /proc/self/status | cut -f2) >>{}.txt";
    rig.run(["-j", "1", "--pin-tasks", "--", "sh", "-c", line, "--", ":::", "a", "b"]).expect(0);
    for name in ["a.txt", "b.txt"] {
        let text = rig.read(name);
        let words: Vec<&str> = text.split_whitespace().collect();
        let [own, threads, allowed] = words[..] else { panic!("{text}") };
        assert_eq!((own, threads), (allowed, "1"));
    }
    // As many slots as no machine has processors.
    let ran = rig.run(["-j", "5000", "--pin-tasks", "--", "true"]);
    ran.expect(3).says("for 5000 slots");
}
