//! What the guardian, the pipes and the events cost: `/bin/true`, two at a time, through a runner
//! with both outputs captured, against two threads that spawn and wait, without any. The runner is
//! measured twice: with launches a few ahead, as a worker has them, and each launched when one has
//! ended. Only an idle machine tells the truth: where cores are scarce, the threads of a runner get
//! more turns than the two of the loop, and the ratio rises past one.
//!
//! `cargo bench --bench spawn [-- TASKS ROUNDS]`; prints tasks a second and core time a task.

use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::process;
use std::ptr;
use std::time::{Duration, Instant};

use laboro_worker::{Launch, Options, Runner, RunnerEvent, guardian};

const IN_FLIGHT: u64 = 2;

fn main() {
    guardian::main_if_asked();
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let tasks = numbers.first().copied().unwrap_or(4000);
    let rounds = numbers.get(1).copied().unwrap_or(5);
    println!("{tasks} times /bin/true, {IN_FLIGHT} in flight, {rounds} rounds");
    let mut ratios = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let bare = measure(tasks, bare);
        print!("bare {:5.0}/s {:5.0} us core", bare.rate, bare.core_us);
        for ((name, ahead), ratios) in [("ahead", 2), ("in turn", 0)].into_iter().zip(&mut ratios) {
            let ours = measure(tasks, |tasks| through_runner(tasks, ahead));
            let ratio = ours.rate / bare.rate;
            print!(" | {name} {:5.0}/s {:5.0} us core, {ratio:.3}", ours.rate, ours.core_us);
            ratios.push(ratio);
        }
        println!();
    }
    for ratios in &mut ratios {
        ratios.sort_by(f64::total_cmp);
    }
    let [ahead, in_turn] = ratios.map(|ratios| ratios[ratios.len() / 2]);
    println!("median ratio: {ahead:.3} ahead, {in_turn:.3} in turn");
}

struct Measured {
    rate: f64,
    core_us: f64,
}

/// Core time is that of this process and of all it waited for: tasks, and the guardian with its.
fn measure(tasks: u64, run: impl FnOnce(u64)) -> Measured {
    let busy = busy();
    let begun = Instant::now();
    run(tasks);
    let wall = begun.elapsed();
    let core = self::busy().saturating_sub(busy);
    let n = tasks as f64;
    Measured { rate: n / wall.as_secs_f64(), core_us: core.as_secs_f64() * 1e6 / n }
}

fn busy() -> Duration {
    let spent = |who| {
        // SAFETY: rusage is plain data for which all zeroes is valid, and the pointer is to it.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(who, &raw mut usage);
            usage
        };
        let micros = |time: libc::timeval| (time.tv_sec * 1_000_000 + time.tv_usec).cast_unsigned();
        Duration::from_micros(micros(usage.ru_utime) + micros(usage.ru_stime))
    };
    spent(libc::RUSAGE_SELF) + spent(libc::RUSAGE_CHILDREN)
}

fn through_runner(tasks: u64, ahead: u64) {
    let options = Options { at_once: NonZeroUsize::new(IN_FLIGHT as usize), ..Options::default() };
    let (runner, mut events) = Runner::start(options).expect("a runner starts");
    let (mut launched, mut ended) = (tasks.min(IN_FLIGHT + ahead), 0);
    for id in 0..launched {
        runner.launch(Launch::new(id, ["/bin/true"]));
    }
    while ended < tasks {
        let batch = events.wait(None).expect("the guardian lives").expect("nobody shut it down");
        for event in batch {
            if let RunnerEvent::Ended { id, ending, .. } = event {
                assert!(ending.is_success(), "task {id}: {ending:?}");
                ended += 1;
                if launched < tasks {
                    runner.launch(Launch::new(launched, ["/bin/true"]));
                    launched += 1;
                }
            }
        }
    }
    runner.shutdown();
}

/// A thread a slot, each spawning and waiting in turn.
fn bare(tasks: u64) {
    std::thread::scope(|scope| {
        for slot in 0..IN_FLIGHT {
            scope.spawn(move || {
                for _ in (slot..tasks).step_by(IN_FLIGHT as usize) {
                    let pid = spawn(c"/bin/true");
                    let mut status = 0;
                    // SAFETY: the pointer is to a live number.
                    let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
                    assert_eq!((ended, status), (pid, 0));
                }
            });
        }
    });
}

fn spawn(program: &CStr) -> libc::pid_t {
    let argv = [program.as_ptr().cast_mut(), ptr::null_mut()];
    let env = [ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: both arrays end in null, and null actions and attributes mean none.
    let error = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            program.as_ptr(),
            ptr::null(),
            ptr::null(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    if error != 0 {
        eprintln!("cannot spawn: {}", std::io::Error::from_raw_os_error(error));
        process::exit(1);
    }
    pid
}
