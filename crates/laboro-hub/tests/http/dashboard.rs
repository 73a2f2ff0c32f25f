//! The files of the dashboard: what they are sent with. What they do is tested in a browser.

use crate::rig::Rig;

#[tokio::test]
async fn the_front_page_allows_nothing_from_elsewhere_and_nothing_in_line() {
    let rig = Rig::start().await;
    let (head, body) = rig.say("GET / HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        head.contains("content-security-policy: default-src 'none'; script-src 'self'"),
        "{head}"
    );
    assert!(!head.contains("unsafe"), "{head}");
    assert!(
        !body.contains("style=") && !body.contains("onclick") && !body.contains("http:"),
        "{body}"
    );
}

#[tokio::test]
async fn every_file_that_a_page_asks_for_is_there() {
    let rig = Rig::start().await;
    let mut wanted = vec!["/dashboard/style.css".to_owned(), "/dashboard/app.js".to_owned()];
    let mut seen = Vec::new();
    while let Some(path) = wanted.pop() {
        let (head, body) = rig.raw(&format!("GET {path}"), "", "").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
        let dir = path.rsplit_once('/').unwrap().0.to_owned();
        for line in body.lines().filter(|line| line.starts_with("import ")) {
            let from = line.rsplit('"').nth(1).unwrap();
            let target = match from.strip_prefix("../") {
                Some(up) => format!("{}/{up}", dir.rsplit_once('/').unwrap().0),
                None => format!("{dir}/{}", from.trim_start_matches("./")),
            };
            if !seen.contains(&target) {
                seen.push(target.clone());
                wanted.push(target);
            }
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
}

#[tokio::test]
async fn a_file_that_is_known_already_is_not_sent_again() {
    let rig = Rig::start().await;
    let (head, _) = rig.raw("GET /dashboard/app.js", "", "").await;
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let header = format!("if-none-match: {tag}\r\n");
    let (head, body) = rig.raw("GET /dashboard/app.js", &header, "").await;
    assert!(head.starts_with("HTTP/1.1 304") && body.is_empty(), "{head}");
    let (head, _) = rig.raw("GET /dashboard/../Cargo.toml", "", "").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}

#[tokio::test]
async fn the_manual_is_there_for_anyone_and_compressed() {
    let rig = Rig::start().await;
    for (path, kind) in
        [("index.html", "text/html"), ("style.css", "text/css"), ("run.html", "text/html")]
    {
        let request =
            format!("GET /docs/{path} HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n");
        let (head, body) = rig.say(&request).await;
        assert!(head.starts_with("HTTP/1.1 200") && body.len() > 100, "{path}: {head}");
        assert!(head.contains("content-encoding: gzip"), "{head}");
        assert!(head.contains(&format!("content-type: {kind}")), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    }
    let (head, _) = rig.say("GET /docs HTTP/1.1\r\nhost: hub\r\nconnection: close\r\n\r\n").await;
    assert!(
        head.starts_with("HTTP/1.1 308") && head.contains("location: /docs/index.html"),
        "{head}"
    );
    let (head, _) = rig.raw("GET /docs/../Cargo.toml", "", "").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
}
