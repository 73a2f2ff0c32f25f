//! `laboro bench mq` runs to its end, against our server and against libzmq's proxy.

use crate::rig::{Rig, python};

#[test]
fn a_server_and_a_proxy_of_libzmq_can_be_compared() {
    let rig = Rig::new();
    let python = python();
    let compare = ["--compare", python.to_str().unwrap(), "--runs", "1"];
    let words = ["bench", "mq", "--seconds", "0.05", "--json"];
    let ran = rig.laboro(words.iter().chain(&compare)).run();
    ran.expect(0);
    let cases = ran.events();
    assert_eq!(cases.len(), 12);
    for pair in cases.chunks(2) {
        for (case, broker) in pair.iter().zip(["rrmq", "zmq_proxy"]) {
            assert!(case["case"].as_str().unwrap().starts_with(broker), "{case}");
            assert!(case["tasks_per_s"].as_f64().unwrap() > 0.0, "{case}");
            assert!(case["p99_us"].as_f64() >= case["p50_us"].as_f64(), "{case}");
            assert!(case["hub_cpu_us_per_task"].as_f64().unwrap() > 0.0, "{case}");
        }
    }
}
