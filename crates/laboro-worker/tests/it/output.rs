//! Bytes in and out.

use std::fs;
use std::time::Duration;

use laboro_worker::{Capture, Ending, Launch, Reason, RunnerEvent, Stdin, WriteMode};

use crate::rig::{Dir, Life, Rig, command, shell, until};

#[test]
fn a_hundred_megabytes_come_through() {
    let mut rig = Rig::new();
    rig.runner.launch(command(1, &["head", "-c", "100000000", "/dev/zero"]));
    let (mut total, mut largest, mut code) = (0, 0, None);
    while code.is_none() {
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Output { bytes, .. } => {
                    total += bytes.len();
                    largest = largest.max(bytes.len());
                }
                RunnerEvent::Ended { ending, .. } => code = Some(ending),
                RunnerEvent::Started { .. } => {}
            }
        }
    }
    assert_eq!((code, total), (Some(Ending::Exited(0)), 100_000_000));
    assert!(largest <= 65536);
}

#[test]
fn any_bytes_come_through_each_on_its_stream() {
    let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n * 7 % 256) as u8).collect();
    let stdin = Stdin::Bytes(bytes.clone());
    let ended = Rig::new().run(Launch { stdin, ..shell(1, "tee /dev/stderr") });
    assert_eq!((ended.stdout.len(), ended.stderr.len()), (bytes.len(), bytes.len()));
    assert!(ended.stdout == bytes && ended.stderr == bytes);
}

#[test]
fn input_nobody_reads_is_no_trouble() {
    let stdin = Stdin::Bytes(vec![b'x'; 5 << 20]);
    let ended = Rig::new().run(Launch { stdin, ..command(1, &["true"]) });
    assert_eq!(ended.ending, Ending::Exited(0));
}

#[test]
fn no_input_is_an_end_at_once() {
    let ended = Rig::new().run(command(1, &["cat"]));
    assert_eq!((ended.ending, ended.stdout), (Ending::Exited(0), Vec::new()));
}

#[test]
fn files_are_read_written_and_appended_to_in_the_tasks_directory() {
    let dir = Dir::new("files");
    fs::write(dir.at("in"), "from a file\n").unwrap();
    fs::write(dir.at("out"), "old\n").unwrap();
    let mut rig = Rig::new();
    for mode in [WriteMode::Truncate, WriteMode::Append] {
        let ended = rig.run(Launch {
            dir: Some(dir.0.clone()),
            stdin: Stdin::File("in".into()),
            stdout: Capture::File("out".into(), mode),
            stderr: Capture::Null,
            ..shell(1, "cat; echo hidden >&2")
        });
        assert_eq!(ended.ending, Ending::Exited(0));
        assert!(ended.stdout.is_empty() && ended.stderr.is_empty());
    }
    assert_eq!(fs::read_to_string(dir.at("out")).unwrap(), "from a file\nfrom a file\n");
}

#[test]
fn both_streams_in_one_file_keep_what_the_other_wrote() {
    let dir = Dir::new("both");
    fs::write(dir.at("out"), "something old and longer\n").unwrap();
    let mut rig = Rig::new();
    let file = Capture::File("out".into(), WriteMode::Truncate);
    let ended = rig.run(Launch {
        dir: Some(dir.0.clone()),
        stdout: file.clone(),
        stderr: file,
        ..shell(1, "echo 1; echo 2 >&2; echo 3")
    });
    assert_eq!(ended.ending, Ending::Exited(0));
    assert_eq!(fs::read_to_string(dir.at("out")).unwrap(), "1\n2\n3\n");
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let mut rig = Rig::new();
    let stdin = Stdin::File("/no/such/input".into());
    let ended = rig.run(Launch { stdin, ..command(1, &["cat"]) }).ending;
    let Ending::NotStarted { reason: Reason::Redirect, message } = ended else {
        panic!("it has no input: {ended:?}");
    };
    assert!(message.starts_with("stdin /no/such/input: No such file"), "{message}");
    let stdout = Capture::File("/no/such/output".into(), WriteMode::Append);
    let ended = rig.run(Launch { stdout, ..command(1, &["true"]) }).ending;
    assert!(matches!(ended, Ending::NotStarted { reason: Reason::Redirect, .. }));
}

#[test]
fn a_named_pipe_without_a_writer_does_not_hold_up_the_launch() {
    let dir = Dir::new("fifo");
    let mut rig = Rig::new();
    let fifo = dir.at("fifo");
    rig.run(command(1, &["mkfifo", fifo.to_str().unwrap()]));
    rig.runner.launch(Launch { stdin: Stdin::File(fifo), ..command(2, &["cat"]) });
    assert_eq!(rig.finish(2).ending, Ending::Exited(0));
}

#[test]
fn a_consumer_that_stops_taking_stops_the_task_and_no_memory_grows() {
    let mut rig = Rig::new();
    rig.runner.launch(command(1, &["sh", "-c", "echo $$; exec cat /dev/zero"]));
    // The batch that tells of the start may hold output too.
    let (mut pid, mut taken) = (None, 0);
    while pid.is_none() {
        for event in rig.next() {
            match event {
                RunnerEvent::NoRoom { .. } | RunnerEvent::Room => {}
                RunnerEvent::Started { pid: started, .. } => pid = Some(started),
                RunnerEvent::Output { bytes, .. } => taken += bytes.len() as u64,
                RunnerEvent::Ended { ending, .. } => panic!("it ended: {ending:?}"),
            }
        }
    }
    let pid = pid.unwrap();
    // Nothing is taken from here on. Zeros never have to be waited for, so a sleeping cat waits
    // for room in its pipe.
    until("the task waits for its reader", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.contains("(cat) S")
    });
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap();
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
    // A write that still waits is not counted yet, though some of it was taken.
    let held = written.parse::<u64>().unwrap().saturating_sub(taken);
    assert!(held <= 1 << 20, "a pipe does not hold {held} bytes");
    // And one batch is bounded too, however much there is.
    let batch = rig.next();
    let size: usize = batch
        .iter()
        .map(
            |event| {
                if let RunnerEvent::Output { bytes, .. } = event { bytes.capacity() } else { 0 }
            },
        )
        .sum();
    assert!(size <= 4 << 20, "{size}");
}

#[test]
fn a_limit_of_time_holds_while_nobody_takes_events() {
    let dir = Dir::new("unattended");
    let mut rig = Rig::new();
    rig.runner.launch(Launch {
        dir: Some(dir.0.clone()),
        timeout: Some(Duration::from_secs(1)),
        ..shell(1, "echo $$ > tmp; mv tmp pid; exec cat /dev/zero")
    });
    until("it runs", || dir.at("pid").exists());
    let life = Life::of(&fs::read_to_string(dir.at("pid")).unwrap());
    until("it is ended", || life.is_over());
    assert_eq!(rig.finish(1).ending, Ending::TimedOut { killed: false });
}
