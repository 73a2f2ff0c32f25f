//! Machines without a batch system: a worker is started on one by ssh and goes on when ssh has ended. An id is `PID@HOST`.
//! The access file goes over standard input, never on a command line.

use super::{Scheduler, quoted, shell, ssh_words};
use crate::call::Call;

pub(super) fn submit(of: &Scheduler<'_>, number: u64, host: &str) -> Call {
    let dir = of.remote_dir();
    let access = format!("{dir}/access.toml");
    let worker = of.worker(number, &format!("\"$HOME\"/{}", quoted(&access)));
    let (dir, access, log) =
        (quoted(&dir), quoted(&access), quoted(&format!("{dir}/{number}.log")));
    let line = format!(
        "umask 077 && mkdir -p {dir} && cat > {access} && \
         {{ setsid {worker} > {log} 2>&1 < /dev/null & echo $!@{host}; }}"
    );
    Call { words: ssh_words(host, line), stdin: of.place.access.clone(), env: Vec::new() }
}

/// All at once. A machine that does not answer says nothing of its worker.
pub(super) fn list(ids: &[String]) -> Call {
    let mut line = String::new();
    for (id, pid, host) in ids.iter().filter_map(|id| parts(id)) {
        line.push_str(&format!(
            "{{ ssh -T -n -o BatchMode=yes -o ConnectTimeout=15 {host} kill -0 {pid} 2>/dev/null; \
             case $? in 0) echo {id} R;; 255) echo {id} '?';; esac; }} &\n"
        ));
    }
    line.push_str("wait");
    shell(line, String::new())
}

pub(super) fn cancel(ids: &[String]) -> Call {
    let each = ids.iter().filter_map(|id| parts(id)).map(|(_, pid, host)| {
        format!("ssh -T -n -o BatchMode=yes -o ConnectTimeout=15 {host} kill {pid} 2>/dev/null &\n")
    });
    shell(each.collect::<String>() + "wait", String::new())
}

/// The id, and the two parts of it; both become words of a shell.
fn parts(id: &str) -> Option<(&str, u32, &str)> {
    let (pid, host) = id.split_once('@')?;
    crate::is_host(host).then_some((id, pid.parse().ok()?, host))
}
