//! The type registry: descriptors by type id and version, and the rules by which they may evolve.

/// All bundles accepted so far, as one immutable value.
#[derive(Debug, Clone, Default)]
pub struct Registry {}

/// Why a bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Not a bundle.
    #[error("{0}")]
    Malformed(String),
    /// Contradicts what was published before.
    #[error("{0}")]
    Conflict(String),
}
