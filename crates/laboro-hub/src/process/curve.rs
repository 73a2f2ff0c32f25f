//! How peers of each door have to prove who they are: by CURVE where its settings say so, else not here.

use crate::config::DoorSettings;
use crate::security::{CurveKey, SecurityError, curve_keys};
use laboro_dialects::zmtp::{KeyBytes, Mechanism};
use std::path::Path;
use std::sync::Arc;

/// One for each door. The hub's keys are made when the first door wants them.
pub(super) fn mechanisms(
    doors: &[DoorSettings],
    dir: &Path,
) -> Result<Vec<Mechanism>, SecurityError> {
    if doors.iter().all(|door| door.kind.curve().is_none()) {
        return Ok(vec![Mechanism::Null; doors.len()]);
    }
    let keys = curve_keys(dir)?;
    let mechanism = |door: &DoorSettings| match door.kind.curve() {
        None => Mechanism::Null,
        Some(allowed) => {
            let allowed = allowed.to_vec();
            let allow =
                move |key: &KeyBytes| allowed.is_empty() || allowed.contains(&CurveKey(*key));
            Mechanism::curve_server(&keys, Arc::new(allow))
        }
    };
    Ok(doors.iter().map(mechanism).collect())
}

/// What clients have to know of the hub.
pub(super) fn public_key(mechanism: &Mechanism) -> Option<CurveKey> {
    match mechanism {
        Mechanism::CurveServer { public, .. } => Some(CurveKey(*public)),
        Mechanism::Null | Mechanism::CurveClient { .. } => None,
    }
}
