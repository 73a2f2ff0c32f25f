//! The metrics of a hub, read by a real Prometheus, and everything that asks for them by name: the manual, the Grafana
//! dashboard, the alert rules.

use crate::rig::{LABORO, Rig, not_tried, python, until};
use std::path::PathBuf;
use std::process::Command;

#[test]
fn prometheus_reads_the_metrics_and_the_rules_ask_for_what_there_is() {
    if Command::new("promtool").arg("--version").output().is_err() {
        not_tried("there is no Prometheus");
        return;
    }
    let rig = Rig::new();
    let words = ["hub", "--dir=hub", "--http=127.0.0.1:0", "--native=127.0.0.1:0"];
    let hub = rig.laboro(words).start();
    until("the hub listens", || hub.out().contains("native on"));
    let out = hub.out();
    let address = out.lines().find_map(|line| line.strip_prefix("http on ")).unwrap();
    let _worker = rig.laboro(["worker", "--access=hub/access.toml", "-j", "1"]).start();
    let pool = ["pool", "add", "p", "--dir=hub", "--kind", "command", "-j", "1", "--list", "true"];
    rig.laboro(pool.into_iter().chain(["--cancel", "true", "--", "true"])).run().expect(0);
    rig.laboro(["submit", "--dir=hub", "--wait", "--", "true"]).run().expect(0);
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python());
    command.arg(here.join("tests/it/metrics/prometheus.py"));
    command.args([address, rig.dir().to_str().unwrap(), LABORO]);
    command.arg(here.join("../../docs"));
    let ran = rig.call(command).env("PYTHONDONTWRITEBYTECODE", "1").run();
    ran.expect(0);
    assert_eq!(ran.out().trim(), "good");
}
