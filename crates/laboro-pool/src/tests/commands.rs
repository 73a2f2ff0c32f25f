//! What is run for a pool, and what is made of what it prints.

use super::*;
use crate::call::{Call, CallError, run_within};
use std::time::Duration;

fn place() -> Place {
    Place {
        dir: "/home/ada/.local/state/laboro/hub/pools/long".into(),
        hub: "ab12".into(),
        program: "/opt/lab tools/laboro".into(),
        access: "token = \"laboro_secret\"\n".into(),
    }
}

fn full(kind: PoolKind) -> PoolSpec {
    PoolSpec {
        memory_bytes: Some(8 << 30),
        resources: [("gpu".to_owned(), 2)].into(),
        tags: vec!["it's big".into()],
        time_limit_ms: Some(4 * 3_600_000),
        ..spec(kind)
    }
}

/// As it could be typed.
fn typed(call: &Call) -> String {
    call.words.join(" ")
}

#[test]
fn slurm_is_asked_for_what_the_pool_is() {
    let spec = PoolSpec { arguments: vec!["-p".into(), "long".into()], ..full(PoolKind::Slurm) };
    let place = place();
    let of = Scheduler::new(&spec, &place);
    let call = of.submit(17, None);
    let dir = &place.dir;
    assert_eq!(
        typed(&call),
        format!(
            "sbatch --parsable --job-name=laboro-long-ab12-17 --output={dir}/17.log --nodes=1 --ntasks=1 \
             --cpus-per-task=4 --mem=8192M --gres=gpu:2 --time=240 -p long"
        )
    );
    assert_eq!(
        call.stdin,
        format!(
            "#!/bin/sh\n# A worker of the pool long of a Laboro hub.\nexec '/opt/lab tools/laboro' worker --access \
             {dir}/access.toml --name long-17 --group default -j 4 --with memory=8589934592 --with gpu=2 \
             --with-tag 'it'\\''s big' --idle-timeout 300s --time-limit 14340s\n"
        )
    );
    assert_eq!(of.submitted("sbatch: something\n4711;cluster\n").unwrap(), "4711");
    let told = of.submitted("Your quota is over\n").unwrap_err();
    assert!(told.contains("quota is over"), "{told}");
    let printed = "4711|PD|laboro-long-ab12-17|Priority\n4712|R|x|None\n4713|CG|y|None\nrubbish\n4714|TO|z|None\n";
    let listed = of.listed(printed);
    let states: Vec<ListedState> = listed.iter().map(|one| one.state).collect();
    use ListedState::{Over, Queued, Running, Unknown};
    assert_eq!(states, [Queued, Running, Unknown, Over]);
    assert_eq!(listed[0].note.as_deref(), Some("Priority"));
    assert_eq!(typed(&of.cancel(&["4711".into(), "4712".into()])), "scancel 4711 4712");
}

#[test]
fn pbs_and_grid_engine_are_asked_in_their_own_words() {
    let (spec, place) = (full(PoolKind::Pbs), place());
    let of = Scheduler::new(&spec, &place);
    let call = typed(&of.submit(7, None));
    assert!(call.contains("-N lbab12-7"), "{call}");
    assert!(call.contains("-l select=1:ncpus=4:mem=8192mb:ngpus=2 -l walltime=04:00:00"), "{call}");
    let own = PoolSpec { arguments: vec!["-lselect=2:ncpus=8".into()], ..full(PoolKind::Pbs) };
    let call = typed(&Scheduler::new(&own, &place).submit(7, None));
    assert!(!call.contains("select=1"), "{call}");
    assert_eq!(of.submitted("123.pbs-server\n").unwrap(), "123.pbs-server");
    let printed = "Job Id: 123.pbs\n    Job_Name = lbab12-7\n    job_state = Q\n    comment = Not Running: no nodes\n\n\
                   Job Id: 124.pbs\n    Job_Name = x\n    job_state = R\nqstat: Unknown Job Id 125.pbs\n";
    let listed = of.listed(printed);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0].name.as_deref(), Some("lbab12-7"));
    assert_eq!(listed[0].note.as_deref(), Some("Not Running: no nodes"));
    assert_eq!(listed[1].state, ListedState::Running);

    let spec = full(PoolKind::Sge);
    let of = Scheduler::new(&spec, &place);
    assert!(typed(&of.submit(7, None)).contains("-l h_rt=14400"));
    let printed = "<?xml version='1.0'?>\n<job_info><queue_info><job_list state=\"running\">\n\
                   <JB_job_number>9</JB_job_number><JB_name>lbab12-7</JB_name><state>r</state></job_list></queue_info>\
                   <job_info><job_list state=\"pending\"><JB_job_number>10</JB_job_number><JB_name>n</JB_name>\
                   <state>qw</state></job_list></job_info></job_info>";
    let states: Vec<ListedState> = of.listed(printed).iter().map(|one| one.state).collect();
    assert_eq!(states, [ListedState::Running, ListedState::Queued]);
}

#[test]
fn through_a_login_node_everything_is_quoted_once_and_the_token_comes_by_standard_input() {
    let spec = PoolSpec { via: Some("ssh:ada@login1".into()), ..full(PoolKind::Slurm) };
    let place = place();
    let of = Scheduler::new(&spec, &place);
    let prepare = of.prepare().unwrap();
    assert_eq!(prepare.words[6], "ada@login1");
    assert!(prepare.words[7].contains("umask 077"), "{}", prepare.words[7]);
    assert_eq!(prepare.stdin, place.access);
    let call = of.submit(3, None);
    assert!(call.words[7].starts_with("sbatch --parsable"), "{}", call.words[7]);
    assert!(call.stdin.contains("\"$HOME\"/.laboro/pools/ab12-long/access.toml"), "{}", call.stdin);
    for call in [&prepare, &call, &of.list(&[]), &of.cancel(&["1".into()])] {
        assert!(!typed(call).contains("laboro_secret"), "{call:?}");
    }
    let machines = PoolSpec { arguments: vec!["n1".into()], ..full(PoolKind::Ssh) };
    let of = Scheduler::new(&machines, &place);
    let call = of.submit(3, Some("n1"));
    assert!(call.stdin.contains("laboro_secret") && !typed(&call).contains("laboro_secret"));
    assert!(typed(&of.list(&["12@n1".into(), "1;reboot@n2".into()])).contains("kill -0 12"));
    assert!(!typed(&of.list(&["12@n1".into(), "1@n2;reboot".into()])).contains("reboot"));
}

fn sh(line: &str) -> Call {
    Call { words: vec!["sh".into(), "-c".into(), line.into()], ..Call::default() }
}

#[tokio::test]
async fn a_command_that_hangs_floods_or_fails_is_over_soon() {
    let long = Duration::from_secs(60);
    let heard = run_within(&Call { stdin: "hello".into(), ..sh("cat") }, long).await.unwrap();
    assert_eq!(heard, "hello");
    let told = run_within(&sh("echo no room >&2; exit 1"), long).await.unwrap_err().to_string();
    assert_eq!(told, "no room");
    // Its own child keeps the pipe open.
    let late = run_within(&sh("sleep 600 & sleep 600"), Duration::from_millis(100)).await;
    assert!(matches!(late, Err(CallError::Late { .. })), "{late:?}");
    let flood = run_within(&sh("yes"), long).await.unwrap_err().to_string();
    assert!(flood.contains("printed more"), "{flood}");
    let missing = Call { words: vec!["/no/such/sbatch".into()], ..Call::default() };
    let told = run_within(&missing, long).await.unwrap_err().to_string();
    assert!(told.contains("/no/such/sbatch"), "{told}");
}
