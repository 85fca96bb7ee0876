//! Reasons to reject a bundle. A message names the type, the version, the tag and the earlier
//! bundle.

use std::sync::Arc;

use super::{ID_BYTES_MAX, NESTING_MAX};

/// Why a bundle is rejected. A rejected bundle changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The document is not a bundle.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The bundle contradicts itself or an earlier bundle.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// The bundle is nested too deeply.
    #[error("the bundle nests deeper than {NESTING_MAX} levels at byte {offset}")]
    TooDeep {
        /// Where the first level beyond the limit begins.
        offset: usize,
    },
}

/// Why a document is not a bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON.
    #[error("the bundle is not JSON: {what} at byte {offset}")]
    Json {
        /// Where.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// The bundle is addressed by one id and contains another.
    #[error("the bundle is addressed as `{addressed}` and its bundle_id is `{contained}`")]
    IdMismatch {
        /// The id of the request.
        addressed: String,
        /// The id in the document.
        contained: String,
    },
    /// A part of the document has the wrong type or value.
    #[error("{at} must be {expected}")]
    Part {
        /// Which part, as a path of keys.
        at: String,
        /// The allowed values.
        expected: &'static str,
    },
    /// A version that is not a whole number from 1 to 2^32 - 1 in decimal without leading zeros.
    #[error(
        "type {type_id} version `{version}` is not a version: versions are whole numbers from 1 on"
    )]
    Version {
        /// The type.
        type_id: String,
        /// The key in place of a version.
        version: String,
    },
    /// A tag that is not a whole number.
    #[error("type {type_id} version {version} tag `{tag}` is not a tag: tags are whole numbers")]
    Tag {
        /// The type.
        type_id: String,
        /// The version.
        version: u32,
        /// The key in place of a tag.
        tag: String,
    },
    /// An id of a bundle, type or enum, a name or a label that is empty or too long.
    #[error("{at} must have 1 to {ID_BYTES_MAX} bytes, not {bytes}")]
    Length {
        /// Which part.
        at: String,
        /// How long it is.
        bytes: usize,
    },
}

/// How a bundle contradicts itself or an earlier bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A JSON key occurs twice in one object.
    #[error("the key `{key}` occurs twice in one object, again at byte {offset}")]
    DuplicateKey {
        /// The key.
        key: Arc<str>,
        /// Where it occurs again.
        offset: usize,
    },
    /// The bundle's id was published with other content.
    #[error("bundle `{bundle}` is already published with other content (ETag {etag})")]
    OtherContent {
        /// The bundle.
        bundle: Arc<str>,
        /// The published content's hash.
        etag: Arc<str>,
    },
    /// A published version is described differently.
    #[error(
        "type {type_id} version {version} differs from what bundle `{bundle}` published: publish a new version"
    )]
    VersionChanged {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The bundle that published it.
        bundle: Arc<str>,
    },
    /// A new version is not above the known ones.
    #[error(
        "type {type_id} version {version} is not above version {latest}, published by bundle `{bundle}`"
    )]
    VersionRegression {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The highest version that is known.
        latest: u32,
        /// The bundle that published that.
        bundle: Arc<str>,
    },
    /// A tag with leading zeros.
    #[error(
        "type {type_id} version {version} tag `{tag}` is another spelling of a tag: write it without leading zeros"
    )]
    TagSpelling {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The spelling.
        tag: Arc<str>,
    },
    /// A tag's frozen part changed.
    #[error(
        "type {type_id} version {version} tag {tag} is {is} and was {was} in bundle `{bundle}`: allocate a new tag"
    )]
    TagRetyped {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The tag.
        tag: u64,
        /// The frozen part as it was published, canonical.
        was: Arc<str>,
        /// The frozen part as it is now, canonical.
        is: Arc<str>,
        /// The bundle that published the tag.
        bundle: Arc<str>,
    },
    /// A retired tag came back.
    #[error(
        "type {type_id} version {version} tag {tag} was retired in version {retired} by bundle `{bundle}`: tags are never reused"
    )]
    TagReused {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The tag.
        tag: u64,
        /// The version that retired it.
        retired: u32,
        /// The bundle with that version.
        bundle: Arc<str>,
    },
    /// Two live fields of one version have one name.
    #[error("type {type_id} version {version} tags {first} and {second} are both named `{name}`")]
    NameTwice {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The name.
        name: Arc<str>,
        /// The lower tag.
        first: u64,
        /// The higher tag.
        second: u64,
    },
    /// A field names a type that is not published.
    #[error(
        "type {type_id} version {version} tag {tag} names the type `{name}`, which is in neither this bundle nor an earlier one"
    )]
    UnknownType {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The tag.
        tag: u64,
        /// The unknown name.
        name: Arc<str>,
    },
    /// A field names an enum that is not published.
    #[error(
        "type {type_id} version {version} tag {tag} names the enum `{name}`, which is in neither this bundle nor an earlier one"
    )]
    UnknownEnum {
        /// The type.
        type_id: Arc<str>,
        /// The version.
        version: u32,
        /// The tag.
        tag: u64,
        /// The unknown name.
        name: Arc<str>,
    },
    /// An enum's number has another label.
    #[error("enum {enum_id} number {number} is `{is}` and was `{was}` in bundle `{bundle}`")]
    LabelChanged {
        /// The enum.
        enum_id: Arc<str>,
        /// The number.
        number: i128,
        /// The published label.
        was: Arc<str>,
        /// The label now.
        is: Arc<str>,
        /// The bundle that published the label.
        bundle: Arc<str>,
    },
    /// An enum's number lost its label.
    #[error("enum {enum_id} lost number {number}, `{label}` in bundle `{bundle}`")]
    LabelLost {
        /// The enum.
        enum_id: Arc<str>,
        /// The number.
        number: i128,
        /// The published label.
        label: Arc<str>,
        /// The bundle that published the label.
        bundle: Arc<str>,
    },
}
