//! The conversation that an entry stands in: which entries around it belong to it.
//!
//! Where several conversations run at once, the entry before a reply is often somebody else's.
//! People who talk to each other write next to each other more often than others do. So of the
//! authors around an entry the one who most often stands directly beside its author is the partner,
//! and only what the two of them wrote belongs to the conversation. Where two people talk alone,
//! that is everything.
//!
//! Worked example, one letter an author: `A C B D A B C A`. For the last `A`, the pairs that stand
//! side by side with an `A` are `A C`, `D A`, `A B` and `C A`: `C` twice, `B` and `D` once, so `C`
//! is the partner. Of equals the nearest counts.
//!
//! All of it comes from visible entries: hidden ones are stepped over as if they had never been
//! written.

use super::surroundings::View;

/// So many visible entries on each side are looked at for a partner, as long as each is the next
/// one's neighbour.
pub const CONVERSATION_STEPS: usize = 12;

/// The entries of a conversation around one entry, the nearest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

impl Conversation {
    /// That of an entry, at most so many steps in each direction.
    pub(super) fn around(view: &View<'_>, entry: u32, steps: usize) -> Self {
        let before = chain(view, entry, View::before);
        let after = chain(view, entry, View::after);
        let partner = partner(view, entry, &before, &after);
        let author = view.author(entry);
        let belongs = |other: &u32| {
            let by = view.author(*other);
            by == author || Some(by) == partner
        };
        let members = |side: &[u32]| {
            let mut members: Vec<u32> = side.iter().copied().filter(belongs).take(steps).collect();
            cut_at_gap(view, entry, &mut members);
            members
        };
        Self {
            before: members(&before),
            after: members(&after),
        }
    }
}

/// The visible entries on one side, the nearest first.
fn chain<'a>(view: &View<'a>, entry: u32, step: fn(&View<'a>, u32) -> Option<u32>) -> Vec<u32> {
    let mut chain = Vec::with_capacity(CONVERSATION_STEPS);
    let mut at = entry;
    while let Some(next) = step(view, at).filter(|_| chain.len() < CONVERSATION_STEPS) {
        chain.push(next);
        at = next;
    }
    chain
}

/// Leaves out what lies behind a gap in time: others may have filled it.
fn cut_at_gap(view: &View<'_>, entry: u32, members: &mut Vec<u32>) {
    let mut last = entry;
    let mut near = 0;
    for member in &*members {
        if !view.near(last, *member) {
            break;
        }
        last = *member;
        near += 1;
    }
    members.truncate(near);
}

/// Somebody who stands beside the author.
struct Candidate {
    author: u32,
    /// How often.
    count: usize,
}

/// With whom the author of an entry talks.
fn partner(view: &View<'_>, entry: u32, before: &[u32], after: &[u32]) -> Option<u32> {
    let own = view.author(entry);
    // By distance: of those who stand beside the author equally often the first counts.
    let mut candidates: Vec<Candidate> = Vec::new();
    for place in 0..before.len().max(after.len()) {
        for side in [before, after] {
            let by = side
                .get(place)
                .map(|other| view.author(*other))
                .filter(|by| *by != own);
            if let Some(author) = by.filter(|by| candidates.iter().all(|known| known.author != *by))
            {
                candidates.push(Candidate { author, count: 0 });
            }
        }
    }
    if candidates.len() > 1 {
        for side in [before, after] {
            count_pairs(view, entry, side, &mut candidates);
        }
    }
    let best = candidates.iter().map(|candidate| candidate.count).max()?;
    candidates
        .iter()
        .find(|candidate| candidate.count == best)
        .map(|candidate| candidate.author)
}

/// Counts who stands directly beside the author on one side of an entry.
fn count_pairs(view: &View<'_>, entry: u32, side: &[u32], candidates: &mut [Candidate]) {
    let own = view.author(entry);
    let mut last = own;
    for other in side {
        let by = view.author(*other);
        let partner = match (last == own, by == own) {
            (true, false) => Some(by),
            (false, true) => Some(last),
            _ => None,
        };
        if let Some(found) = candidates
            .iter_mut()
            .find(|candidate| Some(candidate.author) == partner)
        {
            found.count += 1;
        }
        last = by;
    }
}
