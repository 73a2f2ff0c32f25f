//! Asks a hub over its HTTP API: JSON questions over connections that are kept, bodies and events that stream. The
//! caller says which certificate is trusted, by a `rustls` configuration. It never sends a request twice, except one
//! that did not leave, or that a hub which only follows sent on; and, where there are several hubs, one that changes
//! nothing or that says it may be.

mod body;
mod connect;
mod error;
mod events;
mod places;

pub use body::{Download, Upload};
pub use error::ClientError;
pub use events::{EventStream, ServerEvent};

use crate::Problem;
use crate::access::{Access, client_config, host_name};
use body::Outgoing;
use bytes::Bytes;
use connect::{Sender, TAKEOVER};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, RANGE};
use hyper::{Method, Request, Response, StatusCode};
use laboro_net::SecurityError;
use laboro_net::trace::{self, TraceParent};
use places::Places;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Opens a connection to a hub in the same process.
pub type Dial = Arc<dyn Fn() -> io::Result<tokio::net::UnixStream> + Send + Sync>;

/// Where a hub is and how it is spoken to.
#[derive(Clone)]
pub struct Target {
    /// A hub in this very process: gives the other end of a connection. Nothing else is tried then.
    pub within: Option<Dial>,
    /// The socket of a hub on this machine, tried before the addresses.
    pub local: Option<PathBuf>,
    /// Name or address.
    pub host: String,
    /// Port of the HTTP API.
    pub port: u16,
    /// Further hubs, of which one leads, or further addresses; they are tried when this one does not answer.
    pub others: Vec<(String, u16)>,
    /// All addresses are those of one hub: if none of them answers, nobody takes over.
    pub is_one_hub: bool,
    /// `None`: without TLS.
    pub tls: Option<Arc<rustls::ClientConfig>>,
    /// Sent with every request.
    pub token: Option<String>,
    /// How long an answer may take to begin. Waits and streams have their own time.
    pub patience: Duration,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The token stays out of logs.
        f.debug_struct("Target").field("host", &self.host).field("port", &self.port).finish()
    }
}

impl Target {
    /// Without TLS and without a token.
    pub fn new(host: impl Into<String>, port: u16) -> Target {
        let patience = Duration::from_secs(60);
        Target {
            within: None,
            local: None,
            host: host.into(),
            port,
            others: Vec::new(),
            is_one_hub: false,
            tls: None,
            token: None,
            patience,
        }
    }

    /// As an access file says. An error when it names no address of the HTTP API.
    pub fn of_access(access: &Access) -> Result<Target, SecurityError> {
        let refuse = |reason: String| SecurityError::BadAccess { reason };
        let addresses = access.http.as_deref();
        let addresses = addresses.ok_or_else(|| match access.prepared {
            true => refuse("the hub was not started yet, so it has no address".into()),
            false => refuse("this hub has no http door, which commands need".into()),
        })?;
        let place = |address: &str| {
            let place = split(address).map(|(host, port)| (host.to_owned(), port));
            place.ok_or_else(|| refuse(format!("`{address}` is not a host and a port")))
        };
        let addresses = access.in_order(addresses, &host_name());
        let mut places =
            addresses.into_iter().map(place).collect::<Result<Vec<_>, _>>()?.into_iter();
        let (host, port) =
            places.next().ok_or_else(|| refuse("it names no address of a hub".into()))?;
        Ok(Target {
            within: None,
            local: access.local_socket().map(Path::to_owned),
            others: places.collect(),
            is_one_hub: access.host.is_some(),
            tls: Some(Arc::new(client_config(access)?)),
            token: Some(access.token.expose().to_owned()),
            ..Target::new(host, port)
        })
    }

    /// As a person would write it.
    pub fn address(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// `host:7910` or `[::1]:7910`.
fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some((host, port.parse().ok()?)).filter(|(host, _)| !host.is_empty())
}

/// A client of one hub. Shared by reference; several requests at once use several connections.
#[derive(Debug)]
pub struct Client {
    target: Target,
    idle: Mutex<Vec<Sender>>,
    places: Places,
}

/// More answers than this in one piece come as pages or streams.
const ANSWER_BYTES_MAX: usize = 64 << 20;

const IDLE_MAX: usize = 4;

/// A connection that broke so often in a row is no takeover. Finding the next hub has its own time.
const TRIES_MAX: usize = 5;
const PAUSE: Duration = Duration::from_millis(300);

impl Client {
    /// Connects when something is asked.
    pub fn new(target: Target) -> Client {
        let places = Places::of(&target);
        Client { target, idle: Mutex::default(), places }
    }

    /// The hub that is asked.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// `path` is below `/api/v1/`: `jobs/7`. Names in it are to be written with `segment`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.get_within(path, Duration::ZERO).await
    }

    /// For questions that wait at the hub: so much longer than usual.
    pub async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        longer: Duration,
    ) -> Result<T, ClientError> {
        let patience = self.target.patience + longer;
        self.decode(self.ask(Method::GET, true, path, Bytes::new(), patience).await?)
    }

    /// Sends a body. It may be sent once only.
    pub async fn post<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.decode(self.ask(Method::POST, false, path, json(body)?, self.target.patience).await?)
    }

    /// A request that may be sent twice, such as one with a key: if the hub goes away meanwhile, the one that
    /// takes over is asked.
    pub async fn post_again<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &str,
        body: &B,
    ) -> Result<T, ClientError> {
        self.decode(self.ask(Method::POST, true, path, json(body)?, self.target.patience).await?)
    }

    /// Removes something.
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.decode(
            self.ask(Method::DELETE, false, path, Bytes::new(), self.target.patience).await?,
        )
    }

    /// Sends a body of any size piece by piece. The answer is there when the last piece was taken, or earlier
    /// when the hub refuses.
    pub async fn upload<T: DeserializeOwned>(
        &self,
        path: &str,
        upload: Upload,
    ) -> Result<T, ClientError> {
        // What streams cannot be sent twice, so the hub that leads is found first.
        self.get::<serde::de::IgnoredAny>("version").await?;
        let request = self.request(Method::POST, path, upload.into_outgoing())?;
        let (response, sender) = self.send(request).await?;
        self.decode(self.read(response, sender).await?)
    }

    /// Bytes as they are: output and metrics. From the byte `from` on, or the last `-from` bytes.
    pub async fn download(&self, path: &str, from: Option<i64>) -> Result<Download, ClientError> {
        let request = || {
            let mut request = self.request(Method::GET, path, Outgoing::empty())?;
            if let Some(from) = from {
                let end = if from < 0 { "" } else { "-" };
                let range = format!("bytes={from}{end}").parse();
                request.headers_mut().insert(RANGE, range.expect("digits are a header value"));
            }
            Ok(request)
        };
        let sent = self.send_to_leader(request);
        let (response, sender) = self.within(self.target.patience, sent).await?;
        match response.status() {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
                Ok(Download::new(response, sender, self.target.address()))
            }
            _ => Err(self.problem(response).await),
        }
    }

    /// Changes as they happen. `last` is the id of the last one seen before.
    pub async fn events(&self, path: &str, last: Option<&str>) -> Result<EventStream, ClientError> {
        let request = || {
            let mut request = self.request(Method::GET, path, Outgoing::empty())?;
            if let Some(last) = last {
                let value = last
                    .parse()
                    .map_err(|_| ClientError::BadRequest { what: format!("event id {last:?}") })?;
                request.headers_mut().insert("last-event-id", value);
            }
            Ok(request)
        };
        let sent = self.send_to_leader(request);
        let (response, sender) = self.within(self.target.patience, sent).await?;
        match response.status() {
            StatusCode::OK => {
                Ok(EventStream::new(Download::new(response, sender, self.target.address())))
            }
            _ => Err(self.problem(response).await),
        }
    }

    /// Gives the body of the answer. What it means is found by `decode`, so that all of this is there once and not for
    /// every kind of answer.
    ///
    /// While one hub takes over from another, connections break. Only where there are several is it worth
    /// asking again, and only if nothing can come of asking twice; or if nobody has looked at it.
    async fn ask(
        &self,
        method: Method,
        is_harmless: bool,
        path: &str,
        body: Bytes,
        patience: Duration,
    ) -> Result<Bytes, ClientError> {
        let begun = Instant::now();
        let mut tries = 0;
        loop {
            let answer = self.ask_once(&method, path, &body, patience).await;
            let Err(error) = &answer else { return answer };
            let is_over = matches!(error, ClientError::Broken { .. })
                || error.reason() == Some("hub_stopped");
            if is_over && is_harmless && self.places.are_several_hubs() && tries < TRIES_MAX {
                tries += 1;
            } else if !error.is_following() || begun.elapsed() > TAKEOVER {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask_once(
        &self,
        method: &Method,
        path: &str,
        body: &Bytes,
        patience: Duration,
    ) -> Result<Bytes, ClientError> {
        let request = || self.request(method.clone(), path, Outgoing::whole(body.clone()));
        let asked = async {
            let (response, sender) = self.send_to_leader(request).await?;
            self.read(response, sender).await
        };
        self.within(patience, asked).await
    }

    async fn within<T>(
        &self,
        patience: Duration,
        asked: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, ClientError> {
        let silent =
            ClientError::Silent { address: self.target.address(), seconds: patience.as_secs() };
        tokio::time::timeout(patience, asked).await.unwrap_or(Err(silent))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Outgoing,
    ) -> Result<Request<Outgoing>, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}/{path}", crate::BASE))
            .header(HOST, self.target.address())
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .header(crate::API_VERSION_HEADER, crate::API_VERSION);
        if let Some(token) = &self.target.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        // What is submitted within a trace is a part of it.
        let parent = std::env::var(trace::PARENT).ok();
        if let Some(parent) = parent.and_then(|text| TraceParent::parse(&text)) {
            request = request.header(trace::HEADER, parent.to_string());
        }
        request.body(body).map_err(|_| ClientError::BadRequest { what: format!("`{path}`") })
    }

    /// Goes where hubs that follow say. The token goes along: whoever has their certificate is one of them.
    async fn send_to_leader(
        &self,
        request: impl Fn() -> Result<Request<Outgoing>, ClientError>,
    ) -> Result<(Response<Incoming>, Sender), ClientError> {
        let begun = Instant::now();
        let mut pause = Duration::ZERO;
        loop {
            let (response, sender) = self.send(request()?).await?;
            let leader = match response.status() {
                StatusCode::TEMPORARY_REDIRECT => response.headers().get(LOCATION),
                _ => None,
            };
            let leader = leader.and_then(|place| place.to_str().ok()).and_then(places::place);
            let Some(leader) = leader.filter(|_| begun.elapsed() < TAKEOVER) else {
                return Ok((response, sender));
            };
            self.places.prefer(leader);
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
            // The one it was sent to may be dead, and the other one not know it yet.
            tokio::time::sleep(pause).await;
            pause = PAUSE;
        }
    }

    /// On a connection that is kept, or a new one if that was closed before anything was sent.
    async fn send(
        &self,
        mut request: Request<Outgoing>,
    ) -> Result<(Response<Incoming>, Sender), ClientError> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let is_new = kept.is_none();
            let mut sender = match kept {
                Some(sender) if sender.is_closed() => continue,
                Some(sender) => sender,
                // Boxed, or every request would carry the room of a TLS handshake.
                None => Box::pin(connect::connect(&self.target, &self.places)).await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) if !is_new => request = unsent,
                    _ => {
                        let why = innermost(error.error());
                        return Err(ClientError::Broken { address: self.target.address(), why });
                    }
                },
            }
        }
    }

    async fn read(
        &self,
        response: Response<Incoming>,
        sender: Sender,
    ) -> Result<Bytes, ClientError> {
        if !response.status().is_success() {
            return Err(self.problem(response).await);
        }
        let body = self.whole(response).await?;
        self.keep(sender);
        Ok(body)
    }

    fn decode<T: DeserializeOwned>(&self, body: Bytes) -> Result<T, ClientError> {
        serde_json::from_slice(&body).map_err(|error| ClientError::Malformed {
            address: self.target.address(),
            why: error.to_string(),
        })
    }

    fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !sender.is_closed() {
            idle.push(sender);
        }
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<Bytes, ClientError> {
        let limited = http_body_util::Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let body = limited.collect().await.map_err(|error| ClientError::Broken {
            address: self.target.address(),
            why: innermost(&*error),
        })?;
        Ok(body.to_bytes())
    }

    async fn problem(&self, response: Response<Incoming>) -> ClientError {
        let status = response.status().as_u16();
        let body = match self.whole(response).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => ClientError::Refused(Box::new(problem)),
            Err(_) => ClientError::Strange { address: self.target.address(), status },
        }
    }
}

/// A name as one piece of a path.
pub fn segment(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The cause that a person can do something about is the last of the chain.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    // What a library advises its users about is nothing to people who use this program.
    match cause.to_string() {
        words if words.contains("close_notify") => "it was closed without an answer".to_owned(),
        words => words,
    }
}

/// What is sent as a body.
fn json<B: Serialize>(body: &B) -> Result<Bytes, ClientError> {
    let bytes = serde_json::to_vec(body);
    bytes.map(Bytes::from).map_err(|error| ClientError::BadRequest { what: error.to_string() })
}
