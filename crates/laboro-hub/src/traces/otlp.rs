//! Spans in the JSON form of OTLP: numbers of 64 bits are strings, identities are hex.

use serde_json::{Value as Json, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// 0: none.
    pub(super) parent: u64,
    pub(super) name: String,
    pub(super) start_ms: u64,
    pub(super) end_ms: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Number(u64),
    Text(String),
}

/// The body of one request. `instance` tells hubs apart.
pub(super) fn body(spans: &[Span], host: &str, instance: &str) -> String {
    let resource = [
        ("service.name", Value::Text("laboro".into())),
        ("service.version", Value::Text(laboro_api::VERSION.into())),
        ("service.instance.id", Value::Text(instance.into())),
        ("host.name", Value::Text(host.into())),
    ];
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(&resource) },
        "scopeSpans": [{ "scope": { "name": "laboro" }, "spans": spans }],
    }] })
    .to_string()
}

fn span(span: &Span) -> Json {
    const INTERNAL: u8 = 1;
    const ERROR: u8 = 2;
    let nanos = |ms: u64| ms.saturating_mul(1_000_000).to_string();
    let mut json = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.span),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(span.start_ms),
        "endTimeUnixNano": nanos(span.end_ms.max(span.start_ms)),
        "attributes": attributes(&span.attributes),
        "status": {},
    });
    if span.parent != 0 {
        json["parentSpanId"] = format!("{:016x}", span.parent).into();
    }
    if let Some(error) = &span.error {
        json["status"] = json!({ "code": ERROR, "message": error });
    }
    json
}

fn attributes(list: &[(&str, Value)]) -> Vec<Json> {
    let one = |(key, value): &(&str, Value)| {
        let value = match value {
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            Value::Text(text) => json!({ "stringValue": text }),
        };
        json!({ "key": key, "value": value })
    };
    list.iter().map(one).collect()
}
