//! A world to be written to, and the valid requests from which the tests start.

use serde_json::{Value, json};
use turnkeep_ledger::acceptance::{Actor, Terms, accept};
use turnkeep_ledger::config::{Config, People, Person, Profile};
use turnkeep_ledger::envelope::Envelope;
use turnkeep_ledger::ids::{EntryId, ItemId, Name};
use turnkeep_ledger::proposal::Proposal;
use turnkeep_ledger::time::{WorldTime, Zone};
use turnkeep_ledger::{Code, Fault, Grant};

/// The beat's request.
pub(crate) const REQUEST: &str = "r-18";
/// An entry that the writer sees.
pub(crate) const SEEN: EntryId = EntryId(18);
/// An item that the writer sees.
pub(crate) const SEEN_ITEM: ItemId = ItemId(7);

/// On what terms the tests write.
pub(crate) struct Rig {
    pub(crate) config: Config,
    pub(crate) people: People,
    pub(crate) actor: Option<&'static str>,
    pub(crate) grant: Grant,
    pub(crate) clock: WorldTime,
    pub(crate) commit: WorldTime,
    pub(crate) zone: Zone,
    pub(crate) may_set_scene: bool,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn time(text: &str) -> WorldTime {
    WorldTime::parse(text).unwrap()
}

impl Rig {
    /// The world of a team, written to by its operator.
    pub(crate) fn workspace() -> Self {
        Self::of(Profile::Workspace)
    }

    /// The world of a story, written to by its operator.
    pub(crate) fn narrative() -> Self {
        Self::of(Profile::Narrative)
    }

    fn of(profile: Profile) -> Self {
        let clock = time("2026-11-15T09:00:00.000Z");
        let mut people = People::default();
        for id in ["PLANNER", "CODER", "REVIEWER"] {
            people.add(Person::with_id(name(id)));
        }
        let helen = Person::with_id(name("HELEN"));
        people.add(Person {
            label: "Helen Hunt".into(),
            aliases: vec!["Äbtissin".into()],
            human: true,
            ..helen
        });
        Self {
            config: Config::new(name("payments"), profile, clock.clone()),
            people,
            actor: None,
            grant: Grant::Everyone,
            commit: clock.plus_seconds(5),
            clock,
            zone: Zone::named("Europe/Berlin").unwrap(),
            may_set_scene: true,
        }
    }

    /// The same world, written to with a person's token.
    pub(crate) fn by(mut self, person: &'static str) -> Self {
        self.grant = Grant::Person(name(person));
        self.actor = Some(person);
        self.may_set_scene = false;
        self
    }

    pub(crate) fn accept(&self, bundle: &Value) -> Result<Proposal, Fault> {
        accept(
            bundle,
            &Terms {
                config: &self.config,
                people: &self.people,
                request: REQUEST,
                actor: self.actor.map_or(Actor::AnyName, Actor::Exactly),
                grant: &self.grant,
                earliest: &self.clock,
                commit: &self.commit,
                zone: &self.zone,
                ahead_seconds: turnkeep_ledger::acceptance::AHEAD_SECONDS_MAX,
                may_set_scene: self.may_set_scene,
                cites: &|id| id == SEEN,
                item: &|id| id == SEEN_ITEM,
            },
        )
    }

    /// The word and the path of the refusal.
    pub(crate) fn refusal(&self, bundle: &Value) -> (Code, String) {
        let fault = self
            .accept(bundle)
            .expect_err("the bundle was to be refused");
        (fault.code, fault.path)
    }

    pub(crate) fn envelope(&self, envelope: &Value) -> Result<Envelope, Fault> {
        let envelope = Envelope::parse(envelope)?;
        envelope
            .check_invoker(&self.config, &self.people)
            .map(|()| envelope)
    }
}

/// A valid public entry of PLANNER's.
pub(crate) fn entry(text: &str) -> Value {
    json!({
        "entry_id": null,
        "bundle_id": null,
        "request_id": REQUEST,
        "created_at_world": null,
        "author": { "author_id": "PLANNER", "author_class": "PERSON" },
        "visibility": { "scope": "PUBLIC", "visible_to": [] },
        "channel": "PEOPLE",
        "text": text,
    })
}

/// A valid bundle of PLANNER's.
pub(crate) fn bundle(entries: &[Value]) -> Value {
    json!({
        "bundle_id": null,
        "request_id": REQUEST,
        "proposed_by": { "engine": "test", "actor": "PLANNER" },
        "entries": entries,
        "wrote": !entries.is_empty(),
        "rejection": { "rejected": false, "reason": null },
    })
}

/// A valid envelope.
pub(crate) fn envelope() -> Value {
    json!({
        "request_id": "r-17",
        "invoker": { "invoker_id": "screen", "invoker_role": "INVOKER", "notes": "from the desk" },
        "operator": { "operator_id": "GEORGE", "input_text": "Ship the refund fix today." },
        "mode": { "kind": "BEAT", "client_intent": "say" },
        "declared_overrides": {
            "time": { "declared_world_time": "2026-11-15T12:00:00", "timezone": "Europe/Berlin" },
            "pause_time": false,
        },
        "ui": { "stream_cursor": "abc", "client_timestamp_utc": "2026-11-15T09:00:00Z" },
    })
}

/// The value with the field at `path`, such as `author/author_id`, set; the last key may be new.
pub(crate) fn with(value: &Value, path: &str, new: impl Into<Value>) -> Value {
    let mut changed = value.clone();
    set(&mut changed, path, new);
    changed
}

pub(crate) fn set(value: &mut Value, path: &str, new: impl Into<Value>) {
    let (parent, key) = path
        .rsplit_once('/')
        .map_or(("", path), |(parent, key)| (parent, key));
    let pointer = if parent.is_empty() {
        String::new()
    } else {
        format!("/{parent}")
    };
    let parent = value
        .pointer_mut(&pointer)
        .unwrap_or_else(|| panic!("no {parent} to set {key} in"));
    match parent {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = new.into(),
        parent => parent[key] = new.into(),
    }
}

/// The value without the field at `path`.
pub(crate) fn without(value: &Value, path: &str) -> Value {
    let mut changed = value.clone();
    let (parent, key) = path
        .rsplit_once('/')
        .map_or(("", path), |(parent, key)| (parent, key));
    let pointer = if parent.is_empty() {
        String::new()
    } else {
        format!("/{parent}")
    };
    let fields = changed
        .pointer_mut(&pointer)
        .unwrap()
        .as_object_mut()
        .unwrap();
    assert!(fields.shift_remove(key).is_some(), "no {path} to take away");
    changed
}
