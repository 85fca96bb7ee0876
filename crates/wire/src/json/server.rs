//! The server's counters and health.

use serde::Serialize;
use utoipa::ToSchema;

/// Counters of the store and of the server. Numbers of things are integers here: none of them is an
/// id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Stats {
    /// The server's version.
    pub version: String,
    /// Where the binary protocol listens.
    pub tcp_addr: String,
    /// Turns ever appended.
    pub turns: u64,
    /// Contexts ever created, those of worlds included.
    pub contexts: u64,
    /// How many of them are the contexts of worlds.
    pub world_contexts: u64,
    /// Distinct blobs.
    pub blobs: u64,
    /// Uncompressed bytes of all distinct blobs.
    pub blob_raw_bytes: u64,
    /// Stored bytes of all distinct blobs.
    pub blob_stored_bytes: u64,
    /// How many of the turns were lost to damage.
    pub lost_turns: u64,
    /// How many of the contexts lost their creation record to damage.
    pub lost_contexts: u64,
    /// Bundles ever published.
    pub bundles: u64,
    /// Published types.
    pub types: u64,
    /// The last event's position.
    pub events: u64,
    /// The last frame's position in the log.
    pub log_position: u64,
    /// Bytes of log up to its last frame.
    pub log_bytes: u64,
    /// Bytes of index on disk.
    pub index_bytes: u64,
    /// Groups committed since start.
    pub groups: u64,
    /// Commands logged since start.
    pub commands: u64,
    /// Whether the log cannot be written until a restart.
    pub poisoned: bool,
    /// Open connections on both ports.
    pub connections: u64,
}

/// Whether the server can do its work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Health {
    /// `ok`, or `read_only` with status 503 when the log cannot be written.
    pub status: String,
    /// The server's version.
    pub version: String,
}
