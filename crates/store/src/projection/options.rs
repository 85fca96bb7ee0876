//! The reader's options for projection.
//!
//! The defaults suit a browser: no number is one that JavaScript would round. An unknown value of
//! an option is an error that lists the allowed values.

use std::str::FromStr;

use turnkeep_types::TypeRef;

/// An option was given a value that it does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a value of {option}: expected {}", .legal.join(", "))]
pub struct UnknownValue {
    /// The option's name, as in a query.
    pub option: &'static str,
    /// The given value.
    pub given: String,
    /// The allowed values.
    pub legal: &'static [&'static str],
}

/// Defines an enum with a text form for each variant.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident = $option:literal { $($(#[$variant_doc:meta])* $variant:ident = $text:literal $(| $other:literal)*,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl FromStr for $name {
            type Err = UnknownValue;

            fn from_str(text: &str) -> Result<Self, UnknownValue> {
                match text {
                    $($text $(| $other)* => Ok(Self::$variant),)+
                    _ => Err(UnknownValue {
                        option: $option,
                        given: text.to_owned(),
                        legal: &[$($text $(, $other)*),+],
                    }),
                }
            }
        }
    };
}

choice! {
    /// Where the descriptor comes from.
    HintMode = "type_hint_mode" {
        /// From the type that the writer declared.
        #[default]
        Inherit = "inherit",
        /// From a version that the reader names.
        Explicit = "explicit",
        /// From the newest version of the declared type.
        Latest = "latest",
    }
}

choice! {
    /// Whether entries that no descriptor names are shown.
    IncludeUnknown = "include_unknown" {
        /// They are left out.
        #[default]
        No = "0" | "false",
        /// They are shown in a member of their own.
        Yes = "1" | "true",
    }
}

choice! {
    /// How bytes are shown.
    BytesRender = "bytes_render" {
        /// In base64, with padding.
        #[default]
        Base64 = "base64",
        /// In lower-case hex.
        Hex = "hex",
        /// As the number of bytes.
        LenOnly = "len_only",
    }
}

choice! {
    /// How whole numbers of 64 bits are shown.
    U64Format = "u64_format" {
        /// As strings.
        #[default]
        String = "string",
        /// As exact numbers.
        Number = "number",
    }
}

choice! {
    /// How numbers with an enum are shown.
    EnumRender = "enum_render" {
        /// As the label, or the number if it has none.
        #[default]
        Label = "label",
        /// As the number.
        Number = "number",
        /// As an object with label and value.
        Both = "both",
    }
}

choice! {
    /// How times are shown.
    TimeRender = "time_render" {
        /// In RFC 3339, UTC, with milliseconds.
        #[default]
        Iso = "iso",
        /// In milliseconds since the Unix epoch.
        UnixMs = "unix_ms",
    }
}

/// Which descriptor to use for a payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TypeHint {
    /// That of the declared type and version.
    #[default]
    Inherit,
    /// The newest of the declared type.
    Latest,
    /// This one. The payload must be declared with the same type id or with none.
    Explicit(TypeRef),
}

/// Why a query's type hint is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HintError {
    /// The mode is unknown.
    #[error(transparent)]
    UnknownMode(#[from] UnknownValue),
    /// The query names a type, but its mode takes none.
    #[error("as_type_id and as_type_version need type_hint_mode=explicit")]
    NotExplicit,
    /// The explicit mode lacks the type or the version.
    #[error("type_hint_mode=explicit needs both as_type_id and as_type_version")]
    Incomplete,
}

impl TypeHint {
    /// Combines the three values of a query.
    pub fn parse(
        mode: Option<&str>,
        as_type_id: Option<&str>,
        as_type_version: Option<u32>,
    ) -> Result<Self, HintError> {
        let mode = mode.map_or(Ok(HintMode::default()), str::parse)?;
        match (mode, as_type_id, as_type_version) {
            (HintMode::Explicit, Some(id), Some(version)) if !id.is_empty() => {
                Ok(Self::Explicit(TypeRef::new(id, version)))
            }
            (HintMode::Explicit, ..) => Err(HintError::Incomplete),
            (HintMode::Inherit, None, None) => Ok(Self::Inherit),
            (HintMode::Latest, None, None) => Ok(Self::Latest),
            _ => Err(HintError::NotExplicit),
        }
    }
}

/// How to show a payload.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectionOptions {
    /// Which descriptor to use.
    pub hint: TypeHint,
    /// Whether entries that no descriptor names are shown.
    pub include_unknown: IncludeUnknown,
    /// How bytes are shown.
    pub bytes_render: BytesRender,
    /// How whole numbers of 64 bits are shown.
    pub u64_format: U64Format,
    /// How numbers with an enum are shown.
    pub enum_render: EnumRender,
    /// How times are shown.
    pub time_render: TimeRender,
}
