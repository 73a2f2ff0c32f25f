//! Request brokers as the API tells of them.

use crate::mq::Table;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Broker {
    /// Where it listens.
    pub address: String,
    #[serde(flatten)]
    pub table: Table,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Brokers {
    pub brokers: Vec<Broker>,
}
