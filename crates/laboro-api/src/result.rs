//! Results of tasks, as JSON lines and as frames. `spec/results.md` has the bytes of a frame.

use super::text::Text;
use crate::task::Outcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskResult {
    /// The task.
    pub task: u32,
    /// How it ended.
    pub state: ResultState,
    /// Its result. Missing: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub result: Option<Text>,
    /// It had a result that could not be kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Of one that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Of one that failed without a result: the end of its standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub message: Option<Text>,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultState {
    /// It is done.
    Done,
    /// It has failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

const HAS_RESULT: u8 = 1;
const LOST: u8 = 2;

impl TaskResult {
    /// Appends it as a frame: how long the rest is, then task, state, flags, outcome, code, the message with its
    /// length, and the result.
    pub fn write_frame(&self, to: &mut Vec<u8>) {
        use super::task::OutcomeKind as Kind;
        let at = to.len();
        to.extend_from_slice(&[0; 4]);
        to.extend_from_slice(&self.task.to_le_bytes());
        to.push(match self.state {
            ResultState::Done => 0,
            ResultState::Failed => 1,
            ResultState::Cancelled => 2,
        });
        let has_result = if self.result.is_some() { HAS_RESULT } else { 0 };
        to.push(has_result | if self.lost { LOST } else { 0 });
        to.push(match self.outcome.map(|outcome| outcome.kind) {
            Some(Kind::Success) => 0,
            Some(Kind::Exit) => 1,
            Some(Kind::Signal) => 2,
            Some(Kind::TimedOut) => 3,
            Some(Kind::Error) => 4,
            Some(Kind::Lost) => 5,
            Some(Kind::Memory) => 6,
            Some(Kind::Unknown) | None => 255,
        });
        to.push(0);
        let code = self.outcome.and_then(|outcome| outcome.code).unwrap_or(0);
        to.extend_from_slice(&code.to_le_bytes());
        let message = self.message.as_ref().map_or(&[][..], Text::bytes);
        to.extend_from_slice(&(message.len() as u32).to_le_bytes());
        to.extend_from_slice(message);
        to.extend_from_slice(self.result.as_ref().map_or(&[][..], Text::bytes));
        let length = (to.len() - at - 4) as u32;
        to[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::task::OutcomeKind;
    use super::*;

    #[test]
    fn a_frame_is_written_as_the_page_says() {
        let outcome = Outcome { kind: OutcomeKind::Exit, code: Some(3) };
        let result = TaskResult {
            task: 7,
            state: ResultState::Failed,
            result: Some(Text::from("ab")),
            lost: false,
            outcome: Some(outcome),
            message: Some(Text::from("no")),
        };
        let mut frame = Vec::new();
        result.write_frame(&mut frame);
        let golden = include_str!("../../../spec/golden/results/failed.hex");
        let golden: Vec<u8> = (golden.split_whitespace())
            .map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits"))
            .collect();
        assert_eq!(frame, golden);
    }
}
