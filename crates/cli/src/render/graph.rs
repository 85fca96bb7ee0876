//! Draws branches beside a list of turns, newest first, as `git log --graph` does.
//!
//! A turn has one parent, so history is a forest seen from its leaves: a lane is a line that waits
//! for one turn. Invariant: no two lanes wait for the same turn; when a turn's parent is already
//! waited for, the lane on the right bends into the one on the left and leaves a gap, which the
//! next branch takes.

use turnkeep_types::TurnId;

/// The state between two turns.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    lanes: Vec<Option<TurnId>>,
}

/// What stands to the left of a turn's lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Margin {
    /// Beside the turn's first line.
    pub(crate) first: String,
    /// Beside its other lines.
    pub(crate) rest: String,
    /// Whole lines to draw after the turn, where lanes join.
    pub(crate) joins: Vec<String>,
}

impl Graph {
    /// Draws the next turn. Turns must come with every child before its parent.
    pub(crate) fn draw_turn(&mut self, id: TurnId, parent: Option<TurnId>) -> Margin {
        let lane = self.lane_of(id);
        let first = self.lane_row(Some(lane), '*');
        // The lane has arrived at its turn. It continues only if the parent needs it.
        self.set_lane(lane, None);
        let Some(other) = parent.and_then(|parent| self.waiting_lane(parent)) else {
            self.set_lane(lane, parent);
            self.trim_lanes();
            return Margin {
                first,
                rest: self.lane_row(None, ' '),
                joins: Vec::new(),
            };
        };
        // The lane on the left goes on and waits; the one on the right bends towards it.
        let (left, right) = (other.min(lane), other.max(lane));
        self.set_lane(other, None);
        self.set_lane(left, parent);
        let rest = self.lane_row(Some(right), '|');
        let joins = self.join_rows(left, right);
        self.trim_lanes();
        Margin { first, rest, joins }
    }

    fn set_lane(&mut self, lane: usize, waits: Option<TurnId>) {
        if let Some(slot) = self.lanes.get_mut(lane) {
            *slot = waits;
        }
    }

    /// The lane that waits for this turn, or a new one for a branch that starts here.
    fn lane_of(&mut self, id: TurnId) -> usize {
        let gap = || self.lanes.iter().position(Option::is_none);
        if let Some(lane) = self.waiting_lane(id).or_else(gap) {
            return lane;
        }
        self.lanes.push(None);
        self.lanes.len() - 1
    }

    fn waiting_lane(&self, id: TurnId) -> Option<usize> {
        self.lanes.iter().position(|waits| *waits == Some(id))
    }

    fn trim_lanes(&mut self) {
        while self.lanes.last() == Some(&None) {
            self.lanes.pop();
        }
    }

    /// All lanes as bars, with `mark` in one of them.
    fn lane_row(&self, marked: Option<usize>, mark: char) -> String {
        let mut row = String::new();
        for (lane, waits) in self.lanes.iter().enumerate() {
            row.push(match waits {
                _ if marked == Some(lane) => mark,
                Some(_) => '|',
                None => ' ',
            });
            row.push(' ');
        }
        row.trim_end().to_owned()
    }

    /// A line that leaves `right` and moves one lane to the left per row until it meets `left`.
    fn join_rows(&self, left: usize, right: usize) -> Vec<String> {
        let lanes: Vec<char> = self.lane_row(None, ' ').chars().collect();
        let mut rows = Vec::new();
        for from in (left + 1..=right).rev() {
            // A lane takes two columns, so the slash stands just left of the lane that it leaves.
            let at = 2 * from - 1;
            let mut cells = lanes.clone();
            cells.resize(cells.len().max(at + 1), ' ');
            cells.splice(at..=at, ['/']);
            rows.push(cells.into_iter().collect());
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws turns given as (id, parent), each with two lines of text.
    fn check(turns: &[(u64, u64)], expect: &str) {
        let mut graph = Graph::default();
        let mut lines = Vec::new();
        for &(id, parent) in turns {
            let margin = graph.draw_turn(TurnId::new(id).unwrap(), TurnId::new(parent));
            lines.push(format!("{} {id}", margin.first));
            lines.push(format!("{} .", margin.rest));
            lines.extend(margin.joins);
        }
        assert!(graph.lanes.is_empty(), "every line ends at a root");
        let expect: Vec<&str> = expect
            .lines()
            .map(str::trim_start)
            .filter(|line| !line.is_empty())
            .collect();
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_start()).collect();
        assert_eq!(lines, expect);
    }

    #[test]
    fn one_branch_is_a_straight_line() {
        check(&[(2, 1), (1, 0)], "* 2\n| .\n* 1\n.");
    }

    #[test]
    fn a_fork_joins_below_its_last_turn() {
        check(
            &[(4, 2), (3, 2), (2, 1), (1, 0)],
            "* 4\n| .\n| * 3\n| | .\n|/\n* 2\n| .\n* 1\n.",
        );
    }

    #[test]
    fn a_line_crosses_the_lanes_between() {
        check(
            &[(7, 2), (6, 3), (5, 2), (3, 2), (2, 0)],
            "* 7\n| .\n| * 6\n| | .\n| | * 5\n| | | .\n| |/\n|/|\n| * 3\n| | .\n|/\n* 2\n.",
        );
    }

    #[test]
    fn a_gap_is_taken_by_the_next_branch() {
        check(
            &[(9, 1), (8, 1), (7, 6), (6, 1), (1, 0)],
            "* 9\n| .\n| * 8\n| | .\n|/\n| * 7\n| | .\n| * 6\n| | .\n|/\n* 1\n.",
        );
    }
}
