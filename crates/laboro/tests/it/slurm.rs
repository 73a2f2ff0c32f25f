//! Slurm's commands by their own names, at a hub with a worker. The same scripts on a real Slurm, and the tools that
//! call these commands, are in `bench/slurm`.

use crate::rig::{Ran, until};
use crate::workers::hub::HubRig;

struct Cluster {
    hub: HubRig,
    _worker: crate::rig::Live,
}

impl Cluster {
    fn new() -> Cluster {
        let hub = HubRig::with(|settings| {
            settings.http = "127.0.0.1:0".parse().unwrap();
            settings.hooks.sendmail = settings.dir.join("sendmail").to_str().unwrap().to_owned();
            settings.hooks.allow_mail = vec!["@example.org".to_owned()];
        });
        hub.rig.laboro(["slurm", "install", "bin"]).run().expect(0);
        let worker = hub.worker("n1", &["-j", "4"]);
        Cluster { hub, _worker: worker }
    }

    fn sh(&self, line: &str) -> Ran {
        self.hub.sh(line)
    }

    fn says(&self, line: &str) -> String {
        self.hub.says(line)
    }

    fn until_over(&self) {
        until("nothing runs or waits", || self.says("squeue -h -t pd,r").is_empty());
    }
}

#[test]
fn an_array_of_a_script_with_its_own_options_writes_its_files() {
    let cluster = Cluster::new();
    let script = "#!/bin/bash\n#SBATCH --array=1-5:2%1 -J 'my fit' -t 5\n#SBATCH -o %x_%A_%a_%3a.txt\n\
                  echo $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT in $SLURM_JOB_NAME: $1\n\
                  [ $SLURM_ARRAY_TASK_ID != 3 ]\n";
    cluster.hub.rig.write("fit.sh", script);
    assert_eq!(cluster.says("sbatch fit.sh 'a b'"), "Submitted batch job 1");
    cluster.until_over();
    assert_eq!(cluster.hub.rig.read("my fit_1_5_005.txt"), "5 of 3 in my fit: a b\n");
    assert_eq!(
        cluster.says("sacct -XnP -o JobID,State,ExitCode -j 1"),
        "1_1|COMPLETED|0:0\n1_3|FAILED|1:0\n1_5|COMPLETED|0:0"
    );
    assert_eq!(cluster.says("squeue -h -t all -j 1_3 -o '%i %t %j|%N'"), "1_3 F my fit|n1");
    // Each element has a number of its own, and can be meant by it.
    let raw = cluster.says("sacct -XnP -o JobIDRaw -j 1_5");
    assert_eq!(cluster.says(&format!("sacct -XnP -o JobID,JobName -j {raw}")), "1_5|my fit");
}

#[test]
fn jobs_wait_for_what_their_dependencies_say() {
    let cluster = Cluster::new();
    let lines = [
        "sbatch --parsable -o a.txt --wrap 'exit 3'",
        "sbatch --parsable -o ok.txt -d afterok:1 --wrap 'echo ran'",
        "sbatch --parsable -o any.txt -d afterany:1 --wrap 'echo ran'",
        "sbatch --parsable -o not.txt -d afternotok:1 --wrap 'echo ran'",
        "sbatch --parsable -o good.txt --wrap 'echo ran'",
        "sbatch --parsable -o never.txt -d afternotok:5 --wrap 'echo ran'",
    ];
    for (at, line) in lines.iter().enumerate() {
        assert_eq!(cluster.says(line), (at + 1).to_string());
    }
    let states = || cluster.says("sacct -XnP -o State -j 1,2,3,4,5,6").replace('\n', " ");
    let uid = rustix::process::getuid().as_raw();
    let wanted = format!("FAILED PENDING COMPLETED COMPLETED COMPLETED CANCELLED by {uid}");
    until("all came to what they should", || states() == wanted);
    let files =
        ["ok.txt", "any.txt", "not.txt", "never.txt"].map(|file| cluster.hub.rig.read(file));
    assert_eq!(files, ["", "ran\n", "ran\n", ""]);
    assert_eq!(cluster.says("squeue -h -o '%i %r'"), "2 DependencyNeverSatisfied");
    cluster.says("scancel 2");
    assert_eq!(cluster.says("squeue -h"), "");
}

#[test]
fn the_commands_work_inside_a_job_too() {
    let cluster = Cluster::new();
    let line = "sbatch -n2 -o outer.txt --wrap 'srun -o step_%t.txt sh -c \"echo \\$SLURM_PROCID\"; \
                sbatch --parsable -o inner.txt --wrap \"echo inner\"'";
    assert_eq!(cluster.says(line), "Submitted batch job 1");
    until("the inner one is over", || cluster.hub.rig.read("inner.txt") == "inner\n");
    assert_eq!(cluster.hub.rig.read("outer.txt"), "2\n");
    assert_eq!(cluster.hub.rig.read("step_1.txt"), "1\n");
    // Outside of a job, srun is one of its own, and its status is the command's.
    let ran = cluster.sh("srun -n2 sh -c 'echo $SLURM_PROCID; exit 4'");
    ran.expect(4);
    let mut lines: Vec<&str> = std::str::from_utf8(&ran.out).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0", "1"]);
}

#[test]
fn a_jobs_access_is_its_own_and_ends_with_it() {
    let cluster = Cluster::new();
    let own = std::fs::read_to_string(cluster.hub.access()).unwrap();
    let token = own.lines().find(|line| line.starts_with("token")).unwrap();
    // It keeps what it was given, shows what it may do with it, and waits.
    let line = "sbatch -o job.txt --wrap 'stat -c %a $LABORO_ACCESS; cp $LABORO_ACCESS kept.toml; \
                $L workers eject n1 --reason x; touch ready; while [ ! -e go ]; do sleep 0.05; done'";
    cluster.says(&format!("L={} {line}", crate::rig::LABORO));
    until("it runs", || cluster.hub.rig.at("ready").exists());
    let kept = cluster.hub.rig.read("kept.toml");
    assert!(!kept.contains(token) && kept.contains("role = \"submit\""), "{kept}");
    assert!(
        cluster.hub.rig.read("job.txt").starts_with("600\n"),
        "{}",
        cluster.hub.rig.read("job.txt")
    );
    assert!(
        cluster.hub.rig.read("job.txt").contains("role admin"),
        "{}",
        cluster.hub.rig.read("job.txt")
    );
    let with_it = "LABORO_ACCESS=kept.toml squeue -h -o %i";
    assert_eq!(cluster.says(with_it), "1");
    cluster.hub.rig.write("go", "");
    cluster.until_over();
    let ran = cluster.sh(with_it);
    ran.expect(1);
    assert!(ran.err().contains("job 1 has ended"), "{}", ran.err());
}

#[test]
fn a_job_is_warned_before_its_time_is_over_and_is_ended_then() {
    let cluster = Cluster::new();
    let line = "sbatch -t 0-0:0:4 --signal=B:USR1@3 -o w.txt --wrap \
                'trap \"echo warned\" USR1; while :; do sleep 0.05; done'";
    cluster.says(line);
    until("it is over", || cluster.says("sacct -XnP -o State -j 1") == "TIMEOUT");
    assert_eq!(cluster.hub.rig.read("w.txt"), "warned\n");
}

#[test]
fn what_starts_a_job_is_not_counted_as_its_memory() {
    let cluster = Cluster::new();
    // It waits for the script, to warn it.
    cluster.says(
        "sbatch -W --mem=10M -t 1 --signal=B:USR1@10 -o m.txt --wrap 'sleep 1; echo through'",
    );
    assert_eq!(cluster.hub.rig.read("m.txt"), "through\n");
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name() {
    let cluster = Cluster::new();
    for (line, words) in [
        (
            "srun -N 2 true",
            "srun: error: --nodes cannot be honoured: srun starts its tasks on one worker",
        ),
        (
            "SLURM_JOB_ID=1 SLURM_JOB_NUM_NODES=2 srun true",
            "this job has 2 nodes, and a step runs on the first",
        ),
        ("sbatch --colour --wrap true", "sbatch: error: unrecognized option '--colour'"),
        ("sbatch --begin=+2h --wrap true", "Invalid time specification: +2h"),
        ("sbatch -p nowhere --wrap true", "invalid partition specified: nowhere"),
        ("sbatch -d afterok:77 --wrap true", "Invalid job id specified"),
        ("sbatch -d after:1 --wrap true", "Invalid job id specified"),
        ("sbatch bin/../hub/access.toml", "does not look like a batch script"),
        ("squeue -o %Y", "there is no column %Y here"),
        ("squeue -j 77", "Invalid job id specified"),
        ("scancel --signal=USR1 1", "--signal=USR1 cannot be honoured"),
        ("scontrol reboot", "invalid keyword: reboot"),
        ("sacct -o Colour", "Invalid field requested"),
    ] {
        let ran = cluster.sh(line);
        ran.expect(1);
        assert!(ran.err().contains(words), "{line}: {}", ran.err());
    }
    assert_eq!(
        cluster.says("sbatch -A me --mail-type=END --qos=high --hold --parsable --wrap true"),
        "1"
    );
    assert_eq!(cluster.says("squeue -h -o '%i %t %r'"), "1 PD JobHeldUser");
    cluster.says("sbatch --begin=now+1hour --wrap true");
    assert_eq!(cluster.says("squeue -h -j 2 -o '%i %t %r'"), "2 PD BeginTime");
    cluster.says("scontrol release 1");
    cluster.says("scontrol release 2");
    cluster.until_over();
    assert!(cluster.says("scontrol show job 1").contains("JobState=COMPLETED"));
    assert_eq!(cluster.says("sinfo -h -o '%P %D %t'"), "default* 1 idle");
    // Links are not put over what is there.
    cluster.hub.rig.write("taken/sbatch", "");
    let ran = cluster.hub.rig.laboro(["slurm", "install", "taken"]).run();
    ran.expect(2).says("is there already");
}

#[test]
fn mail_is_sent_when_a_job_ends_where_the_hub_allows_it() {
    let cluster = Cluster::new();
    let rig = &cluster.hub.rig;
    rig.write("hub/sendmail", "#!/bin/sh\n{ echo \"$3\"; cat; } >> \"${0%/*}/mails\"\n");
    std::fs::set_permissions(
        rig.at("hub/sendmail"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let both = "sbatch --mail-user=ann@example.org --mail-type=BEGIN,END --parsable --wrap";
    assert_eq!(cluster.says(&format!("{both} true")), "1");
    let failed = "sbatch --mail-user=bob@example.org --mail-type=FAIL --parsable --wrap";
    assert_eq!(cluster.says(&format!("{failed} true")), "2");
    cluster.until_over();
    assert_eq!(cluster.says(&format!("{failed} 'exit 3'")), "3");
    let mails = || rig.read("hub/mails");
    let has_told = |words: &str| mails().contains(words);
    until("the end is mailed", || has_told("ann@") && has_told("job 1 (wrap) is done"));
    until("the failure is mailed", || has_told("bob@") && has_told("job 3 (wrap) failed"));
    assert!(!mails().contains("job 2"), "it did not fail");
    // What cannot be mailed is told, and the job is there.
    let told = cluster.sh("sbatch --mail-user=ann --mail-type=END --parsable --wrap true");
    told.expect(0).says("no mail: \"ann\" is not a mail address");
    cluster.sh("sbatch --mail-type=ALL --wrap true").expect(0).says("--mail-user says to whom");
    let begin = "sbatch --mail-type=BEGIN --mail-user=ann@example.org --wrap true";
    cluster.sh(begin).expect(0).says("for END and FAIL only");
    rig.laboro(["access", "--dir", "hub", "--role=submit", "--name=eve", "-o", "eve.toml"])
        .run()
        .expect(0);
    // As on another machine, which has no socket of the hub.
    let text: String = rig
        .lines("eve.toml")
        .iter()
        .filter(|line| !line.starts_with("socket"))
        .map(|line| format!("{line}\n"))
        .collect();
    std::fs::write(rig.at("eve.toml"), text).unwrap();
    let eve = "LABORO_ACCESS=eve.toml sbatch --mail-type=END --parsable --mail-user=eve@elsewhere.example --wrap true";
    let told = cluster.sh(eve);
    told.expect(0).says("no mail: on_end: the hub does not mail eve@elsewhere.example");
    assert!(!told.out().trim().is_empty());
}
