//! Worlds for the tests: acts that can be played with or without what somebody may not see.

use std::sync::Arc;

use serde_json::{Value, json};
use turnkeep_ledger::audience::Audience;
use turnkeep_ledger::config::{Config, Person, Profile};
use turnkeep_ledger::entry::{Author, AuthorClass, Channel, Entry};
use turnkeep_ledger::fact::{
    BundleCommit, ClockState, Fact, ItemKind, Note, PocketItem, ProposedBy, Scene, TimeDeclaration,
};
use turnkeep_ledger::ids::{BundleId, EntryId, Ids, ItemId, Name};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::tools::{self, AllowedViews, Caller, ToolRequest};
use turnkeep_ledger::{Code, Fault, Viewer, World, can_see};

/// One bundle, or prose that somebody offered.
#[derive(Clone)]
pub(crate) enum Act {
    Bundle(BundleId, Vec<Entry>, Vec<PocketItem>),
    Scene(String, Vec<EntryId>),
    Note(Name, String, Vec<EntryId>),
}

/// What happens in a world, act by act.
pub(crate) struct Story {
    pub(crate) config: Config,
    pub(crate) people: Vec<Person>,
    pub(crate) acts: Vec<Act>,
    pub(crate) ids: Ids,
    pub(crate) now: WorldTime,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// The view of a name.
pub(crate) fn viewer(text: &str) -> Viewer {
    if text == "PUBLIC" {
        Viewer::Public
    } else {
        Viewer::Reader(name(text))
    }
}

impl Story {
    /// Nothing happened yet.
    pub(crate) fn new(profile: Profile, people: &[&str]) -> Self {
        let start = WorldTime::parse("2026-11-15T09:00:00.000Z").unwrap();
        Self {
            config: Config::new(name("payments"), profile, start.clone()),
            people: people.iter().map(|id| Person::with_id(name(id))).collect(),
            acts: Vec::new(),
            ids: Ids::from_seed(&[3; 32]),
            now: start,
        }
    }

    /// A work world with three persons.
    pub(crate) fn team() -> Self {
        Self::new(Profile::Workspace, &["PLANNER", "CODER", "REVIEWER"])
    }

    fn entry(
        &mut self,
        bundle: BundleId,
        author: &str,
        readers: Option<&[&str]>,
        text: &str,
    ) -> Entry {
        let class = match author {
            "GEORGE" => AuthorClass::Operator,
            "WORLD" => AuthorClass::World,
            _ => AuthorClass::Person,
        };
        let known = self
            .people
            .iter()
            .find(|person| person.id.as_str() == author);
        Entry {
            id: EntryId(self.ids.draw()),
            bundle,
            request: "r".into(),
            time: self.now.clone(),
            author: Author {
                class,
                id: name(author),
            },
            label: known.map_or(author, |person| &person.label).into(),
            visible_to: readers.map(|readers| readers.iter().map(|reader| name(reader)).collect()),
            channel: Channel::for_class(class),
            text: text.into(),
            reply_to: None,
        }
    }

    /// Somebody says several things at once; none as readers is everyone.
    pub(crate) fn bundle(
        &mut self,
        lines: &[(&str, Option<&[&str]>, &str)],
    ) -> (BundleId, Vec<EntryId>) {
        self.now = self.now.plus_seconds(1);
        let bundle = BundleId(self.ids.draw());
        let entries: Vec<_> = lines
            .iter()
            .map(|(author, readers, text)| self.entry(bundle, author, *readers, text))
            .collect();
        let ids = entries.iter().map(|entry| entry.id).collect();
        self.acts.push(Act::Bundle(bundle, entries, Vec::new()));
        (bundle, ids)
    }

    /// Somebody says something to everyone.
    pub(crate) fn say(&mut self, author: &str, text: &str) -> EntryId {
        self.bundle(&[(author, None, text)]).1[0]
    }

    /// Somebody says something to some.
    pub(crate) fn whisper(&mut self, author: &str, readers: &[&str], text: &str) -> EntryId {
        self.bundle(&[(author, Some(readers), text)]).1[0]
    }

    /// The last entry plans something: its whole text is the title.
    pub(crate) fn plan(&mut self, time: Option<&str>, supersedes: Option<ItemId>) -> ItemId {
        let id = ItemId(self.ids.draw());
        let Some(Act::Bundle(_, entries, items)) = self.acts.last_mut() else {
            panic!("no bundle to plan in")
        };
        let source = entries.last().unwrap();
        items.push(PocketItem {
            id,
            kind: ItemKind::Calendar,
            entry: source.id,
            title: Some(0..u32::try_from(source.text.len()).unwrap()),
            time: time.map(|time| WorldTime::parse(time).unwrap()),
            location: None,
            notes: None,
            supersedes,
        });
        id
    }

    pub(crate) fn scene(&mut self, text: &str, cited: &[EntryId]) {
        self.acts.push(Act::Scene(text.to_owned(), cited.to_vec()));
    }

    pub(crate) fn note(&mut self, person: &str, text: &str, cited: &[EntryId]) {
        self.acts
            .push(Act::Note(name(person), text.to_owned(), cited.to_vec()));
    }

    /// The world of these acts.
    pub(crate) fn world(&self) -> World {
        self.play(|_| true).0
    }

    /// The world without what somebody may not see, as if it had never been written.
    pub(crate) fn world_for(&self, viewer: &Viewer) -> (World, Vec<u32>) {
        self.play(|entry| can_see(viewer, &Audience::of_entry(entry)))
    }

    /// The world of the entries that stay, and its position after each act.
    pub(crate) fn play(&self, stays: impl Fn(&Entry) -> bool) -> (World, Vec<u32>) {
        let mut world = World::new(self.config.clone());
        for person in &self.people {
            world.apply(Fact::Person(person.clone()));
        }
        let gone: Vec<EntryId> = self
            .entries()
            .filter(|entry| !stays(entry))
            .map(|entry| entry.id)
            .collect();
        let mut positions = Vec::new();
        for act in &self.acts {
            for fact in facts(act, &gone, &world) {
                world.apply(fact);
            }
            positions.push(world.position());
        }
        world.apply(Fact::Time(TimeDeclaration {
            from: self.config.start.clone(),
            to: ClockState {
                time: self.now.clone(),
                timezone: self.config.timezone.clone(),
                paused: false,
            },
        }));
        (world, positions)
    }

    /// All entries.
    pub(crate) fn item_ids(&self) -> impl Iterator<Item = ItemId> {
        let items = self.acts.iter().filter_map(|act| match act {
            Act::Bundle(_, _, items) => Some(items),
            Act::Scene(..) | Act::Note(..) => None,
        });
        items.flatten().map(|item| item.id)
    }

    /// Everything that was written.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.acts.iter().flat_map(|act| match act {
            Act::Bundle(_, entries, _) => entries.as_slice(),
            Act::Scene(..) | Act::Note(..) => &[],
        })
    }
}

/// The facts of an act without what is gone.
fn facts(act: &Act, gone: &[EntryId], world: &World) -> Vec<Fact> {
    let position = world.position();
    let cites_gone = |cited: &[EntryId]| cited.iter().any(|id| gone.contains(id));
    match act {
        Act::Bundle(id, entries, items) => bundle_facts(*id, entries, items, gone),
        Act::Scene(_, cited) | Act::Note(_, _, cited) if cites_gone(cited) => Vec::new(),
        Act::Scene(text, cited) => {
            vec![Fact::Scene(Scene {
                position,
                text: text.clone(),
                cited: cited.clone(),
            })]
        }
        Act::Note(person, text, cited) => {
            let (person, text, cited) = (person.clone(), text.clone(), cited.clone());
            vec![Fact::Note(Note {
                position,
                person,
                text,
                cited,
            })]
        }
    }
}

fn bundle_facts(
    id: BundleId,
    entries: &[Entry],
    items: &[PocketItem],
    gone: &[EntryId],
) -> Vec<Fact> {
    let entries: Vec<_> = entries
        .iter()
        .filter(|entry| !gone.contains(&entry.id))
        .cloned()
        .collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let commit = BundleCommit {
        id,
        request: Arc::from("r"),
        proposed_by: ProposedBy {
            engine: "test".to_owned(),
            actor: "test".to_owned(),
        },
        entries: u32::try_from(entries.len()).unwrap(),
    };
    let items = items
        .iter()
        .filter(|item| !gone.contains(&item.entry))
        .cloned();
    let facts = entries
        .into_iter()
        .map(Fact::Entry)
        .chain(items.map(Fact::Item));
    facts.chain([Fact::Bundle(commit)]).collect()
}

/// A caller with its own eyes.
pub(crate) fn caller(identity: &str) -> Caller {
    Caller {
        identity: identity.to_owned(),
        views: AllowedViews::Own(viewer(identity)),
    }
}

/// A question of somebody with its own view.
pub(crate) fn question(who: &str, tool: &str, query: &str, constraints: Value) -> Value {
    let mut body = json!({
        "tool_request_id": "t-1",
        "request_id": "r-1",
        "requested_by": { "engine": "ENGINE_9_LLM_WRITER", "actor": who, "knowledge_view": who },
        "tool": { "name": tool, "query_text": query },
    });
    body["tool"]["constraints"] = constraints;
    body
}

/// The answer that somebody gets now.
pub(crate) fn ask(
    world: &World,
    who: &str,
    tool: &str,
    query: &str,
    constraints: Value,
) -> Result<Value, Fault> {
    let request = ToolRequest::parse(&question(who, tool, query, constraints))?;
    tools::answer(world, world.position(), &caller(who), &request, None)
}

/// The ids of a pack's results.
pub(crate) fn found(pack: &Value) -> Vec<String> {
    let ids = pack["results"].as_array().unwrap().iter();
    ids.map(|result| result["entry_id"].as_str().unwrap().to_owned())
        .collect()
}

/// The word of a refusal.
pub(crate) fn code<T: std::fmt::Debug>(refused: Result<T, Fault>) -> Code {
    refused.unwrap_err().code
}
