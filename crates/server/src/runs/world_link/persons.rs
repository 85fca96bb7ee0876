//! Which person of its run's world a node is.
//!
//! The person is chosen when the node is made and never changes: the one that the request names, else
//! the alias, else a name made from the label. A person whom the world has already is adopted, so that
//! a `reviewer` finds what it wrote in earlier runs. A human and a reserved name are refused.
//!
//! A node that an agent spawns never adopts a person: the agent could spawn a node with the alias of
//! another person and read the private entries of that person. It gets a new name instead.
//!
//! Worked example: the world has the person `Reviewer`, and the run already has a node with the person
//! `coder`. A person adds a node with the label `Coder`: it becomes `coder-2`. A person adds a node with the
//! alias `reviewer`: it becomes `Reviewer`. An agent spawns a node with that alias: `reviewer-2`.

use std::sync::Arc;

use turnkeep_ledger::config::Person;
use turnkeep_ledger::fact::Fact;
use turnkeep_ledger::ids::Name;
use turnkeep_ledger::{Principal, Viewer, World};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::node::NodeSettings;

use super::super::run_handle::RunHandle;
use crate::http::ledger::persons::check_may_be_added;
use crate::ledger::{LedgerError, WorldHandle, Worlds};

/// The longest name that is made from a label or an alias: a number still fits behind it.
const NAME_BYTES_MAX: usize = 56;
/// How many names are tried for one node. A run has fewer nodes.
const NAMES_TRIED_MAX: usize = 10_000;
/// The longest label of a person.
const LABEL_BYTES_MAX: usize = 256;
/// The name of a node whose label has no letter or digit of ASCII.
const NAMELESS: &str = "node";

/// Who makes a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeOrigin {
    /// The owner, by a request.
    Owner,
    /// Another node.
    Agent,
}

/// Why a node cannot be a person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` {message}")]
pub(crate) struct PersonRefused {
    /// The field of the request.
    pub(crate) path: &'static str,
    pub(crate) message: String,
}

/// A person of a world, as a node is one.
pub(crate) struct NodePerson {
    pub(crate) world: Arc<WorldHandle>,
    pub(crate) principal: Principal,
}

/// Rejects a world that a new run cannot have.
pub(crate) fn check_world(worlds: &Worlds, name: Option<&str>) -> Result<(), PersonRefused> {
    let Some(name) = name else {
        return Ok(());
    };
    let message = match worlds.find(name) {
        Ok(Some(_)) => return Ok(()),
        Ok(None) => {
            format!("is `{name}`, but there is no such world: `turnkeep world new` makes one")
        }
        Err(error) => format!("is `{name}`, which cannot be used: {error}"),
    };
    let path = "world";
    Err(PersonRefused { path, message })
}

/// Chooses the person of a new node. In a run without a world it is what the request says.
pub(crate) fn choose_person(
    handle: &RunHandle,
    settings: &NodeSettings,
    origin: NodeOrigin,
) -> Result<Option<String>, PersonRefused> {
    let (world, used) = handle.read_live(|run| {
        let persons = run.nodes().filter_map(|node| node.settings.person.clone());
        (run.settings.world.clone(), persons.collect::<Vec<String>>())
    });
    let Some(world) = world else {
        return Ok(settings.person.clone());
    };
    let Ok(Some(world)) = handle.services.worlds.find(&world) else {
        let message = format!("cannot be a person: the run's world `{world}` cannot be used");
        let path = "person";
        return Err(PersonRefused { path, message });
    };
    let wanted = WantedName::of(settings);
    let chosen = world.read(|world| wanted.choose_in(world, origin, &used))?;
    Ok(Some(chosen.to_string()))
}

/// The name that a node would like.
struct WantedName<'a> {
    /// The field that it comes from.
    path: &'static str,
    text: std::borrow::Cow<'a, str>,
    /// Whether the request names the person itself. Then two nodes may share it.
    is_explicit: bool,
}

impl<'a> WantedName<'a> {
    fn of(settings: &'a NodeSettings) -> Self {
        if let Some(person) = &settings.person {
            return Self {
                path: "person",
                text: person.into(),
                is_explicit: true,
            };
        }
        let (path, text) = match &settings.alias {
            Some(alias) => ("alias", name_of_alias(alias)),
            None => ("label", name_of_label(&settings.label)),
        };
        Self {
            path,
            text: text.into(),
            is_explicit: false,
        }
    }

    fn choose_in(
        &self,
        world: &World,
        origin: NodeOrigin,
        used: &[String],
    ) -> Result<Name, PersonRefused> {
        for number in 1..=NAMES_TRIED_MAX {
            let text = match number {
                1 => self.text.to_string(),
                _ => format!("{}-{number}", self.text),
            };
            let is_used = used.iter().any(|used| used.eq_ignore_ascii_case(&text));
            if is_used && !self.is_explicit {
                continue;
            }
            let name = Name::new(&text).filter(Name::may_be_a_person);
            let name = name.ok_or_else(|| self.refuse("is no name that a person may have"))?;
            match find_known(world, &name) {
                None => return Ok(name),
                Some(_) if origin == NodeOrigin::Agent => {}
                Some(known) if is_human_in(world, &known) => {
                    return Err(self.refuse("names a human of the world"));
                }
                Some(known) => return Ok(known),
            }
        }
        Err(self.refuse("is used by too many persons"))
    }

    fn refuse(&self, what: &str) -> PersonRefused {
        let message = format!("{what} (`{}`): give the node another `person`", self.text);
        PersonRefused {
            path: self.path,
            message,
        }
    }
}

/// The spelling under which a world knows a name.
fn find_known(world: &World, name: &Name) -> Option<Name> {
    let added = world.people.spelling(name.as_str()).cloned();
    added
        .or_else(|| world.find_other_spelling(name))
        .or_else(|| was_addressed(world, name).then(|| name.clone()))
}

/// Whether a person of this name, who was never added, wrote or received a private entry.
fn was_addressed(world: &World, name: &Name) -> bool {
    let own = world.view(Viewer::Reader(name.clone())).count();
    own > world.view(Viewer::Public).count()
}

fn is_human_in(world: &World, name: &Name) -> bool {
    world
        .people
        .get(name.as_str())
        .is_some_and(|person| person.human)
}

/// Whether a person of the world is a human.
pub(super) fn is_human(world: &WorldHandle, name: &Name) -> bool {
    world.read(|world| is_human_in(world, name))
}

/// An alias as a name: names begin with a letter or a digit.
fn name_of_alias(alias: &str) -> String {
    let begin = alias.find(|c: char| c.is_ascii_alphanumeric());
    let name = begin.and_then(|begin| alias.get(begin..));
    shorten(name.unwrap_or(NAMELESS))
}

/// A label as a name: `Implementer A` becomes `implementer-a`.
fn name_of_label(label: &str) -> String {
    let mut name = String::new();
    for c in label.chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    match name.trim_end_matches('-') {
        "" => NAMELESS.to_owned(),
        name => shorten(name),
    }
}

fn shorten(name: &str) -> String {
    name.chars().take(NAME_BYTES_MAX).collect()
}

/// The person that a node is now; none in a run without a world, and none if a person has become a
/// human since.
pub(crate) fn find_person(handle: &RunHandle, node: NodeId) -> Option<NodePerson> {
    let (world, person) = handle.read(|run| {
        let added = run.archive.added_node(node)?;
        let person = added.settings.person.clone()?;
        Some((run.live.settings.world.clone()?, person))
    })?;
    let world = handle.services.worlds.get(&world)?;
    let id = Name::new(&person)?;
    if is_human(&world, &id) {
        return None;
    }
    let principal = Principal::Person { id, write: true };
    Some(NodePerson { world, principal })
}

/// Adds the person of a node to the run's world, unless it is there.
pub(crate) async fn ensure_person(handle: &RunHandle, node: NodeId) -> Result<(), LedgerError> {
    let Some(NodePerson {
        world,
        principal: Principal::Person { id, .. },
    }) = find_person(handle, node)
    else {
        return Ok(());
    };
    if world.read(|world| world.people.get(id.as_str()).is_some()) {
        return Ok(());
    }
    let settings = handle.read(|run| {
        let added = run.archive.added_node(node);
        added.map(|added| added.settings.clone())
    });
    let Some(settings) = settings else {
        return Ok(());
    };
    let person = Person {
        label: one_line(&settings.label, id.as_str()),
        identity: Some(one_line(
            &format!("an agent, {}", settings.role),
            "an agent",
        )),
        ..Person::with_id(id)
    };
    let add = move |world: &World| {
        // Another run may have added it while this one waited for the right to write.
        if world.people.get(person.id.as_str()).is_some() {
            return Ok(Vec::new());
        }
        check_may_be_added(world, &person)?;
        Ok(vec![Fact::Person(person)])
    };
    world.record_decided(add).await
}

/// A text as a label: one line, and not too long.
fn one_line(text: &str, fallback: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let end = plain.floor_char_boundary(LABEL_BYTES_MAX);
    match plain.get(..end).map(str::trim) {
        None | Some("") => fallback.to_owned(),
        Some(label) => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_ledger::Config;
    use turnkeep_ledger::config::Profile;
    use turnkeep_ledger::time::WorldTime;
    use turnkeep_types::Timestamp;

    use super::*;

    fn payments() -> World {
        let start = WorldTime::from_timestamp(Timestamp(0));
        let name = Name::new("payments").unwrap();
        let mut world = World::new(Config::new(name, Profile::Workspace, start));
        for (id, human) in [("Reviewer", false), ("ANN", true)] {
            let id = Name::new(id).unwrap();
            world.apply(Fact::Person(Person {
                human,
                ..Person::with_id(id)
            }));
        }
        world
    }

    /// Chooses in a run that has a node with the person `coder`.
    fn check(path: &'static str, text: &str, origin: NodeOrigin, expect: Result<&str, &str>) {
        let wanted = WantedName {
            path,
            text: text.into(),
            is_explicit: path == "person",
        };
        let chosen = wanted.choose_in(&payments(), origin, &["coder".to_owned()]);
        let chosen = chosen.map_err(|refused| refused.path);
        let chosen = chosen.as_ref().map(Name::as_str).map_err(|path| *path);
        assert_eq!(chosen, expect, "{path} {text} {origin:?}");
    }

    #[test]
    fn a_known_person_is_adopted_unless_it_is_human_or_an_agent_asks() {
        use NodeOrigin::{Agent, Owner};
        check("alias", "tester", Owner, Ok("tester"));
        check("alias", "tester", Agent, Ok("tester"));
        check("alias", "reviewer", Owner, Ok("Reviewer"));
        check("alias", "reviewer", Agent, Ok("reviewer-2"));
        check("label", "coder", Owner, Ok("coder-2"));
        check("person", "coder", Owner, Ok("coder"));
        check("alias", "ann", Owner, Err("alias"));
        check("alias", "ann", Agent, Ok("ann-2"));
        check("person", "ANN", Owner, Err("person"));
        check("person", "GEORGE", Owner, Err("person"));
        check("alias", "system", Agent, Err("alias"));
        check("person", "two words", Owner, Err("person"));
    }

    #[test]
    fn labels_and_aliases_become_names() {
        for (label, expect) in [
            ("Implementer A", "implementer-a"),
            ("  Größe & Maß!", "gr-e-ma"),
            ("レビュー", "node"),
            ("a.b_c", "a-b-c"),
        ] {
            assert_eq!(name_of_label(label), expect);
        }
        for (alias, expect) in [("lead", "lead"), ("-x_1", "x_1"), ("--", "node")] {
            assert_eq!(name_of_alias(alias), expect);
        }
        let long = "x".repeat(300);
        assert!(Name::new(&format!("{}-10000", name_of_label(&long))).is_some());
    }
}
