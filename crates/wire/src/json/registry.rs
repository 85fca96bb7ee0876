//! The registry. The store crate writes this JSON itself; these types document it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

/// Every known type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
pub struct TypeList {
    /// The types, by id.
    pub types: Vec<TypeSummary>,
}

/// A known type.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
pub struct TypeSummary {
    /// The type id.
    pub type_id: String,
    /// The newest version.
    pub latest_version: u32,
    /// Its versions, ascending.
    pub versions: Vec<u32>,
}

/// A type at one version.
#[derive(Debug, Clone, PartialEq, Deserialize, ToSchema)]
pub struct TypeVersion {
    /// The type id.
    pub type_id: String,
    /// The version.
    pub type_version: u32,
    /// The bundle that published it.
    pub bundle_id: String,
    /// Descriptors by tag.
    #[schema(value_type = BTreeMap<String, Object>)]
    pub fields: BTreeMap<String, Value>,
    /// The labels of every enum that the fields name, by enum and number.
    pub enums: BTreeMap<String, BTreeMap<String, String>>,
}
