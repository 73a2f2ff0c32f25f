//! `--on-end` of a run: called from here when the run has ended, a few times if it fails. A run that is cut off calls nobody;
//! typed again, it calls when it has ended.

use crate::output::{safe, say};
use laboro_core::JobView;
use laboro_hub::hooks::{Sending, Target, job_envelope, send, target_for};
use std::time::Duration;

const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

/// What cannot be delivered is told; the run itself has ended as it has.
pub(super) async fn call(targets: &[String], view: &JobView) {
    let what = job_envelope(view);
    for text in targets.iter().filter_map(|text| target_for(text, &what.event)) {
        // Checked when the command line was read.
        let Ok(target) = Target::parse(text) else { continue };
        let mut came_to = Ok(());
        for tried in 0..TRIES {
            if tried > 0 {
                tokio::time::sleep(PAUSE * tried).await;
            }
            came_to = send(&target, &what, &Sending::default()).await;
            if came_to.is_ok() {
                break;
            }
        }
        if let Err(why) = came_to {
            let to = laboro_api::shown_target(text);
            say(format_args!("--on-end {}: {}", safe(&to), safe(&why)));
        }
    }
}
