//! The table `broker` of the configuration: how much the broker keeps.

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Deserialize;
use turnkeep_session::broker::Settings;

use super::setting::{Setting, SettingRow, Sources};
use crate::failure::Failure;

/// Bounds of the broker, for the commands that run one.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct BrokerFlags {
    /// Turns that are kept of each session [default: 32]
    #[arg(long, value_name = "N")]
    ring: Option<usize>,
    /// The longest turn; a longer one is cut [default: 4194304, at most 7340032]
    #[arg(long, value_name = "BYTES")]
    max_turn_bytes: Option<usize>,
    /// Bytes of all kept turns together [default: 536870912]
    #[arg(long, value_name = "BYTES")]
    max_memory: Option<usize>,
    /// Seconds for which the turns of a session that has ended are kept [default: 600]
    #[arg(long, value_name = "SECONDS")]
    linger: Option<u64>,
}

/// The keys of the table in the file.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBroker {
    ring: Option<usize>,
    max_turn_bytes: Option<usize>,
    max_memory: Option<usize>,
    linger: Option<u64>,
}

/// Every bound, resolved from the environment and the file.
#[derive(Debug, Clone)]
pub(crate) struct BrokerBounds {
    ring: Setting<usize>,
    max_turn_bytes: Setting<usize>,
    max_memory: Setting<usize>,
    linger: Setting<u64>,
}

impl RawBroker {
    /// Resolves the bounds: the environment wins over the file, the file over the defaults.
    pub(super) fn resolve(self, from: Sources<'_>) -> Result<BrokerBounds> {
        let default = Settings::default();
        let text = |value: Option<usize>| value.map(|value| value.to_string());
        let seconds = self.linger.map(|seconds| seconds.to_string());
        Ok(BrokerBounds {
            ring: from
                .find_parsed("broker.ring", None, text(self.ring))?
                .or(default.ring_turns_max),
            max_turn_bytes: from
                .find_parsed("broker.max_turn_bytes", None, text(self.max_turn_bytes))?
                .or(default.turn_bytes_max),
            max_memory: from
                .find_parsed("broker.max_memory", None, text(self.max_memory))?
                .or(default.memory_bytes_max),
            linger: from
                .find_parsed("broker.linger", None, seconds)?
                .or(default.linger.as_secs()),
        })
    }
}

impl BrokerBounds {
    /// The broker's settings, where flags win over the bounds. Refuses values that are impossible.
    pub(crate) fn with_flags(&self, flags: BrokerFlags) -> Result<Settings> {
        let settings = Settings {
            ring_turns_max: flags.ring.unwrap_or(self.ring.value),
            turn_bytes_max: flags.max_turn_bytes.unwrap_or(self.max_turn_bytes.value),
            memory_bytes_max: flags.max_memory.unwrap_or(self.max_memory.value),
            linger: Duration::from_secs(flags.linger.unwrap_or(self.linger.value)),
            // The other settings are not for users to change.
            ..Settings::default()
        };
        settings
            .check()
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(settings)
    }

    /// Every bound, for `config show`.
    pub(super) fn rows(&self) -> Vec<SettingRow> {
        vec![
            self.ring.to_row("broker.ring"),
            self.max_turn_bytes.to_row("broker.max_turn_bytes"),
            self.max_memory.to_row("broker.max_memory"),
            self.linger.to_row("broker.linger"),
        ]
    }
}
