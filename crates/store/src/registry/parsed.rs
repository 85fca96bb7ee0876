//! A parsed bundle, ready to be checked against the registry.
//!
//! Parsing and hashing cost the most and need no registry, so the submitting thread does them. The
//! writer's thread only compares the result with the published bundles.

use std::sync::Arc;

use bytes::Bytes;

use super::document::{self, Document};
use super::error::BundleError;

/// A well-formed bundle. Whether it fits the registry is not checked yet. Clones share memory.
#[derive(Debug, Clone)]
pub struct ParsedBundle(Arc<Parsed>);

#[derive(Debug)]
struct Parsed {
    document: Document,
    etag: String,
    bytes: Bytes,
}

impl PartialEq for ParsedBundle {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id() && self.bytes() == other.bytes()
    }
}

impl Eq for ParsedBundle {}

impl ParsedBundle {
    /// Parses a bundle that is addressed as `id`. Copies the bytes, so that it does not keep the
    /// caller's larger buffer alive.
    pub fn parse(id: &str, json: &[u8]) -> Result<Self, BundleError> {
        let document = document::parse(id, json, |_| false)?;
        let etag = document.digest.to_hex().to_string();
        Ok(Self(Arc::new(Parsed {
            document,
            etag,
            bytes: Bytes::copy_from_slice(json),
        })))
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.0.document.bundle_id
    }

    /// The bytes that were read.
    pub fn bytes(&self) -> &Bytes {
        &self.0.bytes
    }

    /// The BLAKE3 of its canonical form, in hex.
    pub fn etag(&self) -> &str {
        &self.0.etag
    }

    /// Whether it uses alternative spellings, which older versions of this program reject.
    pub(crate) fn has_other_spellings(&self) -> bool {
        self.0.document.has_other_spellings
    }

    pub(super) fn document(&self) -> &Document {
        &self.0.document
    }
}
