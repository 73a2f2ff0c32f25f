//! Descriptors on a kernel that cannot close many at once, and what of a process can be given back.

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

#[test]
fn only_what_comes_back_from_a_file_is_given_back() {
    let kind = |line| Mapping::parse(line).map(|mapping| mapping.kind);
    let code = "55fc41e74000-55fc4423f000 r-xp 00d47000 fe:00 9277573   /usr/bin/laboro";
    assert_eq!(
        Mapping::parse(code),
        Some(Mapping { first: 0x55fc_41e7_4000, length: 0x23c_b000, kind: MappingKind::Text })
    );
    let constants = "55fc4112c000-55fc41e74000 r--p 00000000 fe:00 9277573   /usr/bin/laboro";
    assert_eq!(kind(constants), Some(MappingKind::Text));
    let relocated = "55fc4423f000-55fc44446000 r--p 03111000 fe:00 9277573   /usr/bin/laboro";
    assert_eq!(kind(relocated), None);
    assert_eq!(kind("3d1f5800000-3d235800000 rw-p 00000000 00:00 0 "), Some(MappingKind::Heap));
    assert_eq!(kind("7fff94be1000-7fff94c02000 rw-p 00000000 00:00 0   [stack]"), None);
    assert_eq!(kind("55fc44446000-55fc4444d000 rw-p 03317000 fe:00 9   /usr/bin/laboro"), None);
    assert_eq!(kind("7ffe3abe6000-7ffe3ac07000 r-xp 00000000 00:00 0   [vdso]"), None);
}
