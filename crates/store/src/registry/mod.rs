//! The type registry: descriptors by type id and version, and the rules by which they may evolve.
//!
//! A registry is an immutable value that is cheap to clone. It depends on the accepted bundles and
//! their order, and on nothing else: the same bundles always give the same registry and the same
//! rejections, so replay decides as the live store did. A rejected bundle changes nothing.

mod canonical;
mod descriptor;
mod document;
mod error;
mod evolution;
#[cfg(any(test, feature = "dev"))]
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

/// The longest id, field name or label. Not configurable: replay must decide as the live store did.
const ID_BYTES_MAX: usize = 512;

/// The deepest nesting of a bundle. Not configurable, for the same reason.
const NESTING_MAX: usize = 128;

/// All bundles accepted so far, as one immutable value.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    /// By their number in the order of publication.
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
    /// Its number in the order of publication, from 0.
    pub order: usize,
    /// The bytes as first published.
    pub bytes: Bytes,
    /// The BLAKE3 of its canonical form, in hex.
    pub etag: String,
}

/// The result of checking a valid bundle.
#[derive(Debug)]
pub enum Checked {
    /// A bundle with the same id and content is published.
    Identical,
    /// The bundle is new. This is the registry with it.
    New(Registry),
}

impl Registry {
    /// Parses a bundle that is addressed as `id` and checks it. Changes nothing.
    pub fn check(&self, id: &str, json: &[u8]) -> Result<Checked, BundleError> {
        self.check_parsed(&ParsedBundle::parse(id, json)?)
    }

    /// Checks a parsed bundle. Changes nothing.
    pub fn check_parsed(&self, bundle: &ParsedBundle) -> Result<Checked, BundleError> {
        let mut next = self.clone();
        Ok(if next.put_parsed(bundle)? {
            Checked::New(next)
        } else {
            Checked::Identical
        })
    }

    /// Adds a bundle that is addressed as `id` and returns whether it was new. Clones of the
    /// registry do not change.
    pub fn put(&mut self, id: &str, json: &[u8]) -> Result<bool, BundleError> {
        self.put_parsed(&ParsedBundle::parse(id, json)?)
    }

    /// Adds a parsed bundle and returns whether it was new.
    pub fn put_parsed(&mut self, parsed: &ParsedBundle) -> Result<bool, BundleError> {
        let id = parsed.id();
        if let Some(known) = self.bundle(id) {
            // The canonical form counts, so white space and key order may differ.
            if known.etag == parsed.etag() {
                return Ok(false);
            }
            let (bundle, etag) = (Arc::clone(id), known.etag.as_str().into());
            return Err(Conflict::OtherContent { bundle, etag }.into());
        }
        let plan = self.plan_bundle(parsed)?;
        self.apply_plan(plan);
        let order = self.bundles.len();
        let bundle = Arc::new(Bundle {
            id: Arc::clone(id),
            order,
            bytes: parsed.bytes().clone(),
            etag: parsed.etag().to_owned(),
        });
        self.bundle_bytes += bundle.bytes.len() as u64;
        self.bundles.insert(order, Arc::clone(&bundle));
        self.by_id.insert(Arc::clone(id), bundle);
        Ok(true)
    }

    fn plan_bundle(&self, parsed: &ParsedBundle) -> Result<evolution::RegistryPlan, BundleError> {
        // The bundle was parsed without a registry. If an alternative spelling such as `int32` is
        // also the id of a published type, the name means that type, so the bundle is parsed again.
        if parsed.has_other_spellings() && self.has_types_named_like_spellings() {
            let is_known_type = |name: &str| self.has_type(name);
            let document = document::parse(parsed.id(), parsed.bytes(), is_known_type)?;
            return Ok(evolution::plan_bundle(self, &document)?);
        }
        Ok(evolution::plan_bundle(self, parsed.document())?)
    }

    fn has_type(&self, id: &str) -> bool {
        self.types.get(id).is_some()
    }

    fn has_types_named_like_spellings(&self) -> bool {
        OTHER_SPELLINGS.iter().any(|name| self.has_type(name))
    }

    fn apply_plan(&mut self, plan: evolution::RegistryPlan) {
        for (id, history) in plan.types {
            self.types.insert(id, history);
        }
        for (id, table) in plan.enums {
            self.enums.insert(id, Arc::new(table));
        }
    }

    /// The bytes of all bundles together.
    pub fn bundle_bytes(&self) -> u64 {
        self.bundle_bytes
    }

    /// The bundle with this id.
    pub fn bundle(&self, id: &str) -> Option<&Bundle> {
        self.by_id.get(id).map(|bundle| &**bundle)
    }

    /// The bundle with this number in the order of publication.
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

/// Iterates over the bundles in order of publication. `nth` takes one lookup.
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
