//! Who comes in and who does not: tokens, wrong tokens, certificates.

mod trust;

use super::*;
use laboro_api::access::client_config;
use laboro_dialects::session::Admission;
use std::fs::Permissions;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const NOW: Time = Time(1_800_000_000_000);
const PEER: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(10, 1, 2, 3)));

fn dir() -> TempDir {
    TempDir::with_prefix("laboro-security-").unwrap()
}

fn add(dir: &Path, role: Role, expires_ms: Option<u64>) -> Secret {
    let new = NewToken { name: None, role, owner: None, group: None, expires_ms };
    TokenBook::of(dir).add(new, NOW).unwrap().0
}

fn identify(tokens: &Tokens, secret: &Secret, now: Time) -> Result<Who, Denied> {
    tokens.identify(secret.expose().as_bytes(), PEER, now)
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_token_says_who_someone_is() {
    let dir = dir();
    let new = NewToken {
        name: Some("ci".into()),
        role: Role::Submit,
        owner: None,
        group: Some("night\\ly".into()),
        expires_ms: None,
    };
    let (secret, token) = TokenBook::of(dir.path()).add(new, NOW).unwrap();
    let who = identify(&Tokens::open(dir.path()).unwrap(), &secret, NOW).unwrap();
    let group = Some(Name::from("night\\ly"));
    let (name, owner, role) = ("ci".into(), "ci".into(), Role::Submit);
    assert_eq!(who, Who { id: token.id, token: name, owner, role, group, job: None });
}

#[test]
fn a_token_of_another_hub_is_unknown_here() {
    let (here, there) = (dir(), dir());
    let new =
        || NewToken { name: None, role: Role::Admin, owner: None, group: None, expires_ms: None };
    TokenBook::of(here.path()).add(new(), NOW).unwrap();
    let (secret, _) = TokenBook::of(there.path()).add(new(), NOW).unwrap();
    let tokens = Tokens::open(here.path()).unwrap();
    assert!(matches!(identify(&tokens, &secret, NOW), Err(Denied::Unknown)));
}

#[test]
fn the_secret_is_not_in_the_file_and_not_in_the_log() {
    let dir = dir();
    let secret = add(dir.path(), Role::Admin, None);
    let path = dir.path().join("tokens.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let tail = secret.expose().rsplit('_').next().unwrap();
    assert!(!text.contains(tail));
    assert!(!format!("{secret:?}").contains(tail));
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_token_counts_until_it_expires() {
    let dir = dir();
    let secret = add(dir.path(), Role::Watch, Some(1000));
    let tokens = Tokens::open(dir.path()).unwrap();
    assert!(identify(&tokens, &secret, NOW.after_ms(999)).is_ok());
    let late = identify(&tokens, &secret, NOW.after_ms(1000)).unwrap_err();
    assert!(matches!(late, Denied::Expired(_)), "{late}");
}

#[test]
fn a_running_doorman_notices_what_is_made_and_what_is_revoked() {
    let dir = dir();
    let tokens = Tokens::open(dir.path()).unwrap();
    let secret = add(dir.path(), Role::Admin, None);
    let who = identify(&tokens, &secret, NOW).unwrap();
    TokenBook::of(dir.path()).revoke(&who.token).unwrap();
    assert_eq!(identify(&tokens, &secret, NOW), Err(Denied::Unknown));
}

#[test]
fn without_a_file_of_tokens_nobody_comes_in() {
    let dir = dir();
    let secret = add(dir.path(), Role::Admin, None);
    let tokens = Tokens::open(dir.path()).unwrap();
    assert!(identify(&tokens, &secret, NOW).is_ok());
    std::fs::remove_file(dir.path().join("tokens.toml")).unwrap();
    assert_eq!(identify(&tokens, &secret, NOW), Err(Denied::Unknown));
}

#[test]
fn a_slip_in_an_editor_throws_nobody_out() {
    let dir = dir();
    let secret = add(dir.path(), Role::Admin, None);
    let tokens = Tokens::open(dir.path()).unwrap();
    let path = dir.path().join("tokens.toml");
    std::fs::write(&path, "[[token]]\nid = 7\n").unwrap();
    assert!(identify(&tokens, &secret, NOW).is_ok());
    let told = TokenBook::of(dir.path()).list().unwrap_err().to_string();
    assert!(told.contains("tokens.toml: line 2: "), "{told}");
}

#[test]
fn whoever_guesses_has_to_wait_and_whoever_repeats_a_mistake_does_not() {
    let dir = dir();
    let good = add(dir.path(), Role::Admin, None);
    let tokens = Tokens::open(dir.path()).unwrap();
    for _ in 0..100 {
        assert_eq!(tokens.identify(b"an old token", PEER, NOW), Err(Denied::Unknown));
    }
    assert!(identify(&tokens, &good, NOW).is_ok());
    for guess in 0..9 {
        let guess = format!("guess {guess}");
        assert_eq!(tokens.identify(guess.as_bytes(), PEER, NOW), Err(Denied::Unknown));
    }
    let soon = NOW.after_ms(500);
    assert_eq!(tokens.identify(b"one more", PEER, soon), Err(Denied::TooMany(60)));
    assert!(identify(&tokens, &good, soon).is_ok(), "a guesser keeps nobody else out");
    let other = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    assert_eq!(tokens.identify(b"one more", other, soon), Err(Denied::Unknown));
    let later = NOW.after_ms(60_000);
    assert_eq!(tokens.identify(b"one more", PEER, later), Err(Denied::Unknown));
}

#[test]
fn one_network_of_ipv6_is_one_peer() {
    let dir = dir();
    let tokens = Tokens::open(dir.path()).unwrap();
    let peer = |last: u16| Some(format!("2001:db8::{last:x}").parse().unwrap());
    for guess in 0..10 {
        let _ = tokens.identify(&[guess], peer(guess.into()), NOW);
    }
    assert_eq!(tokens.identify(b"more", peer(99), NOW), Err(Denied::TooMany(60)));
}

#[test]
fn a_secret_with_one_letter_changed_is_unknown_and_so_is_any_rubbish() {
    let dir = dir();
    let good = add(dir.path(), Role::Admin, None).expose().to_owned();
    let tokens = Tokens::open(dir.path()).unwrap();
    let last = if good.ends_with('0') { "1" } else { "0" };
    let changed = good[..good.len() - 1].to_owned() + last;
    for wrong in [changed.as_bytes(), b"", b"laboro_", b"laboro__", &[0xff; 300], &[b'a'; 100_000]]
    {
        assert_eq!(tokens.identify(wrong, None, NOW), Err(Denied::Unknown));
    }
}

#[test]
fn only_roles_that_may_work_pass_the_gate_and_only_while_the_token_counts() {
    let dir = dir();
    let (watch, work) = (add(dir.path(), Role::Watch, None), add(dir.path(), Role::Work, Some(10)));
    let admission = TokenAdmission::new(Arc::new(Tokens::open(dir.path()).unwrap()));
    let denied = admission.admit_worker(watch.expose().as_bytes(), PEER, NOW).unwrap_err();
    assert!(denied.0.contains("--role work"), "{}", denied.0);
    assert!(admission.still_holds(NOW), "nobody has come in yet");
    assert!(admission.admit_worker(work.expose().as_bytes(), PEER, NOW).is_ok());
    assert!(admission.still_holds(NOW.after_ms(9)));
    assert!(!admission.still_holds(NOW.after_ms(10)));
}

#[test]
fn names_of_tokens_are_unique_and_plain() {
    let dir = dir();
    let book = TokenBook::of(dir.path());
    let new = |name: &str| NewToken {
        name: Some(name.into()),
        role: Role::Watch,
        owner: None,
        group: None,
        expires_ms: None,
    };
    book.add(new("a.b-c_1"), NOW).unwrap();
    let told = |name| book.add(new(name), NOW).unwrap_err().to_string();
    assert!(told("a.b-c_1").contains("already"));
    for bad in ["", "a b", "a\nb", "../x", &"x".repeat(65)] {
        assert!(told(bad).contains("letters"), "{bad}");
    }
    assert!(book.revoke("nobody").unwrap_err().to_string().contains("no token nobody"));
    assert_eq!(book.list().unwrap().len(), 1);
}

#[test]
fn a_file_that_others_can_read_is_refused_with_what_to_do() {
    let dir = dir();
    add(dir.path(), Role::Admin, None);
    let path = dir.path().join("tokens.toml");
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let told = Tokens::open(dir.path()).unwrap_err().to_string();
    assert!(told.contains("mode 644") && told.contains("chmod 600"), "{told}");
}

fn access(dir: &Path) -> Access {
    let identity = Identity::open(dir, &["hub.example".into()]).unwrap();
    Access {
        socket: None,
        host: None,
        prepared: false,
        http: None,
        native: Some("127.0.0.1:1".into()),
        role: Role::Work,
        group: None,
        token: add(dir, Role::Work, None),
        certificate: identity.certificate_pem().to_owned(),
    }
}

#[test]
fn an_access_file_is_read_as_it_was_written_also_with_news_from_a_later_version() {
    let dir = dir();
    let access = access(dir.path());
    let path = Access::path_in(dir.path());
    access.write(&path).unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(Access::read(&path).unwrap(), access);
    let newer = access.text().replace("role =", "colour = \"red\"\nrole =");
    assert_eq!(Access::parse(&newer).unwrap(), access);
    let damaged = access.text().replace("BEGIN", "BEGINN");
    let told = Access::parse(&damaged).unwrap_err().to_string();
    assert!(told.contains("certificate is damaged"), "{told}");
}

#[test]
fn the_certificate_stays_the_same_from_start_to_start() {
    let dir = dir();
    let first = Identity::open(dir.path(), &[]).unwrap();
    let second = Identity::open(dir.path(), &["other".into()]).unwrap();
    assert_eq!(first.fingerprint(), second.fingerprint());
    assert_eq!(first.certificate_pem(), second.certificate_pem());
    assert_eq!(mode(&dir.path().join("tls.pem")), 0o600);
}

/// What a client gets to hear from a server with the first certificate when it trusts the second.
async fn talk(server: &Path, trusted: &Access) -> std::io::Result<Vec<u8>> {
    let config = Identity::open(server, &[]).unwrap().server_config().unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let serve = tokio::spawn(async move {
        if let Ok(mut stream) = acceptor.accept(ours).await {
            stream.write_all(b"welcome").await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    let connector = tokio_rustls::TlsConnector::from(Arc::new(client_config(trusted).unwrap()));
    let name = rustls::pki_types::ServerName::try_from("anything.example").unwrap();
    let mut heard = Vec::new();
    let result = match connector.connect(name, theirs).await {
        Ok(mut stream) => stream.read_to_end(&mut heard).await.map(|_| heard),
        Err(error) => Err(error),
    };
    serve.await.unwrap();
    result
}

#[tokio::test]
async fn a_client_trusts_the_certificate_of_its_access_file_and_no_other() {
    let (one, other) = (dir(), dir());
    let access = access(one.path());
    assert_eq!(talk(one.path(), &access).await.unwrap(), b"welcome");
    let told = talk(other.path(), &access).await.unwrap_err().to_string();
    assert!(told.contains("certificate"), "{told}");
}

#[test]
fn keys_of_curve_are_made_once_for_their_owner_only() {
    let dir = dir();
    let first = curve_keys(dir.path()).unwrap();
    assert_eq!(curve_keys(dir.path()).unwrap(), first);
    let path = dir.path().join("curve.key");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(read_curve_keys(&path).unwrap(), first);
    assert!(make_curve_keys(&path).is_err());
    assert_eq!(curve_keys(dir.path()).unwrap(), first);
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1);
}

#[test]
fn keys_of_curve_are_read_as_other_tools_write_them() {
    let dir = dir();
    let path = dir.path().join("client.key");
    let keys = make_curve_keys(&path).unwrap();
    let secret = laboro_dialects::zmtp::key_to_text(&keys.secret);
    for text in [
        secret.clone(),
        format!("{secret}\n"),
        format!("# by a tool\ncurve\n    public-key = \"x\"\n    secret-key = \"{secret}\"\n"),
    ] {
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read_curve_keys(&path).unwrap(), keys, "{text}");
    }
    std::fs::write(&path, "secret 123").unwrap();
    let told = read_curve_keys(&path).unwrap_err().to_string();
    assert!(told.contains("key has 3 characters, not 40"), "{told}");
    let told = read_curve_keys(&dir.path().join("none")).unwrap_err().to_string();
    assert!(told.contains("laboro mq keys"), "{told}");
}
