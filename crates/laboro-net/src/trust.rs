//! Whom a client trusts: those whom a file names, one certificate, or everybody.

use crate::hex::{hex, unhex};
use crate::secret_file::{SecurityError, read_text};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion, version,
};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Certificates in PEM: the server's own, or those that vouch for it.
    File(PathBuf),
    /// The SHA-256 of the server's certificate, in hex.
    Pin(String),
    /// Whoever answers. What is said is still sealed, but perhaps for the wrong one.
    Anyone,
}

/// For HTTPS at somebody else's server, TLS 1.2 or newer.
pub fn web_client_config(trust: &Trust) -> Result<ClientConfig, SecurityError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let whom = whom(trust, &provider)?;
    let mut config = config(whom, provider, &[&version::TLS13, &version::TLS12])?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Trusts one certificate. Hubs speak nothing older than TLS 1.3.
pub fn only(certificate: CertificateDer<'static>) -> Result<ClientConfig, SecurityError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let whom = Whom::Named { certificates: vec![certificate], authorities: None };
    config(whom, provider, &[&version::TLS13])
}

fn config(
    whom: Whom,
    provider: Arc<CryptoProvider>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ClientConfig, SecurityError> {
    let trusted = Trusted { whom, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .map_err(|error| SecurityError::Certificate { reason: error.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trusted))
        .with_no_client_auth();
    Ok(config)
}

fn whom(trust: &Trust, provider: &Arc<CryptoProvider>) -> Result<Whom, SecurityError> {
    let path = match trust {
        Trust::Anyone => return Ok(Whom::Anyone),
        Trust::Pin(text) => {
            let bytes = unhex(&text.replace(':', "").to_lowercase());
            let bytes = bytes.filter(|bytes| bytes.len() == 32);
            let reason =
                format!("{text} is not the SHA-256 of a certificate: it has 64 hex digits");
            return bytes.map(Whom::Pin).ok_or(SecurityError::Certificate { reason });
        }
        Trust::File(path) => path,
    };
    let file = File::open(path).map_err(SecurityError::io(path, "open it"))?;
    let text = read_text(file, path)?;
    let found = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let found = found.ok().filter(|found| !found.is_empty());
    let found = found.ok_or_else(|| SecurityError::malformed(path, "no certificates in PEM"))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.iter().cloned());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let authorities = verifier.build().ok();
    Ok(Whom::Named { certificates: found, authorities })
}

#[derive(Debug)]
enum Whom {
    Anyone,
    Pin(Vec<u8>),
    Named {
        certificates: Vec<CertificateDer<'static>>,
        /// `None`: none of them can vouch for another.
        authorities: Option<Arc<WebPkiServerVerifier>>,
    },
}

/// That the peer has the key of its certificate is checked as always.
#[derive(Debug)]
struct Trusted {
    whom: Whom,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let good = Ok(ServerCertVerified::assertion());
        let digest = ring::digest::digest(&ring::digest::SHA256, end_entity);
        match &self.whom {
            Whom::Anyone => good,
            Whom::Pin(pin) if digest.as_ref() == pin => good,
            Whom::Pin(_) => {
                tracing::warn!("the server's certificate has {}", hex(digest.as_ref()));
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            // Known to the letter: no name or date says more.
            Whom::Named { certificates, .. } if certificates.contains(end_entity) => good,
            Whom::Named { authorities: Some(authorities), .. } => {
                authorities.verify_server_cert(end_entity, intermediates, name, ocsp, now)
            }
            Whom::Named { authorities: None, .. } => {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
