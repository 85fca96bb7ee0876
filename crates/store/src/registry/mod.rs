//! The type registry: descriptors by type id and version, and the rules by which they may evolve.
//!
//! A registry is an immutable value that is cheap to clone. It is the fold of the bundles accepted so
//! far, in order, and of nothing else: the same bundles give the same registry and the same refusals for
//! ever, which is what lets replay decide again. A refused bundle leaves no trace.

mod canonical;
mod descriptor;
mod document;
mod error;
mod evolution;
pub mod fuzz;
mod json;
mod listing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::TypeRef;

pub(crate) use canonical::push_string;
pub use descriptor::{Field, IntKind, Kind, MapShape, Semantic, Shape, TypeVersion};
pub(crate) use document::canonical_number;
pub use error::{BundleError, Conflict, Malformed};
pub(crate) use evolution::EnumTable;
use evolution::TypeHistory;
pub(crate) use json::parse as parse_json;

/// The most bytes that an id, a field's name or a label has. Part of the log's meaning, so not configurable.
const ID_BYTES_MAX: usize = 512;

/// The deepest nesting of a bundle. Part of the log's meaning, so not configurable.
const NESTING_MAX: usize = 128;

/// All bundles accepted so far, as one immutable value.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// In order of publication.
    bundles: Arc<Vec<Arc<Bundle>>>,
    by_id: Arc<BTreeMap<Arc<str>, Arc<Bundle>>>,
    types: Arc<BTreeMap<Arc<str>, Arc<TypeHistory>>>,
    enums: Arc<BTreeMap<Arc<str>, Arc<EnumTable>>>,
}

/// A bundle that was accepted.
#[derive(Debug)]
pub struct Bundle {
    /// Its id.
    pub id: Arc<str>,
    /// Its place in the order of publication, from 0.
    pub order: usize,
    /// The bytes first published.
    pub bytes: Bytes,
    /// The BLAKE3 of its canonical form, in hex.
    pub etag: String,
}

/// What a legal bundle is.
#[derive(Debug)]
pub enum Checked {
    /// Published before with the same content.
    Identical,
    /// New: the registry that has it.
    New(Registry),
}

impl Registry {
    /// Checks a bundle that is addressed as `id`, without changing anything.
    pub fn check(&self, id: &str, json: &[u8]) -> Result<Checked, BundleError> {
        let mut next = self.clone();
        Ok(if next.put(id, json)? { Checked::New(next) } else { Checked::Identical })
    }

    /// Adds a bundle that is addressed as `id`; says whether it was new. Clones of the registry keep
    /// what they have; a registry that has no clones is extended in place, which makes replay cheap.
    pub fn put(&mut self, id: &str, json: &[u8]) -> Result<bool, BundleError> {
        let document = document::parse(id, json)?;
        let etag = document.digest.to_hex().to_string();
        if let Some(known) = self.bundle(id) {
            if known.etag == etag {
                return Ok(false);
            }
            return Err(Conflict::OtherContent { bundle: id.into(), etag: known.etag.as_str().into() }.into());
        }
        let id = Arc::clone(&document.bundle_id);
        let plan = evolution::plan(self, document)?;
        self.carry_out(plan);
        let bytes = Bytes::copy_from_slice(json);
        let bundle = Arc::new(Bundle { id: Arc::clone(&id), order: self.bundles.len(), bytes, etag });
        Arc::make_mut(&mut self.bundles).push(Arc::clone(&bundle));
        Arc::make_mut(&mut self.by_id).insert(id, bundle);
        Ok(true)
    }

    fn carry_out(&mut self, plan: evolution::Plan) {
        let types = plan.types.into_iter().map(|(id, history)| (id, Arc::new(history)));
        Arc::make_mut(&mut self.types).extend(types);
        let enums = plan.enums.into_iter().map(|(id, table)| (id, Arc::new(table)));
        Arc::make_mut(&mut self.enums).extend(enums);
    }

    /// The bundle with this id.
    pub fn bundle(&self, id: &str) -> Option<&Bundle> {
        self.by_id.get(id).map(|bundle| &**bundle)
    }

    /// All bundles in order of publication; putting them into an empty registry gives this one.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &Bundle> {
        self.bundles.iter().map(|bundle| &**bundle)
    }

    /// The id of the bundle accepted last.
    pub fn last_bundle_id(&self) -> Option<&Arc<str>> {
        self.bundles.last().map(|bundle| &bundle.id)
    }

    /// A published version of a type.
    pub fn descriptor(&self, type_id: &str, version: u32) -> Option<&Arc<TypeVersion>> {
        self.types.get(type_id)?.versions.get(&version)
    }

    /// The newest version of a type.
    pub fn latest(&self, type_id: &str) -> Option<&Arc<TypeVersion>> {
        self.types.get(type_id)?.latest()
    }

    /// All types by id, each with its versions ascending.
    pub fn types(&self) -> impl Iterator<Item = (&Arc<str>, impl Iterator<Item = &Arc<TypeVersion>>)> {
        self.types.iter().map(|(id, history)| (id, history.versions.values()))
    }

    /// Whether exactly this version of this type is published.
    pub fn knows(&self, type_ref: &TypeRef) -> bool {
        self.descriptor(&type_ref.id, type_ref.version).is_some()
    }

    pub(crate) fn enum_table(&self, id: &str) -> Option<&EnumTable> {
        self.enums.get(id).map(|table| &**table)
    }
}
