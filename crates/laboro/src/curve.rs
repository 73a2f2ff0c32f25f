//! CURVE as it is typed to whatever connects to a ZeroMQ door: the server's public key, and the file of one's
//! own. Also what to do when a door does not open.

use crate::exit::usage;
use clap::Args;
use laboro_clients::LinkError;
use laboro_dialects::zmtp::{KeyPair, Mechanism, ZmtpError, key_to_text};
use laboro_hub::security::{CurveKey, read_curve_keys};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CurveArgs {
    /// Speak CURVE, to a server with this public key.
    #[arg(long, value_name = "KEY", allow_hyphen_values = true, global = true)]
    curve_server_key: Option<String>,

    /// The file with this side's keys. Default: new ones.
    #[arg(long, value_name = "FILE", requires = "curve_server_key", global = true)]
    curve_key_file: Option<PathBuf>,
}

impl CurveArgs {
    pub(crate) fn mechanism(&self) -> anyhow::Result<Mechanism> {
        let Some(text) = &self.curve_server_key else { return Ok(Mechanism::Null) };
        let server: CurveKey =
            text.parse().map_err(|why| usage(format!("--curve-server-key {text}: {why}")))?;
        let keys = match &self.curve_key_file {
            Some(path) => read_curve_keys(path).map_err(usage)?,
            None => KeyPair::generate(),
        };
        Ok(Mechanism::curve_client(server.0, &keys))
    }

    pub(crate) fn is_given(&self) -> bool {
        self.curve_server_key.is_some()
    }
}

/// Why no connection stands, and what to do about it. `absent` is asked where nobody answers.
pub(crate) fn advised(mechanism: &Mechanism, error: LinkError, absent: &str) -> anyhow::Error {
    let advice = match &error {
        LinkError::Unreachable { .. } => absent.to_owned(),
        LinkError::Closed { .. } if matches!(mechanism, Mechanism::CurveClient { .. }) => {
            "is --curve-server-key its key?".to_owned()
        }
        LinkError::Closed { .. } => "is it the right kind of server?".to_owned(),
        LinkError::Zmtp { source, .. } => match curve_advice(mechanism, source) {
            Some(advice) => advice,
            None => return error.into(),
        },
        _ => return error.into(),
    };
    anyhow::Error::msg(format!("{error}: {advice}"))
}

fn curve_advice(mechanism: &Mechanism, error: &ZmtpError) -> Option<String> {
    Some(match (mechanism, error) {
        (Mechanism::Null, ZmtpError::OtherMechanism { peer, .. }) if peer == "CURVE" => {
            "it requires CURVE: give --curve-server-key, the key that `laboro access curve` prints \
             on its machine"
                .to_owned()
        }
        (Mechanism::CurveClient { .. }, ZmtpError::OtherMechanism { .. }) => {
            "it does not speak CURVE: leave out --curve-server-key".to_owned()
        }
        (Mechanism::CurveClient { public, .. }, ZmtpError::Refused(why)) if why == "400" => {
            let key = key_to_text(public);
            format!("it does not allow the public key {key} of this side: add it there")
        }
        _ => return None,
    })
}
