//! What tasks ask of workers beyond slots and memory, and what is missing where no worker has it.

use super::text::Text;
use laboro_core::{Amount, Explanation, Lack, Needs, Prospect, Request};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A number, a fraction of one in ten-thousandths, or `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceRequest(pub Request);

impl Serialize for ResourceRequest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Request::All => to.serialize_str("all"),
            Request::Some(amount) => serialize_amount(amount, to),
        }
    }
}

impl std::fmt::Display for ResourceRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Whole where it is.
fn serialize_amount<S: Serializer>(amount: Amount, to: S) -> Result<S::Ok, S::Error> {
    match amount.fraction() {
        0 => to.serialize_u64(amount.wholes()),
        _ => to.serialize_f64(amount.parts() as f64 / Amount::PARTS as f64),
    }
}

impl<'de> Deserialize<'de> for ResourceRequest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ResourceRequest, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a number, such as 2 or 0.5, or \"all\"")]
        enum Said {
            Count(u64),
            Part(f64),
            Word(String),
        }
        let request = match Said::deserialize(from)? {
            Said::Count(count) => Some(Request::whole(count)),
            Said::Part(number) => amount(number).map(Request::Some),
            Said::Word(word) => (word == "all").then_some(Request::All),
        };
        let wrong = || D::Error::custom("write a number of at most four decimals, or \"all\"");
        request.map(ResourceRequest).ok_or_else(wrong)
    }
}

fn amount(number: f64) -> Option<Amount> {
    let parts = number * Amount::PARTS as f64;
    let is_whole = (parts - parts.round()).abs() < 1e-6 && (0.0..1e15).contains(&parts);
    is_whole.then(|| Amount::of_parts(parts.round() as u64))
}

/// Another way to run a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Variant {
    /// Slots that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// Memory that it needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Countable things that it needs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub resources: BTreeMap<String, ResourceRequest>,
    /// Tags that its worker must have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub tags: Vec<Text>,
}

impl Variant {
    pub(crate) fn needs(&self) -> Needs {
        Needs {
            slots: self.slots.unwrap_or(1),
            memory: self.memory_bytes.unwrap_or(0),
            resources: self
                .resources
                .iter()
                .map(|(n, wanted)| (n.clone().into(), wanted.0))
                .collect(),
            tags: self.tags.iter().map(Text::name).collect(),
            ..Needs::default()
        }
    }
}

impl From<&Needs> for Variant {
    fn from(needs: &Needs) -> Variant {
        Variant {
            slots: Some(needs.slots),
            memory_bytes: (needs.memory > 0).then_some(needs.memory),
            resources: requests(needs),
            tags: needs.tags.iter().map(Text::from).collect(),
        }
    }
}

pub(crate) fn requests(needs: &Needs) -> BTreeMap<String, ResourceRequest> {
    needs.resources.iter().map(|(n, wanted)| (n.to_string(), ResourceRequest(*wanted))).collect()
}

/// What a task needs that no worker of its group has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Missing {
    /// The worker that lacks least.
    #[schema(value_type = String)]
    pub closest: Text,
    /// What it lacks.
    pub needs: Vec<MissingNeed>,
}

/// Something that no worker has enough of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MissingNeed {
    /// `slots`, `memory_bytes`, `tag`, `kind` or `resource`.
    pub need: String,
    /// Of a resource, a tag or a kind of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Of what can be counted; nothing for `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<f64>,
    /// The most that a worker has of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has: Option<f64>,
}

impl Missing {
    /// Where nobody has what a task needs.
    pub fn of(explanation: &Explanation) -> Option<Missing> {
        let Explanation::Ready { prospect: Prospect::Lacking(shortfall), .. } = explanation else {
            return None;
        };
        Some(Missing {
            closest: (&shortfall.closest).into(),
            needs: shortfall.lacks.iter().map(MissingNeed::from).collect(),
        })
    }
}

impl From<&Lack> for MissingNeed {
    fn from(lack: &Lack) -> MissingNeed {
        let number = |amount: Amount| amount.parts() as f64 / Amount::PARTS as f64;
        let (need, name, wanted, has) = match lack {
            Lack::Slots { wanted, has } => {
                ("slots", None, Some(f64::from(*wanted)), Some(f64::from(*has)))
            }
            Lack::Memory { wanted, has } => {
                ("memory_bytes", None, Some(*wanted as f64), Some(*has as f64))
            }
            Lack::Resource { name, wanted, has } => {
                let wanted = match wanted {
                    Request::Some(wanted) => Some(number(*wanted)),
                    Request::All => None,
                };
                ("resource", Some(name.to_string()), wanted, Some(number(*has)))
            }
            Lack::Tag(tag) => ("tag", Some(tag.to_string()), None, None),
            Lack::Kind(_) | Lack::Fields(_) => ("kind", Some(lack.to_string()), None, None),
        };
        MissingNeed { need: need.to_owned(), name, wanted, has }
    }
}

/// What a person can do about it.
pub fn advice(explanation: &Explanation) -> Option<&'static str> {
    match explanation {
        Explanation::Cancelled | Explanation::Failed { .. } => Some("`retry` runs it again"),
        Explanation::Held { .. } | Explanation::JobHeld(_) | Explanation::JobStopped { .. } => {
            Some("`release` resumes it")
        }
        Explanation::JobBegins { .. } => Some("`release` begins it now"),
        Explanation::OwnerFull { .. } => Some("`laboro jobs --mine --active` shows what uses them"),
        Explanation::GroupPaused(_) => Some("`resume` lifts the pause"),
        Explanation::Blocked(before) if before.is_empty() => Some("cancel it, or submit it again"),
        Explanation::Blocked(_) => Some("retrying that unblocks it"),
        Explanation::Running { .. }
        | Explanation::Done
        | Explanation::Delayed { .. }
        | Explanation::Waiting { .. }
        | Explanation::JobFull { .. }
        | Explanation::Ready { .. } => None,
    }
}
