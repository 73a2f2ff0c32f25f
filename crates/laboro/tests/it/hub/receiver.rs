//! A receiver of hooks: an HTTP server, with TLS or without, that keeps what it was sent.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// One POST as it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// It answers with these statuses in turn, the last one for ever; 0 says nothing at all.
pub(crate) struct Receiver {
    pub(crate) port: u16,
    has_tls: bool,
    requests: Arc<Mutex<Vec<Request>>>,
}

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

impl Receiver {
    pub(crate) fn start(statuses: &'static [u16]) -> Receiver {
        Receiver::start_with(statuses, None)
    }

    pub(crate) fn start_tls(statuses: &'static [u16], config: Arc<ServerConfig>) -> Receiver {
        Receiver::start_with(statuses, Some(config))
    }

    fn start_with(statuses: &'static [u16], tls: Option<Arc<ServerConfig>>) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (requests, has_tls) = (Arc::<Mutex<Vec<Request>>>::default(), tls.is_some());
        let taken = requests.clone();
        std::thread::spawn(move || {
            let mut silent: Vec<Box<dyn Stream>> = Vec::new();
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                // Who does not like the certificate hangs up.
                let Some(mut stream) = wrapped(stream, tls.as_ref()) else { continue };
                let Some(request) = read(&mut stream) else { continue };
                let mut taken = taken.lock().unwrap();
                let status = statuses[taken.len().min(statuses.len() - 1)];
                taken.push(request);
                drop(taken);
                if status == 0 {
                    silent.push(stream);
                    continue;
                }
                let _ = write!(stream, "HTTP/1.1 {status} So\r\ncontent-length: 0\r\n\r\n");
                let _ = stream.flush();
            }
        });
        Receiver { port, has_tls, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        match self.has_tls {
            true => format!("https://localhost:{}/{path}", self.port),
            false => format!("http://127.0.0.1:{}/{path}", self.port),
        }
    }

    pub(crate) fn all(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

fn wrapped(mut stream: TcpStream, tls: Option<&Arc<ServerConfig>>) -> Option<Box<dyn Stream>> {
    let Some(config) = tls else { return Some(Box::new(stream)) };
    let mut connection = ServerConnection::new(config.clone()).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).ok()?;
    }
    Some(Box::new(StreamOwned::new(connection, stream)))
}

fn read(stream: &mut Box<dyn Stream>) -> Option<Request> {
    let mut lines = BufReader::new(stream);
    let mut request = Request::default();
    let mut line = String::new();
    // In TLS 1.3 a client that hangs up at the handshake may do so only now.
    lines.read_line(&mut line).ok().filter(|&read| read > 0)?;
    request.path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    loop {
        line.clear();
        lines.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        request.headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = request.header("content-length").parse().unwrap_or(0);
    let mut body = vec![0; length];
    lines.read_exact(&mut body).unwrap();
    request.body = String::from_utf8(body).unwrap();
    Some(request)
}

/// Who signs certificates of receivers.
pub(super) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn certificate(&self, name: &str) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }
}
