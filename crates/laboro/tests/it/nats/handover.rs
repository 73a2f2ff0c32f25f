//! The lead goes from hub to hub while clients work.

use super::pair::Pair;
use crate::rig::until;

#[test]
fn nobody_who_tries_once_more_notices_that_the_lead_was_handed_over() {
    let mut pair = Pair::new(1);
    let _worker = pair.worker();
    let client = pair.python("client.py", &["access.toml", "work", "enough"]).start();
    for round in 0..2 {
        let (from, to) = (round % 2, (round + 1) % 2);
        let before = pair.call(&["jobs", "--json", "--limit", "0"]).events().len();
        let has_more =
            || pair.call(&["jobs", "--json", "--limit", "0"]).events().len() > before + 5;
        until("jobs come in", has_more);
        pair.hand_over().expect(0);
        until("the other one leads", || pair.leads(to));
        pair.hubs[from].take().unwrap().wait().expect(0);
        pair.start(from);
        until("it follows", || pair.status().iter().any(|hub| hub["leads"] == false));
    }
    pair.rig.write("enough", "");
    let ran = client.wait();
    let told = &ran.expect(0).events()[0];
    eprintln!("{told}");
    let jobs = pair.call(&["jobs", "--json", "--limit", "0"]).events();
    assert_eq!(jobs.len() as u64, told["jobs"].as_u64().unwrap());
}
