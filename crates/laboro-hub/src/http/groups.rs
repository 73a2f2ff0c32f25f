//! Groups, and tasks by their name in a group.

use super::Shared;
use super::answer::{Answer, Refused};
use super::entry::Visitor;
use super::extract::{Asked, At, JsonBody};
use super::output::{self, OutputQuery};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use laboro_api::{Changed, Explained, Group, Groups, Prioritise, Problem, Selection, Task};
use laboro_core::{Command, JobId, Name, Query, Reply, TaskId, TaskRef};

/// The groups that the token may see, in the order they were made.
#[utoipa::path(get, path = "/groups", tag = "groups", responses((status = 200, body = Groups)))]
pub(super) async fn groups(State(api): Shared, visitor: Visitor) -> Answer<Groups> {
    match api.ask(Command::Query(Query::Groups)).await? {
        Reply::Groups(views) => {
            let seen = views.into_iter().filter(|view| visitor.sees(&view.name));
            Ok(Json(Groups { groups: seen.map(Group::from).collect() }))
        }
        reply => Err(Refused::unexpected(&reply)),
    }
}

/// Nothing of the group starts until it is resumed. For admins.
#[utoipa::path(post, path = "/groups/{group}/pause", tag = "groups",
    params(("group" = String, Path)),
    responses((status = 200, body = Group), (status = 404, body = Problem)))]
pub(super) async fn pause(
    State(api): Shared,
    visitor: Visitor,
    At(group): At<String>,
) -> Answer<Group> {
    api.change_group(&visitor, group, Command::Pause).await.map(Json)
}

/// Starts tasks of the group again. For admins.
#[utoipa::path(post, path = "/groups/{group}/resume", tag = "groups",
    params(("group" = String, Path)),
    responses((status = 200, body = Group), (status = 404, body = Problem)))]
pub(super) async fn resume(
    State(api): Shared,
    visitor: Visitor,
    At(group): At<String>,
) -> Answer<Group> {
    api.change_group(&visitor, group, Command::Resume).await.map(Json)
}

/// One task by its name; `array.7` is an element.
#[utoipa::path(get, path = "/groups/{group}/tasks/{name}", operation_id = "named_task", tag = "groups",
    params(("group" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = Task), (status = 404, body = Problem)))]
pub(super) async fn task(
    State(api): Shared,
    visitor: Visitor,
    At((group, name)): At<(String, String)>,
) -> Answer<Task> {
    let group = visitor.group(Some(group.into()))?;
    let mut task = api.show_task(&visitor, group, TaskRef::Name(name.into())).await?;
    api.add_ends(std::slice::from_mut(&mut task)).await;
    Ok(Json(task))
}

/// Why a task is not running, in plain words.
#[utoipa::path(get, path = "/groups/{group}/tasks/{name}/explain", operation_id = "explain_named_task", tag = "groups",
    params(("group" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = Explained), (status = 404, body = Problem)))]
pub(super) async fn explain(
    State(api): Shared,
    visitor: Visitor,
    At((group, name)): At<(String, String)>,
) -> Answer<Explained> {
    let group = visitor.group(Some(group.into()))?;
    let task = api.show_task(&visitor, group.clone(), TaskRef::Name(name.into())).await?;
    let id = TaskId::new(JobId(task.job), task.task);
    api.explain_task(&visitor, group, id).await.map(Json)
}

/// What a task printed; see the same below `jobs`.
#[utoipa::path(get, path = "/groups/{group}/tasks/{name}/output", operation_id = "named_task_output", tag = "groups",
    params(("group" = String, Path), ("name" = String, Path), OutputQuery,
        ("range" = Option<String>, Header, description = "bytes=0-99, bytes=100- or bytes=-100")),
    responses((status = 200, content_type = "application/octet-stream"),
        (status = 206, content_type = "application/octet-stream"), (status = 404, body = Problem),
        (status = 416, body = Problem)))]
pub(super) async fn output(
    State(api): Shared,
    visitor: Visitor,
    At((group, name)): At<(String, String)>,
    Asked(asked): Asked<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let group = visitor.group(Some(group.into()))?;
    let task = api.show_task(&visitor, group, TaskRef::Name(name.into())).await?;
    output::answer(&api, task.job, task.task, &asked, &headers).await
}

/// `hold`, `release`, `cancel`, `retry` or `priority` of one task by its name.
#[utoipa::path(post, path = "/groups/{group}/tasks/{name}/{action}", operation_id = "change_named_task", tag = "groups",
    params(("group" = String, Path), ("name" = String, Path), ("action" = String, Path)),
    request_body(content = Option<Prioritise>, description = "for `priority` only"),
    responses((status = 200, body = Changed), (status = 404, body = Problem)))]
pub(super) async fn act(
    State(api): Shared,
    visitor: Visitor,
    At((group, name, action)): At<(String, String, String)>,
    JsonBody(body): JsonBody<serde_json::Value>,
) -> Answer<Changed> {
    let what: Box<dyn FnOnce(laboro_core::Selection) -> Command + Send> = match action.as_str() {
        "priority" => {
            let asked: Prioritise =
                serde_json::from_value(body).map_err(|error| super::extract::malformed(&error))?;
            Box::new(move |selection| Command::Prioritise(selection, asked.priority))
        }
        "hold" | "release" | "cancel" | "retry" if !is_nothing(&body) => {
            let detail = format!("`{action}` of one task takes no fields");
            return Err(Refused::bad_request("unknown_field", detail));
        }
        "hold" => Box::new(Command::Hold),
        "release" => Box::new(Command::Release),
        "cancel" => Box::new(Command::Cancel),
        "retry" => Box::new(Command::Retry),
        other => {
            let detail = format!("`{other}` is not an action for a task");
            return Err(Refused::bad_request("bad_path", detail)
                .hint("use hold, release, cancel, retry or priority"));
        }
    };
    visitor.must_submit()?;
    let group = visitor.group(Some(group.into()))?;
    let task = api.show_task(&visitor, group, TaskRef::Name(name.into())).await?;
    let selection = Selection { tasks: Some(task.task.to_string()), state: None };
    api.change(&visitor, task.job, &selection, what).await.map(Json)
}

fn is_nothing(body: &serde_json::Value) -> bool {
    body.as_object().is_some_and(serde_json::Map::is_empty)
}

impl super::Api {
    async fn change_group(
        &self,
        visitor: &Visitor,
        group: String,
        what: impl FnOnce(Name) -> Command,
    ) -> Result<Group, Refused> {
        visitor.must_be_admin()?;
        let group = visitor.group(Some(group.into()))?;
        self.ask(what(group.clone())).await?;
        match self.ask(Command::Query(Query::Group(group))).await? {
            Reply::Groups(mut views) if views.len() == 1 => Ok(views.remove(0).into()),
            reply => Err(Refused::unexpected(&reply)),
        }
    }
}
