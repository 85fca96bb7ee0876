//! A bundle that was read once, wherever that is done, to be checked where bundles have their
//! order.
//!
//! Reading, canonical form and hash cost the most and need no registry, so that the thread that
//! submits a bundle can pay for them. What is left for the check is to compare the bundle with what
//! is known.

use std::sync::Arc;

use bytes::Bytes;

use super::document::{self, Document};
use super::error::BundleError;

/// A bundle that is well-formed by itself. Clones share it.
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
    /// Reads a bundle that is addressed as `id`. It keeps a copy of the bytes and nothing around
    /// them.
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

    /// Whether it has spellings that older versions of this program did not know.
    pub(crate) fn has_other_spellings(&self) -> bool {
        self.0.document.has_other_spellings
    }

    pub(super) fn document(&self) -> &Document {
        &self.0.document
    }
}
