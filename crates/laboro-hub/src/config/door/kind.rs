//! What doors of each dialect can be told. A new dialect is a struct here, a variant, and an arm in each match.

use super::BadDoor;
use crate::listen::Dialect;
use crate::security::CurveKey;
use laboro_dialects::fuq2::Numbering;
use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, Visitor};
use serde::{Deserialize as Read, Serialize};
use std::path::PathBuf;
use std::str::FromStr;
use toml::{Table, Value};

/// A dialect with its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "dialect", rename_all = "lowercase")]
pub enum DoorKind {
    Native(NativeDoor),
    Fuq(FuqDoor),
    Fuq2(Fuq2Door),
    Fuq1(Fuq1Door),
    Dwork(DworkDoor),
    Rrmq(RrmqDoor),
    Runexp(RunexpDoor),
}

/// Our own workers: everything about them is a setting of the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NativeDoor {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FuqDoor {
    /// The file with the password of its nodes and clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<PathBuf>,
    /// Another certificate than the hub's, and its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// How long a node's login is good.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub cookie_ms: Option<u64>,
    /// How long a polling node that should have asked may be silent before it counts as gone.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub quiet_ms: Option<u64>,
    /// Its clients cannot stop the hub.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_shutdown: bool,
    /// Which numbers its nodes know messages by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbering: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fuq2Door {
    /// Which numbers its nodes know messages by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbering: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Fuq1Door {}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct DworkDoor {
    /// How it calls itself to ZeroMQ peers, if not by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Peers prove by CURVE that they know the hub's public key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub curve: bool,
    /// CURVE, and only with these public keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve_allow: Vec<CurveKey>,
    /// How long a steal may wait for work.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub patience_ms: Option<u64>,
    /// After so long a stolen task goes back by itself.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub lease_ms: Option<u64>,
    /// How many tasks one request may name.
    #[serde(
        alias = "tasks_a_message",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number"
    )]
    pub max_tasks_per_message: Option<usize>,
    /// Workers are not sent away when everything is done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stay: bool,
    /// Tasks of every kind may be stolen, by their names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub any: bool,
    /// Only the location that has a task may complete it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_holder: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RrmqDoor {
    /// How it calls itself to ZeroMQ peers, if not by its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Peers prove by CURVE that they know the hub's public key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub curve: bool,
    /// CURVE, and only with these public keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub curve_allow: Vec<CurveKey>,
    /// Requests that may wait for a worker, in number, bytes and time.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub queue: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub queue_bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub queue_ms: Option<u64>,
    /// How long a worker whose connection is lost keeps its place.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub grace_ms: Option<u64>,
    /// After so long a slot is free again, though its worker did not say so.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "number")]
    pub slot_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Read, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunexpDoor {
    /// Runners are not sent away when everything is done.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stay: bool,
    /// The exit status decides what a script has come to, not the last `RES:` line.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exit_code: bool,
}

impl DoorKind {
    pub(super) fn read(dialect: Dialect, options: Table) -> Result<DoorKind, toml::de::Error> {
        fn read<T: DeserializeOwned>(options: Table) -> Result<T, toml::de::Error> {
            Value::Table(options).try_into()
        }
        Ok(match dialect {
            Dialect::Native => DoorKind::Native(read(options)?),
            Dialect::Fuq => DoorKind::Fuq(read(options)?),
            Dialect::Fuq2 => DoorKind::Fuq2(read(options)?),
            Dialect::Fuq1 => DoorKind::Fuq1(read(options)?),
            Dialect::Dwork => DoorKind::Dwork(read(options)?),
            Dialect::Rrmq => DoorKind::Rrmq(read(options)?),
            Dialect::Runexp => DoorKind::Runexp(read(options)?),
        })
    }

    /// The names of what doors of this dialect alone can be told.
    pub(super) fn options(dialect: Dialect) -> &'static [&'static str] {
        match dialect {
            Dialect::Native => fields::<NativeDoor>(),
            Dialect::Fuq => fields::<FuqDoor>(),
            Dialect::Fuq2 => fields::<Fuq2Door>(),
            Dialect::Fuq1 => fields::<Fuq1Door>(),
            Dialect::Dwork => fields::<DworkDoor>(),
            Dialect::Rrmq => fields::<RrmqDoor>(),
            Dialect::Runexp => fields::<RunexpDoor>(),
        }
    }

    pub fn dialect(&self) -> Dialect {
        match self {
            DoorKind::Native(_) => Dialect::Native,
            DoorKind::Fuq(_) => Dialect::Fuq,
            DoorKind::Fuq2(_) => Dialect::Fuq2,
            DoorKind::Fuq1(_) => Dialect::Fuq1,
            DoorKind::Dwork(_) => Dialect::Dwork,
            DoorKind::Rrmq(_) => Dialect::Rrmq,
            DoorKind::Runexp(_) => Dialect::Runexp,
        }
    }

    /// The keys that peers may have, where they have to speak CURVE; any key, if there are none.
    pub fn curve(&self) -> Option<&[CurveKey]> {
        match self {
            DoorKind::Dwork(DworkDoor { curve, curve_allow, .. })
            | DoorKind::Rrmq(RrmqDoor { curve, curve_allow, .. }) => {
                (*curve || !curve_allow.is_empty()).then_some(curve_allow)
            }
            DoorKind::Native(_)
            | DoorKind::Fuq(_)
            | DoorKind::Fuq2(_)
            | DoorKind::Fuq1(_)
            | DoorKind::Runexp(_) => None,
        }
    }

    /// How a ZeroMQ door calls itself, if it is told.
    pub(crate) fn identity(&self) -> Option<&String> {
        match self {
            DoorKind::Dwork(DworkDoor { identity, .. })
            | DoorKind::Rrmq(RrmqDoor { identity, .. }) => identity.as_ref(),
            DoorKind::Native(_)
            | DoorKind::Fuq(_)
            | DoorKind::Fuq2(_)
            | DoorKind::Fuq1(_)
            | DoorKind::Runexp(_) => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), BadDoor> {
        match self {
            DoorKind::Dwork(DworkDoor { lease_ms: Some(0), .. }) => Err(BadDoor::NoLease),
            DoorKind::Fuq(FuqDoor { cookie_ms: Some(0), .. }) => {
                Err(BadDoor::Zero { word: "cookie_ms", what: "end every login at once" })
            }
            DoorKind::Fuq(FuqDoor { quiet_ms: Some(0), .. }) => {
                Err(BadDoor::Zero { word: "quiet_ms", what: "take every busy node for gone" })
            }
            DoorKind::Fuq(door) if door.cert.is_some() != door.key.is_some() => {
                Err(BadDoor::HalfCertificate)
            }
            DoorKind::Fuq(FuqDoor { numbering, .. })
            | DoorKind::Fuq2(Fuq2Door { numbering, .. }) => {
                numbering_of(self.dialect(), numbering.as_deref()).map(drop)
            }
            DoorKind::Native(_)
            | DoorKind::Fuq1(_)
            | DoorKind::Dwork(_)
            | DoorKind::Rrmq(_)
            | DoorKind::Runexp(_) => Ok(()),
        }
    }
}

pub(crate) fn numbering_of(
    dialect: Dialect,
    numbering: Option<&str>,
) -> Result<Numbering, BadDoor> {
    let numbering = numbering.map_or(Ok(Numbering::Current), str::parse);
    numbering.map_err(|why| BadDoor::Numbering { dialect: dialect.word(), why })
}

/// A number, also in quotes: on a command line nothing tells them apart.
fn number<'de, D: Deserializer<'de>, N: FromStr>(from: D) -> Result<Option<N>, D::Error> {
    let text = match Value::deserialize(from)? {
        Value::Integer(number) => number.to_string(),
        Value::String(text) => text,
        other => other.to_string(),
    };
    let wrong = || de::Error::custom(format!("`{text}` is not a number"));
    text.parse().map(Some).map_err(|_| wrong())
}

/// The names of the fields that a struct is read from.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut found: &'static [&'static str] = &[];
    // It ends with an error: there is nothing to read.
    let _ = T::deserialize(FieldNames(&mut found));
    found
}

/// Gives nothing, and notes what is asked for.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("nothing is here"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
