//! Requests that mean harm: paths, heads, bodies and pages of other sites. Each is refused or means what it says,
//! and the hub goes on.

use crate::rig::{Rig, json_of};
use laboro_api as api;
use tokio::net::TcpStream;

/// The status of a request said as it stands, and all of the answer.
async fn said(rig: &Rig, text: &str) -> (u16, String) {
    let (head, body) = rig.say(text).await;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, format!("{head}\r\n\r\n{body}"))
}

#[tokio::test]
async fn no_path_leads_out_of_the_dashboard_or_around_the_token() {
    let rig = Rig::start().await;
    for path in [
        "/dashboard/../../../etc/passwd",
        "/dashboard/..%2f..%2f..%2fetc%2fpasswd",
        "/dashboard/%2e%2e/%2e%2e/etc/passwd",
        "/dashboard//etc/passwd",
        "/dashboard/%2fetc%2fpasswd",
        "/dashboard/index.html%00.js",
        "/dashboard/..\\..\\tokens.toml",
        "/dashboard/",
        "/docs/../../../etc/passwd",
        "/docs/..%2f..%2fetc%2fpasswd",
        "/docs//etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
    ] {
        let (status, answer) = said(&rig, &format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert!(matches!(status, 400 | 404), "{path}: {answer}");
        assert!(!answer.contains("root:"), "{path}");
    }
    // The API is where it is: what looks like a detour to it is another path, and none goes around the token.
    for path in [
        "/api/v1/version/../audit",
        "/api/v1/version/%2e%2e/audit",
        "/api/v1/%61udit",
        "//api/v1/audit",
        "/dashboard/../api/v1/audit",
        "/api/v1/audit/",
        "/API/V1/audit",
        "/api/v1/audit;version",
        "http://elsewhere/api/v1/audit",
        "/metrics",
    ] {
        let (status, answer) = said(&rig, &format!("GET {path} HTTP/1.0\r\n\r\n")).await;
        assert!(matches!(status, 400 | 401 | 404), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_slash_in_a_name_is_part_of_the_name() {
    let rig = Rig::start().await;
    rig.submit(r#"{"group":"a/b","tasks":[{"name":"../x","command":"true"}]}"#).await;
    let path = "GET /api/v1/groups/a%2Fb/tasks/..%2Fx";
    let (head, body) = rig.raw(path, "", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(json_of(&body)["name"], "../x");
    // For the token of another group there is no such group.
    let other = "GET /api/v1/groups/a%2Fb/tasks/..%2Fx HTTP/1.0\r\n\
                 authorization: Bearer watch@a\r\n\r\n";
    assert_eq!(said(&rig, other).await.0, 404);
}

#[tokio::test]
async fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let rig = Rig::start().await;
    let body = "{}";
    for (what, head) in [
        ("two lengths", "content-length: 2\r\ncontent-length: 50\r\n"),
        ("length and gzip", "content-length: 2\r\ntransfer-encoding: gzip\r\n"),
        ("chunks and more", "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n"),
        ("two hosts", "host: elsewhere\r\ncontent-length: 2\r\n"),
        ("the same host twice", "host: hub\r\ncontent-length: 2\r\n"),
        ("a negative length", "content-length: -1\r\n"),
        ("a folded header", "x: a\r\n b\r\ncontent-length: 2\r\n"),
        ("a space before the colon", "content-length : 2\r\n"),
        ("a zero byte", "x: a\0b\r\ncontent-length: 2\r\n"),
    ] {
        let request = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\
             authorization: Bearer admin\r\n{head}\r\n{body}"
        );
        let (status, answer) = said(&rig, &request).await;
        assert_eq!(status, 400, "{what}: {answer}");
    }
    let no_host = "GET /api/v1/version HTTP/1.1\r\nconnection: close\r\n\r\n";
    let (status, answer) = said(&rig, no_host).await;
    assert!(status == 400 && answer.contains("bad_head"), "{answer}");
    let two_tokens = "GET /api/v1/jobs HTTP/1.0\r\nauthorization: Bearer watch\r\n\
                      authorization: Bearer admin\r\n\r\n";
    let (status, answer) = said(&rig, two_tokens).await;
    assert!(status == 401 && answer.contains("bad_token"), "{answer}");
    let jobs: api::Jobs = rig.client("watch").get("jobs").await.unwrap();
    assert!(jobs.jobs.is_empty(), "nothing was submitted");
}

#[tokio::test]
async fn a_request_hidden_behind_a_length_is_not_answered() {
    let rig = Rig::start().await;
    let hidden = "GET /api/v1/version HTTP/1.1\r\nhost: hub\r\n\r\n";
    let chunks = format!("2\r\n{{}}\r\n0\r\n\r\n{hidden}");
    for (what, head, rest) in [
        ("before", "content-length: 4\r\ntransfer-encoding: chunked\r\n", chunks.as_str()),
        ("behind", "transfer-encoding: chunked\r\ncontent-length: 4\r\n", chunks.as_str()),
        ("two hosts", "host: hub\r\n", hidden),
    ] {
        // It would be kept if nothing were wrong with its head.
        let request = format!(
            "POST /api/v1/jobs HTTP/1.1\r\nhost: hub\r\nauthorization: Bearer admin\r\n{head}\r\n{rest}"
        );
        let (_, answer) = said(&rig, &request).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{what}: {answer}");
    }
}

/// The status of a request over HTTP/2.
async fn over_http_2(rig: &Rig, request: hyper::http::request::Builder) -> u16 {
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(rig.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, stream).await.unwrap();
    tokio::spawn(connection);
    let request = request.uri("http://hub/api/v1/version").body(String::new()).unwrap();
    sender.send_request(request).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn http_2_takes_no_other_heads_than_http_1() {
    let rig = Rig::start().await;
    let request = hyper::Request::get;
    assert_eq!(over_http_2(&rig, request("/").header("host", "hub")).await, 200);
    assert_eq!(over_http_2(&rig, request("/").header("host", "elsewhere")).await, 400);
    let twice = request("/").header("host", "hub").header("host", "hub");
    assert_eq!(over_http_2(&rig, twice).await, 400);
    let with_headers =
        |count| (0..count).fold(request("/"), |request, n| request.header(format!("x-{n}"), "y"));
    assert_eq!(over_http_2(&rig, with_headers(64)).await, 200);
    assert_eq!(over_http_2(&rig, with_headers(65)).await, 431);
}

#[tokio::test]
async fn more_headers_than_anyone_needs_are_refused() {
    let rig = Rig::start().await;
    let many = (0..5000).map(|n| format!("x-{n}: y\r\n")).collect::<String>();
    let (status, _) = said(&rig, &format!("GET /api/v1/version HTTP/1.0\r\n{many}\r\n")).await;
    assert!(matches!(status, 400 | 431), "{status}");
    let (status, _) = said(&rig, &format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(100_000))).await;
    assert!(matches!(status, 400 | 414 | 431), "{status}");
}

#[tokio::test]
async fn what_a_browser_sends_by_itself_opens_nothing() {
    let rig = Rig::start().await;
    let site = "origin: https://evil.example\r\nreferer: https://evil.example/\r\n";
    for (request, headers) in [
        ("GET /api/v1/jobs", "cookie: token=admin; authorization=Bearer admin\r\n"),
        ("GET /api/v1/jobs?token=admin&access_token=admin", ""),
        ("POST /api/v1/jobs", "content-type: text/plain\r\n"),
        ("POST /api/v1/jobs", "content-type: application/x-www-form-urlencoded\r\n"),
    ] {
        let text = format!("{request} HTTP/1.0\r\nhost: hub\r\n{site}{headers}\r\n");
        let (status, answer) = said(&rig, &text).await;
        assert_eq!(status, 401, "{request} {headers}: {answer}");
        assert!(!answer.to_lowercase().contains("access-control-"), "{answer}");
    }
    // A page of another site may not even ask whether it may show a token, and learns nothing if it has one.
    let preflight = format!(
        "OPTIONS /api/v1/jobs HTTP/1.0\r\nhost: hub\r\n{site}\
         access-control-request-method: POST\r\naccess-control-request-headers: authorization\r\n\r\n"
    );
    let (status, answer) = said(&rig, &preflight).await;
    assert_eq!(status, 405, "{answer}");
    assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
    let with_token = format!(
        "GET /api/v1/jobs HTTP/1.0\r\nhost: hub\r\n{site}authorization: Bearer watch\r\n\r\n"
    );
    let (status, answer) = said(&rig, &with_token).await;
    assert_eq!(status, 200);
    assert!(!answer.to_lowercase().contains("access-control-allow"), "{answer}");
}

#[tokio::test]
async fn another_host_in_the_head_changes_nothing() {
    let rig = Rig::start().await;
    for host in ["evil.example", "127.0.0.1:1", "hub\tx", "a, b"] {
        let denied =
            format!("GET /api/v1/jobs HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let (status, answer) = said(&rig, &denied).await;
        assert!(matches!(status, 400 | 401), "{host}: {answer}");
        assert!(!answer.contains("evil.example"), "{answer}");
    }
}

#[tokio::test]
async fn no_answer_is_taken_for_what_it_is_not() {
    let rig = Rig::start().await;
    rig.submit(r#"{"tasks":[{"name":"<script>alert(1)</script>","command":"true"}]}"#).await;
    for path in ["/", "/api/v1/version", "/api/v1/jobs", "/api/v1/jobs/1/tasks/1/output", "/no"] {
        let (head, _) = rig.raw(&format!("GET {path}"), "", "").await;
        let head = head.to_lowercase();
        assert!(head.contains("x-content-type-options: nosniff"), "{path}: {head}");
        assert_eq!(head.contains("content-type: text/html"), path == "/", "{path}: {head}");
    }
}

#[tokio::test]
async fn json_as_deep_as_a_stack_is_refused() {
    let rig = Rig::start().await;
    for deep in ["[", "{\"a\":"] {
        let nest = deep.repeat(100_000);
        for body in [
            format!("{{\"tasks\":[{nest}"),
            format!("{{\"defaults\":{{\"env\":{nest}"),
            format!("{{\"no such field\":{nest}"),
        ] {
            let (head, _) = rig.raw("POST /api/v1/jobs", "", &body).await;
            assert!(head.starts_with("HTTP/1.1 400"), "{head}");
        }
        let (head, _) = rig.raw("POST /api/v1/jobs/stream", "", &format!("{{}}\n{nest}\n")).await;
        assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    }
    let health: api::Health = rig.client("watch").get("health").await.unwrap();
    assert_eq!(health.status, "ok");
}

#[tokio::test]
async fn numbers_beyond_their_range_are_refused() {
    let rig = Rig::start().await;
    for body in [
        r#"{"tasks":[{"count":4294967296,"command":"x"}]}"#,
        r#"{"tasks":[{"count":-1,"command":"x"}]}"#,
        r#"{"tasks":[{"slots":1e300,"command":"x"}]}"#,
        r#"{"tasks":[{"memory_bytes":18446744073709551616,"command":"x"}]}"#,
        r#"{"tasks":[{"count":4294967295,"command":"x"},{"count":4294967295,"command":"x"}]}"#,
        r#"{"tasks":[{"range":{"first":-9223372036854775808,"last":9223372036854775807,"step":1}}]}"#,
        r#"{"tasks":[{"range":{"first":0,"last":9223372036854775807,"step":9223372036854775807}},{"after":[99999999999]}]}"#,
    ] {
        let (head, answer) = rig.raw("POST /api/v1/jobs", "", body).await;
        assert!(head.starts_with("HTTP/1.1 4"), "{body}: {head}\n{answer}");
    }
}
