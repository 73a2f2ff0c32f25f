//! The floor for any program that runs processes: spawns a program N times, so many at once, and does
//! nothing else. No capture, no journal, no guardian. `bare_spawn N SLOTS PROGRAM`.
//!
//! The program gets the number of its turn, as from xargs and the others: a /bin/true with an
//! argument looks whether it is asked for help, sets its locale first, and takes a quarter longer.

use std::process::{Child, Command, ExitCode, Stdio};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [count, slots, program] = args.as_slice() else {
        eprintln!("usage: bare_spawn N SLOTS PROGRAM");
        return ExitCode::from(2);
    };
    let (Ok(count), Ok(slots)) = (count.parse::<usize>(), slots.parse::<usize>()) else {
        eprintln!("bare_spawn: N and SLOTS are numbers");
        return ExitCode::from(2);
    };
    // A thread a slot, each spawning and waiting in turn: std stays on posix_spawn here.
    let threads: Vec<_> = (0..slots)
        .map(|slot| {
            let program = program.clone();
            std::thread::spawn(move || {
                for number in (slot..count).step_by(slots) {
                    let child: std::io::Result<Child> = Command::new(&program)
                        .arg((number + 1).to_string())
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::null())
                        .spawn();
                    child.and_then(|mut child| child.wait()).expect("the program runs");
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no slot panics");
    }
    ExitCode::SUCCESS
}
