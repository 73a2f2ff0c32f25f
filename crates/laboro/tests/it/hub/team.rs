//! Several people at one hub: whose jobs are whose, and who may change them.

use super::whole::Whole;
use std::os::unix::fs::PermissionsExt;

/// A hub with an access file for each of these.
fn team(names: &[&str]) -> Whole {
    let whole = Whole::new();
    for name in names {
        whole.run(&["access", "--name", name, "-o", &format!("{name}.toml")]).expect(0);
    }
    whole
}

#[test]
fn last_is_ones_own_last_job_and_others_may_not_change_it() {
    let hub = team(&["ann", "bob"]);
    let by = |name: &str, words: &[&str]| {
        let access = format!("--access={name}.toml");
        let words: Vec<&str> = words.iter().copied().chain([access.as_str()]).collect();
        hub.run(&words)
    };
    hub.run(&["submit", "--hold", "--name=night", "--access=ann.toml", "--", "true"]).expect(0);
    hub.run(&["submit", "--hold", "--name=night", "--access=bob.toml", "--", "true"]).expect(0);

    by("ann", &["cancel", "2"]).expect(4).says("job 2 belongs to bob");
    by("ann", &["cancel", "last"]).expect(0).out();
    by("bob", &["cancel", "night"]).expect(0);
    let owners = |words: &[&str]| -> Vec<(u64, String, String)> {
        let jobs = by("bob", words).expect(0).events();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        jobs.iter()
            .map(|job| (job["job"].as_u64().unwrap(), text(&job["owner"]), text(&job["state"])))
            .collect()
    };
    let job = |number: u64, owner: &str| (number, owner.to_owned(), "cancelled".to_owned());
    assert_eq!(owners(&["jobs", "--json"]), [job(2, "bob"), job(1, "ann")]);
    assert_eq!(owners(&["jobs", "--json", "--mine"]), [job(2, "bob")]);
    assert_eq!(owners(&["jobs", "--json", "--owner=ann"]), [job(1, "ann")]);
    assert_eq!(owners(&["jobs", "--json", "--state=failed"]), []);
    assert_eq!(owners(&["jobs", "--json", "--state=failed,cancelled"]).len(), 2);
    assert!(by("ann", &["show", "2"]).expect(0).out().contains("owner      bob"));
    assert_eq!(by("ann", &["tasks", "2", "--json"]).expect(0).events()[0]["owner"], "bob");

    // The owner of what the hub's own user submits is that user, who may change everything.
    hub.run(&["submit", "--hold", "--", "true"]).expect(0);
    hub.run(&["release", "last"]).expect(0).says("");
    by("bob", &["forget", "2"]).expect(0);
    let log = hub.run(&["audit", "--json", "--by=ann"]).expect(0).events();
    let told: Vec<_> =
        log.iter().map(|entry| (entry["action"].as_str(), entry["status"].as_u64())).collect();
    assert_eq!(
        told,
        [
            (Some("POST /jobs/1/cancel"), Some(200)),
            (Some("POST /jobs/2/cancel"), Some(403)),
            (Some("POST /jobs"), Some(200)),
        ]
    );
    assert_eq!(hub.run(&["audit", "--json", "--job=2"]).expect(0).events().len(), 4);
    by("bob", &["audit"]).expect(4).says("admin");
}

#[test]
fn an_access_file_is_for_its_owner_alone() {
    let hub = team(&[]);
    let made = hub.run(&["access", "--name=ann", "--output=ann.toml"]);
    made.expect(0).says("ann.toml: access for ann (submit, every group, does not expire)");
    assert_eq!(made.out(), "", "the secret is in the file and nowhere else");
    let mode = std::fs::metadata(hub.rig.at("ann.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hub.run(&["access", "--output=ann.toml"]).expect(2).says("ann.toml already exists");
    let printed = hub.run(&["access", "--name=bob"]);
    printed.expect(0).says("this holds a secret");
    assert!(printed.out().contains("token = "));
    hub.run(&["access", "list", "--output=x"]).expect(2);
}

const FLOW: &str = r#"
[[task]]
name = "prepare"
command = "echo made"
[[task]]
name = "fit"
after = "prepare"
foreach = ["a", "b", "=c"]
command = "echo fit {}; echo odd >&2; test {} != b"
"#;

#[test]
fn a_flow_is_submitted_twice_and_words_mean_several_jobs() {
    let hub = team(&["ann"]);
    hub.rig.write("flow.toml", FLOW);
    hub.run(&["submit", "--hold", "flow.toml"]).expect(0);
    hub.run(&["submit", "--hold", "flow.toml"]).expect(0);
    hub.run(&["submit", "--hold", "--access=ann.toml", "flow.toml"]).expect(0);
    hub.run(&["submit", "--after=1/fit", "--after=2", "--name=last-one", "--", "true"]).expect(0);
    hub.run(&["explain", "4/1"]).expect(0);
    assert!(hub.run(&["show", "4/1"]).expect(0).out().contains("after"));
    let held = |words: &[&str]| hub.run(words).expect(0).events().len();
    assert_eq!(held(&["show", "--json", "1", "2"]), 2);
    assert_eq!(held(&["show", "--json", "1-3,4"]), 4);
    assert_eq!(held(&["cancel", "--json", "1/fit*"]), 1);
    assert!(hub.run(&["tasks", "1/cancelled", "--json"]).expect(0).events().len() == 3);
    hub.run(&["limit", "--max-running=1", "2"]).expect(0);
    assert_eq!(hub.run(&["show", "2", "--json"]).expect(0).events()[0]["max_running"], 1);
    hub.run(&["limit", "--max-running=none", "2"]).expect(0);
    hub.run(&["limit", "2"]).expect(2);
    // Of one's own only, unless it is said otherwise.
    assert_eq!(held(&["cancel", "--json", "all"]), 3);
    assert_eq!(hub.run(&["show", "3", "--json"]).expect(0).events()[0]["state"], "held");
    hub.run(&["cancel", "all"]).expect(4).says("nothing to do of your jobs: all are over");
    assert_eq!(held(&["cancel", "--json", "held", "--all-owners"]), 1);
    assert_eq!(held(&["forget", "--json", "1-3"]), 3);
    assert_eq!(held(&["jobs", "--json"]), 1);
}

#[test]
fn the_output_of_a_whole_job_and_a_table_of_it() {
    let hub = team(&[]);
    hub.rig.write("flow.toml", FLOW);
    let ran = hub.run(&["submit", "--wait", "-k", "flow.toml"]);
    ran.expect(1);
    // Arrays have the first numbers.
    assert!(ran.out().starts_with("job 1: 4 tasks\nfit a\nfit b\nfit =c\nmade\n"), "{}", ran.out());
    let all = hub.run(&["logs", "last"]);
    assert_eq!(all.expect(0).out(), "fit a\nfit b\nfit =c\nmade\n");
    assert_eq!(all.err(), "odd\nodd\nodd\n");
    assert_eq!(
        hub.run(&["logs", "last/fit", "--stdout"]).expect(0).out(),
        "fit a\nfit b\nfit =c\n"
    );
    let failed = hub.run(&["logs", "last", "--failed"]);
    assert_eq!(failed.expect(0).out(), "fit b\n");
    assert!(failed.err().contains("==> 1/2 fit.2 b (exit code 1) <=="), "{}", failed.err());
    hub.run(&["logs", "1", "--output-dir=all"]).expect(0);
    assert_eq!(hub.rig.read("all/fit.3.out"), "fit =c\n");
    assert_eq!(hub.rig.read("all/prepare.err"), "");
    hub.run(&["submit", "--wait", "--output-dir=more", "--", "echo", "x{}", ":::", "1", "2"])
        .expect(0);
    assert_eq!(hub.rig.read("more/2.out"), "x2\n");

    hub.run(&["export", "1", "-o", "table.csv"]).expect(0).says("job 1: 4 rows");
    let table = hub.rig.read("table.csv");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].ends_with(",message,value_1"), "{}", lines[0]);
    assert!(lines[2].contains(",failed,1,") && lines[2].ends_with(",b"), "{}", lines[2]);
    assert!(lines[3].ends_with(",\"'=c\""), "{}", lines[3]);
    let rows = hub.run(&["export", "1/failed", "--format=jsonl"]).expect(0).events();
    assert_eq!((&rows[0]["exit_code"], &rows[0]["values"][0]), (&1.into(), &"b".into()));
    let log = hub.run(&["export", "1", "--format=joblog"]).expect(0).out().to_owned();
    assert_eq!(log.lines().count(), 5, "{log}");
    hub.run(&["export", "1", "-o", "table.xlsx"]).expect(2).says(".parquet, .sqlite or .joblog");
}
