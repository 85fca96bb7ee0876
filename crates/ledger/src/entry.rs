//! The smallest unit of written reality, as it was committed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::ids::{BundleId, EntryId, Name};
use crate::time::WorldTime;

/// Of what kind an author is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorClass {
    /// The operator.
    Operator,
    /// A person.
    Person,
    /// The world itself.
    World,
    /// The server.
    System,
}

impl AuthorClass {
    const WORDS: &[(&str, Self)] = &[
        ("OPERATOR", Self::Operator),
        ("PERSON", Self::Person),
        ("WORLD", Self::World),
        ("SYSTEM", Self::System),
    ];

    /// The class of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, class)| *class)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, class)| *class == self)
            .map_or("", |(word, _)| word)
    }
}

/// Who wrote an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Of what kind.
    pub class: AuthorClass,
    /// Who.
    pub id: Name,
}

/// Where an entry is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The operator's own words.
    User,
    /// The world's voice.
    Voice,
    /// What people say and do.
    People,
}

impl Channel {
    const WORDS: &[(&str, Self)] = &[
        ("USER", Self::User),
        ("VOICE", Self::Voice),
        ("PEOPLE", Self::People),
    ];

    /// The channel of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, channel)| *channel)
    }

    /// Its word.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, channel)| *channel == self)
            .map_or("", |(word, _)| word)
    }

    /// The channel of what an author of this class writes.
    pub fn of(class: AuthorClass) -> Self {
        match class {
            AuthorClass::Operator => Self::User,
            AuthorClass::Person => Self::People,
            AuthorClass::World | AuthorClass::System => Self::Voice,
        }
    }
}

/// A committed entry. It is never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The bundle that it was committed in.
    pub bundle: BundleId,
    /// The beat's request.
    pub request: Arc<str>,
    /// When, in the world.
    pub time: WorldTime,
    /// Who wrote it.
    pub author: Author,
    /// What the author was called then.
    pub label: Arc<str>,
    /// Whom it was addressed to; none means everyone.
    pub visible_to: Option<Box<[Name]>>,
    /// Where it is shown.
    pub channel: Channel,
    /// The words, to the byte.
    pub text: Box<str>,
    /// The entry that this one answers. A reader is shown it only if that reader may see that entry
    /// too.
    pub reply_to: Option<EntryId>,
}

impl Entry {
    /// The word of its scope.
    pub fn scope(&self) -> &'static str {
        if self.visible_to.is_some() {
            "PRIVATE"
        } else {
            "PUBLIC"
        }
    }

    /// The label that a reader is shown: only people have one.
    pub fn shown_label(&self) -> Option<&str> {
        (self.channel == Channel::People).then_some(&*self.label)
    }

    /// Who may see it besides its author.
    pub fn visibility(&self) -> Value {
        let readers = self.visible_to.as_deref().unwrap_or_default();
        let readers: Vec<&str> = readers.iter().map(Name::as_str).collect();
        json!({ "scope": self.scope(), "visible_to": readers })
    }

    /// The committed form of a write entry.
    pub fn to_json(&self) -> Value {
        json!({
            "entry_id": self.id.to_string(),
            "bundle_id": self.bundle.to_string(),
            "request_id": &*self.request,
            "created_at_world": self.time.as_str(),
            "author": { "author_id": self.author.id.as_str(), "author_class": self.author.class.word() },
            "visibility": self.visibility(),
            "channel": self.channel.word(),
            "text": &*self.text,
        })
    }
}
