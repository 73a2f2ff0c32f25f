//! HTTP/1.1 on a connection that stands, from the client's side.

use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::error::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// Requests go out by this, one after the other. The connection ends with it, or with what it was upgraded to.
pub async fn handshake<S, B>(stream: S) -> hyper::Result<http1::SendRequest<B>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The one who sends is told of the error.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    Ok(sender)
}
