//! Runs the manual: every block of README.md, of the pages in docs and of the examples that says so is run as written,
//! in order, in a scratch directory per page, with the real program first in PATH. What the marks of a block mean is in
//! CONTRIBUTING.md. Not a test of the program: it tells whether the manual still says the truth.
#![allow(clippy::unwrap_used)] // A test may fail where it likes, also in the functions it calls.

mod dependencies;
mod links;
mod names;
mod page;
mod place;
mod printed;
mod reference;
mod site;

use page::{Mark, blocks};
use std::fs;
use std::path::{Path, PathBuf};

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test]
        fn $test() {
            place::run_page($page);
        })*

        const TESTED: &[&str] = &[$($page),*];
    };
}

pages! {
    the_readme_is_true: "README.md",
    the_page_about_a_hub_is_true: "docs/hub.md",
    the_page_about_doors_is_true: "docs/doors.md",
    the_page_about_dwork_is_true: "docs/dwork.md",
    the_page_about_fuq_is_true: "docs/fuq.md",
    the_page_about_hyperqueues_command_is_true: "docs/hq.md",
    the_page_about_slurms_commands_is_true: "docs/slurm.md",
    the_page_for_teams_is_true: "docs/team.md",
    the_page_about_tunnels_is_true: "docs/tunnel.md",
    the_page_about_workers_is_true: "docs/workers.md",
    the_page_about_requests_is_true: "docs/mq.md",
    the_page_about_runexp_is_true: "docs/runexp.md",
    the_page_about_exit_status_is_true: "docs/exit-status.md",
    the_page_for_users_of_gnu_parallel_is_true: "docs/from-gnu-parallel.md",
    the_page_for_users_of_hyperqueue_is_true: "docs/from-hyperqueue.md",
    the_page_for_users_of_pueue_is_true: "docs/from-pueue.md",
    the_page_for_users_of_slurm_arrays_is_true: "docs/from-slurm-arrays.md",
    the_page_about_job_files_is_true: "docs/job-files.md",
    the_page_about_operating_is_true: "docs/operating.md",
    the_quickstart_is_true: "docs/quickstart.md",
    the_page_about_run_is_true: "docs/run.md",
    the_page_about_the_state_is_true: "docs/state.md",
    the_dwork_graph_runs: "examples/dwork-graph/README.md",
    the_fuq_job_runs: "examples/fuq-job/README.md",
    the_hyper_parameters_are_swept: "examples/hyper-parameters/README.md",
    the_monte_carlo_runs: "examples/monte-carlo/README.md",
    the_nightly_batch_runs: "examples/nightly-batch/README.md",
    the_render_farm_runs: "examples/render-farm/README.md",
    the_rrmq_service_answers: "examples/rrmq-service/README.md",
    the_runexp_folder_runs: "examples/runexp-folder/README.md",
    the_sample_sheet_runs: "examples/sample-sheet/README.md",
}

/// A page that no test runs would be the first to become wrong.
#[test]
fn every_page_that_has_commands_to_run_is_run() {
    let mut pages = pages_in("");
    pages.extend(pages_in("docs"));
    for example in folders_in("examples") {
        let page = format!("{example}/README.md");
        assert!(has_commands(&page), "{page} has no block to run");
        pages.push(page);
    }
    pages.retain(|page| has_commands(page));
    let mut tested = TESTED.to_vec();
    tested.sort_unstable();
    pages.sort();
    assert_eq!(pages, tested, "each has a line in `pages!`");
}

fn has_commands(page: &str) -> bool {
    blocks(page).iter().any(|block| !matches!(block.mark, Mark::Shown))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages of a folder of the repository, without those of the folders in it.
fn pages_in(folder: &str) -> Vec<String> {
    let mut pages = names_in(folder);
    pages.retain(|name| name.ends_with(".md"));
    pages
}

fn folders_in(folder: &str) -> Vec<String> {
    let mut folders = names_in(folder);
    folders.retain(|name| repository().join(name).is_dir());
    folders
}

/// What somebody's runs left there does not count.
fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(repository().join(folder)).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| !name.starts_with('.'))
        .map(|name| if folder.is_empty() { name } else { format!("{folder}/{name}") })
        .collect();
    names.sort();
    names
}
