//! Finds the conversation around an entry: which nearby entries belong to it.
//!
//! Where several conversations run at once, the entry before a reply is often from another
//! conversation. People who talk to each other write next to each other more often than others do.
//! So the author who most often writes directly before or after the entry's author is the
//! *partner*, and the conversation is what the two of them wrote. Where only two people talk, that
//! is every entry.
//!
//! Worked example, one letter per author: `A C B D A B C A`. For the last `A`, the adjacent pairs
//! with an `A` are `A C`, `D A`, `A B` and `C A`: `C` occurs twice, `B` and `D` once, so `C` is the
//! partner. The nearest author wins a tie.
//!
//! Only visible entries count: hidden ones are skipped as if they had never been written.

use super::index_view::IndexView;

/// How many visible entries on each side are searched for a partner, as long as each is a neighbour
/// of the one before.
pub const CONVERSATION_STEPS: usize = 12;

/// The entries of a conversation around one entry, the nearest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) before: Vec<u32>,
    pub(super) after: Vec<u32>,
}

impl Conversation {
    /// Finds the conversation of an entry, at most `steps` entries in each direction.
    pub(super) fn around(view: &IndexView<'_>, entry: u32, steps: usize) -> Self {
        let before = neighbour_chain(view, entry, IndexView::neighbour_before);
        let after = neighbour_chain(view, entry, IndexView::neighbour_after);
        let partner = find_partner(view, entry, &before, &after);
        let author = view.author_of(entry);
        let belongs = |other: &u32| {
            let by = view.author_of(*other);
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

/// The chain of neighbours on one side, the nearest first.
fn neighbour_chain<'a>(
    view: &IndexView<'a>,
    entry: u32,
    step: fn(&IndexView<'a>, u32) -> Option<u32>,
) -> Vec<u32> {
    let mut chain = Vec::with_capacity(CONVERSATION_STEPS);
    let mut at = entry;
    while let Some(next) = step(view, at).filter(|_| chain.len() < CONVERSATION_STEPS) {
        chain.push(next);
        at = next;
    }
    chain
}

/// Drops the entries behind a gap in time: a different conversation may have filled the gap.
fn cut_at_gap(view: &IndexView<'_>, entry: u32, members: &mut Vec<u32>) {
    let mut last = entry;
    let mut near = 0;
    for member in &*members {
        if !view.are_close(last, *member) {
            break;
        }
        last = *member;
        near += 1;
    }
    members.truncate(near);
}

/// An author who may be the partner.
struct Candidate {
    author: u32,
    /// How often this author writes directly before or after the entry's author.
    count: usize,
}

/// Finds the author with whom the author of an entry talks.
fn find_partner(view: &IndexView<'_>, entry: u32, before: &[u32], after: &[u32]) -> Option<u32> {
    let own = view.author_of(entry);
    // Ordered by distance, because the first of several equally frequent candidates wins.
    let mut candidates: Vec<Candidate> = Vec::new();
    for place in 0..before.len().max(after.len()) {
        for side in [before, after] {
            let by = side
                .get(place)
                .map(|other| view.author_of(*other))
                .filter(|by| *by != own);
            if let Some(author) = by.filter(|by| candidates.iter().all(|known| known.author != *by))
            {
                candidates.push(Candidate { author, count: 0 });
            }
        }
    }
    // A single candidate needs no count.
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

/// Counts the candidates who write directly beside the author, on one side of an entry.
fn count_pairs(view: &IndexView<'_>, entry: u32, side: &[u32], candidates: &mut [Candidate]) {
    let own = view.author_of(entry);
    let mut last = own;
    for other in side {
        let by = view.author_of(*other);
        // Only pairs of the author and someone else count, in either order.
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
