//! Who may see an entry: [`can_see`] is the one function that every read path uses.
//!
//! Entries with the same readers form an audience class. The class of an entry is decided once,
//! when the entry is applied. A view is a set of classes, so a read path only ever visits entries
//! of classes that the reader may see.

use std::collections::HashMap;

use crate::entry::{AuthorClass, Entry};
use crate::ids::{Name, PUBLIC};
pub use crate::search::ClassId;

/// A reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Viewer {
    /// An anonymous reader, who sees what is public.
    Public,
    /// A person, or the operator.
    Reader(Name),
}

impl Viewer {
    /// The operator, who does not see everything.
    pub fn operator() -> Self {
        Self::Reader(Name::operator())
    }

    /// The name of the reader.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Public => PUBLIC,
            Self::Reader(name) => name.as_str(),
        }
    }
}

/// The readers of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Audience {
    /// Everyone.
    Public,
    /// These readers, sorted, each once. A person or operator who wrote the entry is among them.
    Readers(Box<[Name]>),
}

impl Audience {
    /// The audience of an entry.
    pub fn of_entry(entry: &Entry) -> Self {
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
        // Equal audiences must be equal values, because they are keys of a map.
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
    rows: Vec<ClassRow>,
    /// The public class, and for each reader the classes that name them, ascending. They make
    /// [`Self::visible_to`] fast.
    public: Option<ClassId>,
    naming: HashMap<Name, Vec<ClassId>>,
}

/// One class.
#[derive(Debug)]
struct ClassRow {
    audience: Audience,
    /// Entry numbers, ascending.
    entries: Vec<u32>,
}

impl Classes {
    /// Adds an entry to the class of its audience.
    pub fn add_entry(&mut self, number: u32, entry: &Entry) -> ClassId {
        let audience = Audience::of_entry(entry);
        let known = self.numbers.get(&audience).copied();
        let class = known.unwrap_or_else(|| self.create_class(audience));
        if let Some(row) = self.rows.get_mut(class.0 as usize) {
            row.entries.push(number);
        }
        class
    }

    /// Creates the class of an audience.
    fn create_class(&mut self, audience: Audience) -> ClassId {
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
        self.rows.push(ClassRow {
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
        // `can_see` decides; the maps above only select candidates.
        classes.retain(|class| self.can_see(viewer, *class));
        classes
    }

    /// Whether the viewer may see the class. An unknown class is visible to no viewer.
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
    use crate::time::WorldTime;
    use turnkeep_teamworld::Random;

    fn entry(random: &mut Random) -> Entry {
        let name = |number: usize| Name::new(&format!("P{number}")).unwrap();
        let readers = (0..=random.below(3))
            .map(|_| name(random.below(6)))
            .collect();
        Entry {
            id: EntryId(0),
            bundle: BundleId(0),
            request: "r".into(),
            time: WorldTime::from_timestamp(Timestamp(1)),
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
            classes.add_entry(number, &entry(&mut random));
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
