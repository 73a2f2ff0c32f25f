//! A program that stays and takes calls, as a client asks for it and as the hub shows it.

use super::text::Text;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A worker keeps one such process per slot, and starts a new one when it dies or reaches a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Runner {
    /// The program and its arguments.
    #[schema(value_type = Vec<String>)]
    pub command: Vec<Text>,
    /// Idle time after which the runner exits; default 60 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// A new process replaces it after this many calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
    /// A new process replaces it when it uses more memory than this after a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
}

impl Runner {
    pub(super) fn into_core(self) -> laboro_core::Runner {
        laboro_core::Runner {
            words: self.command.into_iter().map(|word| word.into_bytes().into()).collect(),
            idle_ms: self.idle_ms,
            calls_max: self.max_calls,
            memory_max: self.max_memory_bytes,
        }
    }
}

impl From<&laboro_core::Runner> for Runner {
    fn from(runner: &laboro_core::Runner) -> Runner {
        Runner {
            command: runner.words.iter().map(|word| Text::from(word.as_ref())).collect(),
            idle_ms: runner.idle_ms,
            max_calls: runner.calls_max,
            max_memory_bytes: runner.memory_max,
        }
    }
}
