//! Evolution: what a bundle may add to what is known.
//!
//! A plan is made first and carried out only if every rule holds, so a refused bundle leaves no trace.
//! Two histories are kept: per type the frozen part and the retirement of every tag that ever was, per
//! enum the bundle of every label. Making a plan costs the bundle and the histories of what it names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turnkeep_types::TypeRef;

use super::Registry;
use super::descriptor::{Field, Kind, Shape, TypeVersion};
use super::document::{Document, ParsedType, ParsedVersion};
use super::error::Conflict;

/// Everything that is known of one type.
#[derive(Debug, Clone, Default)]
pub(super) struct TypeHistory {
    pub(super) versions: BTreeMap<u32, Arc<TypeVersion>>,
    tags: BTreeMap<u64, TagHistory>,
}

#[derive(Debug, Clone)]
struct TagHistory {
    /// Absent for a tag that was never live.
    frozen: Option<Arc<str>>,
    /// The bundle with the frozen part.
    bundle: Arc<str>,
    retired: Option<Retired>,
}

#[derive(Debug, Clone)]
struct Retired {
    version: u32,
    bundle: Arc<str>,
}

/// The labels of an enum by number.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnumTable {
    pub(super) labels: BTreeMap<i128, Label>,
}

#[derive(Debug, Clone)]
pub(super) struct Label {
    pub(super) text: Arc<str>,
    bundle: Arc<str>,
}

impl EnumTable {
    /// The label of a number.
    pub(crate) fn label(&self, number: i128) -> Option<&str> {
        self.labels.get(&number).map(|label| &*label.text)
    }

    /// The lowest number with a label.
    pub(crate) fn number(&self, text: &str) -> Option<i128> {
        self.labels.iter().find(|(_, label)| &*label.text == text).map(|(number, _)| *number)
    }
}

/// What a legal bundle changes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) types: Vec<(Arc<str>, TypeHistory)>,
    pub(super) enums: Vec<(Arc<str>, EnumTable)>,
}

/// Checks a bundle against what is known.
pub(super) fn plan(known: &Registry, document: Document) -> Result<Plan, Conflict> {
    let Document { bundle_id, types, enums, .. } = document;
    let enums = plan_enums(known, &bundle_id, enums)?;
    let names = Names {
        known,
        types: types.iter().map(|parsed| &*parsed.id).collect(),
        enums: enums.iter().map(|(id, _)| &**id).collect(),
    };
    types.iter().try_for_each(|parsed| names.refuse_unresolved(parsed))?;
    let mut planned = Vec::new();
    for parsed in types {
        let history = known.types.get(&parsed.id).map(|history| TypeHistory::clone(history));
        let id = Arc::clone(&parsed.id);
        planned.push((id, history.unwrap_or_default().extend(&bundle_id, parsed)?));
    }
    Ok(Plan { types: planned, enums })
}

type ParsedEnums = BTreeMap<Arc<str>, BTreeMap<i128, Arc<str>>>;

fn plan_enums(
    known: &Registry,
    bundle: &Arc<str>,
    enums: ParsedEnums,
) -> Result<Vec<(Arc<str>, EnumTable)>, Conflict> {
    let extend = |(id, labels): (Arc<str>, BTreeMap<i128, Arc<str>>)| {
        let table = known.enums.get(&id).map(|table| EnumTable::clone(table)).unwrap_or_default();
        Ok((Arc::clone(&id), table.extend(&id, bundle, labels)?))
    };
    enums.into_iter().map(extend).collect()
}

impl EnumTable {
    fn extend(
        mut self,
        id: &Arc<str>,
        bundle: &Arc<str>,
        labels: BTreeMap<i128, Arc<str>>,
    ) -> Result<Self, Conflict> {
        for (number, known) in &self.labels {
            let (enum_id, number, bundle) = (Arc::clone(id), *number, Arc::clone(&known.bundle));
            match labels.get(&number) {
                Some(label) if *label == known.text => {}
                Some(label) => {
                    let (was, is) = (Arc::clone(&known.text), Arc::clone(label));
                    return Err(Conflict::LabelChanged { enum_id, number, was, is, bundle });
                }
                None => {
                    return Err(Conflict::LabelLost {
                        enum_id,
                        number,
                        label: Arc::clone(&known.text),
                        bundle,
                    });
                }
            }
        }
        for (number, text) in labels {
            self.labels.entry(number).or_insert_with(|| Label { text, bundle: Arc::clone(bundle) });
        }
        Ok(self)
    }
}

/// The names that a bundle may use: its own and those of earlier bundles.
struct Names<'a> {
    known: &'a Registry,
    types: BTreeSet<&'a str>,
    enums: BTreeSet<&'a str>,
}

impl Names<'_> {
    fn refuse_unresolved(&self, parsed: &ParsedType) -> Result<(), Conflict> {
        for (version, field) in parsed.fields() {
            let mut refused = None;
            field.shape.walk(&mut |shape| {
                let (type_id, tag) = (Arc::clone(&parsed.id), field.tag);
                if let Some(name) = self.unresolved_type(shape) {
                    refused = Some(Conflict::UnknownType { type_id, version, tag, name });
                } else if let Some(name) = self.unresolved_enum(shape) {
                    refused = Some(Conflict::UnknownEnum { type_id, version, tag, name });
                }
            });
            refused.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn unresolved_type(&self, shape: &Shape) -> Option<Arc<str>> {
        let Kind::Type(name) = &shape.kind else { return None };
        let resolves = self.types.contains(&**name) || self.known.types.contains_key(name);
        (!resolves).then(|| Arc::clone(name))
    }

    fn unresolved_enum(&self, shape: &Shape) -> Option<Arc<str>> {
        let name = shape.enum_id.as_ref()?;
        let resolves = self.enums.contains(&**name) || self.known.enums.contains_key(name);
        (!resolves).then(|| Arc::clone(name))
    }
}

impl ParsedType {
    fn fields(&self) -> impl Iterator<Item = (u32, &Field)> {
        self.versions
            .iter()
            .flat_map(|(version, parsed)| parsed.fields.iter().map(move |field| (*version, field)))
    }
}

impl TypeHistory {
    /// The newest version.
    pub(super) fn latest(&self) -> Option<&Arc<TypeVersion>> {
        self.versions.last_key_value().map(|(_, version)| version)
    }

    fn extend(mut self, bundle: &Arc<str>, parsed: ParsedType) -> Result<Self, Conflict> {
        // Only what was known before the bundle bounds its versions from below; among themselves they ascend.
        let floor = self.latest().cloned();
        for (version, described) in parsed.versions {
            if let Some(known) = self.versions.get(&version) {
                refuse_changed(known, &described)?;
                continue;
            }
            if let Some(latest) = floor.as_ref().filter(|latest| latest.type_ref.version > version) {
                return Err(Conflict::VersionRegression {
                    type_id: Arc::clone(&parsed.id),
                    version,
                    latest: latest.type_ref.version,
                    bundle: Arc::clone(&latest.bundle_id),
                });
            }
            self.add(TypeRef { id: Arc::clone(&parsed.id), version }, bundle, described)?;
        }
        Ok(self)
    }

    fn add(
        &mut self,
        type_ref: TypeRef,
        bundle: &Arc<str>,
        described: ParsedVersion,
    ) -> Result<(), Conflict> {
        for field in &described.fields {
            self.refuse_reused(&type_ref, field.tag)?;
            self.freeze(&type_ref, bundle, field.tag, Some(&field.frozen))?;
        }
        for (tag, frozen) in &described.tombstones {
            self.freeze(&type_ref, bundle, *tag, frozen.as_ref())?;
        }
        self.retire(type_ref.version, bundle, &described);
        let ParsedVersion { fields, published, digest, .. } = described;
        let version = type_ref.version;
        let added = TypeVersion { type_ref, bundle_id: Arc::clone(bundle), fields, published, digest };
        self.versions.insert(version, Arc::new(added));
        Ok(())
    }

    fn refuse_reused(&self, type_ref: &TypeRef, tag: u64) -> Result<(), Conflict> {
        match self.tags.get(&tag).and_then(|history| history.retired.as_ref()) {
            None => Ok(()),
            Some(retired) => Err(Conflict::TagReused {
                type_id: Arc::clone(&type_ref.id),
                version: type_ref.version,
                tag,
                retired: retired.version,
                bundle: Arc::clone(&retired.bundle),
            }),
        }
    }

    /// Compares a tag's frozen part with what it was, or records it.
    fn freeze(
        &mut self,
        type_ref: &TypeRef,
        bundle: &Arc<str>,
        tag: u64,
        frozen: Option<&Arc<str>>,
    ) -> Result<(), Conflict> {
        let fresh = || TagHistory { frozen: None, bundle: Arc::clone(bundle), retired: None };
        let history = self.tags.entry(tag).or_insert_with(fresh);
        match (&history.frozen, frozen) {
            (Some(was), Some(is)) if was != is => Err(Conflict::TagRetyped {
                type_id: Arc::clone(&type_ref.id),
                version: type_ref.version,
                tag,
                was: Arc::clone(was),
                is: Arc::clone(is),
                bundle: Arc::clone(&history.bundle),
            }),
            (None, Some(is)) => {
                history.frozen = Some(Arc::clone(is));
                history.bundle = Arc::clone(bundle);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Retires every tag that the version does not have alive.
    fn retire(&mut self, version: u32, bundle: &Arc<str>, described: &ParsedVersion) {
        let alive = |tag: u64| described.fields.binary_search_by_key(&tag, |field| field.tag).is_ok();
        for (tag, history) in &mut self.tags {
            if history.retired.is_none() && !alive(*tag) {
                history.retired = Some(Retired { version, bundle: Arc::clone(bundle) });
            }
        }
    }
}

fn refuse_changed(known: &TypeVersion, described: &ParsedVersion) -> Result<(), Conflict> {
    if known.digest == described.digest {
        return Ok(());
    }
    Err(Conflict::VersionChanged {
        type_id: Arc::clone(&known.type_ref.id),
        version: known.type_ref.version,
        bundle: Arc::clone(&known.bundle_id),
    })
}
