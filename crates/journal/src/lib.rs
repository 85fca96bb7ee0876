//! The log.
#![allow(missing_docs)]
pub trait Storage: Send + Sync {}
#[derive(Debug, Clone)]
pub struct View(std::sync::Arc<[u8]>);
impl std::ops::Deref for View { type Target = [u8]; fn deref(&self) -> &[u8] { &self.0 } }
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct OpenError;
