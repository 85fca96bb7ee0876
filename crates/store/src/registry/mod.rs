//! The type registry: descriptors by type id and version, and the rules by which they may evolve.
//!
//! A registry is an immutable value that is cheap to clone. It is the fold of the bundles accepted
//! so far, in order, and of nothing else: the same bundles give the same registry and the same
//! refusals for ever, which is what lets replay decide again. A refused bundle leaves no trace.

mod canonical;
mod descriptor;
mod document;
mod error;
mod evolution;
pub mod fuzz;
mod json;
mod listing;
mod parsed;
mod shared_map;
mod spelling;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use turnkeep_types::TypeRef;

pub use canonical::canonical;
pub(crate) use canonical::push_string;
pub use descriptor::{Field, IntKind, Kind, MapShape, Semantic, Shape, TypeVersion};
pub(crate) use document::canonical_number;
pub use error::{BundleError, Conflict, Malformed};
pub(crate) use evolution::EnumTable;
use evolution::TypeHistory;
pub use json::{JsonFault, parse as parse_json};
pub use parsed::ParsedBundle;
use shared_map::SharedMap;
use spelling::OTHER_SPELLINGS;

/// The most bytes that an id, a field's name or a label has. Part of the log's meaning, so not
/// configurable.
const ID_BYTES_MAX: usize = 512;

/// The deepest nesting of a bundle. Part of the log's meaning, so not configurable.
const NESTING_MAX: usize = 128;

/// All bundles accepted so far, as one immutable value.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// By their place in the order of publication.
    bundles: SharedMap<usize, Arc<Bundle>>,
    by_id: SharedMap<Arc<str>, Arc<Bundle>>,
    types: SharedMap<Arc<str>, TypeHistory>,
    enums: SharedMap<Arc<str>, Arc<EnumTable>>,
    bundle_bytes: u64,
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
        self.check_parsed(&ParsedBundle::parse(id, json)?)
    }

    /// Checks a bundle that was read before, without changing anything.
    pub fn check_parsed(&self, bundle: &ParsedBundle) -> Result<Checked, BundleError> {
        let mut next = self.clone();
        Ok(if next.put_parsed(bundle)? {
            Checked::New(next)
        } else {
            Checked::Identical
        })
    }

    /// Adds a bundle that is addressed as `id`; says whether it was new. Clones of the registry
    /// keep what they have.
    pub fn put(&mut self, id: &str, json: &[u8]) -> Result<bool, BundleError> {
        self.put_parsed(&ParsedBundle::parse(id, json)?)
    }

    /// Adds a bundle that was read before; says whether it was new.
    pub fn put_parsed(&mut self, parsed: &ParsedBundle) -> Result<bool, BundleError> {
        let id = parsed.id();
        if let Some(known) = self.bundle(id) {
            if known.etag == parsed.etag() {
                return Ok(false);
            }
            let (bundle, etag) = (Arc::clone(id), known.etag.as_str().into());
            return Err(Conflict::OtherContent { bundle, etag }.into());
        }
        let plan = if parsed.has_other_spellings() && self.has_types_named_like_spellings() {
            evolution::plan(
                self,
                &document::parse(id, parsed.bytes(), |name| self.has_type(name))?,
            )?
        } else {
            evolution::plan(self, parsed.document())?
        };
        self.carry_out(plan);
        let (order, etag) = (self.bundles.len(), parsed.etag().to_owned());
        let bundle = Arc::new(Bundle {
            id: Arc::clone(id),
            order,
            bytes: parsed.bytes().clone(),
            etag,
        });
        self.bundle_bytes += bundle.bytes.len() as u64;
        self.bundles.insert(order, Arc::clone(&bundle));
        self.by_id.insert(Arc::clone(id), bundle);
        Ok(true)
    }

    fn has_type(&self, id: &str) -> bool {
        self.types.get(id).is_some()
    }

    fn has_types_named_like_spellings(&self) -> bool {
        OTHER_SPELLINGS.iter().any(|name| self.has_type(name))
    }

    fn carry_out(&mut self, plan: evolution::Plan) {
        plan.types
            .into_iter()
            .for_each(|(id, history)| self.types.insert(id, history));
        plan.enums
            .into_iter()
            .for_each(|(id, table)| self.enums.insert(id, Arc::new(table)));
    }

    /// The bytes of all bundles together.
    pub fn bundle_bytes(&self) -> u64 {
        self.bundle_bytes
    }

    /// The bundle with this id.
    pub fn bundle(&self, id: &str) -> Option<&Bundle> {
        self.by_id.get(id).map(|bundle| &**bundle)
    }

    /// The bundle with this place in the order of publication.
    pub fn bundle_at(&self, order: usize) -> Option<&Bundle> {
        self.bundles.get(&order).map(|bundle| &**bundle)
    }

    /// All bundles in order of publication; putting them into an empty registry gives this one.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &Bundle> {
        Bundles {
            registry: self,
            orders: 0..self.bundles.len(),
        }
    }

    /// The id of the bundle accepted last.
    pub fn last_bundle_id(&self) -> Option<&Arc<str>> {
        self.bundles.last().map(|(_, bundle)| &bundle.id)
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
    pub fn types(
        &self,
    ) -> impl Iterator<Item = (&Arc<str>, impl Iterator<Item = &Arc<TypeVersion>>)> {
        self.types
            .iter()
            .map(|(id, history)| (id, history.versions.iter().map(|(_, version)| version)))
    }

    /// Whether exactly this version of this type is published.
    pub fn knows(&self, type_ref: &TypeRef) -> bool {
        self.descriptor(&type_ref.id, type_ref.version).is_some()
    }

    pub(crate) fn enum_table(&self, id: &str) -> Option<&EnumTable> {
        self.enums.get(id).map(|table| &**table)
    }
}

/// Bundles in order of publication, any of which is found without passing those before it.
struct Bundles<'a> {
    registry: &'a Registry,
    orders: Range<usize>,
}

impl<'a> Iterator for Bundles<'a> {
    type Item = &'a Bundle;

    fn next(&mut self) -> Option<Self::Item> {
        self.registry.bundle_at(self.orders.next()?)
    }

    fn nth(&mut self, n: usize) -> Option<Self::Item> {
        self.registry.bundle_at(self.orders.nth(n)?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.orders.size_hint()
    }
}

impl ExactSizeIterator for Bundles<'_> {}
