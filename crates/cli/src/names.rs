//! The grammar by which a person names things on the command line. Every command uses it.
//!
//! | written | names |
//! |---|---|
//! | `ctx:12`, `turn:345` | a context, a turn of the store |
//! | `blob:af13` | the blob whose hash begins so, if there is only one |
//! | `@last` | the session with the latest captured turn |
//! | `review`, `3f2a` | a session by its name, its id or a unique head of its id |
//! | `review:3`, `@last:3` | a captured turn: its session and its number |
//! | `12` | where only a context is possible, `ctx:12`; where only a turn of the store is, `turn:12` |
//! | `af13` | where only a blob is possible, `blob:af13` |
//!
//! Runs, nodes and approvals are named in the same way; `commands/run/names.rs` finds them.
//!
//! Where a captured turn is wanted, a session alone means its latest turn. This module decides only
//! what kind of thing a text names. The broker or the store answers whether it exists.

use std::fmt;
use std::str::FromStr;

use anyhow::Result;
use serde_json::Value;
use turnkeep_types::{BlobHash, BlobPrefix, ContextId, TurnId};

use crate::answer::list_at;
use crate::commands::run::names::short_id;
use crate::failure::Failure;
use crate::http::{Call, Http};

/// How many blobs an error lists.
const LISTED_MAX: usize = 5;

/// The words before a colon that name objects of the store. No session can be called one of them.
pub(crate) const STORE_KINDS: [&str; 3] = ["ctx", "turn", "blob"];

/// What a text names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reference {
    Context(ContextId),
    Turn(TurnId),
    Blob(BlobPrefix),
    Session(SessionName),
    CapturedTurn(CapturedName),
}

/// A session, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionName {
    /// `@last`: the one with the latest turn.
    Last,
    /// By its name, its id or a head of its id.
    Called(String),
}

/// A captured turn, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapturedName {
    pub(crate) session: SessionName,
    /// None: the session's latest.
    pub(crate) number: Option<u64>,
}

/// Which kinds of things a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Context,
    Turn,
    Blob,
    Session,
    CapturedTurn,
    /// Anything that can be shown.
    Any,
}

impl Wanted {
    fn accepts(self, found: &Reference) -> bool {
        match found {
            Reference::Context(_) => matches!(self, Self::Context | Self::Any),
            Reference::Turn(_) => matches!(self, Self::Turn | Self::Any),
            Reference::Blob(_) => matches!(self, Self::Blob | Self::Any),
            Reference::Session(_) => matches!(self, Self::Session),
            Reference::CapturedTurn(_) => matches!(self, Self::CapturedTurn | Self::Any),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Context => "a context, such as ctx:12 or 12",
            Self::Turn => "a turn, such as turn:345 or 345",
            Self::Blob => {
                "a blob: the first 1 to 64 lower-case hex digits of its hash, with or without blob:"
            }
            Self::Session => "a session: its name, its id, a unique head of its id, or @last",
            Self::CapturedTurn => "a captured turn, such as review:3 or @last",
            Self::Any => "ctx:N, turn:N, blob:HASH, SESSION or SESSION:N",
        }
    }
}

/// A text that does not name what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadReference {
    wanted: Wanted,
    found: Option<Elsewhere>,
}

/// What a text names instead, and which command takes that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Elsewhere {
    kind: &'static str,
    command: &'static str,
}

/// What the words before a colon name that are not of the store, and the command that takes it.
const OTHER_KINDS: [(&str, Elsewhere); 7] = [
    ("run", elsewhere("a run", "run show")),
    ("node", elsewhere("a node of a run", "diff")),
    ("approval", elsewhere("an approval", "approvals approve")),
    ("artifact", elsewhere("a file of a run", "why")),
    ("envelope", elsewhere("a handoff", "why")),
    ("message", elsewhere("a message to an agent", "why")),
    ("entry", elsewhere("an entry of a world", "why")),
];

const fn elsewhere(kind: &'static str, command: &'static str) -> Elsewhere {
    Elsewhere { kind, command }
}

impl fmt::Display for BadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.wanted.expected())?;
        match self.found {
            Some(Elsewhere { kind, command }) => {
                write!(f, "; this is {kind}: `turnkeep {command}` takes it")
            }
            None => Ok(()),
        }
    }
}

impl std::error::Error for BadReference {}

/// Reads what a text names, in a place where a kind of thing is wanted.
pub(crate) fn parse_reference(text: &str, wanted: Wanted) -> Result<Reference, BadReference> {
    let found = match text.split_once(':') {
        Some((kind, rest)) if STORE_KINDS.contains(&kind) => parse_store_object(kind, rest),
        _ => parse_bare(text, wanted),
    };
    match found {
        Some(found) if wanted.accepts(&found) => Ok(found),
        Some(other) => Err(BadReference {
            wanted,
            found: Some(other_command_for(&other)),
        }),
        None => Err(BadReference {
            wanted: wanted_by_kind(text, wanted),
            found: find_elsewhere(text),
        }),
    }
}

/// What is wanted, now that a text has chosen among everything that can be shown.
fn wanted_by_kind(text: &str, wanted: Wanted) -> Wanted {
    let kind = text.split_once(':').map(|(kind, _)| kind);
    match (wanted, kind) {
        (Wanted::Any, Some("ctx")) => Wanted::Context,
        (Wanted::Any, Some("turn")) => Wanted::Turn,
        (Wanted::Any, Some("blob")) => Wanted::Blob,
        _ => wanted,
    }
}

/// What a text names that is not of the store and not a session.
fn find_elsewhere(text: &str) -> Option<Elsewhere> {
    const UUID_CHARS: usize = 36;
    let (kind, id) = text.split_once(':')?;
    if kind == "turn" && id.len() == UUID_CHARS {
        return Some(elsewhere("a turn of a run", "why"));
    }
    let mut kinds = OTHER_KINDS.into_iter();
    kinds
        .find(|(other, _)| *other == kind)
        .map(|(_, found)| found)
}

/// Reads a text without `ctx:`, `turn:` or `blob:`, whose meaning depends on what is wanted.
fn parse_bare(text: &str, wanted: Wanted) -> Option<Reference> {
    match wanted {
        Wanted::Context => text.parse().ok().map(Reference::Context),
        Wanted::Turn => text.parse().ok().map(Reference::Turn),
        Wanted::Blob => text.parse().ok().map(Reference::Blob),
        Wanted::Session => parse_session(text).map(Reference::Session),
        // A whole hash cannot be mistaken for a session.
        Wanted::Any if text.parse::<BlobHash>().is_ok() => text.parse().ok().map(Reference::Blob),
        // A bare number could be a context or a turn, so it names neither.
        Wanted::Any if text.parse::<u64>().is_ok() => None,
        Wanted::CapturedTurn | Wanted::Any => parse_captured(text).map(Reference::CapturedTurn),
    }
}

fn parse_store_object(kind: &str, rest: &str) -> Option<Reference> {
    match kind {
        "ctx" => rest.parse().ok().map(Reference::Context),
        "turn" => rest.parse().ok().map(Reference::Turn),
        _ => rest.parse().ok().map(Reference::Blob),
    }
}

fn parse_session(text: &str) -> Option<SessionName> {
    match text {
        "" => None,
        "@last" => Some(SessionName::Last),
        // The colon separates a turn's number, and `@` is reserved for words such as @last.
        _ if text.contains(':') || text.starts_with('@') => None,
        _ => Some(SessionName::Called(text.to_owned())),
    }
}

fn parse_captured(text: &str) -> Option<CapturedName> {
    let (session, number) = match text.rsplit_once(':') {
        Some((session, number)) => (session, Some(number.parse().ok()?)),
        None => (text, None),
    };
    // Turns of a session are counted from 1.
    if number == Some(0) {
        return None;
    }
    let session = parse_session(session)?;
    Some(CapturedName { session, number })
}

/// The kind of a thing in words, and the command that takes it.
fn other_command_for(found: &Reference) -> Elsewhere {
    match found {
        Reference::Context(_) => elsewhere("a context of the store", "show"),
        Reference::Turn(_) => elsewhere("a turn of the store", "show"),
        Reference::Blob(_) => elsewhere("a blob of the store", "show"),
        Reference::Session(_) => elsewhere("a session", "turns"),
        Reference::CapturedTurn(_) => elsewhere("a captured turn", "turn"),
    }
}

/// A context: `ctx:12` or `12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextName(pub(crate) ContextId);

/// A turn of the store: `turn:345` or `345`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnName(pub(crate) TurnId);

/// A turn, or 0 for none: what a head may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadName(pub(crate) Option<TurnId>);

/// A blob: `blob:af13` or `af13`, with as many digits of its hash as make it unique.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobName(pub(crate) BlobPrefix);

/// Reads one kind of name by the grammar.
macro_rules! name_of {
    ($name:ident, $wanted:ident, $found:pat => $value:expr) => {
        impl FromStr for $name {
            type Err = BadReference;

            fn from_str(text: &str) -> Result<Self, BadReference> {
                match parse_reference(text, Wanted::$wanted)? {
                    $found => Ok($value),
                    _ => Err(BadReference {
                        wanted: Wanted::$wanted,
                        found: None,
                    }),
                }
            }
        }
    };
}

name_of!(ContextName, Context, Reference::Context(id) => Self(id));
name_of!(TurnName, Turn, Reference::Turn(id) => Self(id));
name_of!(BlobName, Blob, Reference::Blob(prefix) => Self(prefix));
name_of!(SessionName, Session, Reference::Session(name) => name);
name_of!(CapturedName, CapturedTurn, Reference::CapturedTurn(name) => name);

impl FromStr for HeadName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let turn = text.parse::<TurnName>();
        turn.map(|turn| Self(Some(turn.0)))
            .map_err(|error| format!("{error}, or 0 for an empty context"))
    }
}

/// Reads the name of anything that can be shown.
pub(crate) fn parse_any(text: &str) -> Result<Reference, BadReference> {
    parse_reference(text, Wanted::Any)
}

/// Finds the one blob whose hash begins with the given digits.
pub(crate) async fn find_blob(http: &mut Http, prefix: &BlobPrefix) -> Result<BlobHash> {
    if let Some(hash) = prefix.whole() {
        return Ok(hash);
    }
    let call = Call::get("/v1/blobs").query("prefix", prefix.as_str());
    let answer = http.json(call).await?;
    let hashes = list_at(&answer, "/hashes").iter();
    let hashes: Vec<&str> = hashes.filter_map(Value::as_str).collect();
    match hashes[..] {
        [] => Failure::new(format!("no blob's hash begins with {prefix}")).fail(),
        [one] => Ok(one.parse()?),
        [..] => ambiguous_prefix(prefix, &hashes).fail(),
    }
}

fn ambiguous_prefix(prefix: &BlobPrefix, hashes: &[&str]) -> Failure {
    let listed = hashes.iter().take(LISTED_MAX);
    let heads: Vec<String> = listed
        .map(|hash| short_id(hashes.iter().copied(), hash))
        .collect();
    // The server lists only the first few, so there may be more.
    let many = hashes.len();
    Failure::new(format!(
        "the hashes of {many} or more blobs begin with {prefix}"
    ))
    .hint(format!("give more digits, such as {}", heads.join(", ")))
}

/// A text for people or agents that must say something.
pub(crate) fn parse_text(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok(text.to_owned())
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

    /// What a text names, in a few letters.
    fn named(text: &str, wanted: Wanted) -> String {
        let of = |session: &SessionName| match session {
            SessionName::Last => "LAST".to_owned(),
            SessionName::Called(name) => format!("<{name}>"),
        };
        match parse_reference(text, wanted) {
            Ok(Reference::Context(id)) => format!("context {id}"),
            Ok(Reference::Turn(id)) => format!("turn {id}"),
            Ok(Reference::Blob(prefix)) => format!("blob {prefix}"),
            Ok(Reference::Session(session)) => format!("session {}", of(&session)),
            Ok(Reference::CapturedTurn(CapturedName { session, number })) => {
                let number =
                    number.map_or_else(|| "latest".to_owned(), |number| number.to_string());
                format!("{number} of {}", of(&session))
            }
            Err(_) => "-".to_owned(),
        }
    }

    #[test]
    fn one_grammar_names_everything() {
        let hash = BlobHash::of(b"").to_string();
        let whole = format!("blob {hash}");
        // The text, and what it names where a context, a turn, a blob, a session, a captured turn,
        // anything is wanted.
        let table: &[(&str, [&str; 6])] = &[
            ("ctx:12", ["context 12", "-", "-", "-", "-", "context 12"]),
            ("turn:345", ["-", "turn 345", "-", "-", "-", "turn 345"]),
            ("blob:af13", ["-", "-", "blob af13", "-", "-", "blob af13"]),
            (
                &format!("blob:{hash}"),
                ["-", "-", &whole, "-", "-", &whole],
            ),
            (
                "12",
                [
                    "context 12",
                    "turn 12",
                    "blob 12",
                    "session <12>",
                    "latest of <12>",
                    "-",
                ],
            ),
            (
                "1234",
                [
                    "context 1234",
                    "turn 1234",
                    "blob 1234",
                    "session <1234>",
                    "latest of <1234>",
                    "-",
                ],
            ),
            (
                "af13",
                [
                    "-",
                    "-",
                    "blob af13",
                    "session <af13>",
                    "latest of <af13>",
                    "latest of <af13>",
                ],
            ),
            (
                "@last",
                [
                    "-",
                    "-",
                    "-",
                    "session LAST",
                    "latest of LAST",
                    "latest of LAST",
                ],
            ),
            ("@last:3", ["-", "-", "-", "-", "3 of LAST", "3 of LAST"]),
            (
                "review",
                [
                    "-",
                    "-",
                    "-",
                    "session <review>",
                    "latest of <review>",
                    "latest of <review>",
                ],
            ),
            (
                "review:3",
                ["-", "-", "-", "-", "3 of <review>", "3 of <review>"],
            ),
            ("3f2a:7", ["-", "-", "-", "-", "7 of <3f2a>", "7 of <3f2a>"]),
            (
                "my agent:7",
                ["-", "-", "-", "-", "7 of <my agent>", "7 of <my agent>"],
            ),
            ("", ["-"; 6]),
            (
                "0",
                ["-", "-", "blob 0", "session <0>", "latest of <0>", "-"],
            ),
            ("ctx:0", ["-"; 6]),
            ("ctx:", ["-"; 6]),
            ("turn:x", ["-"; 6]),
            ("blob:a", ["-", "-", "blob a", "-", "-", "blob a"]),
            ("blob:", ["-"; 6]),
            ("blob:AF13", ["-"; 6]),
            ("review:0", ["-"; 6]),
            ("review:x", ["-"; 6]),
            (":3", ["-"; 6]),
            ("a:b:3", ["-"; 6]),
            ("@first", ["-"; 6]),
        ];
        let kinds = [
            Wanted::Context,
            Wanted::Turn,
            Wanted::Blob,
            Wanted::Session,
            Wanted::CapturedTurn,
            Wanted::Any,
        ];
        for (text, expect) in table {
            for (wanted, expect) in kinds.iter().zip(expect) {
                assert_eq!(named(text, *wanted), *expect, "{text:?} as {wanted:?}");
            }
        }
    }

    #[test]
    fn a_name_of_another_kind_says_which_command_takes_it() {
        let said = |text: &str, wanted| parse_reference(text, wanted).unwrap_err().to_string();
        assert_eq!(
            said("turn:7", Wanted::CapturedTurn),
            "expected a captured turn, such as review:3 or @last; this is a turn of the store: `turnkeep show` takes it"
        );
        assert_eq!(
            said("x", Wanted::Context),
            "expected a context, such as ctx:12 or 12"
        );
        assert_eq!(
            said("blob:xyz", Wanted::Any),
            "expected a blob: the first 1 to 64 lower-case hex digits of its hash, with or without blob:"
        );
        assert_eq!(
            said("run:3f2a", Wanted::Any),
            "expected ctx:N, turn:N, blob:HASH, SESSION or SESSION:N; this is a run: `turnkeep run show` takes it"
        );
        assert_eq!(
            said("turn:0b5f1c9e-8a3d-4c55-9a67-0123456789ab", Wanted::Any),
            "expected a turn, such as turn:345 or 345; this is a turn of a run: `turnkeep why` takes it"
        );
    }

    #[test]
    fn a_head_may_be_nothing() {
        assert_eq!("0".parse::<HeadName>(), Ok(HeadName(None)));
        assert_eq!(
            "turn:7".parse::<HeadName>().map(|head| head.0),
            Ok(TurnId::new(7))
        );
        assert!("x".parse::<HeadName>().is_err());
    }

    #[test]
    fn a_text_says_something() {
        assert_eq!(parse_text(" a\n"), Ok(" a\n".to_owned()));
        assert!(parse_text("").is_err());
        assert!(parse_text(" \t\n").is_err());
    }

    #[test]
    fn a_label_has_a_key_and_a_value() {
        assert_eq!(parse_label("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(parse_label("a="), Ok(("a".into(), String::new())));
        assert!(parse_label("=b").is_err());
        assert!(parse_label("a").is_err());
    }
}
