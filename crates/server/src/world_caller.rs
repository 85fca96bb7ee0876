//! A caller in one world: over HTTP or MCP, with the limits of its token.

use std::sync::Arc;

use turnkeep_ledger::ids::TokenId;
use turnkeep_ledger::{Fault, Principal, View};
use turnkeep_wire::{ErrorCode, ErrorReason};

use crate::error::ApiError;
use crate::ledger::WorldHandle;
use crate::principal::PersonCaller;
use crate::shared::Shared;

/// A caller in one world.
pub(crate) struct WorldCaller {
    /// The world.
    pub(crate) handle: Arc<WorldHandle>,
    /// The caller's identity in the world.
    pub(crate) who: Principal,
    /// A person's token. Its calls are counted.
    pub(crate) token: Option<TokenId>,
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
            token: Some(person.token),
        }
    }

    /// Counts a call of a person's token. Rejects the call if there were too many.
    pub(crate) fn count_call(&self, shared: &Shared) -> Result<(), ApiError> {
        self.token
            .map_or(Ok(()), |token| shared.tool_rate.admit(token))
    }

    /// Rejects a token that was revoked or has expired meanwhile.
    pub(crate) fn check_token(&self) -> Result<(), ApiError> {
        let Some(token) = self.token else {
            return Ok(());
        };
        let now = self.handle.now();
        let counts = self.handle.read(|world| {
            world
                .token(token)
                .is_some_and(|token| token.expires_at.is_none_or(|end| now < end))
        });
        if counts {
            Ok(())
        } else {
            Err(ApiError::new(
                ErrorCode::Unauthorized,
                "the token counts no more",
            ))
        }
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

/// The answer about a world that does not exist, or not for this caller.
pub(crate) fn no_world(name: &str) -> ApiError {
    let message = format!("there is no world `{name}`");
    ApiError::new(ErrorCode::NotFound, message).with_reason(ErrorReason::WorldUnknown)
}
