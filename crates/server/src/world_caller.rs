//! A caller in one world: over HTTP or MCP, with the limits of its token.

use std::sync::Arc;

use turnkeep_ledger::ids::TokenId;
use turnkeep_ledger::{Fault, Principal, View};
use turnkeep_wire::{ErrorCode, ErrorReason};

use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::principal::{PersonCaller, PersonToken};
use crate::shared::Shared;

/// A caller in one world.
pub(crate) struct WorldCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The caller's identity in the world.
    pub(crate) who: Principal,
    /// A person's token. Its calls are counted.
    pub(crate) token: Option<PersonToken>,
}

impl WorldCaller {
    /// The owner in a world.
    pub(crate) fn owner(handle: Arc<WorldHandle>) -> Self {
        Self {
            handle,
            who: Principal::Owner,
            token: None,
        }
    }

    /// A person in its own world.
    pub(crate) fn person(person: &PersonCaller) -> Self {
        Self {
            handle: Arc::clone(&person.handle),
            who: person.who.clone(),
            token: Some(person.token.clone()),
        }
    }

    /// Counts a call of a person's token. Rejects the call if there were too many.
    pub(crate) fn count_call(&self, shared: &Shared) -> Result<(), ApiError> {
        let token = self.token.as_ref();
        token.map_or(Ok(()), |token| shared.tool_rate.admit(token.counted_as()))
    }

    /// Rejects a token that was revoked or has expired meanwhile.
    pub(crate) fn check_token(&self) -> Result<(), ApiError> {
        let is_valid = match &self.token {
            None => true,
            Some(PersonToken::OfWorld(token)) => is_token_valid(&self.handle, Some(*token)),
            Some(PersonToken::OfNode { token, .. }) => token.is_valid(),
        };
        if is_valid {
            return Ok(());
        }
        let message = "the token counts no more";
        Err(ApiError::new(ErrorCode::Unauthorized, message))
    }

    /// Reads the caller's view on a blocking thread.
    pub(crate) async fn read_view<T: Send + 'static>(
        &self,
        shared: &Shared,
        look: impl FnOnce(&View<'_>) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, ApiError> {
        let (handle, viewer) = (Arc::clone(&self.handle), self.who.viewer());
        shared
            .blocking(move || {
                handle
                    .read_long(|world| look(&world.view(viewer)))
                    .map_err(ApiError::from)
            })
            .await
    }
}

/// Whether a token of this world still counts. The gate checks the token when a request arrives;
/// this is for requests that wait or stay open, during which it may be revoked or expire. The owner
/// has no token here, and the owner's token never expires.
pub(crate) fn is_token_valid(handle: &WorldHandle, token: Option<TokenId>) -> bool {
    let Some(token) = token else {
        return true;
    };
    let now = handle.now();
    handle.read(|world| match world.token(token) {
        Some(token) => token.expires_at.is_none_or(|end| now < end),
        None => false,
    })
}

/// The answer about a world that does not exist, or not for this caller.
pub(crate) fn no_world(name: &str) -> ApiError {
    let message = format!("there is no world `{name}`");
    ApiError::not_found(message).with_reason(ErrorReason::WorldUnknown)
}
