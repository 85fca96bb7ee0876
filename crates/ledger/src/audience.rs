//! Who may see what: [`can_see`] is the one function that every read path asks.
//!
//! Entries with the same readers form an audience class. A class is decided once, when its first
//! entry is applied, and a view is a choice of classes; so what a reader gets is put together from
//! entries that the reader may see, and nothing else is ever looked at.

use std::collections::HashMap;

use crate::entry::{AuthorClass, Entry};
use crate::ids::{Name, PUBLIC};
pub use crate::search::ClassId;

/// Somebody who reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// Nobody in particular: sees what is public.
    Public,
    /// A person, or the operator.
    Reader(Name),
}

impl Viewer {
    /// The operator, who is not omniscient.
    pub fn operator() -> Self {
        Self::Reader(Name::operator())
    }

    /// The name of the view.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Public => PUBLIC,
            Self::Reader(name) => name.as_str(),
        }
    }
}

/// Those who may see an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Everyone.
    Public,
    /// These, sorted, each once; the author is one of them.
    Readers(Box<[Name]>),
}

impl Audience {
    /// The audience of an entry.
    pub fn of(entry: &Entry) -> Self {
        let Some(visible_to) = &entry.visible_to else {
            return Self::Public;
        };
        let mut readers = visible_to.to_vec();
        if matches!(
            entry.author.class,
            AuthorClass::Person | AuthorClass::Operator
        ) {
            readers.push(entry.author.id.clone());
        }
        readers.sort();
        readers.dedup();
        Self::Readers(readers.into())
    }

    fn admits(&self, viewer: &Viewer) -> bool {
        match (self, viewer) {
            (Self::Public, _) => true,
            (Self::Readers(_), Viewer::Public) => false,
            (Self::Readers(readers), Viewer::Reader(name)) => readers.binary_search(name).is_ok(),
        }
    }
}

/// Whether the viewer may see what has this audience.
pub fn can_see(viewer: &Viewer, audience: &Audience) -> bool {
    audience.admits(viewer)
}

/// The audience classes of a world, and which entries are in each.
#[derive(Debug, Default)]
pub struct Classes {
    numbers: HashMap<Audience, ClassId>,
    rows: Vec<Row>,
    /// The class of what is public, and the classes that name a reader, ascending: where a viewer's
    /// are.
    public: Option<ClassId>,
    naming: HashMap<Name, Vec<ClassId>>,
}

#[derive(Debug)]
struct Row {
    audience: Audience,
    /// Numbers of entries, ascending.
    entries: Vec<u32>,
}

impl Classes {
    /// Files an entry under its audience.
    pub fn push(&mut self, number: u32, entry: &Entry) -> ClassId {
        let audience = Audience::of(entry);
        let known = self.numbers.get(&audience).copied();
        let class = known.unwrap_or_else(|| self.begin(audience));
        if let Some(row) = self.rows.get_mut(class.0 as usize) {
            row.entries.push(number);
        }
        class
    }

    /// Begins the class of an audience that has none.
    fn begin(&mut self, audience: Audience) -> ClassId {
        let class = ClassId(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        match &audience {
            Audience::Public => self.public = Some(class),
            Audience::Readers(readers) => {
                for reader in readers {
                    self.naming.entry(reader.clone()).or_default().push(class);
                }
            }
        }
        self.numbers.insert(audience.clone(), class);
        self.rows.push(Row {
            audience,
            entries: Vec::new(),
        });
        class
    }

    /// The classes that the viewer may see, ascending.
    pub fn visible_to(&self, viewer: &Viewer) -> Vec<ClassId> {
        let naming = match viewer {
            Viewer::Public => None,
            Viewer::Reader(name) => self.naming.get(name),
        };
        let mut classes = naming.cloned().unwrap_or_default();
        if let Some(public) = self.public {
            classes.insert(classes.partition_point(|class| class.0 < public.0), public);
        }
        classes.retain(|class| self.can_see(viewer, *class));
        classes
    }

    /// Whether the viewer may see what is in the class. A class that there is not is seen by
    /// nobody.
    pub fn can_see(&self, viewer: &Viewer, class: ClassId) -> bool {
        self.rows
            .get(class.0 as usize)
            .is_some_and(|row| can_see(viewer, &row.audience))
    }

    /// The readers of a class.
    pub(crate) fn audience(&self, class: ClassId) -> Option<&Audience> {
        self.rows.get(class.0 as usize).map(|row| &row.audience)
    }

    /// The entries of a class, ascending.
    pub fn entries(&self, class: ClassId) -> &[u32] {
        self.rows
            .get(class.0 as usize)
            .map_or(&[], |row| &row.entries)
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;

    use super::*;
    use crate::entry::{Author, Channel};
    use crate::ids::{BundleId, EntryId};
    use crate::teamworld::random::Random;
    use crate::time::WorldTime;

    fn entry(random: &mut Random) -> Entry {
        let name = |number: usize| Name::new(&format!("P{number}")).unwrap();
        let readers = (0..=random.below(3))
            .map(|_| name(random.below(6)))
            .collect();
        Entry {
            id: EntryId(0),
            bundle: BundleId(0),
            request: "r".into(),
            time: WorldTime::at(Timestamp(1)),
            author: Author {
                class: AuthorClass::Person,
                id: name(random.below(6)),
            },
            label: "P".into(),
            visible_to: (!random.percent(20)).then_some(readers),
            channel: Channel::People,
            text: "text".into(),
            reply_to: None,
        }
    }

    #[test]
    fn a_viewer_s_classes_are_those_that_it_can_see_in_order() {
        let mut random = Random::new(7);
        let mut classes = Classes::default();
        for number in 0..300 {
            classes.push(number, &entry(&mut random));
            let readers = (0..8).map(|n| Viewer::Reader(Name::new(&format!("P{n}")).unwrap()));
            for viewer in readers.chain([Viewer::Public, Viewer::operator()]) {
                let all =
                    (0..classes.rows.len()).map(|number| ClassId(u32::try_from(number).unwrap()));
                let seen: Vec<_> = all
                    .filter(|class| classes.can_see(&viewer, *class))
                    .collect();
                assert_eq!(
                    classes.visible_to(&viewer),
                    seen,
                    "{viewer:?} after {number}"
                );
            }
        }
    }
}
