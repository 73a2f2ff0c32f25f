//! Packets survive the trip; nonsense is refused.

use super::*;

fn head() -> LaunchHead {
    LaunchHead {
        seq: 7,
        timeout: Some(Duration::from_millis(1500)),
        warning: Some(Warning { signal: 10, before: Duration::from_secs(1) }),
        grace: Duration::MAX,
        nice: Some(-5),
        umask: Some(0o77),
        cpus: vec![3, 70],
        limits: Limits { open_files: Some(64), ..Limits::default() },
        passed: [false, true, true],
        has_dir: true,
        awaits_release: true,
        argc: 2,
        envc: 0,
    }
}

fn requests() -> Vec<Vec<u8>> {
    vec![
        launch_packet(&head(), &Body::Inline(b"/tmp\0true\0x\0")),
        launch_packet(&head(), &Body::InMemory(1 << 21)),
        control_packet(&Request::Stop { seq: 1, grace: Duration::ZERO }),
        control_packet(&Request::StopAll { grace: Duration::from_secs(3) }),
        control_packet(&Request::Signal { seq: 9, signal: 10 }),
        control_packet(&Request::Recall),
        control_packet(&Request::Release { seq: 3 }),
    ]
}

#[test]
fn a_request_is_read_as_it_was_written() {
    for packet in requests() {
        let request = read_request(&packet).unwrap();
        assert_eq!(control_packet(&request), packet);
    }
    let packet = launch_packet(&head(), &Body::Inline(b"x\0"));
    let Some(Request::Launch(read, Body::Inline(b"x\0"))) = read_request(&packet) else {
        panic!("not the launch that was written");
    };
    // A grace beyond what the wire holds is cut to five hundred years.
    assert_eq!(LaunchHead { grace: Duration::MAX, ..read }, head());
}

#[test]
fn reports_are_read_one_after_the_other() {
    let usage = Usage { wall: Duration::from_millis(3), max_rss_kib: 9, ..Usage::default() };
    let reports = vec![
        Report::Ready,
        Report::Started { seq: 1, pid: 42, at: Duration::from_secs(5) },
        Report::NotStarted { seq: 2, reason: Reason::Invalid, message: "näh".into() },
        Report::Left { seq: 1 },
        Report::Ended { seq: 1, exit: Exit::Code(-1), usage },
        Report::Ended { seq: 3, exit: Exit::TimedOut { killed: true }, usage },
    ];
    let packet = reports.iter().fold(Vec::new(), write_report);
    let mut rest = packet.as_slice();
    let read: Vec<_> = std::iter::from_fn(|| read_report(&mut rest)).collect();
    assert_eq!(read, reports);
    assert!(rest.is_empty());
}

#[test]
fn a_cut_or_padded_packet_is_refused() {
    for packet in requests() {
        let inline = matches!(read_request(&packet), Some(Request::Launch(_, Body::Inline(_))));
        for len in 0..packet.len() {
            if !(inline && len >= packet.len() - 12) {
                assert_eq!(read_request(&packet[..len]), None, "{len} of {packet:?}");
            }
        }
        if !inline {
            assert_eq!(read_request(&[packet.as_slice(), &[0]].concat()), None);
        }
    }
    assert_eq!(read_request(&[99]), None);
    assert_eq!(read_report(&mut [99_u8].as_slice()), None);
}
