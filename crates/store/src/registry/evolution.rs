//! Evolution: which changes a bundle may make to the published types and enums.
//!
//! The rules: a published version never changes; new versions have higher numbers; a tag keeps its
//! type for ever and is never used again after it was retired; an enum never loses or changes a
//! label. `plan_bundle` checks all rules before anything changes, so a rejected bundle leaves the
//! registry as it was.
//!
//! Worked example: version 1 of `Msg` has tags 1 and 2. Version 2 has tags 1 and 3. So tag 2 is
//! retired in version 2, and a version 3 that uses tag 2 is rejected (`TagReused`).
//!
//! A plan costs the size of the bundle plus, for each type in it, the fields of the newest version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turnkeep_types::TypeRef;

use super::Registry;
use super::descriptor::{Field, Kind, Shape, TypeVersion};
use super::document::{Document, ParsedType, ParsedVersion};
use super::error::Conflict;
use super::shared_map::SharedMap;

/// All versions of one type and the history of its tags. The newest version has exactly the tags
/// that are not retired.
#[derive(Debug, Clone, Default)]
pub(super) struct TypeHistory {
    pub(super) versions: SharedMap<u32, Arc<TypeVersion>>,
    tags: SharedMap<u64, TagHistory>,
}

/// The history of one tag of a type.
#[derive(Debug, Clone)]
struct TagHistory {
    /// The canonical form of the parts that never change; `None` for a tag that was never live.
    frozen: Option<Arc<str>>,
    /// The bundle that published the frozen part.
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
    /// The lowest number of each label.
    numbers: BTreeMap<Arc<str>, i128>,
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

    /// All labels, by number ascending.
    pub(crate) fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.labels.values().map(|label| &*label.text)
    }

    /// The lowest number with a label.
    pub(crate) fn number(&self, text: &str) -> Option<i128> {
        self.numbers.get(text).copied()
    }
}

/// The changes that a valid bundle makes.
#[derive(Debug)]
pub(super) struct RegistryPlan {
    pub(super) types: Vec<(Arc<str>, TypeHistory)>,
    pub(super) enums: Vec<(Arc<str>, EnumTable)>,
}

/// Checks a bundle against the published bundles and returns the changes.
pub(super) fn plan_bundle(known: &Registry, document: &Document) -> Result<RegistryPlan, Conflict> {
    let Document {
        bundle_id,
        types,
        enums,
        ..
    } = document;
    let mut plan = RegistryPlan {
        types: Vec::new(),
        enums: plan_enums(known, bundle_id, enums)?,
    };
    let names = Names {
        known,
        types: types.iter().map(|parsed| &*parsed.id).collect(),
        enums,
    };
    // All names before any history: types of one bundle may name each other in any order.
    for parsed in types {
        names.reject_unresolved(parsed)?;
    }
    for parsed in types {
        let history = known.types.get(&parsed.id).cloned().unwrap_or_default();
        plan.types
            .push((Arc::clone(&parsed.id), history.extend(bundle_id, parsed)?));
    }
    Ok(plan)
}

type ParsedLabels = BTreeMap<i128, Arc<str>>;
type ParsedEnums = BTreeMap<Arc<str>, ParsedLabels>;

fn plan_enums(
    known: &Registry,
    bundle: &Arc<str>,
    enums: &ParsedEnums,
) -> Result<Vec<(Arc<str>, EnumTable)>, Conflict> {
    let mut planned = Vec::new();
    for (id, labels) in enums {
        let table = known.enums.get(id);
        if let Some(table) = table {
            table.reject_changed(id, labels)?;
        }
        let table = table
            .map(|table| EnumTable::clone(table))
            .unwrap_or_default();
        planned.push((Arc::clone(id), table.extend(bundle, labels)));
    }
    Ok(planned)
}

impl EnumTable {
    /// Returns an error for the first label that is missing or different. Stopping there keeps the
    /// cost proportional to the bundle, however large the published enum is.
    fn reject_changed(&self, id: &Arc<str>, labels: &ParsedLabels) -> Result<(), Conflict> {
        for (number, known) in &self.labels {
            let (enum_id, number, bundle) = (Arc::clone(id), *number, Arc::clone(&known.bundle));
            let was = Arc::clone(&known.text);
            match labels.get(&number) {
                Some(label) if *label == was => {}
                Some(label) => {
                    let is = Arc::clone(label);
                    return Err(Conflict::LabelChanged {
                        enum_id,
                        number,
                        was,
                        is,
                        bundle,
                    });
                }
                None => {
                    return Err(Conflict::LabelLost {
                        enum_id,
                        number,
                        label: was,
                        bundle,
                    });
                }
            }
        }
        Ok(())
    }

    fn extend(mut self, bundle: &Arc<str>, labels: &ParsedLabels) -> Self {
        for (number, text) in labels {
            let label = || Label {
                text: Arc::clone(text),
                bundle: Arc::clone(bundle),
            };
            // A known label keeps the bundle that published it first.
            self.labels.entry(*number).or_insert_with(label);
            let lowest = self.numbers.entry(Arc::clone(text)).or_insert(*number);
            *lowest = (*lowest).min(*number);
        }
        self
    }
}

/// The type and enum names that a bundle may use: its own and those of earlier bundles.
struct Names<'a> {
    known: &'a Registry,
    types: BTreeSet<&'a str>,
    enums: &'a ParsedEnums,
}

impl Names<'_> {
    fn reject_unresolved(&self, parsed: &ParsedType) -> Result<(), Conflict> {
        for (version, field) in parsed.fields() {
            // A walk cannot stop early. The last unresolved name of the field is reported.
            let mut refused = None;
            field.shape.walk(&mut |shape| {
                let (type_id, tag) = (Arc::clone(&parsed.id), field.tag);
                if let Some(name) = self.unresolved_type(shape) {
                    refused = Some(Conflict::UnknownType {
                        type_id,
                        version,
                        tag,
                        name,
                    });
                } else if let Some(name) = self.unresolved_enum(shape) {
                    refused = Some(Conflict::UnknownEnum {
                        type_id,
                        version,
                        tag,
                        name,
                    });
                }
            });
            refused.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    fn unresolved_type(&self, shape: &Shape) -> Option<Arc<str>> {
        let Kind::Type(name) = &shape.kind else {
            return None;
        };
        let resolves = self.types.contains(&**name) || self.known.types.get(name).is_some();
        (!resolves).then(|| Arc::clone(name))
    }

    fn unresolved_enum(&self, shape: &Shape) -> Option<Arc<str>> {
        let name = shape.enum_id.as_ref()?;
        let resolves = self.enums.contains_key(name) || self.known.enums.get(name).is_some();
        (!resolves).then(|| Arc::clone(name))
    }
}

impl ParsedType {
    fn fields(&self) -> impl Iterator<Item = (u32, &Field)> {
        self.versions.iter().flat_map(|(version, parsed)| {
            parsed
                .described
                .fields
                .iter()
                .map(move |field| (*version, field))
        })
    }
}

impl TypeHistory {
    /// The newest version.
    pub(super) fn latest(&self) -> Option<&Arc<TypeVersion>> {
        self.versions.last().map(|(_, version)| version)
    }

    fn extend(mut self, bundle: &Arc<str>, parsed: &ParsedType) -> Result<Self, Conflict> {
        // The newest version before this bundle. The bundle's own versions ascend by themselves.
        let floor = self.latest().cloned();
        for (version, parsed) in &parsed.versions {
            // A bundle may repeat published versions, if they are unchanged.
            if let Some(known) = self.versions.get(version) {
                reject_changed(known, &parsed.described)?;
                continue;
            }
            if let Some(latest) = floor
                .as_ref()
                .filter(|latest| latest.type_ref.version > *version)
            {
                return Err(Conflict::VersionRegression {
                    type_id: Arc::clone(&latest.type_ref.id),
                    version: *version,
                    latest: latest.type_ref.version,
                    bundle: Arc::clone(&latest.bundle_id),
                });
            }
            self.add_version(bundle, parsed)?;
        }
        Ok(self)
    }

    fn add_version(&mut self, bundle: &Arc<str>, parsed: &ParsedVersion) -> Result<(), Conflict> {
        let ParsedVersion {
            described,
            tombstones,
            ..
        } = parsed;
        let type_ref = &described.type_ref;
        for field in &described.fields {
            self.reject_reused(type_ref, field.tag)?;
            self.freeze_tag(type_ref, bundle, field.tag, Some(&field.frozen))?;
        }
        for (tag, frozen) in tombstones {
            self.freeze_tag(type_ref, bundle, *tag, frozen.as_ref())?;
        }
        // Before the version is inserted: the tags to retire are found in the version before it.
        for tag in self.tags_to_retire(parsed) {
            self.retire_tag(tag, type_ref.version, bundle);
        }
        self.versions
            .insert(type_ref.version, Arc::clone(described));
        Ok(())
    }

    fn reject_reused(&self, type_ref: &TypeRef, tag: u64) -> Result<(), Conflict> {
        match self
            .tags
            .get(&tag)
            .and_then(|history| history.retired.as_ref())
        {
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

    /// Compares a tag's frozen part with the published one, or records the first one.
    fn freeze_tag(
        &mut self,
        type_ref: &TypeRef,
        bundle: &Arc<str>,
        tag: u64,
        frozen: Option<&Arc<str>>,
    ) -> Result<(), Conflict> {
        let Some(history) = self.tags.get_mut(&tag) else {
            let fresh = TagHistory {
                frozen: frozen.cloned(),
                bundle: Arc::clone(bundle),
                retired: None,
            };
            self.tags.insert(tag, fresh);
            return Ok(());
        };
        match (&history.frozen, frozen) {
            // A nested value is read by the newest version of its type, so a tag must keep its type.
            (Some(was), Some(is)) if was != is => Err(Conflict::TagRetyped {
                type_id: Arc::clone(&type_ref.id),
                version: type_ref.version,
                tag,
                was: Arc::clone(was),
                is: Arc::clone(is),
                bundle: Arc::clone(&history.bundle),
            }),
            // A tag that was only ever a tombstone gets its type from the first bundle that names
            // one.
            (None, Some(is)) => {
                history.frozen = Some(Arc::clone(is));
                history.bundle = Arc::clone(bundle);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The tags that a new version may retire: those of the newest version and its own tombstones.
    /// All other tags were retired before, so they need no look.
    fn retirement_candidates(&self, parsed: &ParsedVersion) -> impl Iterator<Item = u64> {
        let before = self.latest().map_or(&[][..], |latest| &latest.fields);
        let tombstones = parsed.tombstones.iter().map(|(tag, _)| *tag);
        before.iter().map(|field| field.tag).chain(tombstones)
    }

    fn tags_to_retire(&self, parsed: &ParsedVersion) -> Vec<u64> {
        self.retirement_candidates(parsed)
            .filter(|tag| parsed.described.field(*tag).is_none())
            .collect()
    }

    fn retire_tag(&mut self, tag: u64, version: u32, bundle: &Arc<str>) {
        if let Some(history) = self.tags.get_mut(&tag) {
            // A tombstone may be repeated in later versions. The first one retired the tag.
            history.retired.get_or_insert_with(|| Retired {
                version,
                bundle: Arc::clone(bundle),
            });
        }
    }
}

fn reject_changed(known: &TypeVersion, described: &TypeVersion) -> Result<(), Conflict> {
    // Digests of the canonical form: spelling, white space and key order may differ.
    if known.digest == described.digest {
        return Ok(());
    }
    Err(Conflict::VersionChanged {
        type_id: Arc::clone(&known.type_ref.id),
        version: known.type_ref.version,
        bundle: Arc::clone(&known.bundle_id),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::registry::ParsedBundle;

    fn parsed(versions: &Value, enums: &Value) -> ParsedBundle {
        let bundle = json!({ "registry_version": 1, "bundle_id": "b", "enums": enums,
            "types": { "T": { "versions": versions } } });
        ParsedBundle::parse("b", bundle.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn retiring_tags_costs_what_the_bundle_has_of_them_however_many_versions_follow() {
        const TAGS: usize = 500;
        let field = |tag| {
            (
                format!("{tag}"),
                json!({ "name": format!("n{tag}"), "type": "u8" }),
            )
        };
        let many: Map<String, Value> = (0..TAGS).map(field).collect();
        let mut versions =
            json!({ "1": { "fields": many }, "2": { "fields": { "0": field(0).1 } } });
        for version in 3..1000 {
            versions[version.to_string()] = json!({ "fields": { "7": { "tombstone": true } } });
        }
        let bundle = parsed(&versions, &json!({}));
        let (mut history, mut steps, mut descriptors) = (TypeHistory::default(), 0, 0);
        let [parsed] = &bundle.document().types[..] else {
            panic!()
        };
        for version in parsed.versions.values() {
            steps += history.retirement_candidates(version).count();
            descriptors += version.described.fields.len() + version.tombstones.len();
            history.add_version(bundle.id(), version).unwrap();
        }
        assert!(
            steps <= descriptors,
            "{steps} steps for {descriptors} descriptors"
        );
        let retired = |tag: u64| {
            history
                .tags
                .get(&tag)
                .unwrap()
                .retired
                .as_ref()
                .map(|retired| retired.version)
        };
        assert_eq!(
            (retired(0), retired(7), retired(499)),
            (Some(3), Some(2), Some(2))
        );
    }

    #[test]
    fn a_label_stands_for_its_lowest_number_whenever_that_came() {
        let extended = |table: EnumTable, labels: &[(i128, &str)]| {
            table.extend(
                &"b".into(),
                &labels
                    .iter()
                    .map(|(number, text)| (*number, (*text).into()))
                    .collect(),
            )
        };
        let first = extended(EnumTable::default(), &[(5, "a"), (7, "a"), (8, "b")]);
        assert_eq!(
            (first.number("a"), first.number("b"), first.number("c")),
            (Some(5), Some(8), None)
        );
        let second = extended(first, &[(-1, "b"), (5, "a"), (7, "a"), (8, "b"), (9, "a")]);
        assert_eq!(
            (second.number("a"), second.number("b")),
            (Some(5), Some(-1))
        );
        assert_eq!((second.label(8), second.label(9)), (Some("b"), Some("a")));
    }

    #[test]
    fn an_enum_that_lost_its_labels_is_refused_at_the_first() {
        let labels: ParsedLabels = (0..1000).map(|number| (number, "x".into())).collect();
        let table = EnumTable::default().extend(&"b".into(), &labels);
        let refused = table.reject_changed(&"E".into(), &BTreeMap::new());
        assert!(
            matches!(refused, Err(Conflict::LabelLost { number: 0, .. })),
            "{refused:?}"
        );
    }
}
