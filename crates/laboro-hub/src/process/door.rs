//! What a door's settings mean to its conversations.

use super::HubError;
use crate::config::{
    DoorKind, DoorSettings, DworkDoor, Fuq2Door, FuqDoor, RrmqDoor, RunexpDoor, Settings,
    numbering_of,
};
use crate::fuq;
use crate::listen::{BrokerSettings, DoorState, fill};
use crate::security::Identity;
use laboro_core::{BrokerConfig, Kinds};
use laboro_dialects::zmtp::Mechanism;
use laboro_dialects::{dwork, runexp};
use std::sync::Arc;

/// `number` counts the fuq doors.
pub(super) fn state(
    door: &DoorSettings,
    mechanism: &Mechanism,
    settings: &Settings,
    number: usize,
    identity: &Identity,
) -> Result<DoorState, HubError> {
    let dialect = door.dialect();
    Ok(match &door.kind {
        DoorKind::Native(_) => DoorState::Native,
        DoorKind::Fuq(door) => {
            let own = fuq_settings(door, settings)?;
            DoorState::Fuq(Arc::new(fuq::FuqState::open(&settings.dir, number, identity, &own)?))
        }
        DoorKind::Fuq2(Fuq2Door { numbering }) => {
            DoorState::Fuq2(numbering_of(dialect, numbering.as_deref())?)
        }
        DoorKind::Fuq1(_) => DoorState::Fuq1,
        DoorKind::Dwork(door) => DoorState::Dwork(dwork_door(door, mechanism)),
        DoorKind::Rrmq(door) => {
            DoorState::Rrmq(BrokerSettings { config: broker(door), mechanism: mechanism.clone() })
        }
        DoorKind::Runexp(kind) => {
            let group = door.group.as_deref().unwrap_or(&settings.group);
            DoorState::Runexp(runexp_door(kind, group)?)
        }
    })
}

fn fuq_settings(door: &FuqDoor, settings: &Settings) -> Result<fuq::FuqSettings, HubError> {
    Ok(fuq::FuqSettings {
        auth: door.auth.clone(),
        tls: door.cert.clone().zip(door.key.clone()),
        numbering: numbering_of(crate::listen::Dialect::Fuq, door.numbering.as_deref())?,
        cookie_ms: door.cookie_ms,
        quiet_ms: door.quiet_ms,
        stays: door.no_shutdown,
        logins: settings.logins.limits(),
    })
}

fn dwork_door(door: &DworkDoor, mechanism: &Mechanism) -> Arc<dwork::HubDoor> {
    let usual = dwork::Settings::default();
    dwork::HubDoor::new(dwork::Settings {
        patience_ms: door.patience_ms.unwrap_or(usual.patience_ms),
        exit_when_finished: !door.stay,
        lease_ms: door.lease_ms,
        only_holder: door.only_holder,
        tasks_a_message: door.max_tasks_per_message.unwrap_or(usual.tasks_a_message),
        kinds: if door.any { Kinds::ALL } else { usual.kinds },
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        identity: door.identity.clone().unwrap_or_default().into(),
        mechanism: mechanism.clone(),
    })
}

/// What an rrmq door keeps and for how long.
fn broker(door: &RrmqDoor) -> BrokerConfig {
    let usual = BrokerConfig::default();
    BrokerConfig {
        queue_messages_max: door.queue.unwrap_or(usual.queue_messages_max),
        queue_bytes_max: door.queue_bytes.unwrap_or(usual.queue_bytes_max),
        queue_ms: door.queue_ms.unwrap_or(usual.queue_ms),
        grace_ms: door.grace_ms.unwrap_or(usual.grace_ms),
        slot_ms: door.slot_ms,
        ..usual
    }
}

fn runexp_door(door: &RunexpDoor, group: &str) -> Result<runexp::ManagerDoor, runexp::Unsayable> {
    let success = match door.exit_code {
        true => runexp::Success::ExitCode,
        false => runexp::Success::ResLine,
    };
    // The hub's own name for it would be a group of its own to runners.
    let group = if group == laboro_api::DEFAULT_GROUP { runexp::DEFAULT_GROUP } else { group };
    let made = runexp::ManagerDoor::new(group)?.with_fill(fill::fill).with_success(success);
    Ok(if door.stay { made.staying() } else { made })
}
