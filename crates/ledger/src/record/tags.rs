//! The meaning of each tag of each record type, as the published bundles define them. A missing or
//! malformed required field makes the record malformed, and the error is the field's name.

use std::sync::Arc;

use turnkeep_types::Timestamp;
use turnkeep_types::tagged_map::{TaggedMap, TaggedValue};

use super::sharing::{share_text, share_time, share_zone};
use crate::config::{Config, Person};
use crate::entry::{Author, AuthorClass, Channel, Entry};
use crate::fact::{
    AuditLine, BundleCommit, ClockState, Epoch, Fact, Fork, ItemKind, Note, Outcome, PocketItem,
    ProposedBy, RequestKind, Scene, Span, TimeDeclaration, Token,
};
use crate::fault::Code;
use crate::ids::{EntryId, Name};
use crate::json::{Node, parse};
use crate::time::WorldTime;

/// A decoded value, or the name of the field that is missing or malformed.
type Read<T> = Result<T, &'static str>;

/// The short name of a fact's record type, and its fields.
pub(super) fn encode_fields(fact: &Fact) -> (&'static str, TaggedMap<'_>) {
    match fact {
        Fact::Entry(entry) => ("WriteEntry", write_entry(entry)),
        Fact::Time(declaration) => ("TimeDeclaration", write_time(declaration)),
        Fact::Item(item) => ("PocketItem", write_item(item)),
        Fact::Bundle(commit) => ("BundleCommit", write_bundle(commit)),
        Fact::Outcome(outcome) => ("Outcome", write_outcome(outcome)),
        Fact::Config(config) => (
            "WorldConfig",
            TaggedMap::default().text(1, config.to_record().to_string()),
        ),
        Fact::Forked(fork) => (
            "WorldFork",
            TaggedMap::default()
                .text(1, fork.from.as_str())
                .number(2, fork.position.into()),
        ),
        Fact::Person(person) => (
            "Person",
            TaggedMap::default().text(1, person.to_record().to_string()),
        ),
        Fact::Token(token) => ("Token", write_token(token)),
        Fact::Revoked(token) => (
            "TokenRevoked",
            TaggedMap::default().text(1, token.to_string()),
        ),
        Fact::AuditLine(line) => ("AuditLine", write_line(line)),
        Fact::Scene(scene) => (
            "Scene",
            write_derived(scene.position, &scene.text, &scene.cited),
        ),
        Fact::Note(note) => (
            "Note",
            write_derived(note.position, &note.text, &note.cited).text(4, note.person.as_str()),
        ),
        Fact::Epoch(epoch) => ("Epoch", write_epoch(epoch)),
    }
}

/// The short names of all types.
pub(super) const KINDS: &[&str] = &[
    "WriteEntry",
    "TimeDeclaration",
    "PocketItem",
    "BundleCommit",
    "Outcome",
    "WorldConfig",
    "WorldFork",
    "Person",
    "Token",
    "TokenRevoked",
    "AuditLine",
    "Scene",
    "Note",
    "Epoch",
];

/// Decodes a fact from its fields; `None` for an unknown record type.
pub(super) fn decode_fact(kind: &str, fields: &TaggedMap<'_>) -> Option<Read<Fact>> {
    Some(match kind {
        "WriteEntry" => read_entry(fields).map(Fact::Entry),
        "TimeDeclaration" => read_time(fields).map(Fact::Time),
        "PocketItem" => read_item(fields).map(Fact::Item),
        "BundleCommit" => read_bundle(fields).map(Fact::Bundle),
        "Outcome" => read_outcome(fields).map(|outcome| Fact::Outcome(Box::new(outcome))),
        "WorldConfig" => read_config(fields).map(|config| Fact::Config(Box::new(config))),
        "WorldFork" => read_fork(fields).map(Fact::Forked),
        "Person" => read_person(fields).map(Fact::Person),
        "Token" => read_token(fields).map(Fact::Token),
        "TokenRevoked" => parse_required(fields, 1, "token").map(Fact::Revoked),
        "AuditLine" => read_line(fields).map(Fact::AuditLine),
        "Scene" => read_scene(fields).map(Fact::Scene),
        "Note" => read_note(fields).map(Fact::Note),
        "Epoch" => read_epoch(fields).map(|epoch| Fact::Epoch(Box::new(epoch))),
        _ => return None,
    })
}

fn require_text<'a>(fields: &'a TaggedMap<'_>, tag: u64, what: &'static str) -> Read<&'a str> {
    fields.get_text(tag).ok_or(what)
}

fn require_number(fields: &TaggedMap<'_>, tag: u64, what: &'static str) -> Read<u64> {
    fields.get_number(tag).ok_or(what)
}

fn require_u32(fields: &TaggedMap<'_>, tag: u64, what: &'static str) -> Read<u32> {
    u32::try_from(require_number(fields, tag, what)?).map_err(|_| what)
}

fn parse_required<T: std::str::FromStr>(
    fields: &TaggedMap<'_>,
    tag: u64,
    what: &'static str,
) -> Read<T> {
    require_text(fields, tag, what)?.parse().map_err(|_| what)
}

fn parse_optional<T: std::str::FromStr>(
    fields: &TaggedMap<'_>,
    tag: u64,
    what: &'static str,
) -> Read<Option<T>> {
    fields
        .get_text(tag)
        .map(|text| text.parse().map_err(|_| what))
        .transpose()
}

fn require_name(fields: &TaggedMap<'_>, tag: u64, what: &'static str) -> Read<Name> {
    Name::new_shared(require_text(fields, tag, what)?, share_text).ok_or(what)
}

fn require_time(fields: &TaggedMap<'_>, tag: u64, what: &'static str) -> Read<WorldTime> {
    share_time(require_text(fields, tag, what)?).ok_or(what)
}

fn write_entry(entry: &Entry) -> TaggedMap<'_> {
    let fields = TaggedMap::default()
        .text(1, entry.id.to_string())
        .text(2, entry.bundle.to_string())
        .text(3, &*entry.request)
        .text(4, entry.time.as_str())
        .text(5, entry.author.id.as_str())
        .text(6, entry.author.class.word())
        .text(7, &*entry.label);
    // A public entry has no list, which differs from an empty one.
    let fields = match &entry.visible_to {
        Some(readers) => fields.texts(8, readers.iter().map(Name::to_string)),
        None => fields,
    };
    let fields = fields.text(9, entry.channel.word()).text(10, &*entry.text);
    fields.optional_text(11, entry.reply_to.map(|id| id.to_string()))
}

fn read_entry(fields: &TaggedMap<'_>) -> Read<Entry> {
    let class =
        AuthorClass::from_word(require_text(fields, 6, "author_class")?).ok_or("author_class")?;
    let readers = fields.get_texts(8).map(|names| {
        names
            .iter()
            .map(|n| Name::new_shared(n, share_text).ok_or("visible_to"))
            .collect()
    });
    Ok(Entry {
        id: parse_required(fields, 1, "entry_id")?,
        bundle: parse_required(fields, 2, "bundle_id")?,
        request: share_text(require_text(fields, 3, "request_id")?),
        time: require_time(fields, 4, "created_at_world")?,
        author: Author {
            class,
            id: require_name(fields, 5, "author_id")?,
        },
        label: share_text(require_text(fields, 7, "author_label")?),
        visible_to: readers.transpose()?,
        channel: Channel::from_word(require_text(fields, 9, "channel")?).ok_or("channel")?,
        text: require_text(fields, 10, "text")?.into(),
        reply_to: parse_optional(fields, 11, "reply_to")?,
    })
}

/// A clock takes three tags: time, zone and pause.
fn write_clock<'a>(fields: TaggedMap<'a>, tag: u64, clock: &'a ClockState) -> TaggedMap<'a> {
    fields
        .text(tag, clock.time.as_str())
        .text(tag + 1, clock.timezone.as_str())
        // Always written, unlike other flags, since a clock takes three tags.
        .with(tag + 2, TaggedValue::Flag(clock.paused))
}

fn read_clock(fields: &TaggedMap<'_>, tag: u64) -> Read<ClockState> {
    let timezone = share_zone(require_text(fields, tag + 1, "timezone")?);
    Ok(ClockState {
        time: require_time(fields, tag, "world_time")?,
        timezone,
        paused: fields.get_flag(tag + 2),
    })
}

fn write_time(declaration: &TimeDeclaration) -> TaggedMap<'_> {
    write_clock(
        TaggedMap::default().text(1, declaration.from.as_str()),
        2,
        &declaration.to,
    )
}

fn read_time(fields: &TaggedMap<'_>) -> Read<TimeDeclaration> {
    Ok(TimeDeclaration {
        from: require_time(fields, 1, "from")?,
        to: read_clock(fields, 2)?,
    })
}

/// A part of a text takes two tags.
fn write_span<'a>(fields: TaggedMap<'a>, tag: u64, span: Option<&Span>) -> TaggedMap<'a> {
    match span {
        Some(span) => fields
            .number(tag, span.start.into())
            .number(tag + 1, span.end.into()),
        None => fields,
    }
}

fn read_span(fields: &TaggedMap<'_>, tag: u64) -> Read<Option<Span>> {
    match fields.get_number(tag) {
        Some(_) => Ok(Some(
            require_u32(fields, tag, "range")?..require_u32(fields, tag + 1, "range")?,
        )),
        None => Ok(None),
    }
}

fn write_item(item: &PocketItem) -> TaggedMap<'_> {
    let kind = match item.kind {
        ItemKind::Calendar => "CALENDAR",
        ItemKind::Message => "MESSAGE",
    };
    let fields = TaggedMap::default()
        .text(1, item.id.to_string())
        .text(2, kind)
        .text(3, item.entry.to_string())
        .optional_text(4, item.time.as_ref().map(WorldTime::as_str))
        .optional_text(5, item.supersedes.map(|id| id.to_string()));
    let fields = write_span(fields, 6, item.title.as_ref());
    let fields = write_span(fields, 8, item.location.as_ref());
    write_span(fields, 10, item.notes.as_ref())
}

fn read_item(fields: &TaggedMap<'_>) -> Read<PocketItem> {
    let kind = match require_text(fields, 2, "kind")? {
        "CALENDAR" => ItemKind::Calendar,
        "MESSAGE" => ItemKind::Message,
        _ => return Err("kind"),
    };
    Ok(PocketItem {
        id: parse_required(fields, 1, "item_id")?,
        kind,
        entry: parse_required(fields, 3, "entry_id")?,
        time: fields
            .get_text(4)
            .map(|text| WorldTime::parse(text).ok_or("time"))
            .transpose()?,
        supersedes: parse_optional(fields, 5, "supersedes")?,
        title: read_span(fields, 6)?,
        location: read_span(fields, 8)?,
        notes: read_span(fields, 10)?,
    })
}

fn write_bundle(commit: &BundleCommit) -> TaggedMap<'_> {
    TaggedMap::default()
        .text(1, commit.id.to_string())
        .text(2, &*commit.request)
        .text(3, &commit.proposed_by.engine)
        .text(4, &commit.proposed_by.actor)
        .number(5, commit.entries.into())
}

fn read_bundle(fields: &TaggedMap<'_>) -> Read<BundleCommit> {
    Ok(BundleCommit {
        id: parse_required(fields, 1, "bundle_id")?,
        request: share_text(require_text(fields, 2, "request_id")?),
        proposed_by: ProposedBy {
            engine: require_text(fields, 3, "engine")?.to_owned(),
            actor: require_text(fields, 4, "actor")?.to_owned(),
        },
        entries: require_u32(fields, 5, "entries")?,
    })
}

fn write_outcome(outcome: &Outcome) -> TaggedMap<'_> {
    let kind = match outcome.kind {
        RequestKind::Invocation => "INVOCATION",
        RequestKind::Beat => "BEAT",
    };
    let fields = TaggedMap::default()
        .text(1, &*outcome.request)
        .text(2, &outcome.principal)
        .binary(3, &outcome.fingerprint)
        .text(4, kind)
        .optional_text(5, outcome.rejection.as_deref())
        .text(6, &outcome.viewer)
        .optional_text(7, outcome.cursor_before.as_deref())
        .number(8, outcome.page_start)
        .optional_text(9, outcome.cursor_after.as_deref());
    write_clock(fields, 10, &outcome.clock)
        .flag(13, outcome.clock_moved)
        .number(14, outcome.position.into())
        .optional_text(15, outcome.bundle.map(|id| id.to_string()))
        .flag(16, outcome.pocket_available)
        .number(17, outcome.version.into())
        .binary(18, &outcome.response)
}

fn read_outcome(fields: &TaggedMap<'_>) -> Read<Outcome> {
    // The published bundle names the field `door`. A published name never changes.
    let kind = match require_text(fields, 4, "door")? {
        "INVOCATION" => RequestKind::Invocation,
        "BEAT" => RequestKind::Beat,
        _ => return Err("door"),
    };
    Ok(Outcome {
        request: share_text(require_text(fields, 1, "request_id")?),
        principal: require_text(fields, 2, "principal")?.to_owned(),
        fingerprint: fields.get_binary(3).ok_or("fingerprint")?,
        kind,
        rejection: fields.get_text(5).map(str::to_owned),
        viewer: require_text(fields, 6, "viewer")?.to_owned(),
        cursor_before: fields.get_text(7).map(str::to_owned),
        page_start: require_number(fields, 8, "page_start")?,
        cursor_after: fields.get_text(9).map(str::to_owned),
        clock: read_clock(fields, 10)?,
        clock_moved: fields.get_flag(13),
        position: require_u32(fields, 14, "position")?,
        bundle: parse_optional(fields, 15, "bundle_id")?,
        pocket_available: fields.get_flag(16),
        version: require_u32(fields, 17, "version")?,
        response: fields.get_binary(18).ok_or("response")?,
    })
}

fn read_config(fields: &TaggedMap<'_>) -> Read<Config> {
    let value = parse(require_text(fields, 1, "config")?.as_bytes()).map_err(|_| "config")?;
    Config::from_record(value).map_err(|_| "config")
}

fn read_fork(fields: &TaggedMap<'_>) -> Read<Fork> {
    Ok(Fork {
        from: require_name(fields, 1, "from")?,
        position: require_u32(fields, 2, "position")?,
    })
}

fn read_person(fields: &TaggedMap<'_>) -> Read<Person> {
    let value = parse(require_text(fields, 1, "person")?.as_bytes()).map_err(|_| "person")?;
    Person::from_json(&Node::root(&value, Code::ConfigInvalid)).map_err(|_| "person")
}

fn write_token(token: &Token) -> TaggedMap<'_> {
    let fields = TaggedMap::default()
        .text(1, token.id.to_string())
        .text(2, token.person.as_str())
        .flag(3, token.write)
        .number(4, token.created_at.0);
    let fields = match token.expires_at {
        Some(end) => fields.number(5, end.0),
        None => fields,
    };
    fields.binary(6, &token.secret)
}

fn read_token(fields: &TaggedMap<'_>) -> Read<Token> {
    Ok(Token {
        id: parse_required(fields, 1, "token_id")?,
        person: require_name(fields, 2, "person_id")?,
        write: fields.get_flag(3),
        created_at: Timestamp(require_number(fields, 4, "created_at")?),
        expires_at: fields.get_number(5).map(Timestamp),
        secret: fields.get_binary(6).ok_or("secret")?,
    })
}

fn write_line(line: &AuditLine) -> TaggedMap<'_> {
    TaggedMap::default()
        .number(1, line.at.0)
        .text(2, &line.principal)
        .text(3, &line.what)
        .optional_text(4, line.request.as_deref())
        .text(5, &line.details)
}

fn read_line(fields: &TaggedMap<'_>) -> Read<AuditLine> {
    Ok(AuditLine {
        at: Timestamp(require_number(fields, 1, "at")?),
        principal: require_text(fields, 2, "principal")?.to_owned(),
        what: require_text(fields, 3, "what")?.to_owned(),
        request: fields.get_text(4).map(Arc::from),
        details: require_text(fields, 5, "details")?.to_owned(),
    })
}

fn write_derived<'a>(position: u32, text: &'a str, cited: &[EntryId]) -> TaggedMap<'a> {
    TaggedMap::default()
        .number(1, position.into())
        .text(2, text)
        .texts(3, cited.iter().map(EntryId::to_string))
}

fn read_cited(fields: &TaggedMap<'_>) -> Read<Vec<EntryId>> {
    let cited = fields.get_texts(3).ok_or("used_entry_ids")?;
    cited
        .iter()
        .map(|id| id.parse().map_err(|_| "used_entry_ids"))
        .collect()
}

fn read_scene(fields: &TaggedMap<'_>) -> Read<Scene> {
    let text = require_text(fields, 2, "text")?.to_owned();
    Ok(Scene {
        position: require_u32(fields, 1, "position")?,
        text,
        cited: read_cited(fields)?,
    })
}

fn read_note(fields: &TaggedMap<'_>) -> Read<Note> {
    let (position, person) = (
        require_u32(fields, 1, "position")?,
        require_name(fields, 4, "person_id")?,
    );
    Ok(Note {
        position,
        person,
        text: require_text(fields, 2, "text")?.to_owned(),
        cited: read_cited(fields)?,
    })
}

fn write_epoch(epoch: &Epoch) -> TaggedMap<'_> {
    TaggedMap::default()
        .number(1, epoch.number)
        .number(2, epoch.position.into())
        .text(3, &epoch.anchor)
        .optional_text(4, epoch.rehydration.as_deref())
}

fn read_epoch(fields: &TaggedMap<'_>) -> Read<Epoch> {
    Ok(Epoch {
        number: require_number(fields, 1, "number")?,
        position: require_u32(fields, 2, "position")?,
        anchor: require_text(fields, 3, "anchor")?.to_owned(),
        rehydration: fields.get_text(4).map(str::to_owned),
    })
}
