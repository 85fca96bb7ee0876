//! The settings that a server started with.

use serde::Serialize;
use utoipa::ToSchema;

/// The settings of a server, in the order of `turnkeep config show`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerSettings {
    /// The configuration file, whether it exists or not.
    pub file: String,
    /// Every setting there is, also those that were left at their defaults.
    pub settings: Vec<ServerSetting>,
}

/// A setting of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ServerSetting {
    /// As in the configuration file: `durability`, `limits.blob_bytes_max`.
    pub name: String,
    /// Null if it is not set. A secret is only said to be set.
    pub value: serde_json::Value,
    /// Where the value comes from: `default`, `file /etc/turnkeep.toml`, `environment TURNKEEP_HTTP`,
    /// `flag --http`.
    pub source: String,
}
