//! Files that are used again, and those that cannot be.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn read(script: &Script) -> Vec<u8> {
    fs::read(script.path()).unwrap()
}

#[test]
fn a_file_is_used_again_when_its_script_is_over_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let scripts = Scripts::in_dir(&dir.path().join("made/when/needed"));
    let first = scripts.write(&ScriptKind::Bash, b"a long first script").unwrap();
    let second = scripts.write(&ScriptKind::Bash, b"second").unwrap();
    assert_ne!(first.path(), second.path());
    let path = first.path().to_owned();
    drop(first);
    let third = scripts.write(&ScriptKind::Bash, b"short").unwrap();
    assert_eq!(third.path(), path);
    assert_eq!((read(&third), read(&second)), (b"short".to_vec(), b"second".to_vec()));
    let matlab = scripts.write(&ScriptKind::Matlab, b"x = 1").unwrap();
    assert_eq!(matlab.path().extension().unwrap(), "m");
}

#[test]
fn whatever_a_script_did_to_its_file_the_next_one_has_its_own() {
    let tricks: [fn(&Path); 5] = [
        |path| fs::remove_file(path).unwrap(),
        |path| fs::hard_link(path, path.with_extension("kept")).unwrap(),
        |path| fs::set_permissions(path, fs::Permissions::from_mode(0o400)).unwrap(),
        |path| {
            fs::rename(path, path.with_extension("kept")).unwrap();
            std::os::unix::fs::symlink(path.with_extension("kept"), path).unwrap();
        },
        |path| fs::remove_dir_all(path.parent().unwrap()).unwrap(),
    ];
    for trick in tricks {
        let dir = tempfile::tempdir().unwrap();
        let scripts = Scripts::in_dir(&dir.path().join("scripts"));
        let first = scripts.write(&ScriptKind::Bash, b"first").unwrap();
        let path = first.path().to_owned();
        trick(&path);
        drop(first);
        let second = scripts.write(&ScriptKind::Bash, b"2").unwrap();
        assert_eq!((second.path(), read(&second)), (&*path, b"2".to_vec()));
        let mode = fs::symlink_metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o700);
        if let Ok(kept) = fs::read(path.with_extension("kept")) {
            assert_eq!(kept, b"first");
        }
    }
}
