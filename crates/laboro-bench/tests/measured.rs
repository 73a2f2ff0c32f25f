//! Every load generator runs to its end, against the program that was built beside it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// `laboro-bench` with the program beside it; a build of the workspace makes both.
fn bench<'a>(words: impl IntoIterator<Item = &'a str>) -> Output {
    let this = Path::new(env!("CARGO_BIN_EXE_laboro-bench"));
    let program = this.with_file_name("laboro");
    assert!(program.exists(), "build it first: cargo build -p laboro");
    Command::new(this).arg("--program").arg(program).args(words).output().unwrap()
}

fn cases(ran: &Output) -> Vec<Value> {
    let words = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}: {words}", ran.status);
    let text = str::from_utf8(&ran.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn assert_measured(cases: &[Value]) {
    for case in cases {
        assert!(case["tasks_per_s"].as_f64().unwrap() > 0.0, "{case}");
        assert!(case["p99_us"].as_f64() >= case["p50_us"].as_f64(), "{case}");
    }
}

#[test]
fn a_native_hub_can_be_measured() {
    let ran = bench(["native", "--rates", "-n", "2000", "-j", "2", "--json"]);
    let cases = cases(&ran);
    assert_eq!(cases.len(), 4);
    assert_measured(&cases);
}

#[test]
fn what_waiting_tasks_weigh_can_be_measured() {
    let ran = bench(["native", "-n", "1000", "-j", "2", "--json"]);
    let weights = cases(&ran).iter().filter(|case| case["memory_bytes"].is_number()).count();
    assert_eq!(weights, 3);
}

#[test]
fn a_dwork_hub_can_be_measured() {
    let ran = bench(["dwork", "--tasks", "200", "--memory-tasks", "0", "--json"]);
    let measured = cases(&ran);
    assert_eq!(measured.len(), 19);
    assert_measured(&measured);
    let ran = bench(["dwork", "--graphs", "--tasks", "100", "--json"]);
    assert_eq!(cases(&ran).len(), 5);
}

#[test]
fn a_fuq_foreman_can_be_measured() {
    let ran = bench(["fuq", "--tasks=50", "--tasks=200", "--at-least=100", "--json"]);
    let cases = cases(&ran);
    assert_eq!(cases.iter().map(|case| &case["n"]).collect::<Vec<_>>(), [100, 200]);
    assert_measured(&cases);
}

#[test]
fn a_runexp_manager_can_be_measured() {
    let ran = bench(["runexp", "--jobs", "20", "--slots", "2", "--json"]);
    assert_eq!(cases(&ran).len(), 2);
}

#[test]
fn a_server_and_a_proxy_of_libzmq_can_be_compared() {
    let python = python();
    let compare = ["--compare", python.to_str().unwrap(), "--runs", "1"];
    let ran = bench(["mq", "--seconds", "0.05", "--json"].into_iter().chain(compare));
    let cases = cases(&ran);
    assert_eq!(cases.len(), 12);
    assert_measured(&cases);
    for pair in cases.chunks(2) {
        for (case, broker) in pair.iter().zip(["rrmq", "zmq_proxy"]) {
            assert!(case["case"].as_str().unwrap().starts_with(broker), "{case}");
            assert!(case["hub_cpu_us_per_task"].as_f64().unwrap() > 0.0, "{case}");
        }
    }
}

#[test]
fn a_case_of_nothing_is_refused() {
    let ran = bench(["dwork", "--tasks", "0"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("there is nothing to measure"));
}

/// The one that `./check` made, with all that its tests need.
fn python() -> PathBuf {
    if let Some(named) = std::env::var_os("LABORO_PYTHON") {
        return named.into();
    }
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/python/bin/python3");
    if made.exists() { made } else { "python3".into() }
}
