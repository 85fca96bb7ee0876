//! The configuration of a world: its people, clock, writer and limits.
//!
//! A configuration is valid by construction: [`Config::from_json`] is the only way in from outside.
//! [`People`] holds the persons who were added. An open world also accepts legal names that were
//! not added, but remembers none of them: a name in a hidden entry must not change any answer.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use turnkeep_types::Timestamp;

use crate::fault::{Code, Fault};
use crate::ids::{Name, OPERATOR};
use crate::json::Node;
use crate::time::{WorldTime, Zone};

/// A set of defaults, fixed for the life of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Clock STEP, registry OPEN.
    Narrative,
    /// Clock WALL, registry CLOSED.
    Workspace,
}

/// How the clock moves without a declaration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// With the server's clock.
    Wall,
    /// By one second per beat.
    Step,
}

/// Who may become a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// Every legal name that an entry uses as author or reader.
    Open,
    /// Only those who were added.
    Closed,
}

impl Profile {
    /// The word of the profile.
    pub fn word(self) -> &'static str {
        word_of(PROFILES, &self)
    }
}

impl ClockMode {
    /// The word of the clock.
    pub fn word(self) -> &'static str {
        word_of(CLOCKS, &self)
    }
}

impl Registry {
    /// The word of the registry.
    pub fn word(self) -> &'static str {
        word_of(REGISTRIES, &self)
    }
}

/// The attached writer, which is asked when the operator speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// None.
    Silence,
    /// A program that reads and writes JSON lines.
    Command(String),
}

/// The limits of the attached writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The attached writer's context, in tokens of three bytes.
    pub writer_tokens: u64,
    /// How long the attached writer may take for one beat, in seconds.
    pub writer_seconds: u64,
}

/// The allowed values of `writer_seconds`.
const WRITER_SECONDS: std::ops::RangeInclusive<u64> = 1..=3600;
/// The smallest context that a rehydration always fits into.
pub const WRITER_TOKENS_MIN: u64 = 4096;

impl Default for Limits {
    fn default() -> Self {
        Self {
            writer_tokens: 100_000,
            writer_seconds: 120,
        }
    }
}

/// A person who may write and be addressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// The person's id.
    pub id: Name,
    /// The label that people see.
    pub label: String,
    /// Other names of this person in texts.
    pub aliases: Vec<String>,
    /// One line about the person.
    pub identity: Option<String>,
    /// Whether the person is a human. An invoker may not claim to be one.
    pub human: bool,
}

impl Person {
    /// A person of whom only the id is known.
    pub fn with_id(id: Name) -> Self {
        Self {
            label: id.to_string(),
            id,
            aliases: Vec::new(),
            identity: None,
            human: false,
        }
    }
}

/// A world's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The world's name.
    pub world: Name,
    /// The operator's label, which people see.
    pub operator_label: String,
    /// The zone of local times.
    pub timezone: Zone,
    /// The defaults that it was made with.
    pub profile: Profile,
    /// How the clock moves.
    pub clock: ClockMode,
    /// Who may become a person.
    pub registry: Registry,
    /// Whether the pocket is shown.
    pub pocket_available: bool,
    /// The attached writer.
    pub writer: Writer,
    /// The persons in whose names the attached writer may write; `None` means all of them and the
    /// world.
    pub writer_persons: Option<Vec<Name>>,
    /// The limits of the attached writer.
    pub limits: Limits,
    /// The time at which the world began.
    pub start: WorldTime,
}

/// The rule for names, as a message.
pub const NAME_RULE: &str =
    "must be 1 to 64 letters, digits, `_`, `.` or `-`, the first of them a letter or a digit";
const LABEL_BYTES_MAX: usize = 256;
const ALIASES_MAX: usize = 32;
const COMMAND_BYTES_MAX: usize = 4096;
/// Persons per world.
pub const PERSONS_MAX: usize = 10_000;

fn read_label(node: &Node<'_>) -> Result<String, Fault> {
    let text = node.text()?;
    let plain = !text.trim().is_empty()
        && text.len() <= LABEL_BYTES_MAX
        && !text.chars().any(char::is_control);
    if plain {
        Ok(text.to_owned())
    } else {
        Err(node.fault("must be 1 to 256 bytes on one line"))
    }
}

impl Person {
    const FIELDS: &[&str] = &["person_id", "display_label", "aliases", "identity", "human"];

    /// Reads a person from a request.
    pub fn from_json(node: &Node<'_>) -> Result<Self, Fault> {
        Self::with_id(Self::read_id(node)?).with_changes(node)
    }

    /// Reads the id of the person in a request.
    pub fn read_id(node: &Node<'_>) -> Result<Name, Fault> {
        let given = node.field("person_id")?;
        let id = Name::new(given.text()?).filter(Name::may_be_a_person);
        id.ok_or_else(|| {
            given.fault(format!(
                "{NAME_RULE}, no reserved word, and not end in _VIEW"
            ))
        })
    }

    /// This person with the changes of a request. Fields that the request does not have stay.
    pub fn with_changes(&self, node: &Node<'_>) -> Result<Self, Fault> {
        node.reject_unknown_fields(Self::FIELDS)?;
        let mut person = self.clone();
        if let Some(node) = node.optional("display_label")? {
            person.label = read_label(&node)?;
        }
        if let Some(node) = node.optional("aliases")? {
            let aliases: Result<_, Fault> = node.items()?.iter().map(read_label).collect();
            person.aliases = aliases?;
            if person.aliases.len() > ALIASES_MAX {
                return Err(node.fault("may hold at most 32 aliases"));
            }
        }
        // Null removes the identity, while a missing field leaves it; `optional` alone cannot tell.
        if node.fields()?.contains_key("identity") {
            person.identity = node.read_optional("identity", |node| read_label(&node))?;
        }
        if let Some(node) = node.optional("human")? {
            person.human = node.boolean()?;
        }
        Ok(person)
    }

    /// The recorded form.
    pub fn to_record(&self) -> Value {
        json!({
            "person_id": self.id.as_str(), "display_label": self.label, "aliases": self.aliases,
            "identity": self.identity, "human": self.human,
        })
    }
}

fn read_word<T: Copy>(node: &Node<'_>, words: &[(&str, T)]) -> Result<T, Fault> {
    let text = node.text()?;
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let legal: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    Err(node.fault(format!("must be {}", legal.join(" or "))))
}

const PROFILES: &[(&str, Profile)] = &[
    ("NARRATIVE", Profile::Narrative),
    ("WORKSPACE", Profile::Workspace),
];
const CLOCKS: &[(&str, ClockMode)] = &[("WALL", ClockMode::Wall), ("STEP", ClockMode::Step)];
const REGISTRIES: &[(&str, Registry)] = &[("OPEN", Registry::Open), ("CLOSED", Registry::Closed)];

fn word_of<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> &'static str {
    words
        .iter()
        .find(|(_, known)| known == value)
        .map_or("", |(word, _)| word)
}

impl Config {
    /// The fields of a request that creates a world.
    pub const FIELDS: &[&str] = &[
        "world_id",
        "profile",
        "operator_label",
        "timezone",
        "clock",
        "registry",
        "persons",
        "writer",
        "writer_persons",
        "limits",
        "pocket_available",
        "start",
    ];
    /// The fields that may be changed later.
    pub const CHANGEABLE: &[&str] = &[
        "operator_label",
        "timezone",
        "registry",
        "writer",
        "writer_persons",
        "limits",
        "pocket_available",
    ];

    /// A configuration with the defaults of a profile.
    pub fn new(world: Name, profile: Profile, start: WorldTime) -> Self {
        let (clock, registry) = match profile {
            Profile::Narrative => (ClockMode::Step, Registry::Open),
            Profile::Workspace => (ClockMode::Wall, Registry::Closed),
        };
        Self {
            world,
            operator_label: "Operator".to_owned(),
            timezone: Zone::utc(),
            profile,
            clock,
            registry,
            pocket_available: true,
            writer: Writer::Silence,
            writer_persons: None,
            limits: Limits::default(),
            start,
        }
    }

    /// Reads the configuration and the persons of a request that creates a world. The world starts
    /// at `now` unless the request says otherwise.
    pub fn from_json(node: &Node<'_>, now: WorldTime) -> Result<(Self, Vec<Person>), Fault> {
        node.reject_unknown_fields(Self::FIELDS)?;
        let given = node.field("world_id")?;
        let world = Name::new(given.text()?).ok_or_else(|| given.fault(NAME_RULE))?;
        let profile = node.read_optional("profile", |node| read_word(&node, PROFILES))?;
        let mut config = Self::new(world, profile.unwrap_or(Profile::Narrative), now);
        if let Some(node) = node.optional("clock")? {
            config.clock = read_word(&node, CLOCKS)?;
        }
        // After the profile's defaults, so that explicit fields win.
        config.change(node)?;
        if let Some(node) = node.optional("start")? {
            config.start = WorldTime::parse_in(node.text()?, &config.timezone, &node.path)?;
        }
        let persons = node.optional_items("persons")?;
        let persons: Result<_, Fault> = persons.iter().map(Person::from_json).collect();
        Ok((config, persons?))
    }

    /// Reads a recorded configuration. Values that today's rules would reject are adjusted, so that
    /// a stricter rule never makes a world unreadable.
    pub(crate) fn from_record(mut value: Value) -> Result<Self, Fault> {
        // These two fields are read leniently below; the rest goes through today's checks.
        let mut taken = |field: &str| {
            value
                .as_object_mut()?
                .shift_remove(field)?
                .as_str()
                .map(str::to_owned)
        };
        let (zone, label) = (taken("timezone"), taken("operator_label"));
        // The limits may have become stricter since the configuration was recorded.
        if let Some(limits) = value.get_mut("limits") {
            Limits::clamp_recorded(limits);
        }
        let start = WorldTime::from_timestamp(Timestamp(0));
        let root = Node::root(&value, Code::ConfigInvalid);
        let (config, _) = Self::from_json(&root, start)?;
        let missing = || root.fault("has no time zone or no label of the operator");
        let timezone = Zone::recorded(&zone.ok_or_else(missing)?);
        Ok(Self {
            timezone,
            operator_label: label.ok_or_else(missing)?,
            ..config
        })
    }

    /// This configuration with the changes of a request, all or none. Null means unchanged, except
    /// for the writer's persons, where it means all persons.
    pub fn with_changes(&self, node: &Node<'_>) -> Result<Self, Fault> {
        node.reject_unknown_fields(Self::CHANGEABLE)?;
        let mut changed = self.clone();
        changed.change(node)?;
        if node
            .fields()?
            .get("writer_persons")
            .is_some_and(Value::is_null)
        {
            changed.writer_persons = None;
        }
        Ok(changed)
    }

    fn change(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        if let Some(node) = node.optional("operator_label")? {
            self.operator_label = read_label(&node)?;
        }
        if let Some(node) = node.optional("timezone")? {
            self.timezone = Zone::named(node.text()?)
                .ok_or_else(|| node.fault("is not a time zone of the IANA list"))?;
        }
        if let Some(node) = node.optional("registry")? {
            self.registry = read_word(&node, REGISTRIES)?;
        }
        if let Some(node) = node.optional("pocket_available")? {
            self.pocket_available = node.boolean()?;
        }
        if let Some(node) = node.optional("writer")? {
            self.writer = Writer::from_json(&node)?;
        }
        if let Some(node) = node.optional("writer_persons")? {
            let names: Result<_, Fault> = node.items()?.iter().map(author_name).collect();
            self.writer_persons = Some(names?);
        }
        if let Some(node) = node.optional("limits")? {
            self.limits.change(&node)?;
        }
        Ok(())
    }

    /// The recorded form, without the persons.
    pub fn to_record(&self) -> Value {
        let persons = self.writer_persons.as_ref();
        let persons = persons.map(|names| names.iter().map(Name::as_str).collect::<Vec<_>>());
        json!({
            "world_id": self.world.as_str(),
            "profile": self.profile.word(),
            "operator_label": self.operator_label,
            "timezone": self.timezone.as_str(),
            "clock": self.clock.word(),
            "registry": self.registry.word(),
            "pocket_available": self.pocket_available,
            "writer": self.writer.to_string(),
            "writer_persons": persons,
            "limits": { "writer_tokens": self.limits.writer_tokens, "writer_seconds": self.limits.writer_seconds },
            "start": self.start.as_str(),
        })
    }
}

fn author_name(node: &Node<'_>) -> Result<Name, Fault> {
    let legal = |name: &Name| name.may_be_a_person() || name.as_str() == crate::ids::WORLD;
    Name::new(node.text()?)
        .filter(legal)
        .ok_or_else(|| node.fault("must be a person's id, or WORLD"))
}

impl Limits {
    /// Clamps recorded limits to today's bounds.
    fn clamp_recorded(limits: &mut Value) {
        let (least, most) = (*WRITER_SECONDS.start(), *WRITER_SECONDS.end());
        for (field, least, most) in [
            ("writer_tokens", WRITER_TOKENS_MIN, u64::MAX),
            ("writer_seconds", least, most),
        ] {
            if let Some(limit) = limits.get_mut(field)
                && let Some(number) = limit.as_u64()
            {
                *limit = number.clamp(least, most).into();
            }
        }
    }

    fn change(&mut self, node: &Node<'_>) -> Result<(), Fault> {
        node.reject_unknown_fields(&["writer_tokens", "writer_seconds"])?;
        if let Some(node) = node.optional("writer_tokens")? {
            self.writer_tokens = node.count()?;
            if self.writer_tokens < WRITER_TOKENS_MIN {
                return Err(node.fault("must be at least 4096"));
            }
        }
        if let Some(node) = node.optional("writer_seconds")? {
            self.writer_seconds = node.count()?;
            if !WRITER_SECONDS.contains(&self.writer_seconds) {
                return Err(node.fault("must be 1 to 3600"));
            }
        }
        Ok(())
    }
}

impl Writer {
    fn from_json(node: &Node<'_>) -> Result<Self, Fault> {
        let text = node.text()?;
        let command = text.strip_prefix("cmd:").map(str::trim);
        match command {
            _ if text == "silence" => Ok(Self::Silence),
            Some(line) if !line.is_empty() && line.len() <= COMMAND_BYTES_MAX => {
                Ok(Self::Command(line.to_owned()))
            }
            _ => Err(node.fault("must be `silence` or `cmd: PROGRAM ARGUMENTS`")),
        }
    }
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Silence => f.write_str("silence"),
            Self::Command(line) => write!(f, "cmd: {line}"),
        }
    }
}

/// Why a name is not a person of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// It is not a legal id of a person.
    Illegal,
    /// The world is closed and the person was not added.
    Unknown,
    /// It differs from a person's id only in case.
    CaseDiffers,
}

/// The persons who were added to a world.
#[derive(Debug, Clone, Default)]
pub struct People {
    by_id: BTreeMap<Name, Person>,
    /// Each id in lower case, with its real spelling.
    folded: BTreeMap<String, Name>,
}

impl People {
    /// The person with exactly this id.
    pub fn get(&self, id: &str) -> Option<&Person> {
        self.by_id.get(id)
    }

    /// All persons, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Person> {
        self.by_id.values()
    }

    /// The spelling of a person's id, if it equals `id` ignoring case.
    pub fn spelling(&self, id: &str) -> Option<&Name> {
        self.folded.get(&id.to_ascii_lowercase())
    }

    /// Adds or replaces a person.
    pub fn add(&mut self, person: Person) {
        self.folded
            .insert(person.id.as_str().to_ascii_lowercase(), person.id.clone());
        self.by_id.insert(person.id.clone(), person);
    }

    /// Resolves the id of a person. An open world accepts every legal new name.
    pub fn resolve(&self, id: &str, registry: Registry) -> Result<Name, Stranger> {
        if let Some(person) = self.get(id) {
            return Ok(person.id.clone());
        }
        let name = Name::new(id)
            .filter(Name::may_be_a_person)
            .ok_or(Stranger::Illegal)?;
        match (registry, self.spelling(id)) {
            (Registry::Closed, _) => Err(Stranger::Unknown),
            // Two persons whose ids differ only in case would be confused by people.
            (Registry::Open, Some(_)) => Err(Stranger::CaseDiffers),
            (Registry::Open, None) => Ok(name),
        }
    }

    /// Whether a text, ignoring case and outer white space, is a name of the operator or of a
    /// human.
    pub fn claims_to_be_human(&self, text: &str, operator_label: &str) -> bool {
        let claimed = fold(text);
        let is = |name: &str| fold(name) == claimed;
        // All names of a human count, because an invoker could use any of them.
        let human = |person: &Person| {
            person.human
                && (is(person.id.as_str())
                    || is(&person.label)
                    || person.aliases.iter().any(|a| is(a)))
        };
        is(OPERATOR) || is(operator_label) || self.by_id.values().any(human)
    }
}

/// Folds a name for comparison: without case and outer white space.
pub fn fold(text: &str) -> String {
    // Upper case turns ß into SS and a final sigma into a plain one. Lower case comes first,
    // because ẞ is already upper case and would stay.
    text.trim().to_lowercase().to_uppercase().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_configuration_is_read_though_rules_became_stricter() {
        let start = WorldTime::from_timestamp(Timestamp(5));
        let config = Config::new(Name::new("w").unwrap(), Profile::Workspace, start);
        let change = |field: &str, value: Value| {
            let mut recorded = config.to_record();
            recorded[field] = value;
            Config::from_record(recorded).unwrap()
        };
        assert_eq!(Config::from_record(config.to_record()).unwrap(), config);
        assert_eq!(
            change("timezone", json!("Mars/Olympus")).timezone.as_str(),
            "Mars/Olympus"
        );
        assert_eq!(
            change("operator_label", json!("x".repeat(9000)))
                .operator_label
                .len(),
            9000
        );
        let limits = change(
            "limits",
            json!({ "writer_tokens": 12, "writer_seconds": 90_000 }),
        )
        .limits;
        assert_eq!(
            limits,
            Limits {
                writer_tokens: WRITER_TOKENS_MIN,
                writer_seconds: 3600
            }
        );
        for broken in [
            json!([]),
            json!({ "world_id": "w", "profile": "PLAY" }),
            json!({ "profile": "WORKSPACE" }),
        ] {
            assert!(Config::from_record(broken).is_err());
        }
    }

    #[test]
    fn n01_an_invoker_that_is_called_like_the_operator_or_a_human_is_known_in_any_case() {
        let mut people = People::default();
        let person = Person {
            aliases: vec!["Σίσυφος".into()],
            human: true,
            ..Person::with_id(Name::new("ANN").unwrap())
        };
        people.add(person);
        for claim in [
            "GEORGE",
            "george",
            " GEORGE ",
            "STRASSE",
            "straße",
            "STRAẞE",
            "ann",
            "ΣΊΣΥΦΟΣ",
        ] {
            assert!(people.claims_to_be_human(claim, "Straße"), "{claim}");
        }
        assert!(!people.claims_to_be_human("test-client", "Straße"));
    }
}
