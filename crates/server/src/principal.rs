//! The caller of a request. Only the token decides who that is.

use std::sync::Arc;

use turnkeep_ledger::Principal;
use turnkeep_ledger::ids::TokenId;

use crate::ledger::WorldHandle;

/// The caller of a request.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The holder of the owner's token, who may use every world.
    Owner,
    /// A person of one world, by a token of that world.
    Person(PersonCaller),
}

/// A person of one world.
#[derive(Clone)]
pub(crate) struct PersonCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The person, and whether it may write.
    pub(crate) who: Principal,
    /// The token of the request.
    pub(crate) token: TokenId,
}

impl Caller {
    /// The person, if it is one.
    pub(crate) fn person(&self) -> Option<&PersonCaller> {
        match self {
            Self::Owner => None,
            Self::Person(person) => Some(person),
        }
    }
}
