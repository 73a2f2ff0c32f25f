//! The way to a foreman for a node that polls: its side of the conversation writes requests as lines, each of which
//! becomes an HTTP request here, and answers come back as lines. Trouble ends the connection, and all begins anew.

use super::persistent::{PATIENCE, late, told};
use hyper::StatusCode;
use laboro_clients::fuq::{Foreman, Trouble, Wire};
use laboro_worker::agent::{ByteStream, Connect, Connecting};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

pub(super) struct Bridge(pub(super) Arc<Foreman>);

/// What waits on its way between the two.
const BUFFER_BYTES: usize = 64 << 10;

/// What the node's side asks for.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct NodeRequest {
    pub id: u64,
    /// `None`: the answer is not waited for any more.
    pub path: Option<String>,
    #[serde(default)]
    pub body: Value,
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Answered {
    pub id: u64,
    pub status: u16,
    pub body: Value,
    /// It was said twice, on two connections: the foreman may have heard it before.
    pub is_repeated: bool,
}

impl Connect for Bridge {
    fn connect(&self) -> Connecting {
        let foreman = Arc::clone(&self.0);
        Box::pin(async move {
            let logging_in = async {
                let mut wire = foreman.dial().await?;
                foreman.log_in(&mut wire).await?;
                Ok(wire)
            };
            let logged_in = timeout(PATIENCE, logging_in).await;
            let logged_in = logged_in.unwrap_or_else(|_| Err(late()));
            let wire = logged_in.map_err(|trouble| told(&foreman, trouble))?;
            let wires = Wires::default();
            wires.keep(wire);
            let (near, far) = tokio::io::duplex(BUFFER_BYTES);
            tokio::spawn(carry(foreman, wires, far));
            Ok(Box::new(near) as Box<dyn ByteStream>)
        })
    }

    fn target(&self) -> String {
        self.0.address.clone()
    }
}

/// Connections whose last request was answered. They stay open for the next one, and tell the foreman meanwhile that
/// the node lives. There are no more than were ever used at once: one a slot, and one a result.
#[derive(Clone, Default)]
struct Wires(Arc<Mutex<Vec<Wire>>>);

impl Wires {
    fn keep(&self, wire: Wire) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(wire);
    }

    /// One that the foreman has not closed meanwhile, as far as is known here.
    fn take(&self) -> Option<Wire> {
        let mut wires = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        wires.retain(|wire| !wire.is_closed());
        wires.pop()
    }
}

/// Until the node's side hangs up, or something goes wrong.
async fn carry(foreman: Arc<Foreman>, wires: Wires, stream: DuplexStream) {
    let (from, mut to) = split(stream);
    let mut lines = BufReader::new(from).lines();
    let mut under_way: JoinSet<Result<Answered, Trouble>> = JoinSet::new();
    let mut handles: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Ok(Some(line)) = line else { return };
                let Ok(asked) = serde_json::from_str::<NodeRequest>(&line) else { return };
                match asked.path {
                    Some(path) => {
                        let (foreman, wires, id) = (Arc::clone(&foreman), wires.clone(), asked.id);
                        let ask = async move {
                            let ((status, body), is_repeated) =
                                ask(&foreman, &wires, &path, &asked.body).await?;
                            Ok(Answered { id, status: status.as_u16(), body, is_repeated })
                        };
                        handles.insert(id, under_way.spawn(ask));
                    }
                    None => {
                        handles.remove(&asked.id).inspect(AbortHandle::abort);
                    }
                }
            }
            Some(answered) = under_way.join_next() => {
                let answered = match answered {
                    Err(ended) if ended.is_cancelled() => continue,
                    Ok(Ok(answered)) => answered,
                    // The link says that it is down; the reason is told when the next login fails.
                    Ok(Err(_)) | Err(_) => return,
                };
                handles.remove(&answered.id);
                let Ok(mut line) = serde_json::to_vec(&answered) else { return };
                line.push(b'\n');
                if to.write_all(&line).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// On a connection of its own while it lasts: most requests wait. With the answer: whether it was asked twice.
async fn ask(
    foreman: &Foreman,
    wires: &Wires,
    path: &str,
    body: &Value,
) -> Result<((StatusCode, Value), bool), Trouble> {
    let mut is_repeated = false;
    if let Some(mut wire) = wires.take() {
        match ask_on(foreman, &mut wire, path, body).await {
            // The foreman closed it in the same moment, and may have heard it before.
            Err(Trouble::Http(_)) => is_repeated = true,
            answered => {
                wires.keep(wire);
                return answered.map(|answer| (answer, false));
            }
        }
    }
    let mut wire = timeout(PATIENCE, foreman.dial()).await.unwrap_or_else(|_| Err(late()))?;
    let answered = ask_on(foreman, &mut wire, path, body).await?;
    wires.keep(wire);
    Ok((answered, is_repeated))
}

async fn ask_on(
    foreman: &Foreman,
    wire: &mut Wire,
    path: &str,
    body: &Value,
) -> Result<(StatusCode, Value), Trouble> {
    let login = foreman.log_in(wire).await?;
    let answer = foreman.post(wire, path, body, Some(&login)).await?;
    if !matches!(answer.0, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(answer);
    }
    let login = foreman.log_in_again(wire, &login).await?;
    foreman.post(wire, path, body, Some(&login)).await
}
