//! Turns that overlap in one directory: which files both may have changed.
//!
//! Two snapshots bound the *window* of a turn. A file that changed within the window was written by
//! the turn's node, by another node whose turn overlaps, or by the user. Snapshots cannot tell these
//! apart, so the report makes no claim whose a file is. One write shows in both windows. So only the
//! nodes' own tools are evidence that both wrote a file, and without that evidence there is no conflict.
//!
//! Worked example: the planner may write only documents, the builder everything. Both turns overlap.
//!
//! | file | planner's window | builder's window | in the planner's report |
//! |---|---|---|---|
//! | `src/x` | changed | – | violation |
//! | `src/y` | changed | changed | shared, and no violation: the builder may write it |
//! | `docs/p.md` | changed | – | nothing: the planner may write it |
//! | `docs/q.md` | changed | changed | shared |
//! | `docs/r.md` | changed, and a tool wrote it | the same | shared, and a conflict |

use std::collections::BTreeSet;

use crate::tree_path::TreePath;

/// One turn in a shared directory. The numbers order the snapshots of all turns in that directory.
#[derive(Debug, Clone, Default)]
pub struct TurnWindow {
    /// The number of the snapshot before the turn.
    pub opened: u64,
    /// The number of the snapshot after the turn; `None` while the turn is open.
    pub closed: Option<u64>,
    /// The files that changed within the window, so far if it is open.
    pub changed: BTreeSet<TreePath>,
    /// Those of them that the node may not write.
    pub forbidden: BTreeSet<TreePath>,
    /// The files that the node's own tools wrote; empty if its program does not say.
    pub reported: BTreeSet<TreePath>,
}

/// What the overlaps mean for one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OverlapReport {
    /// Files that changed in another turn's window too.
    pub shared: BTreeSet<TreePath>,
    /// Files that the node may not write, and that no overlapping turn may have written either.
    pub violations: BTreeSet<TreePath>,
    /// Files that two nodes wrote at the same time.
    pub conflicts: Vec<ConflictingWrite>,
}

/// A file that another turn wrote at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictingWrite {
    pub path: TreePath,
    /// The place of the other turn in the list of others.
    pub other: usize,
}

impl TurnWindow {
    /// Whether two turns were open at the same time.
    fn overlaps(&self, other: &Self) -> bool {
        let is_open_at = |window: &Self, number| window.closed.is_none_or(|closed| number < closed);
        is_open_at(self, other.opened) && is_open_at(other, self.opened)
    }

    fn may_write(&self, path: &TreePath) -> bool {
        !self.forbidden.contains(path)
    }
}

/// Compares a turn with the other turns in its directory.
pub fn report_overlaps(own: &TurnWindow, others: &[TurnWindow]) -> OverlapReport {
    let mut report = OverlapReport {
        violations: own.forbidden.clone(),
        ..OverlapReport::default()
    };
    let overlapping = others
        .iter()
        .enumerate()
        .filter(|(_, other)| own.overlaps(other));
    for (place, other) in overlapping {
        for path in own.changed.intersection(&other.changed) {
            report.shared.insert(path.clone());
            if other.may_write(path) {
                report.violations.remove(path);
            }
            if is_conflict(own, other, path) {
                report.conflicts.push(ConflictingWrite {
                    path: path.clone(),
                    other: place,
                });
            }
        }
    }
    report
}

/// Whether the tools of two nodes wrote a shared file both, and both nodes may write it.
fn is_conflict(own: &TurnWindow, other: &TurnWindow, path: &TreePath) -> bool {
    let wrote = |window: &TurnWindow| window.may_write(path) && window.reported.contains(path);
    wrote(own) && wrote(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(texts: &[&str]) -> BTreeSet<TreePath> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn window(opened: u64, closed: Option<u64>, changed: &[&str]) -> TurnWindow {
        TurnWindow {
            opened,
            closed,
            changed: paths(changed),
            reported: paths(changed),
            ..TurnWindow::default()
        }
    }

    #[test]
    fn a_file_that_another_node_may_write_is_no_violation() {
        let planner = TurnWindow {
            forbidden: paths(&["src/x", "src/y", "src/z"]),
            ..window(1, Some(4), &["docs/p.md", "src/x", "src/y", "src/z"])
        };
        let builder = window(2, Some(3), &["src/y"]);
        let report = report_overlaps(&planner, &[builder]);
        assert_eq!(report.violations, paths(&["src/x", "src/z"]));
        assert_eq!(report.shared, paths(&["src/y"]));
        assert_eq!(report.conflicts, []);
    }

    #[test]
    fn a_node_without_the_right_excuses_no_violation() {
        let own = TurnWindow {
            forbidden: paths(&["src/x"]),
            ..window(1, None, &["src/x"])
        };
        let other = own.clone();
        let report = report_overlaps(&own, &[other]);
        assert_eq!(report.violations, paths(&["src/x"]));
        assert_eq!(report.shared, paths(&["src/x"]));
        assert_eq!(report.conflicts, []);
    }

    #[test]
    fn only_turns_that_were_open_together_overlap() {
        let own = window(10, Some(20), &["f"]);
        for (opened, closed, expect) in [
            (1, Some(10), false),
            (1, Some(11), true),
            (12, Some(13), true),
            (19, None, true),
            (20, None, false),
            (21, Some(22), false),
            (1, None, true),
        ] {
            let other = window(opened, closed, &["f"]);
            let report = report_overlaps(&own, &[other]);
            assert_eq!(!report.shared.is_empty(), expect, "{opened} {closed:?}");
            assert_eq!(!report.conflicts.is_empty(), expect);
        }
    }

    #[test]
    fn a_file_is_a_conflict_if_the_tools_of_both_nodes_wrote_it() {
        let reports = |mut window: TurnWindow, reported: bool| {
            window.reported = paths(if reported { &["f"] } else { &[] });
            window
        };
        for (own, other, expect) in [
            (false, false, false),
            (true, false, false),
            (false, true, false),
            (true, true, true),
        ] {
            let own = reports(window(1, None, &["f"]), own);
            let other = reports(window(1, None, &["f"]), other);
            let report = report_overlaps(&own, &[other]);
            assert_eq!(!report.conflicts.is_empty(), expect);
        }
    }
}
