//! Starting, stopping, starting again.

use crate::rig::*;
use laboro_api::History;
use laboro_api::access::Access;
use laboro_hub::config::{DoorsThread, Listen, Settings};
use laboro_hub::listen::Dialect;
use laboro_hub::process::{RunningHub, start};
use laboro_journal::outputs::{Key, Streams};
use std::os::unix::fs::PermissionsExt;

#[test]
fn what_was_submitted_and_done_is_there_after_a_restart() {
    let dir = dir();
    let first = hub(&dir);
    let job = visit(async {
        let job = submit(&first.handle, 3).await;
        let mut worker = Worker::connect(&first.access, &first.access.token, "w").await;
        worker.is_welcome().await;
        let task = worker.task().await;
        worker.finish(&task, "hello").await;
        assert_eq!(done(&first.handle, job).await, 1);
        job
    });
    stop(first);

    let second = hub(&dir);
    visit(async {
        assert_eq!(done(&second.handle, job).await, 1);
        let key = Key { job: job.0, index: 1, attempt: 1 };
        assert_eq!(second.outputs.size(key, Streams::Both).await.unwrap(), 5);
        assert!(second.outputs.end(key).await.unwrap().is_some());
    });
    stop(second);
}

#[test]
fn charts_go_on_after_a_restart() {
    let dir = dir();
    let seconds = |hub: &RunningHub| {
        let client = client(hub, &hub.access.token);
        visit(async move { client.get::<History>("history").await.unwrap().seconds })
    };
    let first = hub(&dir);
    let mut known = seconds(&first);
    while known.is_empty() {
        known = seconds(&first);
    }
    stop(first);
    let second = hub(&dir);
    assert_eq!(seconds(&second)[0], known[0]);
    stop(second);
}

#[test]
fn a_second_hub_in_the_same_directory_is_refused_and_the_first_goes_on() {
    let dir = dir();
    let first = hub(&dir);
    let told = start(&settings(&dir)).unwrap_err().to_string();
    assert!(told.contains("is in use by process"), "{told}");
    visit(async {
        submit(&first.handle, 1).await;
        let access = Access::read(&Access::path_in(dir.path())).unwrap();
        assert_eq!(access, first.access, "its access file is as it was");
        connect(&access).await.unwrap();
    });
    stop(first);
    stop(hub(&dir));
}

#[test]
fn the_access_file_keeps_its_token_and_gets_the_new_address() {
    let dir = dir();
    let first = hub(&dir);
    let old = first.access.clone();
    stop(first);
    let second = hub(&dir);
    assert_eq!(second.access.token, old.token);
    assert_eq!(second.access.certificate, old.certificate);
    let read = Access::read(&Access::path_in(dir.path())).unwrap();
    assert_eq!(read.native, Some(second.native.unwrap().to_string()));
    stop(second);
}

#[test]
fn nothing_in_the_directory_can_be_read_by_others() {
    let parent = dir();
    let dir = parent.path().join("deep/hub");
    stop(start(&Settings { dir: dir.clone(), ..settings(&parent) }).unwrap());
    let mode = |name: &str| std::fs::metadata(dir.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(""), 0o700);
    for secret in ["tokens.toml", "access.toml", "tls.pem"] {
        assert_eq!(mode(secret), 0o600, "{secret}");
    }
    let exposed = dir.join("access.toml");
    // A directory that is there already stays as it is; what the hub makes in it is closed, and so is a store of
    // outputs that was left open.
    let mode_at =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open = parent.path().join("open");
    std::fs::create_dir_all(open.join("outputs")).unwrap();
    for path in [&open, &open.join("outputs")] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let hub = start(&Settings { dir: open.clone(), ..settings(&parent) }).unwrap();
    visit(async {
        submit(&hub.handle, 1).await;
        let mut worker = Worker::connect(&hub.access, &hub.access.token, "w").await;
        worker.is_welcome().await;
        let task = worker.task().await;
        worker.finish(&task, "hello").await;
    });
    stop(hub);
    assert_eq!(mode_at(&open), 0o755);
    let mut folders = vec![open];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode_at(&path) & 0o077, 0, "{} {:o}", path.display(), mode_at(&path));
            seen += 1;
            folders.extend(path.is_dir().then_some(path));
        }
    }
    assert!(seen > 8, "there were only {seen} files");
    std::fs::set_permissions(&exposed, std::fs::Permissions::from_mode(0o640)).unwrap();
    let told = start(&Settings { dir, ..settings(&parent) }).unwrap_err().to_string();
    assert!(told.contains("access.toml: other users can read it (mode 640)"), "{told}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let dir = dir();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let told =
        start(&Settings { dir: file.join("hub"), ..settings(&dir) }).unwrap_err().to_string();
    assert!(told.contains("file/hub: cannot create it"), "{told}");
}

#[test]
fn a_taken_port_is_named_with_its_door_and_the_directory_is_free_again() {
    let (one, other) = (dir(), dir());
    let first = hub(&one);
    let native = Listen::At(first.native.unwrap());
    let told = start(&Settings { native, ..settings(&other) }).unwrap_err().to_string();
    assert!(told.contains("native cannot listen on 127.0.0.1:"), "{told}");
    stop(hub(&other));
    stop(first);
}

#[test]
fn doors_say_where_they_are_and_may_be_left_out() {
    let dir = dir();
    let mut settings = settings(&dir);
    settings.native = Listen::Off;
    settings.door.push("fuq2=127.0.0.1:0,group=exp".parse().unwrap());
    let hub = start(&settings).unwrap();
    assert_eq!(hub.native, None);
    assert_eq!(hub.access.native, None);
    let door = &hub.doors[0];
    assert_eq!(door.dialect, Dialect::Fuq2);
    assert_ne!(door.address.port(), 0);
    assert_eq!(door.to_string(), format!("fuq2 on {}, group exp", door.address));
    stop(hub);

    settings.door[0].address = "0.0.0.0:0".parse().unwrap();
    let told = start(&settings).unwrap_err().to_string();
    assert!(told.contains("no authentication"), "{told}");
}

#[test]
fn doors_on_a_thread_of_their_own_do_the_same() {
    let dir = dir();
    let hub = start(&Settings { doors_thread: DoorsThread::Own, ..settings(&dir) }).unwrap();
    visit(async {
        let job = submit(&hub.handle, 1).await;
        let mut worker = Worker::connect(&hub.access, &hub.access.token, "w").await;
        worker.is_welcome().await;
        let task = worker.task().await;
        worker.finish(&task, "x").await;
        assert_eq!(done(&hub.handle, job).await, 1);
    });
    stop(hub);
}

#[test]
fn a_stop_closes_connections_and_everyone_who_asks_later_is_told() {
    let dir = dir();
    let hub = hub(&dir);
    let handle = hub.handle.clone();
    visit(async {
        let mut worker = Worker::connect(&hub.access, &hub.access.token, "w").await;
        worker.is_welcome().await;
        hub.stop();
        hub.ended().await;
        while worker.next().await.is_ok() {}
    });
    hub.wait().unwrap();
    let query = laboro_core::Command::Query(laboro_core::Query::Groups);
    assert_eq!(visit(handle.ask(query)).unwrap_err(), laboro_hub::Lost);
}
