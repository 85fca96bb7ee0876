//! Publishing a bundle of types, for both ports.
//!
//! The registry stays in memory, so all bundles together have a limit. Parsing a bundle takes many
//! times its bytes, so a large one needs a permit of the memory budget.

use bytes::Bytes;
use turnkeep_store::{Command, Outcome};

use crate::convert::{self, within};
use crate::error::ApiError;
use crate::guarded_store::WriteGrant;
use crate::memory::LARGE_FROM_BYTES;
use crate::shared::Shared;

/// About how many bytes of memory it takes to parse one byte of a bundle. Many small types cost
/// most.
const READ_PER_BYTE: usize = 16;

impl Shared {
    /// Publishes a bundle; returns whether it is new.
    pub(crate) async fn publish_bundle(&self, id: String, json: Bytes) -> Result<bool, ApiError> {
        let command = self.bundle_command(id, json.clone())?;
        // Held until the writer has parsed the bundle.
        let permit = if json.len() >= LARGE_FROM_BYTES {
            let bytes = READ_PER_BYTE * json.len();
            Some(self.memory.acquire_beside(json.len(), bytes).await?)
        } else {
            None
        };
        let outcome = self.store.run(WriteGrant::NEW_OBJECT, command).await;
        drop(permit);
        match outcome? {
            Outcome::BundlePut { was_new } => Ok(was_new),
            _ => Err(ApiError::internal("a put had another outcome")),
        }
    }

    /// The command that publishes a bundle, if the registry stays within its limit.
    pub(crate) fn bundle_command(&self, id: String, json: Bytes) -> Result<Command, ApiError> {
        let registry = self.store.registry();
        // Publishing a known bundle again adds nothing, so a full registry accepts it.
        if registry.bundle(&id).is_none() {
            let bytes = registry.bundle_bytes() + json.len() as u64;
            within(
                "registry bytes",
                self.policy.limits.registry_bytes_max,
                bytes,
            )?;
        }
        convert::put_bundle(&self.policy, id, json)
    }
}
