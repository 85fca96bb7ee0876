//! The tokens of nodes. A token opens `/mcp` for one node, and lives as long as the node's process.
//!
//! Tokens are in memory only: after a restart the processes are gone, and so are their tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnkeep_runtime::ids::{IdSource, NodeId, RunId};

/// The beginning of every node's token, so that a person can tell it from other tokens.
const PREFIX: &str = "tkn_";

/// The node that a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenNode {
    pub(crate) run: RunId,
    pub(crate) node: NodeId,
}

type Holders = Mutex<HashMap<blake3::Hash, LiveToken>>;

struct LiveToken {
    holder: TokenNode,
    text: String,
}

/// The valid tokens by their hashes.
#[derive(Clone, Default)]
pub(crate) struct NodeTokens(Arc<Holders>);

/// A token that a caller presented. It may have become invalid since.
#[derive(Clone)]
pub(crate) struct PresentedToken {
    hash: blake3::Hash,
    holders: Arc<Holders>,
}

impl PresentedToken {
    /// Whether the process that the token was made for still runs.
    pub(crate) fn is_valid(&self) -> bool {
        NodeTokens::lock(&self.holders).contains_key(&self.hash)
    }
}

/// A token. It is invalid once this value is dropped.
pub(super) struct NodeToken {
    text: String,
    hash: blake3::Hash,
    holders: Arc<Holders>,
}

impl NodeTokens {
    fn lock(holders: &Holders) -> MutexGuard<'_, HashMap<blake3::Hash, LiveToken>> {
        holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a token for a node.
    pub(super) fn mint(&self, ids: &mut IdSource, holder: TokenNode) -> NodeToken {
        // Two ids have 244 random bits.
        let [first, second]: [NodeId; 2] = [ids.draw(), ids.draw()];
        let text = format!("{PREFIX}{first}{second}");
        let hash = blake3::hash(text.as_bytes());
        let live = LiveToken {
            holder,
            text: text.clone(),
        };
        Self::lock(&self.0).insert(hash, live);
        NodeToken {
            text,
            hash,
            holders: Arc::clone(&self.0),
        }
    }

    /// All valid tokens, so that they can be masked.
    pub(super) fn reveal_all(&self) -> Vec<String> {
        let tokens = Self::lock(&self.0);
        tokens.values().map(|live| live.text.clone()).collect()
    }

    /// The node that holds this token.
    pub(crate) fn find(&self, secret: &str) -> Option<(TokenNode, PresentedToken)> {
        if !secret.starts_with(PREFIX) {
            return None;
        }
        let hash = blake3::hash(secret.as_bytes());
        let holder = Self::lock(&self.0).get(&hash)?.holder;
        let holders = Arc::clone(&self.0);
        Some((holder, PresentedToken { hash, holders }))
    }
}

impl NodeToken {
    pub(super) fn reveal(&self) -> &str {
        &self.text
    }
}

impl Drop for NodeToken {
    fn drop(&mut self) {
        NodeTokens::lock(&self.holders).remove(&self.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_valid_as_long_as_its_process_lives() {
        let tokens = NodeTokens::default();
        let mut ids = IdSource::from_seed(&[1; 32]);
        let holder = TokenNode {
            run: ids.draw(),
            node: ids.draw(),
        };
        let token = tokens.mint(&mut ids, holder);
        let text = token.reveal().to_owned();
        let (found, presented) = tokens.find(&text).unwrap();
        assert_eq!(found, holder);
        assert!(presented.is_valid());
        assert!(tokens.find("tkn_other").is_none());
        drop(token);
        assert!(tokens.find(&text).is_none());
        assert!(!presented.is_valid(), "who waits learns that it ended");
    }
}
