//! Seeds that once broke a promise, and proofs that a broken promise is seen.

use crate::{Options, Promise, Sabotage, simulate};

/// The first of these seeds that notices, and what it notices.
fn noticed(sabotage: Sabotage) -> Option<(u64, Promise)> {
    let options = Options { sabotage: Some(sabotage), ..Options::default() };
    (0..40).find_map(|seed| simulate(seed, &options).broken.map(|broken| (seed, broken.promise)))
}

#[test]
fn a_seed_is_the_same_world_each_time() {
    let options = Options { timeline: true, ..Options::default() };
    let (one, other) = (simulate(3, &options), simulate(3, &options));
    let lines = one.timeline.iter().zip(&other.timeline);
    assert_eq!(lines.clone().find(|(one, other)| one != other), None);
    assert_eq!(one.timeline.len(), other.timeline.len());
    assert!(one.timeline.len() > 100, "much happens: {}", one.timeline.len());
}

#[test]
fn a_journal_that_acknowledges_without_writing_is_found_out() {
    // Either something is missing, or what came after it does not fit any more.
    let found = noticed(Sabotage::AcksUnwritten).expect("somebody notices");
    assert!(matches!(found.1, Promise::NothingLost | Promise::StartsAgain), "{found:?}");
}

#[test]
fn a_disk_that_never_syncs_is_found_out() {
    let found = noticed(Sabotage::NeverSyncs).expect("somebody notices");
    assert!(matches!(found.1, Promise::NothingLost | Promise::StartsAgain), "{found:?}");
}

#[test]
fn a_second_answer_is_found_out() {
    let (seed, promise) = noticed(Sabotage::AnswersTwice).expect("somebody notices");
    assert_eq!(promise, Promise::OneAnswer, "seed {seed}");
}

#[test]
fn an_answer_that_never_comes_is_found_out() {
    let found = noticed(Sabotage::NeverAnswers).expect("somebody notices");
    assert!(matches!(found.1, Promise::OneAnswer | Promise::Drains), "{found:?}");
}

#[test]
fn a_task_that_is_given_out_twice_is_found_out() {
    let (seed, promise) = noticed(Sabotage::GivesTwice).expect("somebody notices");
    assert_eq!(promise, Promise::OneLease, "seed {seed}");
}

#[test]
fn a_message_of_the_broker_that_reaches_two_workers_is_found_out() {
    let found = noticed(Sabotage::SendsTwice).expect("somebody notices");
    assert!(matches!(found.1, Promise::OneWorkerAMessage | Promise::OneAnswer), "{found:?}");
}

#[test]
fn a_broker_that_drops_without_a_word_is_found_out() {
    let found = noticed(Sabotage::DropsSilently).expect("somebody notices");
    assert!(matches!(found.1, Promise::Slots | Promise::Drains | Promise::OneAnswer), "{found:?}");
}

/// Nothing is broken in any of these worlds.
#[track_caller]
fn holds(seed: u64) {
    assert_eq!(simulate(seed, &Options::default()).broken.map(|broken| broken.what), None);
}

#[test]
fn a_process_ends_while_it_condenses_and_then_the_machine() {
    holds(1_794_822_619_037);
}

#[test]
fn a_job_is_forgotten_as_the_hub_ends() {
    holds(500_985);
}

/// It gave a job back before its conversation knew that it drains, and so was given it again without end.
#[test]
fn a_fuq_worker_is_told_to_go_in_the_middle_of_a_job() {
    holds(744);
    holds(746);
}

/// A task that a dwork worker lost waited for its next attempt elsewhere, when the first came back with success.
#[test]
fn a_result_without_a_lease_of_a_task_that_waits_to_be_tried_again() {
    holds(4310);
}

/// What a worker said on a connection that broke arrived after what it said on the next one.
#[test]
fn a_worker_is_not_left_standing_on_the_connection_it_listens_to() {
    holds(6951);
    holds(35478);
}

/// A snapshot that could not be synced was written again into the same file, of which a part was lost for good.
#[test]
fn a_snapshot_is_made_again_after_the_disk_refused() {
    holds(21700);
    holds(37484);
}

/// Its offer came just after it was taken for gone, and was taken, though nothing could be sent to it.
#[test]
fn a_worker_that_was_taken_for_gone_has_to_come_anew() {
    holds(60078);
    holds(61597);
}

/// A worker that a stalled hub took for gone was given the same task anew, and lost its connection while it had both: told
/// that it does not hold the old one, it must keep the new one.
#[test]
fn a_task_held_by_a_new_lease_is_not_ended_with_the_old_one() {
    holds(1794961021911);
    holds(1794961017454);
}
