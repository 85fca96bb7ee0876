//! Envelopes, and the bundles that beats commit.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::projection::ProjectionOutput;

shapes! {
    /// The caller.
    Invoker {
        /// Not the operator, and no human.
        invoker_id: String,
        /// `INVOKER`.
        invoker_role: String,
        /// For the audit.
        #[serde(default)]
        notes: Option<String>,
    }
    /// The operator's words.
    Operator {
        /// `GEORGE`.
        operator_id: String,
        /// May be empty.
        input_text: String,
    }
    /// The request.
    Mode {
        /// BEAT or `NO_OP`.
        kind: String,
        /// For the audit.
        #[serde(default)]
        client_intent: Option<String>,
    }
    /// The operator's word about time.
    DeclaredTime {
        /// RFC 3339 or local.
        #[serde(default)]
        declared_world_time: Option<String>,
        /// An IANA name.
        #[serde(default)]
        timezone: Option<String>,
    }
    /// What the operator declares.
    DeclaredOverrides {
        /// About time.
        #[serde(default)]
        time: Option<DeclaredTime>,
        /// Whether time stands still from then on.
        #[serde(default)]
        pause_time: Option<bool>,
    }
    /// The state of the caller's screen.
    Ui {
        /// Where to go on reading.
        #[serde(default)]
        stream_cursor: Option<String>,
        /// For the audit.
        #[serde(default)]
        client_timestamp_utc: Option<String>,
    }
    /// A request to a world.
    InvocationEnvelope {
        /// The idempotency key, 1 to 200 characters.
        request_id: String,
        /// The caller.
        invoker: Invoker,
        /// The operator's words.
        operator: Operator,
        /// The request.
        mode: Mode,
        /// What the operator declares.
        #[serde(default)]
        declared_overrides: Option<DeclaredOverrides>,
        /// The state of the caller's screen.
        #[serde(default)]
        ui: Option<Ui>,
    }
    /// Who wrote an entry.
    #[serde(deny_unknown_fields)]
    Author {
        /// Who.
        author_id: String,
        /// OPERATOR, PERSON, WORLD or SYSTEM.
        author_class: String,
    }
    /// Who may see an entry.
    #[serde(deny_unknown_fields)]
    Visibility {
        /// PUBLIC or PRIVATE.
        scope: String,
        /// With PRIVATE: who, besides the author.
        #[serde(default)]
        visible_to: Option<Vec<String>>,
    }
    /// The smallest unit of written reality.
    #[serde(deny_unknown_fields)]
    WriteEntry {
        /// Assigned at commit.
        #[serde(default)]
        entry_id: Option<String>,
        /// Assigned at commit.
        #[serde(default)]
        bundle_id: Option<String>,
        /// From the beat.
        request_id: String,
        /// When, in the world; the commit's time unless proposed.
        #[serde(default)]
        created_at_world: Option<String>,
        /// Its author.
        author: Author,
        /// Who may see it.
        visibility: Visibility,
        /// USER, VOICE or PEOPLE.
        channel: String,
        /// The text, unchanged.
        text: String,
        /// The entry that this one answers; shown to those who may see that entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply_to: Option<String>,
    }
    /// Who proposed a bundle.
    #[serde(deny_unknown_fields)]
    ProposedBy {
        /// The caller's engine.
        engine: String,
        /// In whose name.
        actor: String,
    }
    /// Whether a bundle was rejected.
    #[serde(deny_unknown_fields)]
    Rejection {
        /// Whether.
        rejected: bool,
        /// `CODE: path`.
        #[serde(default)]
        reason: Option<String>,
    }
    /// Something for the pocket; ranges are bytes of its entry's text.
    #[serde(deny_unknown_fields)]
    PocketItem {
        /// CALENDAR or MESSAGE.
        kind: String,
        /// Which entry of the bundle it is of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry_index: Option<u64>,
        /// Assigned at commit.
        #[serde(default)]
        item_id: Option<String>,
        /// Assigned at commit.
        #[serde(default)]
        entry_id: Option<String>,
        /// Its title; a calendar item without one cancels what it supersedes.
        #[serde(default)]
        title: Option<Vec<u64>>,
        /// When it is.
        #[serde(default)]
        time: Option<String>,
        /// Where it is.
        #[serde(default)]
        location: Option<Vec<u64>>,
        /// More about it.
        #[serde(default)]
        notes: Option<Vec<u64>>,
        /// The item that it replaces.
        #[serde(default)]
        supersedes: Option<String>,
    }
    /// A scene text and the entries that it is based on.
    #[serde(deny_unknown_fields)]
    SceneChange {
        /// The text.
        text: String,
        /// At least one.
        used_entry_ids: Vec<String>,
    }
    /// A note about a person and the entries that it is based on.
    #[serde(deny_unknown_fields)]
    CapsuleNote {
        /// About whom.
        person_id: String,
        /// The text.
        text: String,
        /// At least one.
        used_entry_ids: Vec<String>,
    }
    /// Entries that are committed together or not at all.
    #[serde(deny_unknown_fields)]
    WriteBundle {
        /// Assigned at commit.
        #[serde(default)]
        bundle_id: Option<String>,
        /// From the beat.
        request_id: String,
        /// Who proposes it.
        proposed_by: ProposedBy,
        /// What is written.
        entries: Vec<WriteEntry>,
        /// Whether there are entries.
        wrote: bool,
        /// Whether it was rejected.
        #[serde(default)]
        rejection: Option<Rejection>,
        /// Items for the pocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pocket_items: Option<Vec<PocketItem>>,
        /// The scene, set anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scene_change: Option<SceneChange>,
        /// Notes about people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capsule_notes: Option<Vec<CapsuleNote>>,
    }
    /// An envelope that brings its own bundle.
    #[serde(deny_unknown_fields)]
    Beat {
        /// The envelope; its mode is BEAT.
        envelope: InvocationEnvelope,
        /// The bundle.
        bundle: WriteBundle,
        /// Refuses the beat if something visible was written behind this cursor.
        #[serde(default)]
        expected_cursor: Option<String>,
    }
    /// The result of a beat.
    #[serde(deny_unknown_fields)]
    BeatAnswer {
        /// The bundle, committed or rejected.
        bundle: WriteBundle,
        /// What is visible now.
        projection: ProjectionOutput,
    }
    /// What would become of a bundle.
    #[serde(deny_unknown_fields)]
    CheckAnswer {
        /// The bundle, as it was sent or rejected.
        bundle: WriteBundle,
    }
}
