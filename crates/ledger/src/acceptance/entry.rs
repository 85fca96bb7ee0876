//! The checks of one entry, in order.
//!
//! The times of a bundle are checked together: none is before the world's time or before the
//! previous entry, and none is far ahead of the commit. A private entry must not be later than the
//! clock will be after the public ones, so that a hidden entry never moves the clock.
//!
//! Worked example: the commit's time is 12:00:00 and entries may be 60 seconds ahead. A bundle with
//! a public entry at 12:00:30 and then a private one at 12:00:20 fails, because times go back. With
//! the private one at 12:00:40 it fails too: the public clock stops at 12:00:30, and a later
//! private entry would push all following times beyond it. At 12:00:30 it is accepted.

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
    let mut bounds = TimeBounds::new(drafts, terms);
    drafts
        .iter()
        .map(|draft| accept(draft, &mut bounds, terms))
        .collect()
}

/// Accepts one entry. The order of these lines is the order of its faults.
fn accept(
    draft: &EntryDraft<'_>,
    bounds: &mut TimeBounds,
    terms: &Terms<'_>,
) -> Result<ProposedEntry, Fault> {
    check_no_preset_ids(draft)?;
    draft.check_fields()?;
    let claimed = resolve_author(draft, terms)?;
    let author = check_grant(draft, claimed, terms)?;
    let channel = check_channel(draft, author.class)?;
    let visible_to = accept_readers(draft, terms)?;
    let time = parse_time(draft, terms)?;
    bounds.advance(
        draft,
        time.as_ref().unwrap_or(terms.commit),
        visible_to.is_some(),
    )?;
    check_not_empty(draft)?;
    check_size(draft)?;
    Ok(ProposedEntry {
        author,
        visible_to,
        channel,
        time,
        text: draft.text.to_owned(),
        reply_to: None,
    })
}

/// Accepts the entry that an entry replies to. An unknown and a hidden one get the same fault.
pub(super) fn accept_reply(
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

fn check_no_preset_ids(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    for key in ["entry_id", "bundle_id"] {
        if draft.node.optional(key)?.is_some() {
            return Err(draft.fault(Code::IdPreset, key, "is given by the commit: leave it null"));
        }
    }
    Ok(())
}

/// Resolves the author that the entry names. Returns `None` for the operator, as whom no writer may
/// write, and for a name that is reserved for another class; `check_grant` rejects these.
fn resolve_author(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<Author>, Fault> {
    let unknown = |field, message: &str| Err(draft.fault(Code::AuthorUnknown, field, message));
    let class = AuthorClass::from_word(draft.author_class);
    // A class of PERSON with a reserved name is as forbidden as the reserved class itself.
    let reserved = [OPERATOR, SYSTEM].contains(&draft.author_id);
    match class {
        None => unknown("author.author_class", "must be PERSON or WORLD"),
        Some(AuthorClass::Operator) => Ok(None),
        Some(class @ AuthorClass::System) => {
            let id = Name::new(draft.author_id).filter(|name| name.as_str() == SYSTEM);
            Ok(id.map(|id| Author { class, id }))
        }
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
                Err(stranger) => unknown("author.author_id", stranger_message(stranger)),
            }
        }
    }
}

fn stranger_message(stranger: Stranger) -> &'static str {
    match stranger {
        Stranger::Illegal => "is no legal id of a person",
        Stranger::Unknown => "is nobody of this world: add the person first",
        Stranger::CaseDiffers => "differs from a person's id by upper and lower case only",
    }
}

fn check_grant(
    draft: &EntryDraft<'_>,
    claimed: Option<Author>,
    terms: &Terms<'_>,
) -> Result<Author, Fault> {
    // One message for reserved, forbidden and unclaimable authors: it reveals nothing about them.
    let granted = claimed.filter(|author| match author.class {
        AuthorClass::World => terms.grant.covers_world(),
        AuthorClass::Person => terms.grant.covers_person(&author.id),
        AuthorClass::System => terms.grant.covers_system(),
        AuthorClass::Operator => false,
    });
    let message = "is nobody in whose name this writer may write";
    granted.ok_or_else(|| draft.fault(Code::AuthorForbidden, "author.author_id", message))
}

fn check_channel(draft: &EntryDraft<'_>, class: AuthorClass) -> Result<Channel, Fault> {
    let wanted = Channel::for_class(class);
    let given = Channel::from_word(draft.channel).filter(|&channel| channel == wanted);
    given.ok_or_else(|| {
        let message = format!("must be {} for the class {}", wanted.word(), class.word());
        draft.fault(Code::ChannelInvalid, "channel", message)
    })
}

/// The readers of a private entry; `None` for a public one.
fn accept_readers(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<Box<[Name]>>, Fault> {
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
        PRIVATE_SCOPE => resolve_readers(draft, terms).map(Some),
        _ => invalid("visibility.scope", "must be PUBLIC or PRIVATE"),
    }
}

fn resolve_readers(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Box<[Name]>, Fault> {
    let mut seen = HashSet::new();
    let reader = |(index, id): (usize, &&str)| {
        let invalid = |message: &str| {
            draft.fault(
                Code::VisibilityInvalid,
                &format!("visibility.visible_to[{index}]"),
                message,
            )
        };
        // Ids that differ only in case mean the same person.
        if !seen.insert(id.to_ascii_lowercase()) {
            return Err(invalid("is there twice"));
        }
        if *id == OPERATOR {
            return Ok(Name::operator());
        }
        terms
            .people
            .resolve(id, terms.config.registry)
            .map_err(|stranger| invalid(stranger_message(stranger)))
    };
    draft.visible_to.iter().enumerate().map(reader).collect()
}

fn parse_time(draft: &EntryDraft<'_>, terms: &Terms<'_>) -> Result<Option<WorldTime>, Fault> {
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

/// The allowed times for the next entry of a bundle.
struct TimeBounds {
    /// The time of the previous entry; no entry is earlier.
    earliest: WorldTime,
    /// No entry is later.
    end: WorldTime,
    /// No private entry is later: the time that the clock will show.
    private_end: WorldTime,
}

impl TimeBounds {
    fn new(drafts: &[EntryDraft<'_>], terms: &Terms<'_>) -> Self {
        let end = terms.commit.plus_seconds(terms.ahead_seconds);
        let last_public = drafts
            .iter()
            .rev()
            .find(|draft| draft.scope == PUBLIC_SCOPE);
        // An invalid time is a fault of its own entry, found when that entry is checked. Until then
        // it does not limit the others.
        let last_public_time = last_public
            .and_then(|draft| parse_time(draft, terms).unwrap_or_else(|_| Some(end.clone())));
        let private_end = last_public_time
            .unwrap_or_else(|| terms.commit.clone())
            .max(terms.commit.clone());
        Self {
            earliest: terms.earliest.clone(),
            end,
            private_end,
        }
    }

    fn advance(
        &mut self,
        draft: &EntryDraft<'_>,
        time: &WorldTime,
        private: bool,
    ) -> Result<(), Fault> {
        let message = match time {
            _ if *time < self.earliest => {
                "is before the world's time or long before the commit's, or before the entry above it"
            }
            _ if *time > self.end => "is more than 60 seconds after the commit's time",
            _ if private && *time > self.private_end => {
                "is private and later than the last public entry: what is hidden moves no clock"
            }
            _ => {
                self.earliest = time.clone();
                return Ok(());
            }
        };
        Err(draft.fault(Code::TimeInconsistent, TIME, message))
    }
}

fn check_not_empty(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    if draft.text.trim().is_empty() {
        return Err(draft.fault(Code::TextEmpty, "text", "must hold more than white space"));
    }
    Ok(())
}

fn check_size(draft: &EntryDraft<'_>) -> Result<(), Fault> {
    if draft.text.len() > TEXT_BYTES_MAX {
        let message = format!(
            "has {} bytes; at most {TEXT_BYTES_MAX} fit",
            draft.text.len()
        );
        return Err(draft.fault(Code::TextTooLarge, "text", message));
    }
    Ok(())
}
