//! Edges: who may hand work to whom.

use crate::ids::{EdgeId, NodeId};
use crate::words::EdgeKind;

/// A connection between two nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    pub id: EdgeId,
    pub from: NodeId,
    pub to: NodeId,
    /// Whether it also carries envelopes back.
    pub bidirectional: bool,
    pub kind: EdgeKind,
    pub label: String,
    /// Whether an envelope that claims success must pass verification first.
    pub gate: bool,
}

impl Edge {
    /// Whether it carries envelopes from one node to another.
    pub fn carries(&self, from: NodeId, to: NodeId) -> bool {
        (self.from == from && self.to == to)
            || (self.bidirectional && self.from == to && self.to == from)
    }

    /// Whether it touches a node.
    pub fn touches(&self, node: NodeId) -> bool {
        self.from == node || self.to == node
    }
}
