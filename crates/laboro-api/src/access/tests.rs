//! Access files of every version, and in which order their addresses are tried.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use super::*;
use crate::client::Target;

fn golden(name: &str) -> Access {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/golden/access");
    Access::read(&dir.join(name)).unwrap()
}

#[test]
fn files_of_older_hubs_open_and_mean_what_they_meant() {
    let one = golden("0.1-one-hub.toml");
    assert_eq!((one.host.as_deref(), one.prepared), (None, false));
    assert_eq!((one.role, one.group.as_deref()), (Role::Admin, None));
    assert_eq!(one.in_order(one.native.as_deref().unwrap(), "here"), ["127.0.0.1:7911"]);
    let several = golden("0.1-several-hubs.toml");
    assert_eq!((several.role, several.group.as_deref()), (Role::Work, Some("night")));
    let target = Target::of_access(&several).unwrap();
    assert_eq!((target.host.as_str(), target.port), ("n1", 7910));
    assert_eq!(target.others, [("n2".to_owned(), 7910)]);
    assert!(!target.is_one_hub, "one of them may take over");
}

#[test]
fn one_hub_with_many_addresses_is_tried_as_where_the_client_is() {
    let access = golden("0.2-many-addresses.toml");
    let native = access.native.as_deref().unwrap();
    let own = ["127.0.0.1:40001", "login1:40001", "10.1.0.7:40001"];
    assert_eq!(access.in_order(native, "login1"), own);
    let elsewhere = ["login1:40001", "10.1.0.7:40001", "127.0.0.1:40001"];
    assert_eq!(access.in_order(native, "node17"), elsewhere);
    assert!(Target::of_access(&access).unwrap().is_one_hub);
    assert_eq!(Access::parse(&access.text()).unwrap(), access);
    assert!(!Access::is_local(native) && Access::is_local("127.0.0.1:1,[::1]:1,localhost:1"));
}

#[test]
fn a_file_made_before_the_hub_says_so() {
    let text = golden("0.2-many-addresses.toml").text();
    let lines =
        text.lines().filter(|line| !line.starts_with("http =") && !line.starts_with("native ="));
    let text = lines.collect::<Vec<_>>().join("\n").replace("host =", "prepared = true\nhost =");
    let access = Access::parse(&text).unwrap();
    let told = Target::of_access(&access).unwrap_err().to_string();
    assert!(told.contains("not started yet"), "{told}");
}
