//! Our runner, where it is a matter of this machine: what runs the scripts, how much memory there is, and how it
//! comes to its end.

use super::port;
use crate::rig::{Rig, not_tried, until};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;

#[test]
fn octave_runs_what_matlab_would() {
    let rig = Rig::new();
    rig.write("runs/a.m", "disp('RES:ok')\n");
    rig.write(
        "bin/octave",
        "#!/bin/sh\necho \"octave $1\"; sed -n \"s/disp('\\(.*\\)')/\\1/p\" \"$2\"\n",
    );
    std::fs::set_permissions(rig.at("bin/octave"), PermissionsExt::from_mode(0o755)).unwrap();
    let manager = rig.manage(&[]);
    let from = format!("runexp://127.0.0.1:{}", port(&manager));
    let path = format!("{}:/usr/bin:/bin", rig.at("bin").display());
    let runner = rig.laboro(["worker", "--from", &from, "-j", "1", "--host", "r1"]);
    runner.env("PATH", &path).run().expect(0);
    manager.wait().expect(0);
    let result = rig.read("outputs/a.res");
    let command = result.lines().nth(3).unwrap();
    assert!(command.starts_with("> octave -qf '/"), "{result}");
    assert!(command.ends_with("/script_1.m'"), "{result}");
    assert!(result.ends_with("octave -qf\nRES:ok\n"), "{result}");
}

/// A `matlab` that is this script, for a runner that runs what is in `runs`. Gives the result of `a`.
fn with_matlab(rig: &Rig, matlab: &str, path: &str, status: i32) -> String {
    rig.write("bin/matlab", matlab);
    std::fs::set_permissions(rig.at("bin/matlab"), PermissionsExt::from_mode(0o755)).unwrap();
    let manager = rig.manage(&[]);
    let from = format!("runexp://127.0.0.1:{}", port(&manager));
    let path = format!("{}:{path}", rig.at("bin").display());
    let runner = rig.laboro(["worker", "--from", &from, "-j", "1", "--host", "r1"]);
    runner.env("PATH", &path).run().expect(0);
    manager.wait().expect(status);
    rig.read("outputs/a.res")
}

/// `run` would change to the directory of the script.
#[test]
fn matlab_is_told_where_the_script_is_and_stays_where_the_runner_is() {
    let rig = Rig::new();
    rig.write("runs/a.m", "disp('RES:ok')\n");
    let matlab = "#!/bin/sh\nfor last; do :; done\n\
         dir=${last#try, addpath(\\'}; dir=${dir%%\\'*}\n\
         script=${last#*); }; script=${script%%;*}\n\
         pwd -P; echo \"$1 $2 $3 $4 $5\"; echo \"${last##*; }\"\n\
         sed -n \"s/disp('\\(.*\\)')/\\1/p\" \"$dir/$script.m\"\n";
    let result = with_matlab(&rig, matlab, "/usr/bin:/bin", 0);
    let printed: Vec<&str> = result.lines().rev().take(4).collect();
    let dir = std::fs::canonicalize(rig.dir()).unwrap();
    let options = "-singleCompThread -nodisplay -nodesktop -nosplash -r";
    assert_eq!(printed, ["RES:ok", "exit(0)", options, dir.to_str().unwrap()], "{result}");
}

/// MATLAB is not to be had here, but Octave understands the statement too.
#[test]
fn a_matlab_script_calls_functions_beside_the_runner_and_errors_have_a_stack() {
    let path = std::env::var("PATH").unwrap();
    if !std::env::split_paths(&path).any(|dir| dir.join("octave").is_file()) {
        return not_tried("what MATLAB is told (octave is not installed)");
    }
    let rig = Rig::new();
    let matlab = "#!/bin/sh\nfor last; do :; done\nexec octave -qf --eval \"$last\"\n";
    rig.write("myidea.m", "function r = myidea(x)\nr = 2 * x;\nend\n");
    rig.write("runs/a.m", "acc = myidea(5);\nfprintf('%d\\n', acc);\nfprintf('RES:done\\n');\n");
    let result = with_matlab(&rig, matlab, &path, 0);
    assert!(result.contains("exited with status 0\n"), "{result}");
    assert!(result.ends_with("\n\n10\nRES:done\n"), "{result}");
    rig.write("myidea.m", "function r = myidea(x)\nerror('no idea of %d', x);\nend\n");
    rig.write("runs/a.m", "disp('RES: failed')\nmyidea(5);\n");
    std::fs::remove_file(rig.at("outputs/a.res")).unwrap();
    let result = with_matlab(&rig, matlab, &path, 1);
    assert!(result.contains("exited with status 256\n"), "{result}");
    assert!(result.contains("Failed: no idea of 5\nin myidea at "), "{result}");
    assert!(result.contains("/myidea.m line 2\nin script_1 at "), "{result}");
}

#[test]
fn where_there_is_neither_the_job_has_failed_and_says_why() {
    let rig = Rig::new();
    rig.write("runs/a.m", "disp('RES:ok')\n");
    let manager = rig.manage(&[]);
    let from = format!("runexp://127.0.0.1:{}", port(&manager));
    let runner = rig.laboro(["worker", "--from", &from, "-j", "1"]);
    runner.env("PATH", "/nowhere").run().expect(0);
    manager.wait().expect(1);
    let result = rig.read("outputs/a.res");
    assert!(result.starts_with("runexp summary: failure\n"), "{result}");
    assert!(result.contains("octave"), "{result}");
}

#[test]
fn a_script_is_over_when_all_that_it_started_has_printed() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "(sleep 0.3; echo late; echo RES:ok) &\necho early\n");
    rig.write("runs/b.sh", "sleep 1000 > /dev/null 2>&1 &\necho RES:ok\n");
    let manager = rig.manage(&[]);
    rig.runner(&port(&manager), "2").wait().expect(0);
    manager.wait().expect(0);
    let result = rig.read("outputs/a.res");
    assert!(result.ends_with("\n\nearly\nlate\nRES:ok\n"), "{result}");
}

#[test]
fn names_that_cannot_be_said_and_managers_without_a_host_are_refused() {
    let rig = Rig::new();
    for host in ["", "a b", "\u{fc}", ".x"] {
        let call = rig.laboro(["worker", "--from", "runexp://127.0.0.1:1", "--host", host]).run();
        call.expect(2).says("letters, digits, `-` and `_`");
    }
    let from = ["worker", "--from", "runexp://127.0.0.1:1"];
    rig.laboro(from.iter().chain(&["--mem", "abc"])).run().expect(2).says("--mem: ");
    let call = rig.laboro(["worker", "--from", "runexp://:7001"]).run();
    call.expect(2).says("write SCHEME://HOST:PORT");
}

#[test]
fn without_enough_memory_no_job_is_asked_for() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "echo RES:ok\n");
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let from = format!("runexp://127.0.0.1:{port}");
    let poor = rig.laboro(["worker", "--from", &from, "-j", "1", "--mem", "900000g"]).start();
    until("it is connected", || poor.err().contains("connected as"));
    // Were it to take the job, this one would have to wait for it.
    rig.runner(&port, "1").wait().expect(0);
    assert!(rig.read("outputs/a.res").contains("[r1] Running a"));
    drop(poor);
    manager.wait().expect(0);
}

#[test]
fn a_stopped_runner_ends_all_that_it_started_and_gives_its_job_back() {
    let rig = Rig::new();
    rig.write(
        "runs/a.sh",
        "echo $$ > pid; (sleep 1000 & echo $! > child; wait) & wait; echo RES:ok\n",
    );
    let manager = rig.manage(&[]);
    let port = port(&manager);
    let from = format!("runexp://127.0.0.1:{port}");
    let words = ["worker", "--from", &from, "-j", "1", "--drain", "0s", "--grace", "100ms"];
    let runner = rig.laboro(words).start();
    until("it runs", || !rig.read("child").is_empty());
    runner.signal(Signal::TERM);
    runner.wait().expect(0);
    for file in ["pid", "child"] {
        let pid = rig.read(file).trim().to_owned();
        until("its processes are gone", || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
    rig.write("runs/a.sh", "");
    // The manager has read the script at its start; the same one is handed out again.
    let second = rig.other("runner.py", &[&port, "1", "py", "__defaulte__", "--take-only"]);
    second.wait().expect(0);
    manager.signal(Signal::TERM);
    manager.wait().expect(130);
}

#[test]
fn the_last_line_counts_however_much_was_printed_before() {
    let rig = Rig::new();
    rig.write("runs/a.sh", "head -c 1500000 /dev/zero | tr '\\0' x; echo; echo RES:ok\n");
    let manager = rig.manage(&[]);
    let from = format!("runexp://127.0.0.1:{}", port(&manager));
    rig.laboro(["worker", "--from", &from, "-j1", "--output-limit=1M"]).run().expect(0);
    manager.wait().expect(0);
    let result = rig.read("outputs/a.res");
    assert!(
        result.ends_with("x\n[451432 more bytes left out]\n"),
        "{}",
        &result[result.len() - 99..]
    );
}

#[test]
fn an_ejected_runner_says_goodbye() {
    use std::io::{Read, Write};
    let rig = Rig::new();
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let runner = rig.runner(&door.local_addr().unwrap().port().to_string(), "2");
    let (mut line, _) = door.accept().unwrap();
    let hears = |line: &mut std::net::TcpStream| {
        let mut heard = [0; 64];
        let count = line.read(&mut heard).unwrap();
        String::from_utf8_lossy(&heard[..count]).into_owned()
    };
    assert_eq!(hears(&mut line), "SALUTON; MI r1");
    for (word, answer) in [
        ("VERSIO 1.3", "KOMPRENAS"),
        ("ALIGI __defaulte__", "JES"),
        ("", "PETO"),
        ("ELIRI", "FINO ANKAU"),
        ("", ""),
    ] {
        line.write_all(word.as_bytes()).unwrap();
        assert_eq!(hears(&mut line), answer);
    }
    runner.wait().expect(3).says("the manager refuses this worker").says("ejected");
}

#[test]
fn another_version_is_refused_with_words() {
    use std::io::{Read, Write};
    let rig = Rig::new();
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = door.local_addr().unwrap().port().to_string();
    let runner = rig.runner(&port, "1");
    let (mut line, _) = door.accept().unwrap();
    let mut heard = [0; 64];
    let count = line.read(&mut heard).unwrap();
    assert_eq!(&heard[..count], b"SALUTON; MI r1");
    line.write_all(b"VERSIO 1.4").unwrap();
    assert_eq!(line.read(&mut heard).unwrap(), 0, "it leaves without a word");
    runner.wait().expect(3).says("the manager speaks version 1.4, this runner 1.3");
    let from = format!("runexp://127.0.0.1:{port}");
    let words = ["worker", "--from", &from, "-j1", "--host=r1", "--accept-version=1.4"];
    let _runner = rig.laboro(words).start();
    let (mut line, _) = door.accept().unwrap();
    assert!(line.read(&mut heard).unwrap() > 0);
    line.write_all(b"VERSIO 1.4").unwrap();
    let count = line.read(&mut heard).unwrap();
    assert_eq!(&heard[..count], b"KOMPRENAS");
}
