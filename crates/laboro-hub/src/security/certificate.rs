//! Who the hub is: a certificate that it makes for itself at its first start, and its key. Clients are told
//! exactly this certificate in their access file, so no authority has to vouch for it.

use super::{SecurityError, host_name};
use laboro_net::hex::hex;
use laboro_net::secret_file as files;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

pub struct Identity {
    /// The hub's own first; then those that vouch for it, if somebody put some into the file.
    chain: Vec<CertificateDer<'static>>,
    pem: String,
    shown: Arc<ShownCertificate>,
}

/// What listeners show to whoever connects next. They keep it by reference, so that it can be replaced while they listen.
#[derive(Debug)]
struct ShownCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint()).finish_non_exhaustive()
    }
}

impl Identity {
    /// Reads `tls.pem` in this directory, or makes it. `names` are further names and addresses under which
    /// browsers may find the hub; our own clients do not look at names.
    pub fn open(dir: &Path, names: &[String]) -> Result<Identity, SecurityError> {
        let path = dir.join("tls.pem");
        let text = match files::read(&path)? {
            Some(text) => text,
            None => {
                let text = make(names)?;
                files::replace(&path, &text)?;
                text
            }
        };
        Identity::parse(&text, &text).map_err(|what| {
            let reason = format!(
                "{what}: put a certificate and its key in PEM there, or remove it; the hub then \
                 makes a new one, and every access file has to be made again"
            );
            SecurityError::malformed(&path, reason)
        })
    }

    /// Another one than the hub's own, from files that somebody made.
    pub(crate) fn read(certificate: &Path, key: &Path) -> Result<Identity, SecurityError> {
        let text = |path: &Path| {
            let file = File::open(path).map_err(SecurityError::io(path, "open it"))?;
            files::read_text(file, path)
        };
        let missing = || SecurityError::malformed(key, "there is no such file");
        let secret = files::read(key)?.ok_or_else(missing)?;
        Identity::parse(&text(certificate)?, &secret).map_err(|what| {
            let reason = format!("{what}: expected a certificate and its key in PEM");
            SecurityError::malformed(certificate, reason)
        })
    }

    fn parse(certificates: &str, key: &str) -> Result<Identity, &'static str> {
        let chain = CertificateDer::pem_slice_iter(certificates.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|_| "the certificate is damaged")?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
        let key = key.map_err(|_| "it has no valid key")?;
        let pem = first_certificate(certificates).ok_or("there is no certificate in it")?;
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider);
        let certified = certified.map_err(|_| "the key is not that of the certificate")?;
        let shown = Arc::new(ShownCertificate(RwLock::new(Arc::new(certified))));
        Ok(Identity { chain, pem, shown })
    }

    /// For listeners. TLS 1.3 only: nothing that we talk to is older.
    pub fn server_config(&self) -> Result<ServerConfig, SecurityError> {
        self.config(&[&rustls::version::TLS13])
    }

    /// For programs of others, which may be older: TLS 1.2 too, and HTTP/1.1.
    pub(crate) fn web_config(&self) -> Result<ServerConfig, SecurityError> {
        let mut config = self.config(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn config(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Result<ServerConfig, SecurityError> {
        let refuse =
            |error: rustls::Error| SecurityError::Certificate { reason: error.to_string() };
        Ok(ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(versions)
            .map_err(refuse)?
            .with_no_client_auth()
            .with_cert_resolver(self.shown.clone()))
    }

    /// Listeners of this one show that one from now on.
    pub(crate) fn show(&self, other: &Identity) {
        let certified = other.shown.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        *self.shown.0.write().unwrap_or_else(PoisonError::into_inner) = certified;
    }

    /// SHA-256 of the certificate, as browsers and openssl show it.
    pub fn fingerprint(&self) -> String {
        hex(ring::digest::digest(&ring::digest::SHA256, &self.chain[0]).as_ref())
    }

    /// Of the socket on which the hub serves its own user.
    pub(crate) fn socket_name(&self) -> String {
        laboro_api::access::socket_name(&self.chain[0])
    }

    /// The hub's own certificate, for access files.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }
}

/// Long enough for any hub. Clients trust this one certificate or none, so an end only breaks things.
const LAST_YEAR: i32 = 2100;

fn make(names: &[String]) -> Result<String, SecurityError> {
    let refuse = |error: rcgen::Error| SecurityError::Certificate { reason: error.to_string() };
    let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    all.push(host_name());
    all.extend_from_slice(names);
    all.retain(|name| !name.is_empty() && name.is_ascii());
    all.sort();
    all.dedup();
    let mut params = CertificateParams::new(all).map_err(refuse)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Laboro hub");
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(LAST_YEAR, 1, 1);
    let key = KeyPair::generate().map_err(refuse)?;
    let certificate = params.self_signed(&key).map_err(refuse)?;
    Ok(format!("{}{}", certificate.pem(), key.serialize_pem()))
}

fn first_certificate(text: &str) -> Option<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let from = text.find("-----BEGIN CERTIFICATE-----")?;
    let to = from + text[from..].find(END)? + END.len();
    Some(text[from..to].replace("\r\n", "\n") + "\n")
}
