//! The rrmq door of a hub: its conversations belong together, so they are not received one by one but by one
//! server on a thread of its own.

use super::Reception;
use crate::mq::{self, MqError, MqSettings};
use laboro_core::BrokerConfig;
use laboro_dialects::zmtp::{self, Mechanism};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// What an rrmq door keeps and for how long, and how peers prove who they are.
#[derive(Clone)]
pub(crate) struct BrokerSettings {
    pub config: BrokerConfig,
    pub mechanism: Mechanism,
}

/// Serves until the hub stops.
pub(super) async fn listen(listener: TcpListener, reception: Reception, broker: BrokerSettings) {
    let (door, stop) = (Arc::clone(&reception.door), reception.hall.stop.clone());
    let (told, ended) = oneshot::channel::<()>();
    let serve =
        |listener| mq::serve_then(listener, settings(reception, broker), move || drop(told));
    let served = listener.into_std().map_err(MqError::Begin).and_then(serve);
    match served {
        Ok(server) => {
            door.broker.get_or_init(|| server.observer());
            tokio::select! {
                () = stop.cancelled() => {}
                _ = ended => {}
            }
        }
        Err(error) => tracing::error!("{door}: {error}"),
    }
}

fn settings(reception: Reception, broker: BrokerSettings) -> MqSettings {
    let door = &reception.door;
    let identity = door.identity.clone().unwrap_or_else(|| format!("tcp://{}", door.address));
    let limits = &reception.hall.limits;
    MqSettings {
        mechanism: broker.mechanism,
        limits: zmtp::Limits {
            frame_bytes: limits.message_bytes,
            message_bytes: limits.message_bytes,
            handshake_ms: limits.handshake_ms,
            ..zmtp::Limits::default()
        },
        broker: broker.config,
        write_ms: limits.write_ms,
        stats: Arc::clone(&door.stats),
        admit: Box::new(move |peer| Some(Box::new(reception.admit(peer)?) as Box<dyn Send>)),
        ..MqSettings::new(identity)
    }
}
