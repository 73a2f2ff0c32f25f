//! Descriptors on a kernel that cannot close many at once.

use std::os::fd::AsRawFd;

use super::*;

/// Far above what any other test has open.
const FIRST: c_int = 700;

#[test]
fn a_kernel_without_close_range_has_them_closed_one_by_one() {
    let null = fs::File::open("/dev/null").unwrap();
    let low = rustix::io::fcntl_dupfd_cloexec(&null, 3).unwrap();
    let high = [FIRST, FIRST + 30].map(|from| {
        let fd = rustix::io::fcntl_dupfd_cloexec(&null, from).unwrap();
        std::os::fd::IntoRawFd::into_raw_fd(fd)
    });
    let is_open = |fd: c_int| fs::exists(format!("/proc/self/fd/{fd}")).unwrap();
    assert!(high.iter().all(|&fd| is_open(fd)));
    close_from(FIRST, |_| false);
    assert!(!high.iter().any(|&fd| is_open(fd)));
    assert!(is_open(low.as_raw_fd()) && is_open(null.as_raw_fd()));
}

#[test]
fn where_it_can_nothing_is_closed_one_by_one() {
    let null = fs::File::open("/dev/null").unwrap();
    let fd = rustix::io::fcntl_dupfd_cloexec(&null, FIRST + 100).unwrap();
    close_from(FIRST + 100, |_| true);
    assert!(fs::exists(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap());
}
