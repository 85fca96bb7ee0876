//! The checks of one entry, in their order.
//!
//! Times of a bundle hang together: none before the world's, none before the one above it, none far
//! ahead, and a private one not ahead of what the public ones do to the clock, so that nothing
//! hidden moves it.

use std::collections::HashSet;

use super::{READERS_MAX, TEXT_BYTES_MAX, Terms};
use crate::config::Stranger;
use crate::draft::EntryDraft;
use crate::entry::{Author, AuthorClass, Channel};
use crate::fault::{Code, Fault};
use crate::ids::{EntryId, Name, OPERATOR, SYSTEM, WORLD};
use crate::proposal::ProposedEntry;
use crate::time::WorldTime;

const PUBLIC_SCOPE: &str = "PUBLIC";
const PRIVATE_SCOPE: &str = "PRIVATE";

/// Accepts the entries of a bundle, one after another.
pub(super) fn accept_all(
    drafts: &[EntryDraft<'_>],
    terms: &Terms<'_>,
) -> Result<Vec<ProposedEntry>, Fault> {
    let mut course = Course::of(drafts, terms);
    drafts
        .iter()
        .map(|draft| accept(draft, &mut course, terms))
        .collect()
}

/// The checks of an entry: the order of these lines is the order of its faults.
fn accept(
    draft: &EntryDraft<'_>,
    course: &mut Course,
    terms: &Terms<'_>,
) -> Result<ProposedEntry, Fault> {
    without_ids(draft)?;
    draft.unknown_field()?;
    let claimed = known_author(draft, terms)?;
    let author = granted_author(draft, claimed, terms)?;
    let channel = channel_of(draft, author.class)?;
    let visible_to = readers(draft, terms)?;
    let time = time_of(draft, terms)?;
    course.go_on(
        draft,
        time.as_ref().unwrap_or(terms.commit),
        visible_to.is_some(),
    )?;
    not_empty(draft)?;
    not_too_large(draft)?;
    Ok(ProposedEntry {
        author,
        visible_to,
        channel,
        time,
        text: draft.text.to_owned(),
        reply_to: None,
    })
}

/// The entry that an entry answers. An unknown one and a hidden one get the same refusal.
pub(super) fn answered(
    draft: &EntryDraft<'_>,
    terms: &Terms<'_>,
) -> Result<Option<EntryId>, Fault> {
    let Some(given) = draft.reply_to else {
        return Ok(None);
    };
    let found = given.parse().ok().filter(|&id| (terms.cites)(id));
    let message = "is no entry that the writer may see";
    found
        .map(Some)
        .ok_or_else(|| draft.fault(Code::ProvenanceInvalid, "reply_to", message))
}

fn without_ids(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    for key in ["entry_id", "bundle_id"] {
        if draft.node.optional(key)?.is_some() {
            return Err(draft.fault(Code::IdPreset, key, "is given by the commit: leave it null"));
        }
    }
    Ok(())
}

/// The author whom the entry names; none is a seat that no writer may take.
fn known_author(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<Author>, Fault> {
    let unknown = |field, message: &str| Err(draft.fault(Code::AuthorUnknown, field, message));
    let class = AuthorClass::from_word(draft.author_class);
    let reserved = [OPERATOR, SYSTEM].contains(&draft.author_id);
    match class {
        None => unknown("author.author_class", "must be PERSON or WORLD"),
        Some(AuthorClass::Operator | AuthorClass::System) => Ok(None),
        Some(_) if reserved => Ok(None),
        Some(AuthorClass::World) => {
            match Name::new(draft.author_id).filter(|name| name.as_str() == WORLD) {
                Some(id) => Ok(Some(Author {
                    class: AuthorClass::World,
                    id,
                })),
                None => unknown("author.author_id", "must be WORLD where the class is WORLD"),
            }
        }
        Some(AuthorClass::Person) => {
            match terms.people.resolve(draft.author_id, terms.config.registry) {
                Ok(id) => Ok(Some(Author {
                    class: AuthorClass::Person,
                    id,
                })),
                Err(stranger) => unknown("author.author_id", why_not_known(stranger)),
            }
        }
    }
}

fn why_not_known(stranger: Stranger) -> &'static str {
    match stranger {
        Stranger::Illegal => "is no legal id of a person",
        Stranger::Unknown => "is nobody of this world: add the person first",
        Stranger::CaseDiffers => "differs from a person's id by upper and lower case only",
    }
}

fn granted_author(
    draft: &EntryDraft<'_>,
    claimed: Option<Author>,
    terms: &Terms<'_>,
) -> Result<Author, Fault> {
    let granted = claimed.filter(|author| match author.class {
        AuthorClass::World => terms.grant.covers_world(),
        AuthorClass::Person => terms.grant.covers_person(&author.id),
        AuthorClass::Operator | AuthorClass::System => false,
    });
    let message = "is nobody in whose name this writer may write";
    granted.ok_or_else(|| draft.fault(Code::AuthorForbidden, "author.author_id", message))
}

fn channel_of(draft: &EntryDraft<'_>, class: AuthorClass) -> Result<Channel, Fault> {
    let wanted = Channel::of(class);
    let given = Channel::from_word(draft.channel).filter(|&channel| channel == wanted);
    given.ok_or_else(|| {
        let message = format!("must be {} for the class {}", wanted.word(), class.word());
        draft.fault(Code::ChannelInvalid, "channel", message)
    })
}

/// The readers of a private entry; none for a public one.
fn readers(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<Box<[Name]>>, Fault> {
    let invalid =
        |field: &str, message: &str| Err(draft.fault(Code::VisibilityInvalid, field, message));
    match draft.scope {
        PUBLIC_SCOPE if draft.visible_to.is_empty() => Ok(None),
        PUBLIC_SCOPE => invalid(
            "visibility.visible_to",
            "must be empty where the scope is PUBLIC",
        ),
        PRIVATE_SCOPE if draft.visible_to.is_empty() || draft.visible_to.len() > READERS_MAX => {
            invalid(
                "visibility.visible_to",
                "must name 1 to 256 readers where the scope is PRIVATE",
            )
        }
        PRIVATE_SCOPE => named_readers(draft, terms).map(Some),
        _ => invalid("visibility.scope", "must be PUBLIC or PRIVATE"),
    }
}

fn named_readers(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Box<[Name]>, Fault> {
    let mut seen = HashSet::new();
    let reader = |(index, id): (usize, &&str)| {
        let invalid = |message: &str| {
            draft.fault(
                Code::VisibilityInvalid,
                &format!("visibility.visible_to[{index}]"),
                message,
            )
        };
        if !seen.insert(id.to_ascii_lowercase()) {
            return Err(invalid("is there twice"));
        }
        if *id == OPERATOR {
            return Ok(Name::operator());
        }
        terms
            .people
            .resolve(id, terms.config.registry)
            .map_err(|stranger| invalid(why_not_known(stranger)))
    };
    draft.visible_to.iter().enumerate().map(reader).collect()
}

fn time_of(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<WorldTime>, Fault> {
    let Some(given) = draft.time else {
        return Ok(None);
    };
    let format = || {
        draft.fault(
            Code::TimeFormat,
            TIME,
            "must be a time in text, such as 2026-11-15T09:00:00Z",
        )
    };
    let text = given.as_str().ok_or_else(format)?;
    WorldTime::parse_in(text, terms.zone, &format!("{}.{TIME}", draft.node.path)).map(Some)
}

const TIME: &str = "created_at_world";

/// How far the times of a bundle have come, and how far they may go.
struct Course {
    /// No entry is earlier.
    reached: WorldTime,
    /// No entry is later.
    end: WorldTime,
    /// No private entry is later: where the clock will stand.
    private_end: WorldTime,
}

impl Course {
    fn of(drafts: &[EntryDraft<'_>], terms: &Terms<'_>) -> Self {
        let end = terms.commit.plus_seconds(terms.ahead_seconds);
        let last_public = drafts
            .iter()
            .rev()
            .find(|draft| draft.scope == PUBLIC_SCOPE);
        // A time that is none is a fault of its entry, found when its turn comes; until then it
        // bounds nothing.
        let led = last_public
            .and_then(|draft| time_of(draft, terms).unwrap_or_else(|_| Some(end.clone())));
        let private_end = led
            .unwrap_or_else(|| terms.commit.clone())
            .max(terms.commit.clone());
        Self {
            reached: terms.earliest.clone(),
            end,
            private_end,
        }
    }

    fn go_on(
        &mut self,
        draft: &EntryDraft<'_>,
        time: &WorldTime,
        private: bool,
    ) -> Result<(), Fault> {
        let message = match time {
            _ if *time < self.reached => {
                "is before the world's time or long before the commit's, or before the entry above it"
            }
            _ if *time > self.end => "is more than 60 seconds after the commit's time",
            _ if private && *time > self.private_end => {
                "is private and later than the last public entry: what is hidden moves no clock"
            }
            _ => {
                self.reached = time.clone();
                return Ok(());
            }
        };
        Err(draft.fault(Code::TimeInconsistent, TIME, message))
    }
}

fn not_empty(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    if draft.text.trim().is_empty() {
        return Err(draft.fault(Code::TextEmpty, "text", "must hold more than white space"));
    }
    Ok(())
}

fn not_too_large(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    if draft.text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "has {} bytes; at most {TEXT_BYTES_MAX} fit",
            draft.text.len()
        );
        return Err(draft.fault(Code::TextTooLarge, "text", message));
    }
    Ok(())
}
