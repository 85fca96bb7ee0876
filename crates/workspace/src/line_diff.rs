//! The shortest difference between two files, line by line (Myers' greedy algorithm).
//!
//! Worked example: from `a b c` to `a x c d`, the common start `a` is set aside. The algorithm then
//! looks for a path through the grid of the remaining lines, where a step right removes an old line,
//! a step down adds a new line, and a diagonal step keeps a line that both have:
//!
//! ```text
//!        b   c
//!      ┌───┬───┐      remove b, add x, keep c, add d
//!    x │   │   │
//!      ├───┼───┤
//!    c │   │ ╲ │
//!      ├───┼───┤
//!    d │   │   │
//!      └───┴───┘
//! ```
//!
//! Round `d` finds, for each diagonal `k` (old position minus new position), how far a path with `d`
//! removals and additions gets. The first round that reaches the corner is the shortest difference.
//! Work and memory grow with the square of the rounds, so after [`ROUNDS_MAX`] rounds the whole rest
//! counts as replaced. That is a correct difference, only a long one.

use std::ops::Range;

/// The most lines that a difference may remove and add before the search gives up.
const ROUNDS_MAX: usize = 1000;

/// The most lines that are searched.
const LINES_MAX: usize = 400_000;

/// Old lines and the new lines in their place. One of them may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// Finds the replacements that turn the old lines into the new ones, in order.
pub(crate) fn find_replacements(old: &[&[u8]], new: &[&[u8]]) -> Vec<Replacement> {
    let start = count_equal(old.iter().zip(new));
    // The common end is looked for behind the common start. From `a` to `a a`, the one old line must
    // not count at both ends.
    let (old_rest, new_rest) = (
        old.get(start..).unwrap_or_default(),
        new.get(start..).unwrap_or_default(),
    );
    let end = count_equal(old_rest.iter().rev().zip(new_rest.iter().rev()));
    let middle = Middle {
        old: old.get(start..old.len() - end).unwrap_or_default(),
        new: new.get(start..new.len() - end).unwrap_or_default(),
    };
    let mut found = middle.find_replacements();
    for replacement in &mut found {
        shift(&mut replacement.old, start);
        shift(&mut replacement.new, start);
    }
    found
}

fn count_equal<'a>(pairs: impl Iterator<Item = (&'a &'a [u8], &'a &'a [u8])>) -> usize {
    pairs.take_while(|(left, right)| left == right).count()
}

fn shift(range: &mut Range<usize>, by: usize) {
    *range = range.start + by..range.end + by;
}

/// The lines between the common start and the common end.
struct Middle<'a> {
    old: &'a [&'a [u8]],
    new: &'a [&'a [u8]],
}

/// How far the paths of one round get: the old position, by diagonal from `-d` to `d`.
struct Round(Vec<usize>);

impl Round {
    /// The old position on a diagonal; `None` if no path of this round is on it.
    fn reach(&self, rounds: usize, diagonal: isize) -> Option<usize> {
        let index = diagonal.checked_add_unsigned(rounds)?;
        self.0.get(usize::try_from(index).ok()?).copied()
    }
}

/// A point of the grid.
#[derive(Clone, Copy)]
struct Point {
    old: usize,
    new: usize,
}

impl Middle<'_> {
    fn find_replacements(&self) -> Vec<Replacement> {
        if self.old.is_empty() && self.new.is_empty() {
            return Vec::new();
        }
        let is_small = self.old.len().saturating_add(self.new.len()) <= LINES_MAX;
        let rounds = is_small.then(|| self.search()).flatten();
        rounds.map_or_else(
            || vec![self.replace_all()],
            |rounds| self.trace_back(&rounds),
        )
    }

    fn replace_all(&self) -> Replacement {
        Replacement {
            old: 0..self.old.len(),
            new: 0..self.new.len(),
        }
    }

    /// Runs rounds until one reaches the corner.
    fn search(&self) -> Option<Vec<Round>> {
        let mut rounds: Vec<Round> = Vec::new();
        for number in 0..=ROUNDS_MAX {
            let mut round = Round(vec![0; 2 * number + 1]);
            // Every second diagonal: a round changes the diagonal by one.
            for index in (0..=2 * number).step_by(2) {
                let diagonal = index.checked_signed_diff(number)?;
                let from = step_from(rounds.last(), number, diagonal);
                let reached = self.follow_equal(from?);
                *round.0.get_mut(index)? = reached.old;
                if reached.old >= self.old.len() && reached.new >= self.new.len() {
                    rounds.push(round);
                    return Some(rounds);
                }
            }
            rounds.push(round);
        }
        None
    }

    fn follow_equal(&self, mut at: Point) -> Point {
        while let (Some(old), Some(new)) = (self.old.get(at.old), self.new.get(at.new))
            && old == new
        {
            at = Point {
                old: at.old + 1,
                new: at.new + 1,
            };
        }
        at
    }

    /// Follows the path from the corner back to the origin. Each round contributes one line.
    fn trace_back(&self, rounds: &[Round]) -> Vec<Replacement> {
        let mut found: Vec<Replacement> = Vec::new();
        let mut at = Point {
            old: self.old.len(),
            new: self.new.len(),
        };
        // `at` is on the path at the end of round `number`. The lines between `step`, where that round
        // entered the diagonal, and `at` are equal in both files, so only the step itself counts.
        for number in (1..rounds.len()).rev() {
            let earlier = rounds.get(number - 1);
            let Some(diagonal) = at.old.checked_signed_diff(at.new) else {
                return vec![self.replace_all()];
            };
            let Some(step) = step_from(earlier, number, diagonal) else {
                return vec![self.replace_all()];
            };
            let came_by_removal = removes_line(earlier, number, diagonal);
            let before = if came_by_removal {
                Point {
                    old: step.old - 1,
                    ..step
                }
            } else {
                Point {
                    new: step.new - 1,
                    ..step
                }
            };
            push_front(&mut found, before, step);
            at = before;
        }
        found.reverse();
        found
    }
}

/// Where round `number` enters a diagonal: one step right or down from the round before.
fn step_from(earlier: Option<&Round>, number: usize, diagonal: isize) -> Option<Point> {
    let Some(round) = earlier else {
        return Some(Point { old: 0, new: 0 });
    };
    let old = if removes_line(earlier, number, diagonal) {
        round.reach(number - 1, diagonal - 1)? + 1
    } else {
        round.reach(number - 1, diagonal + 1)?
    };
    let new = old.checked_add_signed(diagonal.checked_neg()?)?;
    Some(Point { old, new })
}

/// Whether the farther path to a diagonal comes by removing a line, from the diagonal below.
fn removes_line(earlier: Option<&Round>, number: usize, diagonal: isize) -> bool {
    let reach = |diagonal| earlier.and_then(|round| round.reach(number - 1, diagonal));
    match (reach(diagonal - 1), reach(diagonal + 1)) {
        (Some(below), Some(above)) => below >= above,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Adds the line between two points, which come from the end to the start. Neighbours become one
/// replacement.
fn push_front(found: &mut Vec<Replacement>, before: Point, after: Point) {
    if let Some(last) = found.last_mut()
        && last.old.start == after.old
        && last.new.start == after.new
    {
        last.old.start = before.old;
        last.new.start = before.new;
        return;
    }
    found.push(Replacement {
        old: before.old..after.old,
        new: before.new..after.new,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Vec<&[u8]> {
        text.split(' ')
            .filter(|word| !word.is_empty())
            .map(str::as_bytes)
            .collect()
    }

    fn check(old: &str, new: &str, expect: &[(Range<usize>, Range<usize>)]) {
        let found: Vec<_> = find_replacements(&split(old), &split(new))
            .into_iter()
            .map(|found| (found.old, found.new))
            .collect();
        assert_eq!(found, expect, "{old} -> {new}");
    }

    #[test]
    fn the_shortest_difference_is_found() {
        check("a b c", "a b c", &[]);
        check("", "a b", &[(0..0, 0..2)]);
        check("a b", "", &[(0..2, 0..0)]);
        check("a b c", "a x c d", &[(1..2, 1..2), (3..3, 3..4)]);
        check(
            "a b c a b b a",
            "c b a b a c",
            &[(0..2, 0..0), (3..3, 1..2), (5..6, 4..4), (7..7, 5..6)],
        );
    }

    #[test]
    fn unrelated_files_are_replaced_as_a_whole() {
        let old: Vec<String> = (0..3000).map(|n| format!("o{n}")).collect();
        let new: Vec<String> = (0..3000).map(|n| format!("n{n}")).collect();
        check(&old.join(" "), &new.join(" "), &[(0..3000, 0..3000)]);
    }

    fn rebuild<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let mut out = Vec::new();
        let mut at = 0;
        for found in find_replacements(old, new) {
            out.extend(&old[at..found.old.start]);
            out.extend(&new[found.new]);
            at = found.old.end;
        }
        out.extend(&old[at..]);
        out
    }

    proptest! {
        #[test]
        fn replacements_turn_the_old_lines_into_the_new(old in "([abc] ){0,30}", new in "([abc] ){0,30}") {
            let (old, new) = (split(&old), split(&new));
            prop_assert_eq!(rebuild(&old, &new), new);
        }
    }
}
