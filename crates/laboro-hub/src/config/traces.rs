//! Where spans of jobs and attempts are sent.

use hyper::Uri;

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSettings {
    /// A receiver of OTLP by HTTP, such as http://localhost:4318. Not given: nothing is sent, and no job has spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Spans that wait for the receiver; more are dropped, and counted.
    pub max_pending: usize,
    /// A request that takes longer has failed, and is tried again.
    pub time_limit_ms: u64,
}

impl Default for TraceSettings {
    fn default() -> TraceSettings {
        TraceSettings { endpoint: None, max_pending: 8192, time_limit_ms: 10_000 }
    }
}

impl TraceSettings {
    /// Where spans are posted. `None`: nowhere.
    pub(crate) fn target(&self) -> Result<Option<Uri>, String> {
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let bad = |why: &str| format!("traces.endpoint: {endpoint:?} {why}");
        let whole = match endpoint.trim_end_matches('/') {
            whole if whole.ends_with("/v1/traces") => whole.to_owned(),
            base => format!("{base}/v1/traces"),
        };
        let uri: Uri = whole.parse().map_err(|_| bad("is not a URL"))?;
        let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
        if !is_web || uri.host().is_none_or(str::is_empty) || uri.query().is_some() {
            return Err(bad("is not a URL such as http://localhost:4318"));
        }
        Ok(Some(uri))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.target()?;
        for (name, value) in
            [("max_pending", self.max_pending as u64), ("time_limit_ms", self.time_limit_ms)]
        {
            if value == 0 {
                return Err(format!("traces.{name} = 0: nothing would be sent"));
            }
        }
        Ok(())
    }
}
