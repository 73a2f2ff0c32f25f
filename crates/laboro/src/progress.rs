//! A bar on a terminal, a line now and then elsewhere, nothing when it shall be quiet. On standard error.

use crate::output::{duration, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub(crate) struct Progress {
    form: ProgressForm,
    started: Instant,
}

enum ProgressForm {
    Bar(ProgressBar),
    Lines { next: Instant, every: Duration },
    Quiet,
}

impl Progress {
    pub(crate) fn new(total: u64, is_quiet: bool) -> Progress {
        let started = Instant::now();
        let form = if is_quiet {
            ProgressForm::Quiet
        } else if std::io::stderr().is_terminal() {
            let style = "{bar:30.green/dim} {pos}/{len}  {msg}  {elapsed}";
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(total), target);
            bar.set_style(ProgressStyle::with_template(style).expect("the template is ours"));
            ProgressForm::Bar(bar)
        } else {
            let every = Duration::from_secs(2);
            ProgressForm::Lines { next: started + every, every }
        };
        Progress { form, started }
    }

    /// `words` say what the numbers do not.
    pub(crate) fn set(&mut self, done: u64, total: u64, words: &str) {
        match &mut self.form {
            ProgressForm::Bar(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_message(words.to_owned());
            }
            ProgressForm::Lines { next, every } if Instant::now() >= *next => {
                // Less and less often: a day's log stays readable.
                *every = (*every * 2).min(Duration::from_secs(60));
                *next = Instant::now() + *every;
                say(format_args!(
                    "{done} of {total}  {words}  {}",
                    duration(self.started.elapsed())
                ));
            }
            ProgressForm::Lines { .. } | ProgressForm::Quiet => {}
        }
    }

    /// A line of its own above the bar, if there is one.
    pub(crate) fn say(&self, words: impl std::fmt::Display) {
        match &self.form {
            ProgressForm::Bar(bar) => bar.suspend(|| say(words)),
            ProgressForm::Lines { .. } | ProgressForm::Quiet => say(words),
        }
    }

    /// Whether somebody would see what is set now.
    pub(crate) fn is_seen(&self) -> bool {
        match &self.form {
            ProgressForm::Bar(_) => true,
            ProgressForm::Lines { next, .. } => Instant::now() >= *next,
            ProgressForm::Quiet => false,
        }
    }
}

impl Drop for Progress {
    /// Whatever ends it, the words that follow stand on a line of their own.
    fn drop(&mut self) {
        if let ProgressForm::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}
