//! The names of the branches on which nodes with worktrees work: `turnkeep/<run>/<alias>`.
//!
//! The name is only the wanted one. If the repository has a branch of that name, the worktree gets
//! another one, and the server records which ([`crate::decide::set_branch`]).

use crate::ids::RunId;
use crate::node::Node;

/// How many characters of an id a branch name has.
const SHORT_ID_CHARACTERS: usize = 8;

/// How many characters of an alias a branch name has.
const ALIAS_CHARACTERS_MAX: usize = 40;

/// The branch that a node should work on.
pub(crate) fn branch_name(run: RunId, node: &Node) -> String {
    let short = |id: String| id.chars().take(SHORT_ID_CHARACTERS).collect::<String>();
    let run = short(run.to_string());
    // People and `git branch` know the alias; the id says nothing to them.
    match &node.settings.alias {
        Some(alias) => format!("turnkeep/{run}/{}", branch_part(alias)),
        None => format!("turnkeep/{run}/{}", short(node.id.to_string())),
    }
}

/// An alias as a part of a branch name: letters, digits, `-`, `_`, and dots between them.
fn branch_part(alias: &str) -> String {
    let mut part = String::new();
    for letter in alias.chars().take(ALIAS_CHARACTERS_MAX) {
        match letter {
            letter if letter.is_ascii_alphanumeric() || letter == '_' => part.push(letter),
            '.' if !part.ends_with(['.', '-']) => part.push('.'),
            _ if part.ends_with('-') => {}
            _ => part.push('-'),
        }
    }
    // Git refuses names that end like this.
    let part = part.trim_matches(['.', '-']);
    let part = part.strip_suffix(".lock").unwrap_or(part);
    if part.is_empty() {
        "node".to_owned()
    } else {
        part.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_become_parts_of_branch_names() {
        for (alias, expect) in [
            ("orch", "orch"),
            ("Implementer A", "Implementer-A"),
            ("../x", "x"),
            ("a..b", "a.-b"),
            ("x.lock", "x"),
            ("~^:?*[", "node"),
            ("", "node"),
            ("ä", "node"),
        ] {
            assert_eq!(branch_part(alias), expect, "{alias}");
        }
    }
}
