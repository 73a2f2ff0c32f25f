//! Handshakes with hubs that know this worker's protocol, another one, or none.

use super::*;
use laboro_dialects::fuq2::WORKER_PROTOCOL;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Knows these protocols, greets whom it understands, and tells at last how many it did not.
struct Server {
    way: Tls,
    refused: JoinHandle<usize>,
}

async fn server(protocols: &[&[u8]], client_trusts_it: bool) -> Server {
    let key = rcgen::generate_simple_self_signed(["laboro".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["laboro".to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    let trusted = if client_trusts_it { &key } else { &other };
    roots.add(trusted.cert.der().clone()).unwrap();
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = [WORKER_PROTOCOL, STANDBY_REDIRECT_PROTOCOL].map(<[u8]>::to_vec).into();

    let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let chain = vec![key.cert.der().clone()];
    let builder = ServerConfig::builder().with_no_client_auth();
    let mut serving = builder.with_single_cert(chain, secret).unwrap();
    serving.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let refused = tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(serving));
        for refused in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                stream.write_all(b"hello").await.unwrap();
                stream.shutdown().await.unwrap();
                return refused;
            }
        }
        unreachable!("it listens until it is understood")
    });
    let name = ServerName::try_from("laboro").unwrap();
    Server { way: Tls { address, name, config: Arc::new(config) }, refused }
}

#[tokio::test]
async fn a_hub_that_does_not_know_the_protocol_is_met_without_naming_it() {
    let cases: [(&[&[u8]], usize); 3] =
        [(&[b"laboro-tunnel/1"], 1), (&[], 0), (&[b"laboro-tunnel/1", WORKER_PROTOCOL], 0)];
    for (protocols, refused) in cases {
        let server = server(protocols, true).await;
        let mut stream = server.way.connect().await.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(line(&mut stream).await.unwrap(), "hello");
        assert_eq!(server.refused.await.unwrap(), refused);
    }
}

#[tokio::test]
async fn a_hub_that_is_not_trusted_is_not_tried_again() {
    let server = server(&[b"laboro-tunnel/1", WORKER_PROTOCOL], false).await;
    let refused = server.way.connect().await.err().expect("nobody knows its certificate");
    assert!(matches!(refused, ConnectError::Stranger { .. }), "{refused}");
    server.refused.abort();
}
