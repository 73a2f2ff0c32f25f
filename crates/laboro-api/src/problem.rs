//! How the API refuses: `application/problem+json` with a stable word for programs and sentences for people.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was refused: `application/problem+json` as in RFC 9457. `type` is always `about:blank` and left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// A stable word for programs, such as `no_such_job`.
    pub reason: String,
    /// What was wrong, naming the thing.
    #[serde(default)]
    pub detail: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.detail.is_empty() { &self.title } else { &self.detail })?;
        match &self.hint {
            Some(hint) => write!(f, ": {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}
