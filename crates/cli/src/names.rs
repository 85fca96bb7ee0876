//! How a person names things on the command line: a ref, or the bare number where only one kind fits.

use std::str::FromStr;

use turnkeep_types::{BlobHash, ContextId, ObjectRef, TurnId};

/// A context: `ctx:12` or `12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextName(pub(crate) ContextId);

/// A turn: `turn:345` or `345`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnName(pub(crate) TurnId);

/// A turn, or 0 for none: what a head may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadName(pub(crate) Option<TurnId>);

/// A blob: `blob:HASH` or the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobName(pub(crate) BlobHash);

impl FromStr for ContextName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.strip_prefix("ctx:").unwrap_or(text).parse();
        id.map(Self).map_err(|_| "expected a context, such as ctx:12 or 12".to_owned())
    }
}

impl FromStr for TurnName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.strip_prefix("turn:").unwrap_or(text).parse();
        id.map(Self).map_err(|_| "expected a turn, such as turn:345 or 345".to_owned())
    }
}

impl FromStr for HeadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let turn = text.parse::<TurnName>();
        turn.map(|turn| Self(Some(turn.0))).map_err(|error| format!("{error}, or 0 for an empty context"))
    }
}

impl FromStr for BlobName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hash = text.strip_prefix("blob:").unwrap_or(text).parse();
        hash.map(Self)
            .map_err(|_| "expected a blob: 64 lower-case hex digits, with or without blob:".to_owned())
    }
}

/// Reads a ref; a bare hash is a blob.
pub(crate) fn parse_ref(text: &str) -> Result<ObjectRef, String> {
    match text.parse::<BlobHash>() {
        Ok(hash) => Ok(ObjectRef::Blob(hash)),
        Err(_) => text.parse().map_err(|_| "expected ctx:N, turn:N or blob:HASH".to_owned()),
    }
}

/// A label: `KEY=VALUE`; the value may be empty.
pub(crate) fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE, such as agent=demo".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_ref_or_a_bare_number() {
        assert_eq!("ctx:12".parse::<ContextName>(), "12".parse());
        assert_eq!("turn:7".parse::<TurnName>(), "7".parse());
        assert_eq!("0".parse::<HeadName>(), Ok(HeadName(None)));
        for bad in ["", "0", "turn:7", "ctx:0", "x"] {
            assert!(bad.parse::<ContextName>().is_err(), "{bad}");
        }
        for bad in ["", "0", "ctx:7", "-1"] {
            assert!(bad.parse::<TurnName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_label_has_a_key_and_a_value() {
        assert_eq!(parse_label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(parse_label("a="), Ok(("a".into(), String::new())));
        assert!(parse_label("=b").is_err());
        assert!(parse_label("a").is_err());
    }
}
