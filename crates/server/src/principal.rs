//! The caller of a request. Only the token decides who that is.

use std::sync::Arc;

use turnkeep_ledger::Principal;
use turnkeep_ledger::ids::TokenId;
use turnkeep_runtime::ids::{NodeId, Uuid as _};

use crate::ledger::WorldHandle;
use crate::runs::{PresentedToken, RunHandle};

/// The caller of a request.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The holder of the owner's token, who may use every world.
    Owner,
    /// A person of one world, by a token of that world.
    Person(PersonCaller),
    /// A node of a run, by the token of its process. It may use the tools of its run, and those of the
    /// run's world as the person that it is there.
    Node(NodeCaller),
}

/// A node of a run.
#[derive(Clone)]
pub(crate) struct NodeCaller {
    /// The run.
    pub(crate) handle: Arc<RunHandle>,
    /// The node.
    pub(crate) node: NodeId,
    /// The person that it is in the run's world, if the run has one.
    pub(crate) person: Option<PersonCaller>,
}

/// A person of one world.
#[derive(Clone)]
pub(crate) struct PersonCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The person, and whether it may write.
    pub(crate) who: Principal,
    /// The token of the request.
    pub(crate) token: PersonToken,
}

/// How a person of a world proves who it is.
#[derive(Clone)]
pub(crate) enum PersonToken {
    /// By a token of the world.
    OfWorld(TokenId),
    /// By the token of a node's process.
    OfNode {
        /// The node.
        node: NodeId,
        /// Its token.
        token: PresentedToken,
    },
}

impl PersonToken {
    /// The id under which the calls of this token are counted. Ids of nodes and of tokens are random
    /// and of one length, so they do not meet.
    pub(crate) fn counted_as(&self) -> TokenId {
        match self {
            Self::OfWorld(token) => *token,
            Self::OfNode { node, .. } => TokenId(node.bits()),
        }
    }
}

impl Caller {
    /// The person of a world, if it is one.
    pub(crate) fn person(&self) -> Option<&PersonCaller> {
        match self {
            Self::Owner => None,
            Self::Node(node) => node.person.as_ref(),
            Self::Person(person) => Some(person),
        }
    }
}
