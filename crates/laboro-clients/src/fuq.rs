//! The HTTPS of fuq from a node's side: connections to a foreman, requests on them, and the login that all of them
//! show. What is asked for is somebody else's affair.

mod websocket;

pub use websocket::{WebsocketStream, open_websocket};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, COOKIE, HOST};
use hyper::{Method, Request, Response, StatusCode};
use laboro_net::{SecurityError, Trust, dial, http, web_client_config};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsConnector;

/// A foreman, and who we are to it.
pub struct Foreman {
    /// `host:port`.
    pub address: String,
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
    password: String,
    node: NodeInfo,
    login: Mutex<Option<Login>>,
    /// One logs in for all.
    logging_in: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
pub struct NodeInfo {
    pub host: String,
    pub pid: u32,
    pub slots: u32,
    pub tags: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Login {
    pub name: String,
    session: String,
    pub cookie: String,
}

/// Why a foreman could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Perhaps it can later.
    #[error("{0}")]
    Link(#[from] io::Error),
    #[error("the foreman speaks no HTTP: {0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Answer(String),
    /// Asking again does not help.
    #[error("{0}")]
    Denied(String),
}

/// One connection, for one request after the other.
pub type Wire = SendRequest<Full<Bytes>>;

/// An answer is no larger.
const ANSWER_BYTES_MAX: usize = 16 << 20;

impl Foreman {
    pub fn new(
        address: String,
        trust: &Trust,
        cert_name: Option<&str>,
        password: String,
        node: NodeInfo,
    ) -> Result<Foreman, SecurityError> {
        let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
        let host = cert_name.unwrap_or(host.trim_start_matches('[').trim_end_matches(']'));
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|_| SecurityError::Certificate {
            reason: format!("{host} is not the name of a machine"),
        })?;
        let config = Arc::new(web_client_config(trust)?);
        Ok(Foreman {
            address,
            name,
            config,
            password,
            node,
            login: Mutex::default(),
            logging_in: tokio::sync::Mutex::default(),
        })
    }

    pub async fn dial(&self) -> Result<Wire, Trouble> {
        let stream = dial(&self.address).await?;
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector.connect(self.name.clone(), stream).await?;
        Ok(http::handshake(stream).await?)
    }

    /// The login that stands, or a new one.
    pub async fn log_in(&self, wire: &mut Wire) -> Result<Login, Trouble> {
        let _alone = self.logging_in.lock().await;
        if let Some(login) = self.login() {
            return Ok(login);
        }
        self.say_hello(wire).await
    }

    /// The foreman does not know the cookie any more: it is renewed, or else all begins anew.
    pub async fn log_in_again(&self, wire: &mut Wire, old: &Login) -> Result<Login, Trouble> {
        let _alone = self.logging_in.lock().await;
        if let Some(login) = self.login().filter(|login| login.cookie != old.cookie) {
            return Ok(login);
        }
        let said = json!({ "cookie": old.cookie, "msg": self.hello(Some(old)) });
        match self.post(wire, "node/reauth", &said, None).await? {
            (StatusCode::OK, answer) => self.note(&answer, Some(old)),
            _ => self.say_hello(wire).await,
        }
    }

    async fn say_hello(&self, wire: &mut Wire) -> Result<Login, Trouble> {
        let mut old = self.login();
        let mut answered = self.post(wire, "hello", &self.hello(old.as_ref()), None).await?;
        if answered.0 == StatusCode::UNAUTHORIZED && old.take().is_some() {
            // The foreman has forgotten the session, or given the name away: we are somebody new.
            *self.login.lock().unwrap_or_else(PoisonError::into_inner) = None;
            answered = self.post(wire, "hello", &self.hello(None), None).await?;
        }
        match answered {
            (StatusCode::OK, answer) => self.note(&answer, old.as_ref()),
            (StatusCode::FORBIDDEN, _) => {
                Err(Trouble::Denied("the foreman does not accept the password".into()))
            }
            (status, _) => Err(Trouble::Answer(format!("the foreman answers hello with {status}"))),
        }
    }

    fn hello(&self, login: Option<&Login>) -> Value {
        let NodeInfo { host, pid, slots, tags } = &self.node;
        let session = login.map_or("", |login| &login.session);
        let mut hello = json!({
            "auth": self.password, "node": host, "pid": pid, "session": session, "nproc": slots,
        });
        if let Some(login) = login {
            hello["unique_name"] = login.name.as_str().into();
        }
        if !tags.is_empty() {
            hello["tags"] = tags.clone().into();
        }
        hello
    }

    fn note(&self, answer: &Value, old: Option<&Login>) -> Result<Login, Trouble> {
        let text = |key: &str| {
            let fields = answer.as_object()?;
            let found = fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(key));
            found.and_then(|(_, value)| value.as_str()).map(str::to_owned)
        };
        let unclear = || Trouble::Answer("the foreman's answer to hello is not understood".into());
        let session = text("Session").or_else(|| Some(old?.session.clone())).unwrap_or_default();
        let (name, cookie) = text("Name").zip(text("Cookie")).ok_or_else(unclear)?;
        let login = Login { name, session, cookie };
        *self.login.lock().unwrap_or_else(PoisonError::into_inner) = Some(login.clone());
        Ok(login)
    }

    fn login(&self) -> Option<Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks, and reads the answer if it is a good one.
    pub async fn post(
        &self,
        wire: &mut Wire,
        path: &str,
        said: &Value,
        login: Option<&Login>,
    ) -> Result<(StatusCode, Value), Trouble> {
        let request = self.request(Method::POST, path, login).header(CONTENT_TYPE, JSON);
        let request = request.body(Full::from(said.to_string())).map_err(unsayable)?;
        wire.ready().await?;
        let answer = wire.send_request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(|error| Trouble::Answer(error.to_string()))?.to_bytes();
        if status != StatusCode::OK {
            return Ok((status, Value::Null));
        }
        let value = serde_json::from_slice(&body);
        value.map(|value| (status, value)).map_err(|error| {
            Trouble::Answer(format!("the foreman's answer to {path} is not JSON: {error}"))
        })
    }

    /// Asks for a websocket. What else is answered is given back.
    pub async fn upgrade(
        &self,
        wire: &mut Wire,
        login: &Login,
        key: &str,
    ) -> Result<Response<hyper::body::Incoming>, Trouble> {
        let request = self
            .request(Method::GET, "node/persistent", Some(login))
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", key)
            .body(Full::default())
            .map_err(unsayable)?;
        wire.ready().await?;
        Ok(wire.send_request(request).await?)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        login: Option<&Login>,
    ) -> hyper::http::request::Builder {
        let request = Request::builder().method(method).uri(format!("/{path}"));
        let request = request.header(HOST, &self.address);
        match login {
            Some(login) => request.header(COOKIE, format!("fuq_foreman_auth={}", login.cookie)),
            None => request,
        }
    }
}

const JSON: &str = "application/json";

fn unsayable(error: hyper::http::Error) -> Trouble {
    Trouble::Answer(format!("a cookie of the foreman cannot be shown: {error}"))
}

impl std::fmt::Debug for Foreman {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password stays out of logs.
        f.debug_struct("Foreman").field("address", &self.address).finish_non_exhaustive()
    }
}
