//! Real handshakes, in memory.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::security::Identity;
use laboro_net::{Trust, secret_file, web_client_config};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConfig, ServerConnection};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Whether the client takes the server for the one it looks for.
fn trusts(trust: &Trust, server: ServerConfig, name: &str) -> bool {
    let config = Arc::new(web_client_config(trust).unwrap());
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = ClientConnection::new(config, name).unwrap();
    let mut server = ServerConnection::new(Arc::new(server)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut &bytes[..]).unwrap();
        if server.process_new_packets().is_err() {
            return false;
        }
        let mut bytes = Vec::new();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut &bytes[..]).unwrap();
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    true
}

fn hub(dir: &Path) -> ServerConfig {
    Identity::open(dir, &[]).unwrap().web_config().unwrap()
}

#[test]
fn a_certificate_that_the_file_holds_is_trusted_under_any_name() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let server = hub(dir.path());
    let file = Trust::File(dir.path().join("tls.pem"));
    assert!(trusts(&file, server, "elsewhere"));
    assert!(!trusts(&file, hub(other.path()), "localhost"));
}

#[test]
fn a_pin_is_one_certificate_and_anyone_is_anyone() {
    let dir = TempDir::new().unwrap();
    let server = || hub(dir.path());
    server();
    let print = Identity::open(dir.path(), &[]).unwrap().fingerprint();
    assert!(trusts(&Trust::Pin(print.to_uppercase()), server(), "x"));
    assert!(!trusts(&Trust::Pin("00".repeat(32)), server(), "x"));
    assert!(trusts(&Trust::Anyone, server(), "x"));
    for wrong in ["", "00", "zz"] {
        assert!(web_client_config(&Trust::Pin(wrong.into())).is_err());
    }
}

#[test]
fn an_authority_vouches_for_the_names_it_signed() {
    let dir = TempDir::new().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["foreman.example".into()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("root.crt"), authority_pem).unwrap();
    std::fs::write(path("fuq.crt"), certificate).unwrap();
    secret_file::replace(&path("fuq.key"), &key.serialize_pem()).unwrap();
    let server =
        || Identity::read(&path("fuq.crt"), &path("fuq.key")).unwrap().web_config().unwrap();
    let trust = Trust::File(path("root.crt"));
    assert!(trusts(&trust, server(), "foreman.example"));
    assert!(!trusts(&trust, server(), "other.example"));
    std::fs::write(path("empty"), "").unwrap();
    assert!(web_client_config(&Trust::File(path("empty"))).is_err());
    assert!(web_client_config(&Trust::File(path("missing"))).is_err());
}
