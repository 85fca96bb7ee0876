//! The windows of turns: which turns were open in one directory at the same time.
//!
//! Snapshots have numbers. A turn's number is drawn before its first snapshot is taken, and again
//! after its last one. So the window covers both snapshots, and two turns whose snapshots overlap are
//! always found:
//!
//! ```text
//!  number      1        2       3          4
//!  turn A      draws ── snapshot ────────── draws          window 1 to 3 or 4
//!  turn B               draws ── snapshot …                opened inside A's window
//! ```
//!
//! Windows are in memory only: after a restart no turn is open.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use turnkeep_runtime::ids::{AgentTurnId, NodeId};
use turnkeep_runtime::words::WorkspaceKind;
use turnkeep_runtime::write_scope::WriteScope;
use turnkeep_workspace::{TreeName, TreePath, TurnWindow};

/// The turns that are open, and those that overlapped with one of them.
#[derive(Default)]
pub(super) struct TurnWindows {
    windows: HashMap<AgentTurnId, DirectoryWindow>,
    /// The number of the last snapshot.
    snapshots: u64,
}

/// A turn in a directory.
#[derive(Debug, Clone)]
pub(super) struct DirectoryWindow {
    pub(super) node: NodeId,
    pub(super) directory: PathBuf,
    /// The tree before the turn; `None` while it is being recorded.
    pub(super) base: Option<TreeName>,
    pub(super) kind: WorkspaceKind,
    pub(super) scope: WriteScope,
    pub(super) window: TurnWindow,
    /// The files that requests of a person wrote meanwhile: those of a revert or an apply.
    written_by_person: BTreeSet<TreePath>,
}

/// What a request of a person added to open windows.
#[derive(Debug, Default)]
pub(in crate::runs) struct PersonWrites(Vec<(AgentTurnId, BTreeSet<TreePath>)>);

/// A turn beside another one.
#[derive(Debug, Clone)]
pub(super) struct OtherTurn {
    pub(super) turn: AgentTurnId,
    pub(super) directory: DirectoryWindow,
}

/// A turn that begins.
pub(super) struct NewWindow {
    pub(super) node: NodeId,
    pub(super) directory: PathBuf,
    pub(super) kind: WorkspaceKind,
    pub(super) scope: WriteScope,
}

/// What a turn that ends has done to its directory.
#[derive(Default)]
pub(super) struct ClosingWindow {
    pub(super) changed: BTreeSet<TreePath>,
    /// Those of them that the node may not write.
    pub(super) forbidden: BTreeSet<TreePath>,
    /// The files that the node's own tools wrote.
    pub(super) reported: BTreeSet<TreePath>,
}

impl TurnWindows {
    fn draw_number(&mut self) -> u64 {
        self.snapshots += 1;
        self.snapshots
    }

    /// Opens the window of a turn, before its first snapshot is taken.
    pub(super) fn open(&mut self, turn: AgentTurnId, new: NewWindow) {
        let window = TurnWindow {
            opened: self.draw_number(),
            ..TurnWindow::default()
        };
        let window = DirectoryWindow {
            node: new.node,
            directory: new.directory,
            base: None,
            kind: new.kind,
            scope: new.scope,
            window,
            written_by_person: BTreeSet::new(),
        };
        self.windows.insert(turn, window);
    }

    /// Records the tree before a turn. Returns whether the turn's window is still open.
    pub(super) fn set_base(&mut self, turn: AgentTurnId, base: TreeName) -> bool {
        let window = self.windows.get_mut(&turn);
        window.is_some_and(|window| {
            window.base = Some(base);
            true
        })
    }

    pub(super) fn find(&self, turn: AgentTurnId) -> Option<DirectoryWindow> {
        self.windows.get(&turn).cloned()
    }

    /// Notes that a request of a person is about to write files of a directory. Before it writes them: a
    /// turn may end in between, and must not take them for its own.
    pub(super) fn note_person_writes(
        &mut self,
        directory: &Path,
        paths: &BTreeSet<TreePath>,
    ) -> PersonWrites {
        let mut noted = Vec::new();
        for (turn, window) in &mut self.windows {
            if window.window.closed.is_some() || window.directory != directory {
                continue;
            }
            let known = &mut window.written_by_person;
            let new: BTreeSet<TreePath> = paths.difference(known).cloned().collect();
            known.extend(new.iter().cloned());
            noted.push((*turn, new));
        }
        PersonWrites(noted)
    }

    /// Takes a note back, because the request wrote nothing.
    pub(super) fn forget_person_writes(&mut self, noted: PersonWrites) {
        for (turn, paths) in noted.0 {
            if let Some(window) = self.windows.get_mut(&turn) {
                window
                    .written_by_person
                    .retain(|path| !paths.contains(path));
            }
        }
    }

    /// The files that requests of a person wrote during a turn.
    pub(super) fn person_writes(&self, turn: AgentTurnId) -> BTreeSet<TreePath> {
        let window = self.windows.get(&turn);
        window.map_or_else(BTreeSet::new, |window| window.written_by_person.clone())
    }

    /// The other turns in the directory of a turn.
    pub(super) fn others(&self, turn: AgentTurnId) -> Vec<OtherTurn> {
        let Some(own) = self.windows.get(&turn) else {
            return Vec::new();
        };
        self.windows
            .iter()
            .filter(|(other, window)| **other != turn && window.directory == own.directory)
            .map(|(turn, window)| OtherTurn {
                turn: *turn,
                directory: window.clone(),
            })
            .collect()
    }

    /// Closes the window of a turn, after its last snapshot was taken. It stays for turns that
    /// overlap with it.
    pub(super) fn close(
        &mut self,
        turn: AgentTurnId,
        closing: ClosingWindow,
    ) -> Option<TurnWindow> {
        let number = self.draw_number();
        let own = self.windows.get_mut(&turn)?;
        own.window.closed = Some(number);
        own.window.changed = closing.changed;
        own.window.forbidden = closing.forbidden;
        own.window.reported = closing.reported;
        let closed = own.window.clone();
        self.drop_old();
        Some(closed)
    }

    /// Forgets a turn.
    pub(super) fn remove(&mut self, turn: AgentTurnId) {
        self.windows.remove(&turn);
        self.drop_old();
    }

    /// Forgets closed windows that overlap with no open one: no later turn can meet them.
    fn drop_old(&mut self) {
        let open = self
            .windows
            .values()
            .filter(|window| window.window.closed.is_none());
        let oldest = open.map(|window| window.window.opened).min();
        self.windows.retain(|_, window| {
            let closed = window.window.closed;
            closed.is_none_or(|closed| oldest.is_some_and(|oldest| oldest < closed))
        });
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;

    fn open(windows: &mut TurnWindows, turn: u128) {
        let new = NewWindow {
            node: NodeId::from_bits(turn),
            directory: PathBuf::from("/work"),
            kind: WorkspaceKind::Shared,
            scope: WriteScope::Everything,
        };
        windows.open(AgentTurnId::from_bits(turn), new);
    }

    #[test]
    fn a_turn_that_begins_during_a_snapshot_overlaps_with_it() {
        let mut windows = TurnWindows::default();
        let (first, second) = (AgentTurnId::from_bits(1), AgentTurnId::from_bits(2));
        open(&mut windows, 1);
        let tree: TreeName = "a".repeat(40).parse().unwrap();
        assert!(windows.set_base(first, tree.clone()));
        // The second turn begins, and its snapshot takes long: the first one ends meanwhile.
        open(&mut windows, 2);
        let closed = windows.close(first, ClosingWindow::default());
        assert!(windows.set_base(second, tree));
        let (closed, opened) = (
            closed.unwrap().closed.unwrap(),
            windows.find(second).unwrap(),
        );
        assert!(opened.window.opened < closed);
        assert_eq!(windows.others(second).len(), 1, "the first one stays");
        windows.remove(second);
        assert!(
            windows.find(first).is_none(),
            "no turn can meet it any more"
        );
    }

    #[test]
    fn what_a_person_writes_counts_for_the_open_turns_of_that_directory_only() {
        let mut windows = TurnWindows::default();
        let turns = [1, 2, 3].map(AgentTurnId::from_bits);
        open(&mut windows, 1);
        open(&mut windows, 2);
        open(&mut windows, 3);
        // The first one stays for the others, but what comes now is not its work anyway.
        windows.close(turns[0], ClosingWindow::default());
        windows.windows.get_mut(&turns[2]).unwrap().directory = PathBuf::from("/elsewhere");
        let paths = |names: &[&str]| -> BTreeSet<TreePath> {
            names.iter().map(|name| name.parse().unwrap()).collect()
        };
        let place = Path::new("/work");
        drop(windows.note_person_writes(place, &paths(&["a"])));
        let failed = windows.note_person_writes(place, &paths(&["a", "b"]));
        assert_eq!(windows.person_writes(turns[1]), paths(&["a", "b"]));
        // A request that wrote nothing takes back what it has added, and no more.
        windows.forget_person_writes(failed);
        assert_eq!(windows.person_writes(turns[1]), paths(&["a"]));
        assert_eq!(windows.person_writes(turns[0]), paths(&[]));
        assert_eq!(windows.person_writes(turns[2]), paths(&[]));
    }

    #[test]
    fn a_turn_that_was_given_up_takes_no_tree() {
        let mut windows = TurnWindows::default();
        open(&mut windows, 1);
        windows.remove(AgentTurnId::from_bits(1));
        let tree: TreeName = "a".repeat(40).parse().unwrap();
        assert!(!windows.set_base(AgentTurnId::from_bits(1), tree));
    }
}
