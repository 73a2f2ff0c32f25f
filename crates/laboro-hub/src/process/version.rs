//! Which version of the program had a hub's directory last, so that the log says when another one has it. Refuses nothing:
//! what an older version cannot read, it refuses itself.

use laboro_net::secret_file;
use std::cmp::Ordering;
use std::path::Path;

const FILE: &str = "version";

/// Says what has changed since the directory was last opened, and writes down who has it now.
pub(super) fn note(dir: &Path) {
    let own = laboro_api::VERSION;
    let path = dir.join(FILE);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let before = before.trim();
    match compared(before, own) {
        None | Some(Ordering::Equal) => {}
        Some(Ordering::Less) => tracing::info!(
            event = "hub_upgraded",
            from = before,
            to = own,
            "this directory was last used by laboro {before}; it is now used by {own}. `laboro journal downgrade-check` says \
             whether {before} could still read it"
        ),
        Some(Ordering::Greater) => tracing::warn!(
            event = "hub_downgraded",
            from = before,
            to = own,
            "this directory was last used by laboro {before}, which is newer than {own}"
        ),
    }
    if before != own
        && let Err(error) = secret_file::replace(&path, &format!("{own}\n"))
    {
        tracing::warn!("{error}; the next version will not know which one was here");
    }
}

/// `None`: nobody has been here who wrote it down.
fn compared(before: &str, own: &str) -> Option<Ordering> {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let plain = text.split(['-', '+']).next()?;
        plain.split('.').map(|number| number.parse().ok()).collect()
    };
    Some(numbers(before)?.cmp(&numbers(own)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(compared("0.9.0", "0.10.0"), Some(Ordering::Less));
        assert_eq!(compared("1.0.0", "1.0.0"), Some(Ordering::Equal));
        assert_eq!(compared("2.0.0", "1.9.9"), Some(Ordering::Greater));
        assert_eq!(compared("", "1.0.0"), None);
        assert_eq!(compared("rubbish", "1.0.0"), None);
    }

    #[test]
    fn who_had_the_directory_last_is_written_down() {
        let dir = tempfile::TempDir::new().expect("a directory can be made");
        note(dir.path());
        let text = || std::fs::read_to_string(dir.path().join(FILE)).unwrap_or_default();
        assert_eq!(text().trim(), laboro_api::VERSION);
        std::fs::write(dir.path().join(FILE), "99.0.0\n").expect("it can be written");
        note(dir.path());
        assert_eq!(text().trim(), laboro_api::VERSION);
    }
}
