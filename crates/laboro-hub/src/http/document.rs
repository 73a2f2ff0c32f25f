//! The OpenAPI document: its frame, and what holds for every route and is said once here instead of beside each. Paths,
//! parameters and types come with the routes.

use laboro_api as api;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr, Required, Response, ResponseBuilder};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Laboro",
        description = "Submit jobs to a hub, watch them, control them.\n\n\
            Wherever a string is bytes of a program (names, commands, values), {\"base64\": \"...\"} is accepted too, and \
            returned where the bytes are not UTF-8.\n\n\
            Every error is `application/problem+json` (RFC 9457) with a `reason` that does not change: decide by it, and \
            show `detail` and `hint` to people.\n\n\
            Versions: every answer has a `laboro-api` header, `1.N`. Within 1 nothing is removed or renamed and no meaning \
            changes; N grows when something is added. Clients must ignore fields and accept words that they do not know. \
            The hub refuses fields that it does not know, by their names."
    ),
    components(schemas(laboro_api::Problem, laboro_api::Event)),
    modifiers(&Bearer),
    security(("token" = []))
)]
pub(super) struct Document;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        document.info.version = api::API_VERSION.to_owned();
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
    }
}

/// Adds to every operation what it may answer, with words and the type of the body.
pub(super) fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let changes = [&mut item.post, &mut item.put, &mut item.delete];
        for operation in changes.into_iter().flatten() {
            add_answers(operation, &CHANGE_ANSWERS);
        }
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
        for operation in operations.into_iter().flatten() {
            // Where no token is needed, that is said.
            if operation.security.is_none() {
                add_answers(operation, &COMMON_ANSWERS);
                if path.contains('{') || takes_group(operation) {
                    add_answers(operation, &["404"]);
                }
            }
            let title = operation.summary.clone().unwrap_or_default();
            for (status, answer) in &mut operation.responses.responses {
                if let RefOr::T(answer) = answer {
                    finish(status, &title, answer);
                }
            }
            // An empty body is the same as `{}`, except where tasks are submitted.
            if let Some(RefOr::T(body)) = &mut operation.request_body
                && !path.ends_with("/jobs")
                && !path.ends_with("/tasks")
                && !path.ends_with("/stream")
                && !path.ends_with("/priority")
            {
                body.required = Some(Required::False);
            }
        }
    }
}

const COMMON_ANSWERS: [&str; 6] = ["400", "401", "403", "429", "500", "503"];
const CHANGE_ANSWERS: [&str; 4] = ["404", "409", "413", "422"];

/// In words, where the route has none of its own.
fn words(status: &str) -> &'static str {
    match status {
        "206" => "the range asked for",
        "400" => "an invalid parameter, field or value",
        "401" => "no token, an unknown one, or one that has expired",
        "403" => "the role or the group of the token does not allow it",
        "404" => "it does not exist, or this token may not see it",
        "409" => "not possible in its present state",
        "413" => "the body is too large",
        "416" => "there is no such range",
        "422" => "valid, but not possible: `detail` says why",
        "429" => "too many wrong tokens from this address, or too many requests at once",
        "500" => "a fault of the hub; its log says more",
        "503" => "the hub is stopping, or is a standby",
        _ => "see `detail`",
    }
}

fn add_answers(operation: &mut Operation, statuses: &[&str]) {
    for status in statuses {
        let answers = &mut operation.responses.responses;
        answers
            .entry((*status).to_owned())
            .or_insert_with(|| RefOr::T(ResponseBuilder::new().description(words(status)).build()));
    }
}

fn finish(status: &str, title: &str, answer: &mut Response) {
    let is_good = status.starts_with('2');
    if answer.description.is_empty() {
        let own = if status == "200" { title } else { words(status) };
        own.clone_into(&mut answer.description);
    }
    if !is_good {
        let schema = Ref::from_schema_name("Problem");
        let content = ContentBuilder::new().schema(Some(schema)).build();
        answer.content.clear();
        answer.content.insert("application/problem+json".to_owned(), RefOr::T(content));
    }
}

fn takes_group(operation: &Operation) -> bool {
    let is_group = |parameter: &Parameter| {
        parameter.name == "group" && parameter.parameter_in == ParameterIn::Query
    };
    operation.parameters.iter().flatten().any(|parameter| match parameter {
        RefOr::T(parameter) => is_group(parameter),
        RefOr::Ref(_) => false,
    })
}
