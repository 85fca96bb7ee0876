//! The persons that a reader knows, and how a reader may name them.
//!
//! A reader knows the operator and everyone who was added to the world. In an open world, a reader
//! also knows itself, and the authors and addressees of visible entries. Hidden entries add no one:
//! a name that only occurs in them is as unknown as one that was never used.
//!
//! A person is named by id, label or alias, ignoring case. A name that fits no person, or more than
//! one, is rejected with a list of the names that would work. Only a write to an open world may
//! introduce a new person: a new name in a read is probably misspelt.

use std::collections::BTreeMap;

use crate::audience::{Audience, Viewer};
use crate::config::{Person, Registry, fold};
use crate::fault::{Code, Fault};
use crate::ids::Name;
use crate::view::View;
use crate::world::World;

/// How many names a fault lists.
const LISTED_NAMES_MAX: usize = 50;

/// The code and the argument of a fault about a name.
#[derive(Debug, Clone, Copy)]
pub struct Refusal<'a> {
    /// The code of the fault.
    pub code: Code,
    /// Where the name was given.
    pub path: &'a str,
}

/// A person whom a reader may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownPerson {
    /// The person's id.
    pub id: Name,
    /// The label that people see.
    pub label: String,
    /// One line about the person.
    pub identity: Option<String>,
    aliases: Vec<String>,
}

impl KnownPerson {
    fn from_person(person: &Person) -> Self {
        Self {
            id: person.id.clone(),
            label: person.label.clone(),
            identity: person.identity.clone(),
            aliases: person.aliases.clone(),
        }
    }

    fn operator(view: &View<'_>) -> Self {
        let label = view.world.config.operator_label.clone();
        Self {
            id: Name::operator(),
            label,
            identity: None,
            aliases: Vec::new(),
        }
    }

    /// The id, with the label in parentheses if it differs.
    pub fn in_words(&self) -> String {
        id_with_label(self.id.as_str(), &self.label)
    }

    fn is_called(&self, folded: &str) -> bool {
        let mut names = [self.id.as_str(), self.label.as_str()]
            .into_iter()
            .chain(self.aliases.iter().map(String::as_str));
        names.any(|name| fold(name) == folded)
    }
}

/// An id with a label in parentheses, unless they are equal.
pub(crate) fn id_with_label(id: &str, label: &str) -> String {
    if id == label {
        id.to_owned()
    } else {
        format!("{id} ({label})")
    }
}

/// Everyone whom the reader of a view knows, by id; the operator comes first.
pub fn known_persons(view: &View<'_>) -> Vec<KnownPerson> {
    let mut known: BTreeMap<Name, KnownPerson> = BTreeMap::new();
    for person in view.world.people.iter() {
        known.insert(person.id.clone(), KnownPerson::from_person(person));
    }
    // A closed world knows only those who were added.
    if view.world.config.registry == Registry::Open {
        for id in persons_met_in(view) {
            known
                .entry(id.clone())
                .or_insert_with(|| KnownPerson::from_person(&Person::with_id(id)));
        }
    }
    std::iter::once(KnownPerson::operator(view))
        .chain(known.into_values())
        .collect()
}

/// The authors and addressees of visible entries.
fn persons_met_in(view: &View<'_>) -> Vec<Name> {
    let authors = view
        .world
        .authors()
        .filter(|(_, written)| written.iter().any(|number| view.is_visible(*number)));
    let mut met: Vec<Name> = authors.map(|(author, _)| author.clone()).collect();
    for class in view.classes() {
        if let Some(Audience::Readers(readers)) = view.world.classes().audience(*class) {
            met.extend(readers.iter().cloned());
        }
    }
    if let Viewer::Reader(own) = &view.viewer {
        met.push(own.clone());
    }
    // The operator and the world are authors too, but no persons.
    met.retain(Name::may_be_a_person);
    met
}

/// Whether a world knows a person: added, with a token, or author or addressee of any entry.
pub fn is_in_use(world: &World, id: &Name) -> bool {
    let holds_token = || world.tokens().any(|token| token.person == *id);
    let wrote = || !world.authored_by(id.as_str()).is_empty();
    let is_addressed = || {
        // Every class that this person may see, other than the public one, names the person.
        let visible = world.classes().visible_to(&Viewer::Reader(id.clone()));
        let mut audiences = visible
            .iter()
            .filter_map(|class| world.classes().audience(*class));
        audiences.any(|audience| matches!(audience, Audience::Readers(_)))
    };
    world.people.get(id.as_str()).is_some() || holds_token() || wrote() || is_addressed()
}

/// Finds the person whom a reading caller means: somebody whom the reader of the view knows.
///
/// An exact id comes before a label or alias, so that no label can redirect another person's
/// messages.
pub fn find_person(view: &View<'_>, given: &str, refusal: Refusal<'_>) -> Result<Name, Fault> {
    if let Some(person) = view.world.people.get(given) {
        return Ok(person.id.clone());
    }
    let known = known_persons(view);
    find_known(&known, given, refusal)?.ok_or_else(|| unknown_name_fault(&known, given, refusal))
}

/// Finds the person whom a writing caller means. In an open world, a legal id that is new becomes a
/// person by being named. The caller has called [`known_persons`] once for several names.
pub fn find_among(
    known: &[KnownPerson],
    view: &View<'_>,
    given: &str,
    refusal: Refusal<'_>,
) -> Result<Name, Fault> {
    find_known(known, given, refusal)?
        .or_else(|| new_person(view, given))
        .ok_or_else(|| unknown_name_fault(known, given, refusal))
}

/// The known person with a name, if there is one. A name of several persons is a fault.
fn find_known(
    known: &[KnownPerson],
    given: &str,
    refusal: Refusal<'_>,
) -> Result<Option<Name>, Fault> {
    // An exact id wins over labels, so that no label can take over an id.
    if let Some(exact) = known.iter().find(|person| person.id.as_str() == given) {
        return Ok(Some(exact.id.clone()));
    }
    let folded = fold(given);
    let called: Vec<&KnownPerson> = known
        .iter()
        .filter(|person| person.is_called(&folded))
        .collect();
    match called[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.id.clone())),
        _ => Err(ambiguous_name_fault(&called, given, refusal)),
    }
}

fn new_person(view: &View<'_>, given: &str) -> Option<Name> {
    let config = &view.world.config;
    view.world
        .people
        .resolve(given, config.registry)
        .ok()
        .filter(|_| config.registry == Registry::Open)
}

fn unknown_name_fault(known: &[KnownPerson], given: &str, refusal: Refusal<'_>) -> Fault {
    let message = format!(
        "`{}` is nobody here; these are: {}",
        shortened(given),
        list_names(known.iter())
    );
    Fault::new(refusal.code, refusal.path, message)
}

fn ambiguous_name_fault(called: &[&KnownPerson], given: &str, refusal: Refusal<'_>) -> Fault {
    let names = list_names(called.iter().copied());
    let message = format!("`{}` may be any of: {names}; give the id", shortened(given));
    Fault::new(refusal.code, refusal.path, message)
}

/// The part of a name that a fault repeats.
fn shortened(given: &str) -> &str {
    const SHOWN_BYTES_MAX: usize = 64;
    given
        .get(..given.floor_char_boundary(SHOWN_BYTES_MAX))
        .unwrap_or_default()
}

fn list_names<'a>(persons: impl ExactSizeIterator<Item = &'a KnownPerson>) -> String {
    let left_out = persons.len().saturating_sub(LISTED_NAMES_MAX);
    let names: Vec<String> = persons
        .take(LISTED_NAMES_MAX)
        .map(KnownPerson::in_words)
        .collect();
    match left_out {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;
    use crate::audience_text::audience_text;
    use crate::config::{Config, Profile};
    use crate::entry::{Author, AuthorClass, Channel, Entry};
    use crate::fact::Fact;
    use crate::ids::{BundleId, EntryId};
    use crate::time::WorldTime;
    use crate::{Viewer, World};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn world(profile: Profile) -> World {
        let mut world = World::new(Config::new(
            name("w"),
            profile,
            WorldTime::from_timestamp(Timestamp(1)),
        ));
        for (id, label, alias) in [
            ("ANN", "Ann", "A"),
            ("BOB", "Robert", "Bobby"),
            ("BEA", "Bea", "A"),
        ] {
            let person = Person {
                label: label.into(),
                aliases: vec![alias.into()],
                ..Person::with_id(name(id))
            };
            world.apply(Fact::Person(person));
        }
        world
    }

    fn write(world: &mut World, author: &str, to: Option<&[&str]>) {
        let number = u128::from(world.position());
        world.apply(Fact::Entry(Entry {
            id: EntryId(number),
            bundle: BundleId(number),
            request: "r".into(),
            time: WorldTime::from_timestamp(Timestamp(1)),
            author: Author {
                class: AuthorClass::Person,
                id: name(author),
            },
            label: author.into(),
            visible_to: to.map(|to| to.iter().map(|reader| name(reader)).collect()),
            channel: Channel::People,
            text: "x".into(),
            reply_to: None,
        }));
    }

    const REFUSAL: Refusal<'static> = Refusal {
        code: Code::NotFound,
        path: "person_id",
    };

    /// Whom ANN means when she reads.
    fn find(world: &World, given: &str) -> Result<String, String> {
        let view = world.view(Viewer::Reader(name("ANN")));
        let found = find_person(&view, given, REFUSAL);
        found
            .map(|id| id.to_string())
            .map_err(|fault| fault.message.into_owned())
    }

    /// Whom ANN means when she writes.
    fn address(world: &World, given: &str) -> Option<String> {
        let view = world.view(Viewer::Reader(name("ANN")));
        let found = find_among(&known_persons(&view), &view, given, REFUSAL);
        found.ok().map(|id| id.to_string())
    }

    #[test]
    fn a_person_is_found_by_id_label_and_alias_and_never_guessed() {
        let world = world(Profile::Workspace);
        for (given, id) in [
            ("BOB", "BOB"),
            ("bob", "BOB"),
            (" robert ", "BOB"),
            ("Bobby", "BOB"),
            ("George", "GEORGE"),
            ("operator", "GEORGE"),
        ] {
            assert_eq!(find(&world, given).as_deref(), Ok(id), "{given}");
        }
        let unknown = find(&world, "Eve").unwrap_err();
        assert_eq!(
            unknown,
            "`Eve` is nobody here; these are: GEORGE (Operator), ANN (Ann), BEA (Bea), BOB (Robert)"
        );
        assert_eq!(
            find(&world, "a").unwrap_err(),
            "`a` may be any of: ANN (Ann), BEA (Bea); give the id"
        );
    }

    #[test]
    fn in_an_open_world_a_reader_knows_those_it_met_and_only_a_write_introduces_persons() {
        let mut world = world(Profile::Narrative);
        write(&mut world, "Carl", None);
        write(&mut world, "BOB", Some(&["ANN", "Dora"]));
        write(&mut world, "BOB", Some(&["Hidden"]));
        let ids = |reader: &str| -> Vec<String> {
            let view = world.view(Viewer::Reader(name(reader)));
            let known = known_persons(&view);
            known.iter().map(|person| person.id.to_string()).collect()
        };
        assert_eq!(ids("ANN"), ["GEORGE", "ANN", "BEA", "BOB", "Carl", "Dora"]);
        assert_eq!(ids("New"), ["GEORGE", "ANN", "BEA", "BOB", "Carl", "New"]);
        assert_eq!(find(&world, "carl").as_deref(), Ok("Carl"));
        // One that only hidden entries name is as unknown as any other.
        for unknown in ["Eve", "Hidden", "hidden", "no one"] {
            let refused = find(&world, unknown).unwrap_err();
            assert_eq!(
                refused,
                format!(
                    "`{unknown}` is nobody here; these are: GEORGE (Operator), ANN (Ann), BEA (Bea), \
                     BOB (Robert), Carl, Dora"
                )
            );
        }
        for new in ["Eve", "Hidden", "hidden"] {
            assert_eq!(address(&world, new).as_deref(), Some(new));
        }
        assert_eq!(address(&world, "no one"), None);
    }

    #[test]
    fn a_person_is_in_use_once_added_or_author_or_addressee() {
        let mut world = world(Profile::Narrative);
        write(&mut world, "Carl", Some(&["Dora"]));
        for (id, is_used) in [
            ("ANN", true),
            ("Carl", true),
            ("Dora", true),
            ("dora", false),
            ("Eve", false),
        ] {
            assert_eq!(is_in_use(&world, &name(id)), is_used, "{id}");
        }
    }

    #[test]
    fn a_met_id_comes_before_the_alias_of_somebody_else() {
        let mut world = world(Profile::Narrative);
        assert_eq!(find(&world, "Bobby").as_deref(), Ok("BOB"));
        write(&mut world, "Bobby", None);
        assert_eq!(find(&world, "Bobby").as_deref(), Ok("Bobby"));
    }

    #[test]
    fn an_audience_is_told_in_words() {
        let mut world = world(Profile::Workspace);
        let many: Vec<String> = (0..100).map(|number| format!("PERSON-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        for to in [
            None,
            Some(&["ANN"][..]),
            Some(&["ANN", "GEORGE", "BOB"]),
            Some(&many),
        ] {
            write(&mut world, "ANN", to);
        }
        let text = |viewer: &str, number: usize| {
            let view = world.view(Viewer::Reader(name(viewer)));
            audience_text(&view, &world.all_entries()[number])
        };
        assert_eq!(text("ANN", 0), "everyone");
        assert_eq!(text("ANN", 1), "only you");
        assert_eq!(
            text("ANN", 2),
            "only you, BOB (Robert) and GEORGE (Operator)"
        );
        assert_eq!(text("BOB", 2), "only you, ANN (Ann) and GEORGE (Operator)");
        let long = text("ANN", 3);
        assert!(long.len() < 600 && long.ends_with(" more"), "{long}");
    }
}
