//! Every way to show servers who we are, and to see who they are.

use super::cluster::{Cluster, Ground};
use crate::{JetStreamJournal, Login, Options, Tls};
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

fn options(cluster: &Cluster, login: Login) -> Options {
    Options {
        monitors: cluster.monitors(),
        replicas: 1,
        lease: Duration::from_secs(1),
        login,
        ..Options::new(&cluster.address(), "test")
    }
}

fn servers(outside: &str) -> Cluster {
    Cluster::start_with(1, "sync_interval: always", outside)
}

fn is_let_in(options: Options) {
    JetStreamJournal::open(options).unwrap().0.close().unwrap();
}

fn is_refused(options: Options) {
    let told = JetStreamJournal::open(options).expect_err("it is refused").to_string();
    assert!(told.contains("cannot connect to NATS"), "{told}");
}

fn file(dir: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_password_is_said_and_a_wrong_one_is_told() {
    let cluster = servers("authorization { user: hub, password: s3 }");
    let login = |password: &str| Login::User { name: "hub".into(), password: password.into() };
    is_refused(options(&cluster, login("wrong")));
    is_refused(options(&cluster, Login::None));
    is_let_in(options(&cluster, login("s3")));
}

#[test]
fn so_is_a_token() {
    let cluster = servers("authorization { token: s3 }");
    is_refused(options(&cluster, Login::Token("wrong".into())));
    is_let_in(options(&cluster, Login::Token("s3".into())));
}

#[test]
fn an_nkey_is_used_without_being_said() {
    let (dir, key, other) = (TempDir::new().unwrap(), KeyPair::new_user(), KeyPair::new_user());
    let users = format!("authorization {{ users: [ {{ nkey: {} }} ] }}", key.public_key());
    let cluster = servers(&users);
    let seed = |key: &KeyPair, name| Login::Nkey(file(&dir, name, key.seed().unwrap()));
    is_refused(options(&cluster, seed(&other, "other")));
    is_let_in(options(&cluster, seed(&key, "own")));
}

/// A token of NATS, signed by whoever it comes from.
fn jwt(issuer: &KeyPair, subject: &KeyPair, nats: Value) -> String {
    let (issued_by, name) = (issuer.public_key(), subject.public_key());
    let claims = json!({
        "jti": name, "iat": 1_700_000_000, "iss": issued_by, "name": name, "sub": name, "nats": nats,
    });
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let text = format!("{}.{}", part(&json!({"typ": "JWT", "alg": "ed25519-nkey"})), part(&claims));
    let signed = issuer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signed))
}

#[test]
fn a_file_of_credentials_is_good_where_an_operator_gives_them_out() {
    let (dir, operator) = (TempDir::new().unwrap(), KeyPair::new_operator());
    let [account, system] = [KeyPair::new_account(), KeyPair::new_account()];
    let all = -1;
    let limits = json!({
        "subs": all, "data": all, "payload": all, "imports": all, "exports": all, "wildcards": true,
        "conn": all, "leaf": all, "mem_storage": all, "disk_storage": all, "streams": all,
        "consumer": all,
    });
    let of_account = json!({"type": "account", "version": 2, "limits": limits});
    let of_system = json!({"type": "account", "version": 2, "limits": {
        "subs": all, "data": all, "payload": all, "imports": all, "exports": all, "wildcards": true,
        "conn": all, "leaf": all,
    }});
    let outside = format!(
        "operator: {}\nresolver: MEMORY\nsystem_account: {2}\n\
         resolver_preload: {{ {1}: \"{3}\", {2}: \"{4}\" }}",
        jwt(&operator, &operator, json!({"type": "operator", "version": 2})),
        account.public_key(),
        system.public_key(),
        jwt(&operator, &account, of_account),
        jwt(&operator, &system, of_system),
    );
    let cluster = servers(&outside);
    let credentials = |account: &KeyPair, name: &str| {
        let user = KeyPair::new_user();
        let nats = json!({"type": "user", "version": 2, "pub": {}, "sub": {}, "subs": all, "data": all, "payload": all});
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            jwt(account, &user, nats),
            user.seed().unwrap()
        );
        Login::Credentials(file(&dir, name, text))
    };
    is_refused(options(&cluster, credentials(&KeyPair::new_account(), "other")));
    is_let_in(options(&cluster, credentials(&account, "own")));
}

/// An authority, and certificates that it signed.
struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let (dir, key) = (TempDir::new().unwrap(), rcgen::KeyPair::generate().unwrap());
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        file(&dir, "ca.pem", params.self_signed(&key).unwrap().pem());
        Authority { issuer: Issuer::new(params, key), dir }
    }

    fn ca(&self) -> PathBuf {
        self.dir.path().join("ca.pem")
    }

    /// The certificate and its key.
    fn sign(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pem = file(&self.dir, &format!("{name}.pem"), certificate.pem());
        (pem, file(&self.dir, &format!("{name}.key"), key.serialize_pem()))
    }
}

#[test]
fn servers_and_hubs_show_certificates_to_each_other() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.sign("server");
    let show = |path: &Path| path.display().to_string();
    let outside = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true }}",
        show(&certificate),
        show(&key),
        show(&authority.ca())
    );
    let ground = Ground { outside: &outside, ..Ground::default() };
    let cluster = Cluster::build(1, &ground);
    let with = |ca: PathBuf, certificate: Option<(PathBuf, PathBuf)>| {
        let tls = Tls { is_required: true, authority: Some(ca), certificate };
        Options { tls, ..options(&cluster, Login::None) }
    };
    is_refused(with(stranger.ca(), Some(authority.sign("hub"))));
    is_refused(with(authority.ca(), None));
    is_let_in(with(authority.ca(), Some(authority.sign("hub"))));
    // As `tls://` in the address says it too.
    let tls = Tls { is_required: false, ..with(authority.ca(), Some(authority.sign("hub"))).tls };
    let servers = vec![cluster.address().replace("nats://", "tls://")];
    is_let_in(Options { tls, servers, ..options(&cluster, Login::None) });
}
