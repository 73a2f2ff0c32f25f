//! Directories, with and without the help of the system's library.

use std::ffi::CString;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use super::*;

/// What a shell that was started in `dir` says of where it is.
fn pwd(spawner: &Spawner, dir: Option<&CStr>, out: &std::path::Path) -> io::Result<String> {
    let null = fs::File::open("/dev/null")?;
    let line = CString::new(format!("pwd -P > {}", out.display())).unwrap();
    let argv = Pointers::new([c"sh", c"-c", &line].into_iter());
    let env = Pointers::new(std::iter::empty());
    let pid = spawner.spawn(c"/bin/sh", &argv, &env, dir, [null.as_fd(); 3])?;
    sys::wait_for_end(pid);
    sys::reap(pid)?;
    Ok(fs::read_to_string(out)?.trim_end().to_owned())
}

#[test]
fn a_task_runs_in_its_directory_with_and_without_the_librarys_help() {
    let base = std::env::temp_dir().join(format!("laboro-spawn-{}", std::process::id()));
    fs::create_dir_all(&base).unwrap();
    let base = base.canonicalize().unwrap();
    let dir = CString::new(base.as_os_str().as_bytes()).unwrap();
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    for add_chdir in [add_chdir(), None] {
        let spawner = Spawner::with(add_chdir).unwrap();
        let out = base.join("out");
        assert_eq!(pwd(&spawner, Some(&dir), &out).unwrap(), base.to_str().unwrap());
        assert_eq!(pwd(&spawner, None, &out).unwrap(), here.to_str().unwrap());
        let missing = pwd(&spawner, Some(c"/no/such/dir"), &out).unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENOENT));
        assert_eq!(std::env::current_dir().unwrap().canonicalize().unwrap(), here);
    }
    fs::remove_dir_all(&base).unwrap();
}
