//! docs/http-reference.md is what the OpenAPI document says, as a page: every route, and every type with its fields.

use crate::rig::{Rig, json_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# HTTP reference

Made from the hub's OpenAPI document (`GET /api/v1/openapi.json`). [The HTTP API](http-api.md) says how it is used; paths
below are relative to `https://HUB:7910/api/v1/`.
";

#[tokio::test]
async fn the_http_reference_is_up_to_date() {
    let rig = Rig::start().await;
    let (_, body) = rig.raw("GET /api/v1/openapi.json", "", "").await;
    let made = page(&json_of(&body));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/http-reference.md");
    if std::env::var_os("LABORO_UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == kept,
        "docs/http-reference.md is not what the API says. Type: \
         LABORO_UPDATE=1 cargo nextest run --workspace -E 'test(is_up_to_date)'"
    );
}

fn page(document: &Value) -> String {
    let mut tags: BTreeMap<&str, String> = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let tag = operation["tags"][0].as_str().unwrap_or("other");
            let path = path.trim_start_matches("/api/v1/");
            let route = format!("`{} {path}`", method.to_uppercase());
            tags.entry(tag).or_default().push_str(&route_row(&route, operation));
        }
    }
    let mut page = String::from(HEAD);
    for (tag, rows) in tags {
        let head = "| route | | parameters | body | answer |\n|---|---|---|---|---|";
        write!(page, "\n## Routes: {tag}\n\n{head}\n{rows}").unwrap();
    }
    page.push_str("\n## Types\n");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        write!(page, "\n### {name}\n\n{}\n", sentence(&schema["description"])).unwrap();
        let rows = fields(schema);
        if rows.is_empty() {
            write!(page, "\n{}\n", kind(schema)).unwrap();
        } else {
            write!(page, "\n| field | type | |\n|---|---|---|\n{rows}").unwrap();
        }
    }
    page
}

fn route_row(route: &str, operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let parameters: Vec<String> = parameters
        .filter(|parameter| parameter["in"] != "path")
        .map(|parameter| format!("`{}`", parameter["name"].as_str().unwrap()))
        .collect();
    let answers = operation["responses"].as_object().unwrap();
    let good = answers.iter().find(|(status, _)| status.starts_with('2')).map(|(_, answer)| answer);
    row(&[
        route,
        &sentence(&operation["summary"]),
        &parameters.join(" "),
        &content(&operation["requestBody"]),
        &good.map(content).unwrap_or_default(),
    ])
}

/// The type of a body.
fn content(body: &Value) -> String {
    let kinds = body["content"].as_object().into_iter().flatten();
    let kinds = kinds.map(|(media, content)| match content["schema"].is_null() {
        true => media.clone(),
        false if media == "application/json" => kind(&content["schema"]),
        false => media.clone(),
    });
    kinds.collect::<Vec<String>>().join(", ")
}

fn fields(schema: &Value) -> String {
    let parts = schema["allOf"].as_array().into_iter().flatten().chain([schema]);
    let mut rows = String::new();
    for part in parts {
        if part.get("$ref").is_some() {
            rows.push_str(&row(&["", &kind(part), "all of its fields"]));
        }
        let required: Vec<&Value> = part["required"].as_array().into_iter().flatten().collect();
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|required| *required == name);
            let name = format!("`{name}`{}", if is_required { ", required" } else { "" });
            let words = match &field["description"] {
                Value::Null => {
                    choices(field).map(|c| sentence(&c["description"])).collect::<String>()
                }
                words => sentence(words),
            };
            rows.push_str(&row(&[&name, &kind(field), &words]));
        }
    }
    rows
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    let choices = [&schema["oneOf"], &schema["anyOf"], &schema["allOf"]];
    choices.into_iter().filter_map(Value::as_array).flatten()
}

/// In words; a type that has a name leads to it.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    let words = choices(schema).map(kind).collect::<Vec<String>>();
    if !words.is_empty() {
        return words.join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str).map(|value| format!("`{value}`"));
        return values.collect::<Vec<String>>().join(", ");
    }
    match &schema["type"] {
        Value::String(word) if word == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(word) => word.clone(),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str).map(|word| match word {
                "array" => format!("list of {}", kind(&schema["items"])),
                word => word.to_owned(),
            });
            words.collect::<Vec<String>>().join(" or ")
        }
        _ => "any JSON".to_owned(),
    }
}

fn sentence(words: &Value) -> String {
    words.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}
