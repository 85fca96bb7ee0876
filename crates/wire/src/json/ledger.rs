//! The ledger's shapes as the gateway describes them: worlds, people and tokens, envelopes and bundles,
//! projections, tool requests and packs.
//!
//! These describe and read back what the ledger says; what may come in is judged by the ledger itself, which
//! says where a fault is. Only envelopes may hold more than these fields. Times are texts as they were given, ids are opaque.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* })*) => {
        $(
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
            $(#[$doc])*
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
            }
        )*
    };
}

shapes! {
    /// A request that makes a world.
    #[serde(deny_unknown_fields)]
    CreateWorld {
        /// 1 to 64 letters, digits, `_`, `.` or `-`.
        #[schema(example = "payments")]
        world_id: String,
        /// NARRATIVE (clock STEP, registry OPEN) unless given, or WORKSPACE (clock WALL, registry CLOSED).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
        /// WALL or STEP.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<String>,
        /// OPEN or CLOSED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        registry: Option<String>,
        /// What people see of the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operator_label: Option<String>,
        /// An IANA name; UTC unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timezone: Option<String>,
        /// When the world begins; now unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<String>,
        /// Whether projections show the pocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pocket_available: Option<bool>,
        /// `silence` unless given, or `cmd: PROGRAM ARGUMENTS`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<String>,
        /// In whose names the attached writer may write; everyone's unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<WorldLimits>,
        /// Its people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        persons: Option<Vec<Person>>,
    }
    /// A change of a world's configuration; what is left out stays.
    #[serde(deny_unknown_fields)]
    ChangeWorld {
        /// What people see of the operator.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        operator_label: Option<String>,
        /// OPEN or CLOSED.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        registry: Option<String>,
        /// `silence` or `cmd: PROGRAM ARGUMENTS`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer: Option<String>,
        /// In whose names the attached writer may write.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<WorldLimits>,
        /// Whether projections show the pocket.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pocket_available: Option<bool>,
    }
    /// Bounds of a world's attached writer.
    #[serde(deny_unknown_fields)]
    WorldLimits {
        /// Its context in tokens of three bytes; at least 4096.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_tokens: Option<u64>,
        /// How long it may take for one beat.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        writer_seconds: Option<u64>,
    }
    /// A world's configuration, people and clock.
    #[serde(deny_unknown_fields)]
    World {
        /// Its name.
        world_id: String,
        /// NARRATIVE or WORKSPACE.
        profile: String,
        /// What people see of the operator.
        operator_label: String,
        /// The zone in which local times are meant.
        timezone: String,
        /// WALL or STEP.
        clock: String,
        /// OPEN or CLOSED.
        registry: String,
        /// Whether projections show the pocket.
        pocket_available: bool,
        /// `silence` or `cmd: …`.
        writer: String,
        /// In whose names the attached writer may write; null: everyone's, and the world's.
        writer_persons: Option<Vec<String>>,
        /// Bounds of the attached writer.
        limits: WorldLimits,
        /// When it began.
        start: String,
        /// Those who were added, by id.
        persons: Vec<Person>,
        /// The world whose past it shares.
        forked_from: Option<ForkedFrom>,
        /// Its time.
        world_time: WorldClock,
    }
    /// Where a fork came from.
    #[serde(deny_unknown_fields)]
    ForkedFrom {
        /// The world.
        world_id: String,
    }
    /// A world's time.
    #[serde(deny_unknown_fields)]
    WorldClock {
        /// Now.
        time: String,
        /// In which zone it is shown.
        timezone: String,
        /// Whether it stands still.
        paused: bool,
    }
    /// Every world.
    #[serde(deny_unknown_fields)]
    WorldList {
        /// By name.
        worlds: Vec<World>,
    }
    /// A request that makes a world from another's past.
    #[serde(deny_unknown_fields)]
    ForkWorld {
        /// The new world's name.
        world_id: String,
        /// A time, or a cursor of the operator's; now unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    }
    /// Somebody who may write and be written to.
    #[serde(deny_unknown_fields)]
    Person {
        /// 1 to 64 letters, digits, `_`, `.` or `-`; unique ignoring case.
        #[schema(example = "REVIEWER")]
        person_id: String,
        /// What people see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        display_label: Option<String>,
        /// Other names by which texts call this person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        aliases: Option<Vec<String>>,
        /// One line about who this is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<String>,
        /// Whether this is a human.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        human: Option<bool>,
    }
    /// The people of a world.
    #[serde(deny_unknown_fields)]
    PersonList {
        /// By id.
        persons: Vec<Person>,
    }
    /// A request for a person's token.
    #[serde(deny_unknown_fields)]
    MintToken {
        /// Whose.
        person_id: String,
        /// Whether it may write; false unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<bool>,
        /// When it ends, RFC 3339; never unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<String>,
    }
    /// A token, without its secret.
    #[serde(deny_unknown_fields)]
    Token {
        /// Its id, by which it is revoked.
        token_id: String,
        /// Whose it is.
        person_id: String,
        /// Whether it may write.
        write: bool,
        /// When it was made.
        created_at: String,
        /// When it ends.
        expires_at: Option<String>,
    }
    /// A token with its secret, which is shown this once.
    #[serde(deny_unknown_fields)]
    MintedToken {
        /// Its id, by which it is revoked.
        token_id: String,
        /// Whose it is.
        person_id: String,
        /// Whether it may write.
        write: bool,
        /// When it was made.
        created_at: String,
        /// When it ends.
        expires_at: Option<String>,
        /// The secret.
        token: String,
    }
    /// The tokens of a world that count.
    #[serde(deny_unknown_fields)]
    TokenList {
        /// Oldest first.
        tokens: Vec<Token>,
    }
    /// Who calls.
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
    /// What is asked for.
    Mode {
        /// BEAT or NO_OP.
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
    /// What the caller's screen knows.
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
        /// Who calls.
        invoker: Invoker,
        /// The operator's words.
        operator: Operator,
        /// What is asked for.
        mode: Mode,
        /// What the operator declares.
        #[serde(default)]
        declared_overrides: Option<DeclaredOverrides>,
        /// What the caller's screen knows.
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
        /// Given at commit.
        #[serde(default)]
        entry_id: Option<String>,
        /// Given at commit.
        #[serde(default)]
        bundle_id: Option<String>,
        /// The beat's.
        request_id: String,
        /// When, in the world; the commit's time unless proposed.
        #[serde(default)]
        created_at_world: Option<String>,
        /// Who wrote it.
        author: Author,
        /// Who may see it.
        visibility: Visibility,
        /// USER, VOICE or PEOPLE.
        channel: String,
        /// The words, to the byte.
        text: String,
    }
    /// Who proposed a bundle.
    #[serde(deny_unknown_fields)]
    ProposedBy {
        /// With what.
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
        #[serde(default)]
        entry_index: Option<u64>,
        /// Given at commit.
        #[serde(default)]
        item_id: Option<String>,
        /// Given at commit.
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
    /// A scene in words, and what they are made from.
    #[serde(deny_unknown_fields)]
    SceneChange {
        /// The words.
        text: String,
        /// At least one.
        used_entry_ids: Vec<String>,
    }
    /// A note about a person, and what it is made from.
    #[serde(deny_unknown_fields)]
    CapsuleNote {
        /// About whom.
        person_id: String,
        /// The words.
        text: String,
        /// At least one.
        used_entry_ids: Vec<String>,
    }
    /// Entries that are committed together or not at all.
    #[serde(deny_unknown_fields)]
    WriteBundle {
        /// Given at commit.
        #[serde(default)]
        bundle_id: Option<String>,
        /// The beat's.
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
    /// What became of a beat.
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
    /// An entry as a stream shows it.
    #[serde(deny_unknown_fields)]
    StreamEntry {
        /// Its id.
        entry_id: String,
        /// When, in the world.
        created_at_world: String,
        /// USER, VOICE or PEOPLE.
        channel: String,
        /// Null for USER and VOICE.
        author_label: Option<String>,
        /// The words, to the byte.
        text: String,
    }
    /// A page of a stream.
    #[serde(deny_unknown_fields)]
    Stream {
        /// As it was given.
        cursor_before: Option<String>,
        /// Where the next page begins; null if nothing was ever visible.
        cursor_after: Option<String>,
        /// In order.
        entries: Vec<StreamEntry>,
    }
    /// The pocket's clock.
    #[serde(deny_unknown_fields)]
    PocketClock {
        /// The world's time.
        world_time: Option<String>,
        /// Its zone.
        timezone: Option<String>,
    }
    /// A calendar item.
    #[serde(deny_unknown_fields)]
    CalendarItem {
        /// Its id.
        item_id: String,
        /// Its source.
        entry_id: String,
        /// A part of the source's text.
        title: Option<String>,
        /// When it is.
        time: Option<String>,
        /// A part of the source's text.
        location: Option<String>,
        /// A part of the source's text.
        notes: Option<String>,
    }
    /// A message.
    #[serde(deny_unknown_fields)]
    MessageItem {
        /// Its id.
        item_id: String,
        /// Its source.
        entry_id: String,
        /// The author's label.
        from: Option<String>,
        /// A part of the source's text, or all of it.
        text: String,
        /// When it was written.
        time: String,
    }
    /// Calendar items.
    #[serde(deny_unknown_fields)]
    Calendar {
        /// Those that stand.
        items: Vec<CalendarItem>,
    }
    /// Messages.
    #[serde(deny_unknown_fields)]
    Messages {
        /// Those that stand.
        items: Vec<MessageItem>,
    }
    /// The pocket.
    #[serde(deny_unknown_fields)]
    Pocket {
        /// Whether it is shown.
        is_available: bool,
        /// The world's clock.
        clock: PocketClock,
        /// What is planned.
        calendar: Calendar,
        /// What was told.
        messages: Messages,
    }
    /// What this beat wrote that the viewer may see.
    #[serde(deny_unknown_fields)]
    Debug {
        /// Whether it wrote.
        wrote: bool,
        /// The bundle.
        bundle_id: Option<String>,
    }
    /// What a screen shows.
    #[serde(deny_unknown_fields)]
    ProjectionOutput {
        /// The request's.
        request_id: String,
        /// The stream.
        stream: Stream,
        /// The pocket.
        pocket: Pocket,
        /// What this beat wrote.
        debug: Debug,
    }
    /// Who asks a tool.
    #[serde(deny_unknown_fields)]
    RequestedBy {
        /// With what.
        engine: String,
        /// The caller's identity: the person, or GEORGE.
        actor: String,
        /// `PUBLIC`, or the caller's own view.
        knowledge_view: String,
    }
    /// A time window: `from` inclusive, `to` exclusive.
    #[serde(deny_unknown_fields)]
    TimeWindow {
        /// Null is open.
        #[serde(default)]
        from: Option<String>,
        /// Null is open.
        #[serde(default)]
        to: Option<String>,
    }
    /// What a tool is held to.
    #[serde(deny_unknown_fields)]
    Constraints {
        /// When.
        #[serde(default)]
        time_window: Option<TimeWindow>,
        /// 1 to 200; 10 unless given.
        #[serde(default)]
        limit: Option<u64>,
        /// Whose.
        #[serde(default)]
        person_id: Option<String>,
    }
    /// Which tool is asked what.
    #[serde(deny_unknown_fields)]
    ToolCall {
        /// LEDGER_SEARCH, LEDGER_GET, CAPSULE_GET or SCENE_PACK_BUILD.
        name: String,
        /// Words to match, or ids.
        query_text: String,
        /// What it is held to.
        #[serde(default)]
        constraints: Option<Constraints>,
    }
    /// A question to the ledger.
    #[serde(deny_unknown_fields)]
    ToolRequest {
        /// Echoed.
        tool_request_id: String,
        /// Echoed.
        request_id: String,
        /// Who asks.
        requested_by: RequestedBy,
        /// Which tool, and what.
        tool: ToolCall,
    }
    /// A piece of evidence.
    #[serde(deny_unknown_fields)]
    RetrievalResult {
        /// The entry.
        entry_id: String,
        /// Its bundle.
        bundle_id: String,
        /// When, in the world.
        created_at_world: String,
        /// PUBLIC or PRIVATE.
        visibility_scope: String,
        /// A piece of the entry's text, to the byte.
        verbatim_excerpt: String,
        /// Who wrote it.
        author_id: String,
        /// Where in the text the excerpt is, in bytes.
        range: Vec<u64>,
    }
    /// Evidence.
    #[serde(deny_unknown_fields)]
    RetrievalResultPack {
        /// The request's.
        tool_request_id: String,
        /// The request's.
        request_id: String,
        /// What was found.
        results: Vec<RetrievalResult>,
        /// Whether nothing was.
        empty: bool,
        /// A mechanical remark.
        notes: Option<String>,
    }
    /// What something was made from.
    #[serde(deny_unknown_fields)]
    Provenance {
        /// Entries.
        used_entry_ids: Vec<String>,
    }
    /// Where an excerpt is from.
    #[serde(deny_unknown_fields)]
    Excerpt {
        /// The entry.
        entry_id: String,
        /// The first byte.
        start: u64,
        /// The byte behind the last.
        end: u64,
    }
    /// A part of a capsule.
    #[serde(deny_unknown_fields)]
    CapsuleSection {
        /// SOURCE_EXCERPTS or OPTIONAL_DERIVED.
        name: String,
        /// The words.
        text: String,
        /// What they are from.
        provenance: Provenance,
        /// Of SOURCE_EXCERPTS: where each is from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        excerpts: Option<Vec<Excerpt>>,
    }
    /// What there is to read about a person.
    #[serde(deny_unknown_fields)]
    CapsulePack {
        /// A hash of person, view, cursor and content.
        capsule_id: String,
        /// About whom.
        person_id: String,
        /// Of the newest visible entry.
        created_at_world: String,
        /// SOURCE_EXCERPTS first.
        sections: Vec<CapsuleSection>,
        /// The request's, where a tool was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
        /// The request's, where a tool was asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    }
    /// A scene in words.
    #[serde(deny_unknown_fields)]
    SceneAnchorPack {
        /// A hash of view, cursor and text.
        scene_anchor_id: String,
        /// The request's.
        request_id: String,
        /// Of the newest visible entry.
        created_at_world: String,
        /// The words.
        text: String,
        /// What they are from.
        provenance: Provenance,
        /// The request's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_request_id: Option<String>,
    }
    /// What somebody could see.
    #[serde(deny_unknown_fields)]
    SeenView {
        /// Whose view.
        view: String,
        /// How many entries it held.
        count: u64,
        /// Its cursor; null if it held nothing.
        cursor: Option<String>,
        /// The newest of them, in ledger order.
        entries: Vec<WriteEntry>,
        /// Whether these are all.
        complete: bool,
    }
    /// What two people did not both see.
    #[serde(deny_unknown_fields)]
    ViewDifference {
        /// Whose view.
        view: String,
        /// The other's.
        vs: String,
        /// What only the first could see.
        only_view: Vec<WriteEntry>,
        /// What only the other could see.
        only_vs: Vec<WriteEntry>,
        /// Whether this is all.
        complete: bool,
    }
    /// Something that a verification found.
    #[serde(deny_unknown_fields)]
    Misfit {
        /// The turn that holds it.
        turn_id: String,
        /// What is wrong.
        what: String,
    }
    /// A run of words that their author could not have seen.
    #[serde(deny_unknown_fields)]
    Leak {
        /// Where it is.
        entry_id: String,
        /// Where it was, hidden from the author.
        source_entry_id: String,
        /// The run.
        text: String,
    }
    /// What a verification found.
    #[serde(deny_unknown_fields)]
    Verification {
        /// Whether everything fits.
        sound: bool,
        /// Entries that were checked.
        entries: u64,
        /// Bundles that were checked.
        bundles: u64,
        /// Answers that were made again.
        answers: u64,
        /// Answers that need their request to be made again.
        answers_skipped: u64,
        /// What does not fit.
        faults: Vec<Misfit>,
        /// Where leaks were asked for: a report, never a verdict.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leaks: Option<Vec<Leak>>,
    }
    /// A line of the audit.
    #[serde(deny_unknown_fields)]
    AuditLine {
        /// When, by the server's clock; null where the record has no time of its own.
        at: Option<String>,
        /// Who.
        principal: String,
        /// What was done.
        what: String,
        /// The request that it belongs to.
        request_id: Option<String>,
        /// More.
        #[schema(value_type = Object)]
        details: serde_json::Value,
    }
    /// A page of the audit.
    #[serde(deny_unknown_fields)]
    AuditPage {
        /// Oldest first.
        lines: Vec<AuditLine>,
        /// Where the next page begins; null at the end.
        next_cursor: Option<String>,
    }
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ToolAnswer {
    /// LEDGER_SEARCH and LEDGER_GET.
    Retrieval(RetrievalResultPack),
    /// CAPSULE_GET.
    Capsule(CapsulePack),
    /// SCENE_PACK_BUILD.
    SceneAnchor(SceneAnchorPack),
}

/// A view, or the difference of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ViewAnswer {
    /// One.
    Seen(SeenView),
    /// Two.
    Difference(ViewDifference),
}
