//! What a client needs to reach a hub: its addresses, its certificate and a token, in one small file that
//! can be copied to another machine. Whoever has the file may do what its token allows.

use super::files;
use super::{Role, Secret, SecurityError};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Access {
    /// Host and port; several with commas between them, of hubs of which one leads. `None`: the hub has no such
    /// door.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    pub role: Role,
    /// The group that the token is bound to, if to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub token: Secret,
    /// In PEM. Exactly this certificate is trusted, whatever names and dates stand in it.
    pub certificate: String,
}

impl Access {
    /// Where a hub puts the access file of its own machine.
    pub fn path_in(dir: &Path) -> PathBuf {
        dir.join("access.toml")
    }

    pub fn read(path: &Path) -> Result<Access, SecurityError> {
        let file = File::open(path).map_err(SecurityError::io(path, "open it"))?;
        let text = files::read_text(file, path)?;
        Access::parse(&text).map_err(|error| match error {
            SecurityError::BadAccess { reason } => SecurityError::malformed(path, reason),
            other => other,
        })
    }

    /// The hub's own, which nobody else may read. `None`: there is none, or it makes no sense any more.
    pub(crate) fn read_own(path: &Path) -> Result<Option<Access>, SecurityError> {
        Ok(files::read(path)?.and_then(|text| Access::parse(&text).ok()))
    }

    /// Keys that this program does not know are left alone: a newer hub may have written them.
    pub fn parse(text: &str) -> Result<Access, SecurityError> {
        let refuse = |reason: String| SecurityError::BadAccess { reason };
        let access: Access =
            toml::from_str(text).map_err(|error| refuse(super::tokens::in_line(text, &error)))?;
        access.pinned()?;
        Ok(access)
    }

    /// Each of the addresses in `http` or `native`, in the order in which they are to be tried.
    pub fn each(addresses: &str) -> impl Iterator<Item = &str> {
        addresses.split(',').map(str::trim).filter(|address| !address.is_empty())
    }

    pub fn text(&self) -> String {
        let body = toml::to_string(self).expect("a table of strings has a TOML form");
        format!(
            "# Access to a Laboro hub. Keep it to yourself: whoever has it may do what the role says.\n\n{body}"
        )
    }

    /// Only its owner can read the file.
    pub(crate) fn write(&self, path: &Path) -> Result<(), SecurityError> {
        files::replace(path, &self.text())
    }

    fn pinned(&self) -> Result<CertificateDer<'static>, SecurityError> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|_| SecurityError::BadAccess { reason: "its certificate is damaged".into() })
    }
}

/// For connections to the hub of this access file, and to no other.
pub fn client_config(access: &Access) -> Result<ClientConfig, SecurityError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let pinned = Pinned { certificate: access.pinned()?, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| SecurityError::Certificate { reason: error.to_string() })?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    Ok(config)
}

/// Trusts one certificate. That the peer has its key is checked as always.
#[derive(Debug)]
struct Pinned {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
