//! A hub that follows sends everybody to the one that leads.

use super::pair::Pair;
use crate::rig::until;

#[test]
fn whoever_knows_only_a_hub_that_follows_is_sent_to_the_one_that_leads() {
    let pair = Pair::new(1);
    let leader = pair.rig.lines("a.words")[0].clone();
    let look = || pair.python("client.py", &["b.toml", "look"]).run();
    until("the other one knows who leads", || look().status.success());
    assert_eq!(look().out().trim(), format!("https://{leader}/api/v1/jobs?limit=3"));

    // Small and large submits, questions, workers and tunnels, all by way of the wrong one.
    let worker = pair.worker_with("b.toml");
    let call = |words: &[&str]| pair.call_with("b.toml", words);
    call(&["submit", "--quiet", "--", "echo", "{}", ":::", "a", "b"]).expect(0);
    let large: String = (0..3000).map(|n| format!("true {n} {}\n", "x".repeat(400))).collect();
    pair.rig.write("large", large);
    call(&["submit", "--quiet", "large"]).expect(0);
    call(&["wait", "last", "--timeout", "50s", "--quiet"]).expect(0);
    assert_eq!(call(&["jobs", "--json"]).events().len(), 2);
    let tunnel = pair.rig.laboro(["tunnel", "dwork", "--access", "b.toml"]).start();
    until("the tunnel is open", || tunnel.out().contains(", at hub "));
    let address = tunnel.out().split([' ', ',']).nth(2).unwrap().to_owned();
    pair.rig.laboro(["dwork", "-s", &address, "create", "task"]).run().expect(0);
    // Commands on the machine of the hub that follows know where to go, too.
    let here = pair.rig.laboro(["jobs", "--json", "--dir", "b"]).run();
    assert_eq!(here.expect(0).events().len(), 3);
    assert!(!pair.leads(1));
    drop(worker);
}
