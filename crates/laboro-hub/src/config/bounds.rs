//! Numbers with which a hub would start and be of no use to anybody.

use super::Settings;

/// No conversation has smaller messages than this.
const MESSAGE_BYTES_MIN: u64 = 4096;

/// The first number that is too small, in words.
pub(super) fn check(settings: &Settings) -> Result<(), String> {
    let Settings { limits, http_limits, logins, tasks, .. } = settings;
    let least = [
        ("limits.connections", limits.connections as u64, 1),
        ("limits.connections_per_door", limits.connections_per_door, 1),
        ("limits.message_bytes", limits.message_bytes as u64, MESSAGE_BYTES_MIN),
        ("limits.handshake_ms", limits.handshake_ms, 1),
        ("limits.write_ms", limits.write_ms, 1),
        ("limits.lost_ms", limits.lost_ms, 1),
        ("limits.admission_ms", limits.admission_ms, 1),
        ("limits.inbox", limits.inbox as u64, 1),
        ("limits.step", limits.step as u64, 1),
        ("limits.session_queue", limits.session_queue as u64, 2),
        ("http_limits.connections", http_limits.connections as u64, 1),
        ("http_limits.connections_per_address", http_limits.connections_per_address as u64, 1),
        ("http_limits.handshake_ms", http_limits.handshake_ms, 1),
        ("http_limits.head_ms", http_limits.head_ms, 1),
        ("http_limits.body_ms", http_limits.body_ms, 1),
        ("http_limits.stall_ms", http_limits.stall_ms, 1),
        ("http_limits.body_bytes", http_limits.body_bytes as u64, MESSAGE_BYTES_MIN),
        ("http_limits.bodies_bytes", http_limits.bodies_bytes as u64, MESSAGE_BYTES_MIN),
        ("http_limits.body_tasks", http_limits.body_tasks as u64, 1),
        ("http_limits.line_bytes", http_limits.line_bytes as u64, MESSAGE_BYTES_MIN),
        ("logins.wrong_tokens", logins.wrong_tokens.into(), 1),
        ("tasks.name_bytes", tasks.name_bytes as u64, 1),
        ("tasks.groups", tasks.groups as u64, 1),
        ("tasks.jobs", tasks.jobs as u64, 1),
        ("tasks.tasks", tasks.tasks as u64, 1),
        ("tasks.tasks_per_submit", tasks.tasks_a_submit as u64, 1),
        ("tasks.array_elements", tasks.array_elements.into(), 1),
        ("tasks.classes", tasks.classes as u64, 1),
        ("tasks.profiles", tasks.profiles as u64, 1),
        ("tasks.workers", tasks.workers as u64, 1),
        ("tasks.offers", tasks.offers as u64, 1),
        ("tasks.page", tasks.page.into(), 1),
        ("pools.list_ms", settings.pools.list_ms, 100),
    ];
    match least.into_iter().find(|(_, value, least)| value < least) {
        None => Ok(()),
        Some((name, value, least)) => {
            Err(format!("{name} = {value}: it has to be at least {least}"))
        }
    }
}
