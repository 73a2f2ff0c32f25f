//! `hq` as Nextflow's executor and aiida-hyperqueue call it, at a hub with a worker. The second of them itself is tried in
//! `python/tests/test_tools.py`.

use crate::rig::{Live, Ran, until};
use crate::workers::hub::HubRig;
use serde_json::{Value, json};

struct Queue {
    hub: HubRig,
    _worker: Live,
}

impl Queue {
    fn new() -> Queue {
        let hub = HubRig::with(|settings| {
            settings.http = "127.0.0.1:0".parse().unwrap();
        });
        hub.rig.laboro(["hq", "install", "bin"]).run().expect(0);
        let worker = hub.worker("n1", &["-j", "2", "--with", "gpu=1"]);
        Queue { hub, _worker: worker }
    }

    fn sh(&self, line: &str) -> Ran {
        self.hub.sh(line)
    }

    fn says(&self, line: &str) -> String {
        self.hub.says(line)
    }
}

#[test]
fn nextflow_submits_lists_and_cancels() {
    let queue = Queue::new();
    let dir = queue.hub.rig.dir().to_str().unwrap().to_owned();
    let script = |name: &str, body: &str| {
        let head = format!(
            "#!/bin/bash -ue\n#HQ --name nf-{name}\n#HQ --log '{dir}/{name}.log' --cwd '{dir}'\n\
             #HQ --resource mem=33554432 --cpus 1\n#HQ --time-limit 3600sec --resource gpus=1\n"
        );
        queue.hub.rig.write(&format!(".command.{name}"), head + body);
    };
    script("good", "echo $LABORO_SLOTS slot, gpu $LABORO_GPU\necho err >&2\n");
    script("bad", "exit 3\n");
    script("long", "sleep 1000\n");
    for (at, name) in ["good", "bad", "long"].iter().enumerate() {
        let line = format!("hq --output-mode=quiet submit --directives=file .command.{name}");
        assert_eq!(queue.says(&line), (at + 1).to_string());
    }
    let list = || queue.says("hq --output-mode=quiet job list --all");
    until("the last one runs", || list() == "1 FINISHED\n2 FAILED\n3 RUNNING");
    assert_eq!(queue.hub.rig.read("good.log"), "1 slot, gpu 0\nerr\n");
    assert_eq!(queue.says("hq --output-mode=quiet job list"), "3 RUNNING");
    queue.says("hq job cancel 1,3");
    until("it is cancelled", || list() == "1 FINISHED\n2 FAILED\n3 CANCELED");
    assert_eq!(queue.says("hq --output-mode=quiet job list"), "");
}

#[test]
fn aiida_submits_lists_and_cancels() {
    let queue = Queue::new();
    queue.hub.rig.write(
        "_aiidasubmit.sh",
        "#!/bin/bash\n#HQ --name=\"aiida 12\"\n#HQ --stdout=_out.txt\n#HQ --stderr=_err.txt\n\
         #HQ --time-request=60s\n#HQ --time-limit=60s\n#HQ --cpus=2\n#HQ --resource mem=64\n\n\
         echo hello from $PWD; echo trouble >&2; until [ -e go ]; do sleep 0.05; done\n",
    );
    let submitted = queue.says("hq submit --output-mode=json _aiidasubmit.sh");
    assert_eq!(serde_json::from_str::<Value>(&submitted).unwrap(), json!({ "id": 1 }));
    assert_eq!(queue.says("hq submit -- sleep 1000"), "Job submitted successfully, job ID: 2");
    let list = || -> Value {
        let text = queue.says("hq job list --filter waiting,running --output-mode=json");
        serde_json::from_str(&text).unwrap()
    };
    until("the first runs", || list()[0]["task_stats"]["running"] == 1);
    let waits = json!({ "running": 0, "finished": 0, "failed": 0, "canceled": 0, "waiting": 1 });
    let second = json!({
        "id": 2, "name": "sleep", "task_count": 1, "task_stats": waits, "is_open": false
    });
    assert_eq!((&list()[0]["name"], &list()[1]), (&json!("aiida 12"), &second));
    queue.hub.rig.write("go", "");
    until("only the second is left", || list()[0]["id"] == 2);
    let dir = queue.hub.rig.dir().canonicalize().unwrap();
    assert_eq!(queue.hub.rig.read("_out.txt"), format!("hello from {}\n", dir.display()));
    assert_eq!(queue.hub.rig.read("_err.txt"), "trouble\n");
    assert_eq!(queue.says("hq job cancel 2"), "Job 2 canceled (1 canceled, 0 already finished)");
    until("nothing is left", || list() == json!([]));
    let info: Value =
        serde_json::from_str(&queue.says("hq job info 1 --output-mode json")).unwrap();
    assert_eq!(info[0]["task_stats"]["finished"], 1);
    assert!(queue.says("hq job list --all").contains("| 2  | sleep    | CANCELED | 1     |"));
}

#[test]
fn what_hq_cannot_do_here_is_refused_by_name() {
    let queue = Queue::new();
    for (line, words) in [
        ("hq submit --array 1-3 -- true", "--array cannot be honoured"),
        ("hq submit --colour 1 -- true", "unrecognized option"),
        ("hq submit --cpus all -- true", "--cpus=all"),
        ("hq submit --time-limit 90 -- true", "`90` is not a time"),
        ("hq submit --stdout '%{JOB_ID}.out' -- true", "--stdout=%{JOB_ID}.out"),
        ("hq submit --directives=file none.sh", "none.sh cannot be read"),
        ("hq submit --resource gpus -- true", "write NAME=AMOUNT"),
        ("hq --server-dir x job list", "LABORO_DIR"),
        ("hq worker list", "`hq worker` is not supported"),
        ("hq job wait 1", "`hq job wait` is not supported"),
        ("hq job cancel 7", "there is no job 7"),
        ("hq job cancel x", "not the number of a job"),
        ("hq --output-mode=xml job list", "cli, json or quiet"),
    ] {
        queue.sh(line).expect(1).says(words);
    }
    assert_eq!(queue.says("hq job list --all --output-mode json"), "[]");
}
