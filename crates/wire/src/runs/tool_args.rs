//! The arguments of the tools that the daemon gives to agents. `create_edge` and `send_handoff` take
//! the same shapes as their requests over HTTP.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CapabilitiesRequest, PermissionsRequest, Provider};

shapes! {
    /// `spawn_node`: a node to add.
    struct SpawnNodeArgs {
        label: String,
        #[serde(alias = "role")]
        role_template: String,
    }
    optional {
        alias: String,
        /// The caller's unless given.
        provider: Provider,
        provider_name: String,
        /// What the new node must know about its work.
        instructions: String,
        /// What it gets to do first.
        input: String,
        capabilities: CapabilitiesRequest,
        permissions: PermissionsRequest,
        custom_system_prompt: String,
        /// Whether an edge leads from the caller to the new node; true unless given.
        connect: bool,
    }

    /// `ask_user`: a question to the user.
    struct AskUserArgs {
        question: String,
        /// Answers to choose from.
        #[serde(default)]
        options: Vec<String>,
    }

    /// `complete_run`: the run has reached its goal.
    struct CompleteRunArgs {
        summary: String,
        /// Whether it has.
        ok: bool,
    }
    optional {
        evidence: String,
    }

    /// `read_artifact`: a part of a file.
    struct ReadArtifactArgs {
        /// `artifact://` and the id.
        #[serde(rename = "ref")]
        target: String,
    }
    optional {
        /// The first byte.
        offset: u64,
        /// How many bytes.
        limit: u64,
    }
}
