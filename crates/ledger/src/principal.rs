//! The caller of a request, and what the caller may write and see.
//!
//! Identity comes from the token alone. Nothing in a request's body changes it.

use crate::audience::{Audience, Viewer};
use crate::config::Config;
use crate::ids::{Name, WORLD};
use crate::world::World;

/// The caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The owner, who is the operator in every world.
    Owner,
    /// A person of the world.
    Person {
        /// The person's id.
        id: Name,
        /// Whether the token may write.
        write: bool,
    },
    /// The server itself, which reports what happened outside of the world.
    System,
}

impl Principal {
    /// The text form in records. Two requests with the same key come from the same caller.
    pub fn key(&self) -> String {
        match self {
            Self::Owner => "owner".to_owned(),
            Self::Person { id, .. } => format!("person:{id}"),
            Self::System => "system".to_owned(),
        }
    }

    /// The reader as whom the caller reads.
    pub fn viewer(&self) -> Viewer {
        match self {
            Self::Owner => Viewer::operator(),
            Self::Person { id, .. } => Viewer::Reader(id.clone()),
            Self::System => Viewer::Public,
        }
    }
}

/// The authors in whose names a writer may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// One person.
    Person(Name),
    /// Every person, and the world.
    Everyone,
    /// These persons, and the world if it is named.
    These(Vec<Name>),
    /// The server, under its own name only.
    System,
}

impl Grant {
    /// The grant of a caller who brings a bundle.
    pub fn of_caller(principal: &Principal) -> Self {
        match principal {
            Principal::Owner => Self::Everyone,
            Principal::Person { id, .. } => Self::Person(id.clone()),
            Principal::System => Self::System,
        }
    }

    /// The grant of the world's attached writer.
    pub fn of_attached_writer(config: &Config) -> Self {
        config
            .writer_persons
            .clone()
            .map_or(Self::Everyone, Self::These)
    }

    /// Whether the writer may write as this person.
    pub fn covers_person(&self, id: &Name) -> bool {
        match self {
            Self::Person(own) => own == id,
            Self::Everyone => true,
            Self::These(names) => names.contains(id),
            Self::System => false,
        }
    }

    /// Whether the writer may write as the world.
    pub fn covers_world(&self) -> bool {
        match self {
            Self::Person(_) | Self::System => false,
            Self::Everyone => true,
            Self::These(names) => names.iter().any(|name| name.as_str() == WORLD),
        }
    }

    /// Whether the writer may write as the server.
    pub fn covers_system(&self) -> bool {
        matches!(self, Self::System)
    }
}

/// The entries that a writer may cite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CitableEntries {
    /// Those that one reader may see.
    VisibleTo(Viewer),
    /// Those that any person of the grant may see.
    VisibleToAnyOf(Grant),
}

impl CitableEntries {
    /// Whether the writer may cite the entry of this number.
    pub(crate) fn includes(&self, world: &World, number: u32) -> bool {
        let Some(class) = world.class_of(number) else {
            return false;
        };
        match self {
            Self::VisibleTo(viewer) => world.classes().can_see(viewer, class),
            Self::VisibleToAnyOf(grant) => match world.classes().audience(class) {
                None => false,
                Some(Audience::Public) => true,
                // The operator is not a person of the grant: entries to the operator alone stay
                // hidden.
                Some(Audience::Readers(readers)) => readers
                    .iter()
                    .any(|name| name.may_be_a_person() && grant.covers_person(name)),
            },
        }
    }
}
