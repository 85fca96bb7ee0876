//! Who asks. Identity comes from the token; a body never changes it.

use crate::audience::{Audience, Viewer};
use crate::config::Config;
use crate::ids::{Name, WORLD};
use crate::world::World;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The owner, who is the operator in every world.
    Owner,
    /// A person of the world.
    Person {
        /// Who.
        id: Name,
        /// Whether it may write.
        write: bool,
    },
}

impl Principal {
    /// How it is recorded, and by which two requests are the same caller's.
    pub fn key(&self) -> String {
        match self {
            Self::Owner => "owner".to_owned(),
            Self::Person { id, .. } => format!("person:{id}"),
        }
    }

    /// Whose eyes it reads with.
    pub fn viewer(&self) -> Viewer {
        match self {
            Self::Owner => Viewer::operator(),
            Self::Person { id, .. } => Viewer::Reader(id.clone()),
        }
    }
}

/// In whose names a writer may write, and with whose eyes it may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// As this person only.
    Person(Name),
    /// As every person, and as the world.
    Everyone,
    /// As these persons; the world is one of them if it is named.
    These(Vec<Name>),
}

impl Grant {
    /// The grant of whoever brings a bundle.
    pub fn of(principal: &Principal) -> Self {
        match principal {
            Principal::Owner => Self::Everyone,
            Principal::Person { id, .. } => Self::Person(id.clone()),
        }
    }

    /// The grant of a world's attached writer.
    pub fn of_attached(config: &Config) -> Self {
        config
            .writer_persons
            .clone()
            .map_or(Self::Everyone, Self::These)
    }

    /// Whether it covers writing as this person.
    pub fn covers_person(&self, id: &Name) -> bool {
        match self {
            Self::Person(own) => own == id,
            Self::Everyone => true,
            Self::These(names) => names.contains(id),
        }
    }

    /// Whether it covers writing as the world.
    pub fn covers_world(&self) -> bool {
        match self {
            Self::Person(_) => false,
            Self::Everyone => true,
            Self::These(names) => names.iter().any(|name| name.as_str() == WORLD),
        }
    }
}

/// Whose eyes a writer cites with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// One reader's.
    Viewer(Viewer),
    /// Those of everyone in whose name it may write.
    AnyOf(Grant),
}

impl Sight {
    /// Whether an entry can be seen so.
    pub(crate) fn sees(&self, world: &World, number: u32) -> bool {
        let Some(class) = world.class_of(number) else {
            return false;
        };
        match self {
            Self::Viewer(viewer) => world.classes().can_see(viewer, class),
            Self::AnyOf(grant) => match world.classes().audience(class) {
                None => false,
                Some(Audience::Public) => true,
                Some(Audience::Readers(readers)) => readers
                    .iter()
                    .any(|name| name.may_be_a_person() && grant.covers_person(name)),
            },
        }
    }
}
