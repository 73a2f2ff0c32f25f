//! The program. Says what was asked, calls it, and turns what came of it into an exit status.

mod access;
mod allocator;
mod args;
mod begin;
mod commands;
mod curve;
mod dwork;
mod exit;
mod export;
mod files;
mod hq;
mod hub;
mod hub_client;
mod input;
mod listing;
mod machine;
mod mq;
mod nats;
mod output;
mod pool;
mod process_watch;
mod progress;
mod report;
mod resolve;
mod run;
mod runexp;
mod selector;
mod slurm;
mod submit;
mod top;
mod tunnel;
mod view;
mod worker;

#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

fn main() -> std::process::ExitCode {
    // The guardian is this same program, asked to be something else.
    laboro_worker::guardian::main_if_asked();
    hub::memory::use_small_pages_in_a_hub(std::env::args_os());
    if let Some(status) = slurm::main_if_called().or_else(hq::main_if_called) {
        return status;
    }
    let args = match args::Args::read() {
        Ok(args) => args,
        Err(error) => {
            let typed: Vec<String> =
                std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
            match args::advice::advice(&error, &typed) {
                Some(advice) => return exit::of_error(&exit::usage(advice)).into(),
                None => args::help::exit(&error, &typed),
            }
        }
    };
    let result = match args.command {
        args::Command::Hub(hub) => hub::run(*hub),
        args::Command::Access(access) => access::run(access),
        args::Command::Run(run) => commands::run::run(run),
        args::Command::Logs(logs) => commands::logs::run(&logs),
        args::Command::Export(export) => export::run(&export),
        args::Command::Graph(graph) => commands::graph::run(&graph),
        args::Command::Journal(journal) => commands::journal::run(journal),
        args::Command::Dwork(dwork) => dwork::run(&dwork),
        args::Command::Submit(submit) => commands::submit::run(&submit),
        args::Command::Status(status) => commands::status::run(&status),
        args::Command::Jobs(jobs) => commands::jobs::run(&jobs),
        args::Command::Audit(audit) => commands::audit::run(&audit),
        args::Command::Hooks(hooks) => commands::hooks::run(&hooks),
        args::Command::Schedule(schedule) => commands::schedule::run(&schedule),
        args::Command::Tasks(tasks) => commands::tasks::run(&tasks),
        args::Command::Show(show) => commands::show::run(&show),
        args::Command::Wait(wait) => commands::wait::run(&wait),
        args::Command::Cancel(control) => commands::control::cancel(&control),
        args::Command::Hold(control) => commands::control::hold(&control),
        args::Command::Release(control) => commands::control::release(&control),
        args::Command::Retry(control) => commands::control::retry(&control),
        args::Command::Priority(priority) => commands::control::priority(&priority),
        args::Command::Limit(limit) => commands::control::limit(&limit),
        args::Command::Close(control) => commands::control::close(&control),
        args::Command::Forget(control) => commands::control::forget(&control),
        args::Command::Workers(workers) => commands::workers::run(&workers),
        args::Command::Pool(pool) => pool::run(&pool),
        args::Command::Groups(groups) => commands::groups::run(&groups),
        args::Command::Explain(explain) => commands::explain::run(&explain),
        args::Command::Events(events) => commands::events::run(&events),
        args::Command::Top(top) => top::run(&top),
        args::Command::Report(report) => report::run(&report),
        args::Command::Dashboard(dashboard) => commands::dashboard::run(&dashboard),
        args::Command::Doctor(doctor) => commands::doctor::run(&doctor),
        args::Command::Completions(completions) => commands::completions::run(&completions),
        args::Command::Man(man) => commands::man::run(&man),
        args::Command::Runexp(runexp) => runexp::run(&runexp),
        args::Command::Worker(worker) => worker::run(&worker),
        args::Command::Slurm(slurm) => slurm::run(&slurm),
        args::Command::Hq(hq) => hq::run(&hq),
        args::Command::Tunnel(tunnel) => tunnel::run(&tunnel),
        args::Command::Mq(mq) => mq::run(mq),
        args::Command::Bench { words } => Err(exit::usage(format!(
            "load generators are a program of their own: in Laboro's source directory, type\n  \
             cargo run --release -p laboro-bench -- {}",
            words.first().map_or("native", String::as_str)
        ))),
    };
    result.unwrap_or_else(|error| exit::of_error(&error)).into()
}
