//! One connection to any of the servers, kept up: it goes on at another one when a server is gone.

use super::NatsError;
use super::monitor;
use crate::options::{Login, Options};
use async_nats::{Client, ConnectOptions, ServerAddr, jetstream};
use std::path::Path;
use std::time::Duration;

/// Servers that are gone without a word are noticed after two of these.
const PING: Duration = Duration::from_secs(1);
const CONNECT: Duration = Duration::from_secs(3);
const REQUEST: Duration = Duration::from_secs(3);
const RECONNECT_MAX: Duration = Duration::from_secs(1);

/// The first version that syncs always, in its log of replication too.
const VERSION_MIN: (u64, u64, u64) = (2, 10, 27);
/// Room for one part of a record, its head and the headers.
const PAYLOAD_MIN: usize = 64 << 10;

#[derive(Debug, Clone)]
pub(crate) struct Nats {
    pub client: Client,
    pub context: jetstream::Context,
    /// Most bytes of a record in one message.
    pub part_bytes: usize,
}

/// A batch is one message up to here.
const PART_BYTES_MAX: usize = 512 << 10;

impl Nats {
    /// Connects, and makes sure that the servers keep what they acknowledge.
    pub async fn connect(options: &Options) -> Result<Nats, NatsError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if options.name.is_empty() || options.name.len() > 64 || !options.name.chars().all(fits) {
            return Err(NatsError::Name(options.name.clone()));
        }
        let nats = Nats::connect_only(options).await?;
        if !options.accept_unsynced {
            monitor::check(&options.monitors).await?;
        }
        Ok(nats)
    }

    /// The same, for whoever only reads.
    pub async fn connect_only(options: &Options) -> Result<Nats, NatsError> {
        let address = |text: &String| {
            text.parse::<ServerAddr>().map_err(|_| NatsError::Address(text.clone()))
        };
        let servers = options.servers.iter().map(address).collect::<Result<Vec<_>, _>>()?;
        let names = || options.servers.join(",");
        if servers.is_empty() {
            return Err(NatsError::Address(names()));
        }
        let refused = |error: async_nats::ConnectError| NatsError::Connect {
            servers: names(),
            reason: error.to_string(),
        };
        let client = settings(options).await?.connect(servers).await.map_err(refused)?;
        let info = client.server_info();
        let server = format!("{}:{}", info.host, info.port);
        if !is_new_enough(&info.version) {
            return Err(NatsError::Old { server, version: info.version });
        }
        if info.max_payload < PAYLOAD_MIN {
            return Err(NatsError::Payload { server, bytes: info.max_payload });
        }
        let part_bytes = PART_BYTES_MAX.min(info.max_payload - 4096);
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST);
        Ok(Nats { client, context, part_bytes })
    }
}

async fn settings(options: &Options) -> Result<ConnectOptions, NatsError> {
    let unreadable = |path: &Path, error: std::io::Error| NatsError::File {
        file: path.display().to_string(),
        reason: error.to_string(),
    };
    let text = |path: &Path| std::fs::read_to_string(path).map_err(|error| unreadable(path, error));
    let settings = ConnectOptions::new()
        .name(format!("laboro hub {}", options.name))
        .ping_interval(PING)
        .connection_timeout(CONNECT)
        .request_timeout(Some(REQUEST))
        .reconnect_delay_callback(|tries| {
            RECONNECT_MAX.min(Duration::from_millis(50 * tries as u64))
        })
        .require_tls(options.tls.is_required);
    let settings = match &options.login {
        Login::None => settings,
        Login::Token(token) => settings.token(token.clone()),
        Login::User { name, password } => {
            settings.user_and_password(name.clone(), password.clone())
        }
        Login::Nkey(file) => settings.nkey(text(file)?.trim().to_owned()),
        Login::Credentials(file) => {
            let text = text(file)?;
            settings.credentials(&text).map_err(|error| unreadable(file, error))?
        }
    };
    let settings = match &options.tls.authority {
        Some(file) => settings.add_root_certificates(file.clone()),
        None => settings,
    };
    Ok(match &options.tls.certificate {
        Some((certificate, key)) => {
            settings.add_client_certificate(certificate.clone(), key.clone())
        }
        None => settings,
    })
}

/// What cannot be read is not one of theirs.
pub(super) fn is_new_enough(version: &str) -> bool {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = plain.split('.').map(|number| number.parse::<u64>().ok());
    let mut next = || numbers.next().flatten();
    matches!((next(), next(), next()), (Some(a), Some(b), Some(c)) if (a, b, c) >= VERSION_MIN)
}
