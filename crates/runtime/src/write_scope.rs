//! Which files a node may write. The prompt says so, and the diff of every turn is checked.

use crate::glob;
use crate::node::Capabilities;
use crate::words::GlobalMode;

/// The files that count as documents.
pub const DOCUMENTS: [&str; 2] = ["docs/**", "*.md"];

/// The files that a node may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteScope {
    /// All files.
    Everything,
    /// Documents only.
    DocumentsOnly,
    /// All files but documents.
    NoDocuments,
    /// No file.
    Nothing,
}

impl WriteScope {
    /// The scope of a node. A node that only delegates writes nothing, whatever else it may.
    pub fn of(capabilities: Capabilities, mode: GlobalMode) -> Self {
        let writes_code = capabilities.write_code && mode == GlobalMode::Implementation;
        match (
            capabilities.delegate_only,
            writes_code,
            capabilities.write_docs,
        ) {
            (true, _, _) | (false, false, false) => Self::Nothing,
            (false, true, true) => Self::Everything,
            (false, false, true) => Self::DocumentsOnly,
            (false, true, false) => Self::NoDocuments,
        }
    }

    /// Whether a file may be written. The path is relative to the workspace.
    pub fn allows(self, path: &str) -> bool {
        let is_document = || DOCUMENTS.iter().any(|pattern| glob::matches(pattern, path));
        match self {
            Self::Everything => true,
            Self::DocumentsOnly => is_document(),
            Self::NoDocuments => !is_document(),
            Self::Nothing => false,
        }
    }

    /// The rule in words, for the prompt.
    pub fn describe(self) -> String {
        let documents = DOCUMENTS.join(", ");
        match self {
            Self::Everything => "You may write any file of the workspace.".to_owned(),
            Self::DocumentsOnly => format!("You may write only these files: {documents}."),
            Self::NoDocuments => format!("You may write any file but these: {documents}."),
            Self::Nothing => "You may not write any file.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(capabilities: [bool; 3], mode: GlobalMode, allowed: &[&str]) {
        let [write_code, write_docs, delegate_only] = capabilities;
        let capabilities = Capabilities {
            spawn_nodes: true,
            write_code,
            write_docs,
            run_commands: true,
            delegate_only,
        };
        let scope = WriteScope::of(capabilities, mode);
        let files = ["src/x.rs", "docs/plan.txt", "README.md"];
        let found: Vec<&str> = files
            .into_iter()
            .filter(|file| scope.allows(file))
            .collect();
        assert_eq!(found, allowed, "{capabilities:?} {mode}");
    }

    #[test]
    fn planning_and_capabilities_limit_what_a_node_writes() {
        use GlobalMode::{Implementation, Planning};
        check(
            [true, true, false],
            Implementation,
            &["src/x.rs", "docs/plan.txt", "README.md"],
        );
        check(
            [true, true, false],
            Planning,
            &["docs/plan.txt", "README.md"],
        );
        check(
            [false, true, false],
            Implementation,
            &["docs/plan.txt", "README.md"],
        );
        check([true, false, false], Implementation, &["src/x.rs"]);
        check([true, false, false], Planning, &[]);
        check([false, false, false], Implementation, &[]);
        check([true, true, true], Implementation, &[]);
    }
}
