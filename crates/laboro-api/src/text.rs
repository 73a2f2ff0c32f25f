//! Bytes in JSON: a string where they are UTF-8, `{"base64": "..."}` where they are not. Both forms are accepted for
//! both.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use laboro_core::Name;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Bytes of a program: a string, or `{"base64": "…"}` where they are not UTF-8.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Vec<u8>);

impl Text {
    /// Of any bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Text {
        Text(bytes.into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As a name of the core.
    pub fn name(&self) -> Name {
        Name::new(&self.0)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text(text.as_bytes().to_vec())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Text {
        Text(text.into_bytes())
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Text {
        Text(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Text {
        Text(bytes)
    }
}

impl From<&Name> for Text {
    fn from(name: &Name) -> Text {
        Text(name.bytes().to_vec())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

/// For people: safe on a terminal, with whatever is not text as `\xNN`.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.name(), f)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("base64", &STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or {\"base64\": \"...\"}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::from(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Text, E> {
        Ok(Text::from(text))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Text, M::Error> {
        let Some(key) = map.next_key::<String>()? else {
            return Err(de::Error::missing_field("base64"));
        };
        base64_value(&key, &mut map)
    }
}

/// The rest of `{"base64": "..."}` after its key.
pub(super) fn base64_value<'de, M: MapAccess<'de>>(
    key: &str,
    map: &mut M,
) -> Result<Text, M::Error> {
    if key != "base64" {
        return Err(de::Error::unknown_field(key, &["base64"]));
    }
    let encoded: String = map.next_value()?;
    if let Some(extra) = map.next_key::<String>()? {
        return Err(de::Error::custom(format!("`{extra}` cannot stand beside base64")));
    }
    let bytes = STANDARD.decode(encoded.as_bytes());
    bytes.map(Text).map_err(|error| de::Error::custom(format!("not base64: {error}")))
}

/// In the OpenAPI document every such field is a string; the other form is told once, in words.
impl utoipa::PartialSchema for Text {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        String::schema()
    }
}

impl utoipa::ToSchema for Text {}
