//! Entries: the smallest unit of written reality. An entry never changes after its commit.
//!
//! The audience is fixed with the entry: an author and a list of addressees, or everyone. The words
//! of classes and channels are part of the wire format and of records, so they never change.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::ids::{BundleId, EntryId, Name};
use crate::time::WorldTime;

/// The kind of an author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuthorClass {
    /// The operator.
    Operator,
    /// A person.
    Person,
    /// The world's own voice.
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

    /// Parses the word of a class.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, class)| *class)
    }

    /// The word of the class.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, class)| *class == self)
            .map_or("", |(word, _)| word)
    }
}

/// The author of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// The kind of author.
    pub class: AuthorClass,
    /// The author's name.
    pub id: Name,
}

/// The channel of the stream that shows an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// What the operator writes.
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

    /// Parses the word of a channel.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, channel)| *channel)
    }

    /// The word of the channel.
    pub fn word(self) -> &'static str {
        Self::WORDS
            .iter()
            .find(|(_, channel)| *channel == self)
            .map_or("", |(word, _)| word)
    }

    /// The channel of an author of this class.
    pub fn for_class(class: AuthorClass) -> Self {
        match class {
            AuthorClass::Operator => Self::User,
            AuthorClass::Person => Self::People,
            AuthorClass::World | AuthorClass::System => Self::Voice,
        }
    }
}

/// A committed entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// The bundle that committed it.
    pub bundle: BundleId,
    /// The request of the beat.
    pub request: Arc<str>,
    /// The world time.
    pub time: WorldTime,
    /// Who wrote it.
    pub author: Author,
    /// The author's label at that time.
    pub label: Arc<str>,
    /// The addressees; `None` means everyone.
    pub visible_to: Option<Box<[Name]>>,
    /// The channel that shows it.
    pub channel: Channel,
    /// The text, byte for byte.
    pub text: Box<str>,
    /// The entry that this one replies to. A reader sees the reference only if they may see that
    /// entry.
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

    /// The label that readers see. Only people have one.
    pub fn shown_label(&self) -> Option<&str> {
        (self.channel == Channel::People).then_some(&*self.label)
    }

    /// The visibility as JSON: scope and addressees.
    pub fn visibility(&self) -> Value {
        let readers = self.visible_to.as_deref().unwrap_or_default();
        let readers: Vec<&str> = readers.iter().map(Name::as_str).collect();
        json!({ "scope": self.scope(), "visible_to": readers })
    }

    /// The committed form as JSON.
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
