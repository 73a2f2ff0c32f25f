//! How many elements an array has and what they stand for, from one of the three ways to write that.

use super::BadTask;
use super::check::check_zero;
use crate::submit::{Span, TaskSpec};
use crate::text::Text;
use laboro_core::Values;
use std::sync::Arc;

/// How many elements and what they stand for, if it is an array.
pub(super) fn array_of(spec: &mut TaskSpec, name: &Text) -> Result<Option<(u32, Values)>, BadTask> {
    let numbered = |first, step| Values::Numbers { first, step };
    match (spec.count, spec.range, spec.values.take()) {
        (None, None, None) => Ok(None),
        (Some(0), None, None) => Err(BadTask::NoElements(name.clone())),
        (Some(count), None, None) => Ok(Some((count, numbered(1, 1)))),
        (None, Some(range), None) => {
            let count = elements(range).ok_or_else(|| BadTask::BadRange(name.clone()))?;
            let count = u32::try_from(count).map_err(|_| BadTask::TooMany(name.clone()))?;
            Ok(Some((count, numbered(range.first, range.step))))
        }
        (None, None, Some(values)) => {
            if values.is_empty() {
                return Err(BadTask::NoElements(name.clone()));
            }
            let count = u32::try_from(values.len()).map_err(|_| BadTask::TooMany(name.clone()))?;
            // A call is given them as they are.
            for value in values.words().iter().filter(|_| spec.call.is_none()) {
                check_zero(value, name, "values")?;
            }
            Ok(Some((count, Values::List(Arc::new(values.into_words().into())))))
        }
        _ => Err(BadTask::TwoArrays(name.clone())),
    }
}

fn elements(range: Span) -> Option<i128> {
    let (first, last, step) =
        (i128::from(range.first), i128::from(range.last), i128::from(range.step));
    let steps = (last - first).checked_div(step)?;
    (steps >= 0 && (last - first).signum() * step.signum() >= 0).then_some(steps + 1)
}
