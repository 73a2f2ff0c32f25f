//! Where the streams of a task come from and go to, as job files say it too. Files are files at the worker.

use super::text::Text;
use laboro_core::Setting;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{ObjectBuilder, OneOfBuilder, RefOr};

/// What a task reads: a string is the text itself, `{"file": "PATH"}` a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "`stdin` is a text or {\"file\": \"PATH\"}")]
pub enum Stdin {
    /// This text.
    Text(Text),
    /// A file at the worker.
    File {
        /// Its path.
        file: Text,
    },
}

/// Files for what a task prints: a string is one for both streams. What has no file is kept for `logs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "`output` is a file or {\"stdout\": \"FILE\", \"stderr\": \"FILE\"}"
)]
pub enum Output {
    /// One file for both streams.
    Both(Text),
    /// A file for each stream that is named.
    Each {
        /// For standard output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stdout: Option<Text>,
        /// For standard error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stderr: Option<Text>,
    },
}

impl Stdin {
    pub(super) fn text(&self) -> &Text {
        match self {
            Stdin::Text(text) | Stdin::File { file: text } => text,
        }
    }

    pub(super) fn into_core(self) -> laboro_core::Stdin {
        match self {
            Stdin::Text(text) => laboro_core::Stdin::Text(text.into_bytes().into()),
            Stdin::File { file } => laboro_core::Stdin::File(file.into_bytes().into()),
        }
    }

    pub(super) fn of(setting: &Setting) -> Option<Stdin> {
        match &setting.stdin {
            laboro_core::Stdin::Null => None,
            laboro_core::Stdin::Text(text) => Some(Stdin::Text(text.as_ref().into())),
            laboro_core::Stdin::File(path) => Some(Stdin::File { file: path.as_ref().into() }),
        }
    }
}

impl Output {
    /// `None` where everything is kept.
    pub fn new(stdout: Option<Text>, stderr: Option<Text>) -> Option<Output> {
        match (stdout, stderr) {
            (None, None) => None,
            (Some(stdout), Some(stderr)) if stdout == stderr => Some(Output::Both(stdout)),
            (stdout, stderr) => Some(Output::Each { stdout, stderr }),
        }
    }

    /// Of stdout and of stderr.
    pub fn files(&self) -> [Option<&Text>; 2] {
        match self {
            Output::Both(file) => [Some(file), Some(file)],
            Output::Each { stdout, stderr } => [stdout.as_ref(), stderr.as_ref()],
        }
    }
}

/// The OpenAPI document shows both forms.
fn text_or(keys: &[&str]) -> RefOr<Schema> {
    let text = <String as utoipa::PartialSchema>::schema;
    let object =
        keys.iter().fold(ObjectBuilder::new(), |object, key| object.property(*key, text()));
    OneOfBuilder::new().item(text()).item(object).into()
}

impl utoipa::PartialSchema for Stdin {
    fn schema() -> RefOr<Schema> {
        text_or(&["file"])
    }
}

impl utoipa::ToSchema for Stdin {}

impl utoipa::PartialSchema for Output {
    fn schema() -> RefOr<Schema> {
        text_or(&["stdout", "stderr"])
    }
}

impl utoipa::ToSchema for Output {}
