//! The wire shapes of values of the ledger.
//!
//! Handlers read values from a world and answer with these shapes, so the JSON of an answer is
//! defined once, in the wire crate. The ledger makes projections, bundles and packs itself, because
//! it records hashes of them.

use turnkeep_ledger::as_of::{SeenEntries, ViewDifference};
use turnkeep_ledger::config::{Config, Person};
use turnkeep_ledger::entry::Entry;
use turnkeep_ledger::fact::Token;
use turnkeep_ledger::ids::{EntryId, Name};
use turnkeep_ledger::time::WorldTime;
use turnkeep_ledger::verify::{Leak, Misfit, Report};
use turnkeep_ledger::{Principal, View, World};
use turnkeep_types::Timestamp;
use turnkeep_wire::json::ledger as wire;

/// The text form of a time of the server's clock.
pub(super) fn time_text(at: Timestamp) -> String {
    WorldTime::from_timestamp(at).as_str().to_owned()
}

/// A world as its owner sees it.
pub(super) fn world_shape(world: &World) -> wire::World {
    let Config {
        world: name,
        profile,
        operator_label,
        clock,
        registry,
        pocket_available,
        writer,
        writer_persons,
        limits,
        start,
        ..
    } = &world.config;
    // The clock's zone, not the configured one: a beat may have declared another.
    let timezone = world.clock.timezone.as_str().to_owned();
    wire::World {
        world_id: name.to_string(),
        profile: profile.word().to_owned(),
        operator_label: operator_label.clone(),
        timezone: timezone.clone(),
        clock: clock.word().to_owned(),
        registry: registry.word().to_owned(),
        pocket_available: *pocket_available,
        writer: writer.to_string(),
        writer_persons: writer_persons
            .as_ref()
            .map(|names| names.iter().map(Name::to_string).collect()),
        limits: wire::WorldLimits {
            writer_tokens: Some(limits.writer_tokens),
            writer_seconds: Some(limits.writer_seconds),
        },
        start: start.as_str().to_owned(),
        persons: person_list(world),
        forked_from: world.forked.as_ref().map(|fork| wire::ForkedFrom {
            world_id: fork.from.to_string(),
        }),
        rehydrations: rehydrations_shape(world),
        world_time: wire::WorldClock {
            time: world.clock.time.as_str().to_owned(),
            timezone,
            paused: world.clock.paused,
        },
    }
}

/// How often the attached writer was restarted because it was full, and the last quotations it got.
fn rehydrations_shape(world: &World) -> wire::Rehydrations {
    let rehydrations = world.rehydrations();
    wire::Rehydrations {
        count: rehydrations.count,
        last: rehydrations.last.map(|last| wire::Rehydrated {
            carried_entries: last.entries,
            dropped_entries: last.dropped,
        }),
    }
}

/// The persons that were added to a world.
pub(super) fn person_list(world: &World) -> Vec<wire::Person> {
    world.people.iter().map(person_shape).collect()
}

/// A person as the owner sees it.
pub(super) fn person_shape(person: &Person) -> wire::Person {
    wire::Person {
        person_id: person.id.to_string(),
        display_label: Some(person.label.clone()),
        aliases: Some(person.aliases.clone()),
        identity: person.identity.clone(),
        human: Some(person.human),
    }
}

/// A caller in a world.
pub(super) fn seat_shape(world: &World, who: &Principal) -> wire::Seat {
    let persons = world.people.iter().map(|person| wire::SeatPerson {
        person_id: person.id.to_string(),
        display_label: person.label.clone(),
    });
    wire::Seat {
        world_id: world.config.world.to_string(),
        view: who.viewer().as_str().to_owned(),
        write: !matches!(who, Principal::Person { write: false, .. }),
        operator_label: world.config.operator_label.clone(),
        registry: world.config.registry.word().to_owned(),
        persons: persons.collect(),
    }
}

/// A token without its secret.
pub(super) fn token_shape(token: &Token) -> wire::Token {
    wire::Token {
        token_id: token.id.to_string(),
        person_id: token.person.to_string(),
        write: token.write,
        created_at: time_text(token.created_at),
        expires_at: token.expires_at.map(time_text),
    }
}

/// A new token with its secret.
pub(super) fn minted_token_shape(token: &Token, secret: String) -> wire::MintedToken {
    let wire::Token {
        token_id,
        person_id,
        write,
        created_at,
        expires_at,
    } = token_shape(token);
    wire::MintedToken {
        token_id,
        person_id,
        write,
        created_at,
        expires_at,
        token: secret,
    }
}

/// An entry in its committed form.
pub(super) fn entry_shape(entry: &Entry) -> wire::WriteEntry {
    let readers = entry.visible_to.as_deref().unwrap_or_default();
    wire::WriteEntry {
        entry_id: Some(entry.id.to_string()),
        bundle_id: Some(entry.bundle.to_string()),
        request_id: entry.request.to_string(),
        created_at_world: Some(entry.time.as_str().to_owned()),
        author: wire::Author {
            author_id: entry.author.id.to_string(),
            author_class: entry.author.class.word().to_owned(),
        },
        visibility: wire::Visibility {
            scope: entry.scope().to_owned(),
            visible_to: Some(readers.iter().map(Name::to_string).collect()),
        },
        channel: entry.channel.word().to_owned(),
        text: entry.text.to_string(),
        reply_to: None,
    }
}

/// An entry with the entry that it replies to. The caller checks that the reader may see that one.
pub(super) fn entry_with_reply(entry: &Entry, reply_to: Option<EntryId>) -> wire::WriteEntry {
    wire::WriteEntry {
        reply_to: reply_to.map(|id| id.to_string()),
        ..entry_shape(entry)
    }
}

fn entry_shapes(entries: &[&Entry]) -> Vec<wire::WriteEntry> {
    entries.iter().map(|entry| entry_shape(entry)).collect()
}

/// A page of all entries, for the audit. Its cursors are positions.
pub(super) fn audit_stream_shape(
    cursor_before: Option<String>,
    cursor_after: Option<u32>,
    entries: &[&Entry],
) -> wire::AuditStream {
    wire::AuditStream {
        stream: wire::EveryEntry {
            cursor_before,
            cursor_after: cursor_after.map(|position| position.to_string()),
            entries: entry_shapes(entries),
        },
    }
}

/// What a reader could see.
pub(super) fn seen_shape(view: &View<'_>, seen: &SeenEntries<'_>) -> wire::ViewAnswer {
    wire::ViewAnswer::Seen(wire::SeenView {
        view: view.viewer.as_str().to_owned(),
        count: seen.count,
        cursor: seen.cursor.clone(),
        entries: entry_shapes(&seen.newest.entries),
        complete: seen.newest.complete,
    })
}

/// What two readers did not both see.
pub(super) fn difference_shape(
    view: &View<'_>,
    other: &View<'_>,
    difference: &ViewDifference<'_>,
) -> wire::ViewAnswer {
    wire::ViewAnswer::Difference(wire::ViewDifference {
        view: view.viewer.as_str().to_owned(),
        vs: other.viewer.as_str().to_owned(),
        only_view: entry_shapes(&difference.only_view),
        only_vs: entry_shapes(&difference.only_other),
        complete: difference.complete,
    })
}

/// The result of a verification, with leaks if they were asked for.
pub(super) fn verification_shape(report: Report, leaks: Option<Vec<Leak>>) -> wire::Verification {
    let fault = |misfit: Misfit| wire::Misfit {
        turn_id: misfit.turn.to_string(),
        what: misfit.what,
    };
    let leak = |leak: Leak| wire::Leak {
        entry_id: leak.entry.to_string(),
        source_entry_id: leak.source.to_string(),
        text: leak.text,
    };
    wire::Verification {
        sound: report.is_sound(),
        entries: report.entries.into(),
        bundles: report.bundles.into(),
        answers: report.answers.into(),
        answers_skipped: report.answers_skipped.into(),
        faults: report.misfits.into_iter().map(fault).collect(),
        leaks: leaks.map(|leaks| leaks.into_iter().map(leak).collect()),
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_ledger::entry::{Author, AuthorClass, Channel};
    use turnkeep_ledger::ids::BundleId;

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    #[test]
    fn an_entry_has_the_bytes_of_the_ledger_s_own_form() {
        for visible_to in [None, Some(Box::from([])), Some([name("BOB")].into())] {
            let entry = Entry {
                id: EntryId(1),
                bundle: BundleId(2),
                request: "r-1".into(),
                time: WorldTime::from_timestamp(Timestamp(3)),
                author: Author {
                    class: AuthorClass::Person,
                    id: name("ANN"),
                },
                label: "Ann".into(),
                visible_to,
                channel: Channel::People,
                text: "\"quoted\"\n\u{e9}".into(),
                reply_to: None,
            };
            assert_eq!(
                serde_json::to_string(&entry_shape(&entry)).unwrap(),
                entry.to_json().to_string()
            );
        }
    }

    #[test]
    fn a_person_has_the_bytes_of_its_record() {
        let mut person = Person::with_id(name("ANN"));
        for identity in [None, Some("a coder".to_owned())] {
            person.identity = identity;
            assert_eq!(
                serde_json::to_string(&person_shape(&person)).unwrap(),
                person.to_record().to_string()
            );
        }
    }
}
