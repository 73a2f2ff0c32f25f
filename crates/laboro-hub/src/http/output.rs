//! `GET jobs/{job}/tasks/{task}/output`: what an attempt printed, whole, in part, or as it comes.

use super::answer::Refused;
use super::entry::Visitor;
use super::extract::{Asked, At};
use super::operation::internal;
use super::tasks::by_number;
use super::{Api, Shared};
use crate::keep::{Cursor, KeepError};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use laboro_api::{ATTEMPT_HEADER, OUTPUT_LOST_HEADER, Problem};
use laboro_core::{JobId, Name, TaskId};
use laboro_journal::outputs::{Key, Streams};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputQuery {
    #[serde(default)]
    #[param(inline)]
    stream: Which,
    /// Counted from 1; the last if not given.
    attempt: Option<u16>,
    /// `1`: stay and tell what is printed until the attempt is over. A `Range` is not looked at then.
    #[serde(default)]
    follow: u8,
    /// With `follow`: leave out so many bytes.
    #[serde(default)]
    from: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Which {
    Out,
    Err,
    /// In the order it was printed.
    #[default]
    Both,
    /// What it gave back.
    Result,
}

/// What a task printed. Takes a `Range` of bytes.
#[utoipa::path(get, path = "/jobs/{job}/tasks/{task}/output", tag = "tasks",
    params(("job" = u32, Path), ("task" = u32, Path), OutputQuery,
        ("range" = Option<String>, Header, description = "bytes=0-99, bytes=100- or bytes=-100")),
    responses((status = 200, content_type = "application/octet-stream"),
        (status = 206, content_type = "application/octet-stream"), (status = 404, body = Problem),
        (status = 416, body = Problem)))]
pub(super) async fn output(
    State(api): Shared,
    visitor: Visitor,
    At((job, task)): At<(u32, u32)>,
    Asked(asked): Asked<OutputQuery>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let group = api.job(&visitor, job).await?.group;
    api.view_task(group, by_number(job, task)?).await?;
    answer(&api, job, task, &asked, &headers).await
}

/// Of a task that is there and may be seen.
pub(super) async fn answer(
    api: &Arc<Api>,
    job: u32,
    task: u32,
    asked: &OutputQuery,
    headers: &HeaderMap,
) -> Result<Response, Refused> {
    let Some(outputs) = &api.services.outputs else {
        let detail = match &api.services.results_dir {
            Some(dir) => format!("what tasks print is in their result files, in {}", dir.display()),
            None => "this hub does not keep what tasks print".to_owned(),
        };
        return Err(Refused::new(StatusCode::NOT_FOUND, "no_outputs", detail));
    };
    let streams = match asked.stream {
        Which::Out => Streams::Stdout,
        Which::Err => Streams::Stderr,
        Which::Both => Streams::Both,
        Which::Result => Streams::Result,
    };
    let follows = asked.follow != 0;
    let id = TaskId::new(JobId(job), task);
    let printed = outputs.attempts(id).await.map_err(|error| internal(&error))?;
    let printed = printed.last().copied().unwrap_or(0);
    let attempt = match asked.attempt {
        Some(attempt) => {
            let there = printed.max(attempt_now(api, job, task).await?.unwrap_or(1));
            if !(1..=there).contains(&attempt) {
                let detail = format!("task {job}/{task} has no attempt {attempt}; it has {there}");
                return Err(Refused::new(StatusCode::NOT_FOUND, "no_such_attempt", detail));
            }
            attempt
        }
        None => {
            let now = if follows { attempt_now(api, job, task).await? } else { None };
            printed.max(now.unwrap_or(1))
        }
    };
    let key = Key { job, index: task, attempt };
    let end = outputs.end(key).await.map_err(|error| internal(&error))?;
    let lost = end.map_or(0, |end| end.lost());
    let cursor = outputs.cursor(key, streams).await.map_err(|error| internal(&error))?;
    let range = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    let mut response = match range.filter(|_| !follows).and_then(ByteRange::parse) {
        None if follows => {
            let reading = OutputReading { cursor, skip: asked.from, left: None };
            let following = Following { api: api.clone(), reading, key };
            Body::from_stream(stream::try_unfold(following, Following::next)).into_response()
        }
        None => {
            let reading = OutputReading { cursor, skip: 0, left: None };
            Body::from_stream(stream::try_unfold(reading, OutputReading::step)).into_response()
        }
        Some(range) => {
            let size = outputs.size(key, streams).await.map_err(|error| internal(&error))?;
            match range {
                // The end of nothing is nothing, and no mistake of whoever asks.
                ByteRange::Last(1..) if size == 0 => Body::empty().into_response(),
                range => part(cursor, range, size)?,
            }
        }
    };
    let headers = response.headers_mut();
    let plain = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, plain);
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(ATTEMPT_HEADER, attempt.into());
    if lost > 0 {
        headers.insert(OUTPUT_LOST_HEADER, lost.into());
    }
    Ok(response)
}

/// The attempt that runs, or would run next. `None`: there will be no more, unless a person steps in.
async fn attempt_now(api: &Api, job: u32, task: u32) -> Result<Option<u16>, Refused> {
    let view = api.view_task(Name::default(), by_number(job, task)?).await?;
    Ok((!view.state.is_over()).then_some(view.attempt))
}

fn part(cursor: Cursor, range: ByteRange, size: u64) -> Result<Response, Refused> {
    let Some((first, last)) = range.within(size) else {
        let detail = format!("the range is outside of the {size} bytes there are");
        let status = StatusCode::RANGE_NOT_SATISFIABLE;
        return Err(Refused::new(status, "bad_range", detail).of_size(size));
    };
    let reading = OutputReading { cursor, skip: first, left: Some(last - first + 1) };
    let body = Body::from_stream(stream::try_unfold(reading, OutputReading::step));
    let headers = [
        (header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}")),
        (header::CONTENT_LENGTH, (last - first + 1).to_string()),
    ];
    Ok((StatusCode::PARTIAL_CONTENT, headers, body).into_response())
}

/// One range of bytes. Several at once, which may be ignored, are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteRange {
    From(u64),
    FromTo(u64, u64),
    Last(u64),
}

impl ByteRange {
    fn parse(header: &str) -> Option<ByteRange> {
        let (first, last) = header.strip_prefix("bytes=")?.trim().split_once('-')?;
        match (first.trim(), last.trim()) {
            ("", last) => last.parse().ok().map(ByteRange::Last),
            (first, "") => first.parse().ok().map(ByteRange::From),
            (first, last) => {
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                (first <= last).then_some(ByteRange::FromTo(first, last))
            }
        }
    }

    /// First and last byte of it.
    fn within(self, size: u64) -> Option<(u64, u64)> {
        let end = size.checked_sub(1)?;
        let (first, last) = match self {
            ByteRange::From(first) => (first, end),
            ByteRange::FromTo(first, last) => (first, last.min(end)),
            ByteRange::Last(0) => return None,
            ByteRange::Last(count) => (size.saturating_sub(count), end),
        };
        (first <= last).then_some((first, last))
    }
}

/// Output on its way out.
struct OutputReading {
    cursor: Cursor,
    skip: u64,
    /// `None`: all there is.
    left: Option<u64>,
}

impl OutputReading {
    /// What is there now; empty at its end.
    async fn piece(&mut self) -> Result<Bytes, KeepError> {
        loop {
            if self.left == Some(0) {
                return Ok(Bytes::new());
            }
            let mut piece = self.cursor.next().await?;
            if piece.is_empty() {
                return Ok(piece);
            }
            let skipped = piece.len().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
            self.skip -= skipped as u64;
            drop(piece.split_to(skipped));
            if let Some(left) = &mut self.left {
                piece.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= piece.len() as u64;
            }
            if !piece.is_empty() {
                return Ok(piece);
            }
        }
    }

    async fn step(mut self) -> Result<Option<(Bytes, OutputReading)>, KeepError> {
        let piece = self.piece().await?;
        Ok((!piece.is_empty()).then_some((piece, self)))
    }
}

struct Following {
    api: Arc<Api>,
    reading: OutputReading,
    key: Key,
}

impl Following {
    async fn next(mut self) -> Result<Option<(Bytes, Following)>, KeepError> {
        let mut is_last_look = false;
        loop {
            let piece = self.reading.piece().await?;
            if !piece.is_empty() {
                return Ok(Some((piece, self)));
            }
            if is_last_look || self.reading.cursor.is_over() {
                return Ok(None);
            }
            if tokio::time::timeout(self.reading.cursor.patience(), self.reading.cursor.news())
                .await
                .is_err()
            {
                is_last_look = self.is_past().await;
            }
        }
    }

    async fn is_past(&self) -> bool {
        match attempt_now(&self.api, self.key.job, self.key.index).await {
            Ok(Some(now)) => now > self.key.attempt,
            // Finished, forgotten, or there is no hub any more.
            Ok(None) | Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ByteRange;

    #[test]
    fn a_range_is_one_range_of_bytes_or_none() {
        assert_eq!(ByteRange::parse("bytes=0-99"), Some(ByteRange::FromTo(0, 99)));
        assert_eq!(ByteRange::parse("bytes=5-"), Some(ByteRange::From(5)));
        assert_eq!(ByteRange::parse("bytes=-7"), Some(ByteRange::Last(7)));
        for other in ["bytes=9-5", "bytes=a-b", "lines=1-2", "bytes=-", "bytes=0-1,3-4"] {
            assert_eq!(ByteRange::parse(other), None, "{other}");
        }
        assert_eq!(ByteRange::Last(7).within(5), Some((0, 4)));
        assert_eq!(ByteRange::From(5).within(5), None);
        assert_eq!(ByteRange::FromTo(2, 9).within(5), Some((2, 4)));
        assert_eq!(ByteRange::From(0).within(0), None);
    }
}
