//! One delivery, once: a POST, a mail or a command, with an end to its time. Whether it is tried again is decided elsewhere.

use super::target::Target;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Method, Request, Response, Uri};
use laboro_net::{dial, hex};
use laboro_pool::{Call, run_within};
use ring::hmac;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::fmt::Write;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_rustls::TlsConnector;

/// The HMAC-SHA256 of the body, in hex, behind `sha256=`.
pub const SIGNATURE_HEADER: &str = "laboro-signature";
/// The same for each try of one delivery.
pub const DELIVERY_HEADER: &str = "laboro-delivery";
pub const EVENT_HEADER: &str = "laboro-event";

/// How deliveries are made.
#[derive(Clone, Debug)]
pub struct Sending {
    pub time_limit: Duration,
    /// The program that takes mails.
    pub sendmail: String,
    pub mail_from: Option<String>,
}

impl Default for Sending {
    fn default() -> Sending {
        Sending {
            time_limit: Duration::from_secs(30),
            sendmail: "/usr/sbin/sendmail".into(),
            mail_from: None,
        }
    }
}

/// What is delivered.
#[derive(Clone, Debug, Default)]
pub struct Envelope {
    pub id: String,
    pub event: String,
    /// One line for people.
    pub text: String,
    /// JSON.
    pub body: String,
    /// For the signature of a POST.
    pub key: Option<Vec<u8>>,
}

/// Says why not. A command that exits with 0 and an answer of 2xx are success.
pub async fn send(target: &Target, what: &Envelope, how: &Sending) -> Result<(), String> {
    match target {
        Target::Url(uri) => {
            let late = || format!("no answer within {} s", how.time_limit.as_secs());
            tokio::time::timeout(how.time_limit, post(uri, what))
                .await
                .unwrap_or_else(|_| Err(late()))
        }
        Target::Mail(address) => {
            let words = [how.sendmail.as_str(), "-i", "--", address].map(str::to_owned).into();
            let stdin = mail(address, what, how.mail_from.as_deref());
            command(Call { words, stdin, env: Vec::new() }, how).await
        }
        Target::Command(line) => {
            let words = ["/bin/sh", "-c", line].map(str::to_owned).into();
            let env = [("LABORO_HOOK_EVENT", &what.event), ("LABORO_HOOK_ID", &what.id)];
            let env = env.map(|(name, value)| (name.to_owned(), value.clone())).into();
            command(Call { words, stdin: what.body.clone(), env }, how).await
        }
    }
}

async fn command(call: Call, how: &Sending) -> Result<(), String> {
    run_within(&call, how.time_limit).await.map(drop).map_err(|error| error.to_string())
}

fn mail(address: &str, what: &Envelope, from: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(from) = from {
        writeln!(text, "From: {}", one_line(from)).expect("a string takes all");
    }
    let subject = one_line(&format!("[laboro] {}", what.text));
    let pretty: Option<String> = serde_json::from_str::<serde_json::Value>(&what.body)
        .ok()
        .and_then(|value| serde_json::to_string_pretty(&value).ok());
    write!(
        text,
        "To: {address}\nSubject: {subject}\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\n\
         Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{}\n\n{}\n",
        what.text,
        pretty.as_deref().unwrap_or(&what.body),
    )
    .expect("a string takes all");
    text
}

/// A header ends with its line. What is not ASCII has another form there.
fn one_line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.is_ascii() {
        return plain;
    }
    // An encoded word has at most 75 letters.
    let mut words = Vec::new();
    let mut piece = String::new();
    for letter in plain.chars() {
        if piece.len() + letter.len_utf8() > 42 {
            words.push(encoded_word(&std::mem::take(&mut piece)));
        }
        piece.push(letter);
    }
    words.push(encoded_word(&piece));
    words.join("\n ")
}

fn encoded_word(text: &str) -> String {
    use base64::Engine;
    format!("=?utf-8?B?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

/// `sha256=` and the HMAC in hex.
pub fn signature(key: &[u8], body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    format!("sha256={}", hex::hex(hmac::sign(&key, body).as_ref()))
}

pub(super) fn port(uri: &Uri) -> u16 {
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    uri.port_u16().unwrap_or(usual)
}

async fn post(uri: &Uri, what: &Envelope) -> Result<(), String> {
    let signed = what.key.as_ref().map(|key| signature(key, what.body.as_bytes()));
    let mut headers = vec![(DELIVERY_HEADER, what.id.as_str()), (EVENT_HEADER, &what.event)];
    headers.extend(signed.as_deref().map(|signature| (SIGNATURE_HEADER, signature)));
    post_json(uri, &headers, what.body.clone()).await
}

/// Says why it was not taken.
pub(crate) async fn post_json(
    uri: &Uri,
    headers: &[(&str, &str)],
    body: String,
) -> Result<(), String> {
    let place = uri.authority().ok_or("the URL names no host")?.as_str();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("host", place)
        .header("content-type", "application/json")
        .header("user-agent", concat!("laboro/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request =
        request.body(Full::new(Bytes::from(body))).map_err(|error| format!("{place}: {error}"))?;
    let failed = |error: io::Error| format!("{place}: {error}");
    let stream = dial((host.as_str(), port(uri))).await.map_err(failed)?;
    let answer = if uri.scheme_str() == Some("http") {
        ask(stream, request).await
    } else {
        let name = ServerName::try_from(host).map_err(|error| format!("{place}: {error}"))?;
        let connector = TlsConnector::from(system_trust());
        ask(connector.connect(name, stream).await.map_err(failed)?, request).await
    };
    let answer = answer.map_err(|error| format!("{place}: {error}"))?;
    let status = answer.status();
    // Read, so that the other side sees an orderly end; what it says is of no use.
    let _ = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
    if status.is_success() {
        return Ok(());
    }
    let why = if status.is_redirection() { "; redirects are not followed" } else { "" };
    Err(format!("{place}: it answered {status}{why}"))
}

const ANSWER_BYTES_MAX: usize = 64 << 10;

async fn ask<S>(
    stream: S,
    request: Request<Full<Bytes>>,
) -> hyper::Result<Response<hyper::body::Incoming>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    laboro_net::http::handshake(stream).await?.send_request(request).await
}

/// Those whom this machine trusts, as they were when the first delivery was made.
fn system_trust() -> Arc<ClientConfig> {
    static TRUST: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    let make = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the usual versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    };
    TRUST.get_or_init(make).clone()
}
