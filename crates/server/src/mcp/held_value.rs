//! JSON values together with the memory permit that covers them.
//!
//! Short values take far more memory than their text, so the values of a message or of an answer
//! may need a permit although the text is small. The permit must live as long as the values: a
//! permit that ends first lets other requests use memory that is still taken.

use serde_json::Value;

use crate::error::ApiError;
use crate::http::extract::permit_for_values;
use crate::memory::{MemoryBudget, MemoryPermit};

/// A JSON value, with a permit if it takes much memory.
pub(super) struct HeldValue {
    // Fields are dropped in this order: first the value, then its permit.
    value: Value,
    permit: Option<MemoryPermit>,
}

impl HeldValue {
    /// A value and the permit that was taken for it.
    pub(super) fn new(value: Value, permit: Option<MemoryPermit>) -> Self {
        Self { value, permit }
    }

    /// Waits for memory for the values of a JSON text that the server itself wrote, and parses it.
    pub(super) async fn parse(text: &[u8], memory: &MemoryBudget) -> Result<Self, ApiError> {
        let permit = permit_for_values(memory, text, 0).await?;
        let value = serde_json::from_slice(text).map_err(ApiError::internal)?;
        Ok(Self { value, permit })
    }

    pub(super) fn value(&self) -> &Value {
        &self.value
    }

    /// Makes another value of this one. The permit covers the new value too.
    pub(super) fn map(self, make: impl FnOnce(Value) -> Value) -> Self {
        Self {
            value: make(self.value),
            permit: self.permit,
        }
    }

    /// Writes the value as text. The text is not covered by the permit.
    pub(super) fn write(self, write: impl FnOnce(Value) -> String) -> String {
        let text = write(self.value);
        drop(self.permit);
        text
    }

    /// Drops the value, and keeps its permit for what was copied from the value.
    pub(super) fn into_permit(self) -> Option<MemoryPermit> {
        self.permit
    }
}

/// A small value needs no permit.
impl From<Value> for HeldValue {
    fn from(value: Value) -> Self {
        Self {
            value,
            permit: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_permit_lives_as_long_as_the_values() {
        let memory = MemoryBudget::new(16 << 20, Duration::from_secs(1));
        let text = format!("[{}0]", "0,".repeat(100_000));
        let held = HeldValue::parse(text.as_bytes(), &memory).await.unwrap();
        assert!(memory.used_bytes() > 1 << 20, "the values are counted");
        let held = held.map(|value| serde_json::json!({ "structuredContent": value }));
        assert!(memory.used_bytes() > 1 << 20, "what is made of them too");
        let text = held.write(|value| value.to_string());
        assert!(text.len() > 200_000 && memory.used_bytes() == 0);
    }
}
