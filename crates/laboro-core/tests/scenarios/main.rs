//! What the core promises, told as scripts: see `script.rs` for the language. One file a family.

mod command;
mod script;
mod show;

macro_rules! scenarios {
    ($($name:ident: $file:literal,)*) => {
        $(#[test]
        fn $name() {
            script::check($file);
        })*

        #[test]
        fn every_script_is_played() {
            let folder = format!("{}/tests/scenarios", env!("CARGO_MANIFEST_DIR"));
            let listed = [$($file),*];
            for entry in std::fs::read_dir(folder).expect("the folder is there") {
                let name = entry.expect("the folder can be read").file_name();
                let name = name.to_str().expect("names are plain");
                assert!(!name.ends_with(".txt") || listed.contains(&name), "{name} is not listed");
            }
        }
    };
}

scenarios! {
    submits_are_all_or_none: "submit.txt",
    nobody_waits_beside_work_that_fits: "matching.txt",
    small_tasks_go_ahead: "ahead.txt",
    a_worker_that_leaves_gets_what_it_has_time_for: "leaving.txt",
    the_higher_priority_goes_first: "priority.txt",
    a_lease_ends_once: "leases.txt",
    no_task_harms_another: "poison.txt",
    what_is_finished_is_forgotten: "forget.txt",
    jobs_are_told_in_the_order_of_their_ends: "ended.txt",
    failures_are_counted: "fails.txt",
    what_is_left_is_told: "left.txt",
    nobody_waits_for_ever: "fair.txt",
    owners_share_by_their_weights: "shares.txt",
    a_ban_goes_by_fixed_thresholds: "ban.txt",
    conduct_is_judged_by_comparison: "conduct.txt",
    a_restart_changes_nothing_but_the_life: "restart.txt",
    a_clock_that_was_set_back_keeps_nobody_waiting: "clock.txt",
    what_nobody_heard_is_told_again: "told.txt",
    an_array_of_ten_millions_is_a_few_ranges: "arrays.txt",
    what_was_done_elsewhere_is_done: "done_before.txt",
    a_queue_has_quotas: "quotas.txt",
    nothing_begins_before_its_time: "begin.txt",
    documents_are_kept: "documents.txt",
    people_stay_in_control: "control.txt",
    what_has_no_worker_is_counted: "backlog.txt",
    whoever_watches_is_told: "watch.txt",
    what_is_there_already_is_merged: "merge.txt",
    a_graph_may_be_sent_again: "again.txt",
    a_crowd_of_names_leaves_room: "crowd.txt",
    one_group_does_not_take_the_room_of_another: "tables.txt",
    tasks_come_after_their_predecessors: "after.txt",
    what_is_blocked_is_over: "blocked.txt",
    only_what_closes_a_cycle_is_refused: "cycles.txt",
    a_peer_may_know_nothing_but_names: "names.txt",
    names_belong_to_jobs: "own_names.txt",
    a_task_is_done_whoever_says_so: "anyones.txt",
    offers_end_with_the_last_task: "last.txt",
    who_knows_one_group_does_not_learn_of_others: "groups.txt",
    no_worker_gets_what_it_does_not_understand: "fields.txt",
    no_item_is_given_beyond_one_whole: "resources.txt",
    a_task_may_take_several_workers: "nodes.txt",
}
