//! What nodes ask by HTTP: to be let in, and, those that poll, for work and to tell how it ended.

use super::absence::Present;
use super::answer::{
    ACCESS, COOKIE, COOKIE_NAME, FuqAnswer, FuqRefused, SESSION, done, json, set_cookie,
};
use super::jobs::{Task, stop_task, task};
use super::message::Message;
use super::register::{COOKIE_BYTES_MAX, Login, Node};
use super::serve::FuqConnection;
use hyper::HeaderMap;
use hyper::header::COOKIE as COOKIE_HEADER;
use laboro_core::{
    Command, LeaseRef, Leave, Leaving, Name, Query, Refusal, Reply, Report, TaskRef, TaskResult,
    WorkerRef, WorkerView,
};
use laboro_dialects::fuq2;
use serde::Serialize;
use std::sync::Arc;

/// Older nodes say `job/status`, and only ours `node/leave`.
pub(super) const PATHS: [&str; 6] =
    ["hello", "node/reauth", "node/leave", "job/request", "job/update", "job/status"];

/// Names, tags and processors that a node may have. The hub has its own limits.
const TAGS_MAX: usize = 64;
const NAME_BYTES_MAX: usize = 256;
const SLOTS_MAX: i64 = 65_534;

impl FuqConnection {
    pub(super) async fn node(
        self: &Arc<FuqConnection>,
        path: &str,
        headers: &HeaderMap,
        said: &Message,
    ) -> Result<FuqAnswer, FuqRefused> {
        match path {
            "hello" => self.hello(said),
            "node/reauth" => self.reauth(said),
            "node/leave" => {
                let (node, _) = self.known_with(headers, said)?;
                self.let_go(&node).await
            }
            "job/request" => {
                let (node, said) = self.known_with(headers, said)?;
                let _present = Present::new(&self.door, &self.reception, &node);
                self.give_work(&node, said.number("nproc")?).await
            }
            _ => match self.known_with(headers, said) {
                Ok((node, said)) => {
                    let _present = Present::new(&self.door, &self.reception, &node);
                    self.update(&node, &said).await
                }
                Err(refused) => self.update_late(headers, said, refused).await,
            },
        }
    }

    fn hello(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let (node, now) = (node_of(said), self.reception.hall.clock.now());
        self.door.admit(&said.text("auth")?, self.peer, now)?;
        let node = node?;
        let mut register = self.door.register();
        if register.has_wrong_session(&node) {
            return Err(FuqRefused::Unauthorized(SESSION));
        }
        let login = register.log_in(now, node)?;
        drop(register);
        let Login { cookie, node } = &login;
        let (name, session) = (node.name.as_str(), Some(node.session.as_str()));
        Ok(self.welcome(&login, &Welcome { name, session, cookie }))
    }

    /// The cookie is old, the node the same.
    fn reauth(&self, said: &Message) -> Result<FuqAnswer, FuqRefused> {
        let hello = said.inner("msg")?;
        let (shown, cookie) = (node_of(&hello)?, said.text("cookie")?);
        let now = self.reception.hall.clock.now();
        self.door.admit(&hello.text("auth")?, self.peer, now)?;
        let mut register = self.door.register();
        let known = register.find_stale(&cookie).cloned().ok_or(FuqRefused::Forbidden(ACCESS))?;
        if known.name != shown.name || known.host != shown.host {
            return Err(FuqRefused::Forbidden(ACCESS));
        }
        if register.has_wrong_session(&shown) {
            return Err(FuqRefused::Unauthorized(SESSION));
        }
        let login = register.renew(now, known)?;
        drop(register);
        let Login { cookie, node } = &login;
        Ok(self.welcome(&login, &Welcome { name: &node.name, session: None, cookie }))
    }

    fn welcome(&self, login: &Login, names: &Welcome<'_>) -> FuqAnswer {
        self.note_known();
        let mut answer = json(names);
        set_cookie(&mut answer, &login.cookie);
        answer
    }

    /// Whose cookie is shown: in its header, or where older nodes have it.
    pub(super) fn known(
        &self,
        headers: &HeaderMap,
        body: Option<&str>,
    ) -> Result<Node, FuqRefused> {
        let shown = cookie_in(headers).or(body.filter(|cookie| !cookie.is_empty()));
        let cookie = shown.ok_or(FuqRefused::Unauthorized("missing session cookie"))?;
        if cookie.len() > COOKIE_BYTES_MAX {
            return Err(FuqRefused::Unauthorized(COOKIE));
        }
        let now = self.reception.hall.clock.now();
        let node = self.door.register().find(now, cookie).cloned();
        let node = node.ok_or(FuqRefused::Forbidden(COOKIE))?;
        self.note_known();
        Ok(node)
    }

    /// The node, and what it says without the envelope that older ones put around it.
    fn known_with(
        &self,
        headers: &HeaderMap,
        said: &Message,
    ) -> Result<(Node, Message), FuqRefused> {
        if !said.has("msg") {
            return Ok((self.known(headers, None)?, said.clone()));
        }
        let node = self.known(headers, Some(&said.text("cookie")?))?;
        Ok((node, said.inner("msg")?))
    }

    /// What it was given and has not told the end of goes to others.
    async fn let_go(self: &Arc<FuqConnection>, node: &Node) -> Result<FuqAnswer, FuqRefused> {
        let poller = self.poller(node);
        let leave = Leave { worker: poller.worker(), session: None, how: Leaving::Gone };
        poller.ask(Command::Leave(leave)).await?;
        Ok(done())
    }

    async fn give_work(
        self: &Arc<FuqConnection>,
        node: &Node,
        wanted: i64,
    ) -> Result<FuqAnswer, FuqRefused> {
        let most = u32::try_from(wanted).unwrap_or(1).clamp(1, node.slots.max(1));
        if self.door.register().leaves(&node.name) {
            return self.send_away(node, most).await;
        }
        let poller = self.poller(node);
        let grants = tokio::select! {
            grants = poller.work(&self.reception, most) => grants?,
            () = self.reception.hall.stop.cancelled() => return Ok(none()),
        };
        if grants.is_empty() {
            return self.send_away(node, most).await;
        }
        let now = self.reception.hall.clock.now();
        self.door.absence().gave(now, node, grants.iter().map(|grant| grant.task));
        Ok(json(&grants.iter().map(task).collect::<Vec<Task>>()))
    }

    /// A node that hears it ends what its other slots run. So it is said when nothing runs there.
    async fn send_away(
        self: &Arc<FuqConnection>,
        node: &Node,
        slots: u32,
    ) -> Result<FuqAnswer, FuqRefused> {
        let poller = self.poller(node);
        tokio::select! {
            () = poller.runs_nothing(&self.reception, slots, node.slots) => {
                Ok(json(&[stop_task()]))
            }
            () = self.reception.hall.stop.cancelled() => Ok(none()),
        }
    }

    /// A node that says how something ended does not say it again with a new cookie. So an old one will do, if it says
    /// how something ended that the node holds. For more work it has to renew it.
    async fn update_late(
        self: &Arc<FuqConnection>,
        headers: &HeaderMap,
        said: &Message,
        refused: FuqRefused,
    ) -> Result<FuqAnswer, FuqRefused> {
        let is_wrapped = said.has("msg");
        let body = if is_wrapped { said.text("cookie")? } else { String::new() };
        let cookie = cookie_in(headers).unwrap_or(&body);
        let node = self.door.register().find_stale(cookie).cloned();
        let Some(node) = node.filter(|_| refused == FuqRefused::Forbidden(COOKIE)) else {
            return Err(refused);
        };
        let said = if is_wrapped { said.inner("msg")? } else { said.clone() };
        let task = fuq2::task_id(said.job("job_id")?, said.number("task")?);
        let group = Name::from(self.reception.door.group.as_str());
        let worker = WorkerRef::Name { group, name: Name::from(node.name.as_str()) };
        let reply = self.reception.handle.ask(Command::Query(Query::Worker(worker))).await?;
        let holds = |view: &WorkerView| view.leases.iter().any(|&(held, _)| Some(held) == task);
        match reply {
            Reply::Workers(views) if views.iter().any(holds) => {}
            _ => return Err(refused),
        }
        self.note_known();
        let _present = Present::new(&self.door, &self.reception, &node);
        self.report(&node, &said).await?;
        Ok(none())
    }

    async fn update(
        self: &Arc<FuqConnection>,
        node: &Node,
        said: &Message,
    ) -> Result<FuqAnswer, FuqRefused> {
        let wanted = match said.has("newjob") {
            true => Some(said.inner("newjob")?.number("nproc")?),
            false => None,
        };
        self.report(node, said).await?;
        match wanted {
            Some(wanted) => self.give_work(node, wanted).await,
            None => Ok(none()),
        }
    }

    async fn report(
        self: &Arc<FuqConnection>,
        node: &Node,
        said: &Message,
    ) -> Result<(), FuqRefused> {
        let (job, number) = (said.job("job_id")?, said.number("task")?);
        let (success, status) = (said.flag("success")?, said.text("status")?);
        let task = fuq2::task_id(job, number);
        let task =
            task.ok_or_else(|| FuqRefused::Bad(format!("job {job} has no task {number}")))?;
        self.door.absence().ended(self.reception.hall.clock.now(), node, task);
        let (outcome, message) = fuq2::outcome_of(success, status.as_bytes());
        let poller = self.poller(node);
        let lease = LeaseRef::Held(TaskRef::Id(task));
        let results = vec![TaskResult { lease, outcome, message, memo: None }];
        let report = [(0, Command::Report(Report { worker: poller.worker(), results }))];
        if let Some(outputs) = &self.reception.hall.outputs {
            let _ = outputs.note_results(&report).await;
        }
        let [(_, report)] = report;
        let reply = poller.ask(report).await?;
        poller.note_ended();
        if let Reply::Reported(verdicts) = reply {
            match verdicts.first() {
                Some(Err(Refusal::NoSuchJob(_) | Refusal::NoSuchTask(_))) => {
                    return Err(FuqRefused::Bad(format!("job {job} has no task {number}")));
                }
                // It was cancelled, or is somebody else's by now: nothing that the node could do about it.
                Some(Err(refusal)) => {
                    tracing::debug!("{}: {}: {refusal}", self.reception.door, node.name);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// What a node is called from now on.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Welcome<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    cookie: &'a str,
}

/// No tasks.
fn none() -> FuqAnswer {
    json::<[Task; 0]>(&[])
}

fn node_of(said: &Message) -> Result<Node, FuqRefused> {
    let (host, name, tags) = (said.text("node")?, said.text("unique_name")?, said.texts("tags")?);
    let slots = said.number("nproc")?;
    if host.is_empty() || host.len() > NAME_BYTES_MAX || name.len() > 2 * NAME_BYTES_MAX {
        return Err(FuqRefused::Malformed("node is to be the name of the node's machine".into()));
    }
    if tags.len() > TAGS_MAX || tags.iter().any(|tag| tag.len() > NAME_BYTES_MAX) {
        return Err(FuqRefused::Malformed(format!("a node has at most {TAGS_MAX} short tags")));
    }
    if !(0..=SLOTS_MAX).contains(&slots) {
        return Err(FuqRefused::Malformed(format!(
            "nproc {slots} is not between 0 and {SLOTS_MAX}"
        )));
    }
    let tags = tags.into_iter().filter(|tag| !tag.is_empty()).collect();
    let session = said.text("session")?;
    Ok(Node { host, pid: said.number("pid")?, name, session, tags, slots: slots as u32 })
}

fn cookie_in(headers: &HeaderMap) -> Option<&str> {
    let values = headers.get_all(COOKIE_HEADER).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).map(str::trim);
    pairs
        .find_map(|pair| pair.strip_prefix(COOKIE_NAME)?.strip_prefix('='))
        .map(|cookie| cookie.trim_matches('"'))
}
