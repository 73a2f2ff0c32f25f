//! Names the moments between two changes of the directory, so that a test can look at what a
//! power cut there would leave. Nobody listens outside tests.

use std::fmt;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(super) struct Steps(Option<Arc<dyn Fn(&'static str) + Send + Sync>>);

impl Steps {
    #[cfg(test)]
    pub fn tell(listener: impl Fn(&'static str) + Send + Sync + 'static) -> Steps {
        Steps(Some(Arc::new(listener)))
    }

    pub fn reached(&self, step: &'static str) {
        if let Some(listener) = &self.0 {
            listener(step);
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Steps(heard)" } else { "Steps" })
    }
}
