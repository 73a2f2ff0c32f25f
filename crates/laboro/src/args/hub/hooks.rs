//! What can be typed about deliveries of hooks.

use super::{HubArgs, RowArgs};
use clap::{Args as ClapArgs, Subcommand, ValueEnum};

#[derive(Debug, ClapArgs)]
pub(crate) struct Hooks {
    #[command(subcommand)]
    pub(crate) command: Option<HooksCommand>,

    /// Only those that are in this state.
    #[arg(long, value_enum)]
    pub(crate) state: Option<HookState>,

    #[command(flatten)]
    pub(crate) rows: RowArgs,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// Try deliveries again that failed.
    Retry(HookRetry),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HookRetry {
    /// Numbers of deliveries.
    #[arg(value_name = "NUMBER", required = true)]
    pub(crate) numbers: Vec<u64>,

    #[command(flatten)]
    pub(crate) hub: HubArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HookState {
    /// Due, or waiting for the next try.
    Pending,
    /// Taken by the receiver.
    Delivered,
    /// Tried as often as may be.
    Failed,
}

impl HookState {
    pub(crate) fn is(self, state: laboro_api::DeliveryState) -> bool {
        use laboro_api::DeliveryState as Is;
        matches!(
            (self, state),
            (HookState::Pending, Is::Pending)
                | (HookState::Delivered, Is::Delivered)
                | (HookState::Failed, Is::Failed)
        )
    }
}
