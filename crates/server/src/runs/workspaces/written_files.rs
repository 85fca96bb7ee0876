//! The files that the open turns of a run have written with tools that name them.
//!
//! An agent names a file as it likes: by its whole path, or seen from the directory in which it works. A
//! name that leads out of that directory means none of its files.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use turnkeep_runtime::ids::AgentTurnId;
use turnkeep_workspace::TreePath;

use crate::runs::run_handle::RunHandle;

/// The names of the files, by turn.
pub(super) struct WrittenFiles(HashMap<AgentTurnId, BTreeSet<String>>);

impl WrittenFiles {
    /// What the open turns of a run have written so far.
    pub(super) fn of_open_turns(handle: &RunHandle) -> Self {
        Self(handle.read_live(|run| {
            let open = run.nodes().filter_map(|node| node.turn.as_ref());
            open.map(|turn| (turn.id, turn.written_paths.clone()))
                .collect()
        }))
    }

    /// The files of a turn that are in the directory where it works.
    pub(super) fn in_directory(&self, turn: AgentTurnId, directory: &Path) -> BTreeSet<TreePath> {
        // A program may know its directory by the path behind a link.
        let resolved = directory.canonicalize().ok();
        let places = [Some(directory), resolved.as_deref()];
        let places: Vec<&Path> = places.into_iter().flatten().collect();
        let named = self.0.get(&turn).into_iter().flatten();
        named.filter_map(|name| find_below(name, &places)).collect()
    }
}

/// The file of this name below one of the directories.
fn find_below(name: &str, places: &[&Path]) -> Option<TreePath> {
    let named = Path::new(name);
    let below = if named.is_absolute() {
        let mut below = places
            .iter()
            .filter_map(|place| named.strip_prefix(place).ok());
        below.next()?
    } else {
        named
    };
    let mut plain = PathBuf::new();
    // `a/../b` is `b`. `../b` leads out of the directory and names no file in it.
    for component in below.components() {
        match component {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            Component::ParentDir if plain.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    TreePath::new(plain.as_os_str().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_however_the_agent_names_it() {
        let places = [Path::new("/link/work"), Path::new("/real/work")];
        for (name, expect) in [
            ("src/a.rs", Some("src/a.rs")),
            ("./src/a.rs", Some("src/a.rs")),
            ("src/../a.rs", Some("a.rs")),
            ("/link/work/src/a.rs", Some("src/a.rs")),
            ("/real/work/src/a.rs", Some("src/a.rs")),
            ("/real/workshop/a.rs", None),
            ("../a.rs", None),
            ("/real/work", None),
            ("", None),
        ] {
            let found = find_below(name, &places).map(|path| path.to_string());
            assert_eq!(found.as_deref(), expect, "{name}");
        }
    }
}
