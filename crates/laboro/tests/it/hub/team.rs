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
    made.expect(0).says("ann.toml: access for ann (submit, every group, no end)");
    assert_eq!(made.out(), "", "the secret is in the file and nowhere else");
    let mode = std::fs::metadata(hub.rig.at("ann.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hub.run(&["access", "--output=ann.toml"]).expect(2).says("ann.toml is there already");
    let printed = hub.run(&["access", "--name=bob"]);
    printed.expect(0).says("this holds a secret");
    assert!(printed.out().contains("token = "));
    hub.run(&["access", "list", "--output=x"]).expect(2);
}
