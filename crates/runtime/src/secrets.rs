//! Values that must not be recorded: the configured secrets of programs and the tokens of nodes.
//!
//! A program may print its environment. So a decision masks what it records: each byte of a secret
//! becomes a `*`. The length stays the same, so that a stored event can be masked as it is.
//!
//! Settings that a person gives are recorded as they are: a run must work in the directory that it
//! was given, whatever a variable says.

use bytes::Bytes;
use serde_json::Value;
use turnkeep_types::BlobHash;

use crate::fact::{Event, Fact, NodeChange, TurnStep};
use crate::record;

/// A shorter value is likely to be a part of some other text.
const SECRET_BYTES_MIN: usize = 8;
const MASK: u8 = b'*';

/// Values that must not be recorded.
#[derive(Debug, Default)]
pub struct Secrets {
    /// The longest first: a secret may be the beginning of another one.
    texts: Vec<String>,
}

impl Secrets {
    /// Collects the values that are secrets. Short values, paths and plain words do not count: masking
    /// `production` or the home directory would only make texts unreadable. Each line of a value counts
    /// by itself, too: a program's output is read and recorded by lines.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut texts = Vec::new();
        let with_lines = |value: String| {
            let mut parts: Vec<String> = value.lines().map(str::to_owned).collect();
            parts.push(value);
            parts
        };
        let values = values.into_iter().flat_map(with_lines);
        for value in values.filter(|value| is_secret(value)) {
            // Inside JSON some characters look different.
            let quoted = Value::from(value.as_str()).to_string();
            let inside = quoted.get(1..quoted.len() - 1);
            let in_json = inside.unwrap_or_default().to_owned();
            texts.extend([value, in_json]);
        }
        texts.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        texts.dedup();
        Self { texts }
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The content with every secret masked.
    pub fn mask(&self, content: Bytes) -> Bytes {
        let mut masked = None;
        for secret in &self.texts {
            let secret = secret.as_bytes();
            let mut from = 0;
            loop {
                let current: &[u8] = masked.as_deref().unwrap_or(&content);
                let Some(at) = find(current, from, secret) else {
                    break;
                };
                let target = masked.get_or_insert_with(|| content.to_vec());
                let found = target.iter_mut().skip(at).take(secret.len());
                found.for_each(|byte| *byte = MASK);
                from = at + secret.len();
            }
        }
        masked.map_or(content, Bytes::from)
    }

    /// The JSON with every secret masked.
    pub fn mask_json(&self, value: &Value) -> Value {
        if self.texts.is_empty() {
            return value.clone();
        }
        let masked = self.mask(Bytes::from(value.to_string()));
        serde_json::from_slice(&masked).unwrap_or_else(|_| value.clone())
    }

    /// How many bytes at the end of a text may be the beginning of a secret. Text that arrives in
    /// pieces is recorded without them, so that no secret is recorded in two pieces.
    pub fn unfinished_bytes(&self, text: &str) -> usize {
        // With the secret `key-123`, the text `the key` may go on with `-123`: 3 bytes wait.
        let of_secret = |secret: &String| {
            let ends = secret.char_indices().map(|(end, _)| end).skip(1);
            let unfinished = ends.filter(|end| {
                let beginning = secret.get(..*end).unwrap_or_default();
                text.ends_with(beginning)
            });
            unfinished.max().unwrap_or(0)
        };
        self.texts.iter().map(of_secret).max().unwrap_or(0)
    }

    /// The event with every secret in its free texts masked.
    pub(crate) fn mask_event(&self, event: Event) -> Event {
        if self.texts.is_empty() || !has_free_text(&event.fact) {
            return event;
        }
        let stored = record::encode(&event);
        let payload = Bytes::copy_from_slice(&stored.payload);
        let masked_payload = self.mask(payload.clone());
        let blobs = stored.blobs.iter().map(|blob| {
            let content = Bytes::copy_from_slice(blob);
            (BlobHash::of(blob), self.mask(content))
        });
        let blobs: Vec<(BlobHash, Bytes)> = blobs.collect();
        let is_same = |(hash, masked): &(BlobHash, Bytes)| BlobHash::of(masked) == *hash;
        if masked_payload == payload && blobs.iter().all(is_same) {
            return event;
        }
        let find_blob = |hash: &BlobHash| {
            let known = blobs.iter().find(|(of, _)| of == hash);
            known.map(|(_, masked)| masked.clone())
        };
        // Decoding fails only if a "secret" is a word of the record format, which is no secret.
        record::decode(&masked_payload, &find_blob).unwrap_or(event)
    }
}

fn is_secret(value: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase())
        || value.bytes().all(|byte| byte.is_ascii_uppercase());
    value.len() >= SECRET_BYTES_MIN && !is_word && !value.starts_with('/')
}

/// Where a secret is next. It looks for the first byte, which is several times as fast as comparing at
/// each place: the output of a program may have megabytes.
fn find(content: &[u8], from: usize, secret: &[u8]) -> Option<usize> {
    let first = secret.first()?;
    let mut from = from;
    loop {
        let rest = content.get(from..)?;
        let at = rest.iter().position(|byte| byte == first)?;
        if rest.get(at..)?.starts_with(secret) {
            return Some(from + at);
        }
        from += at + 1;
    }
}

/// Whether an event has texts of programs or of messages.
fn has_free_text(fact: &Fact) -> bool {
    match fact {
        Fact::CompletionClaimed { .. }
        | Fact::VerificationFailed { .. }
        | Fact::Stalled(_)
        | Fact::NodeProgressed { .. }
        | Fact::NodeLogged(_)
        | Fact::EnvelopeSent(_)
        | Fact::EnvelopeHeld { .. }
        | Fact::EnvelopeRefused { .. }
        | Fact::MessageSent(_)
        | Fact::AnswerDelta(_)
        | Fact::AnswerFinal { .. }
        | Fact::ThinkingDelta(_)
        | Fact::ThinkingFinal(_)
        | Fact::ToolProposed(_)
        | Fact::ToolStarted(_)
        | Fact::ToolCompleted { .. }
        | Fact::ApprovalRequested(_)
        | Fact::ApprovalResolved { .. }
        | Fact::RuleAdded(_) => true,
        Fact::TurnStepped(step) => {
            matches!(step, TurnStep::Interrupted { .. } | TurnStep::Failed { .. })
        }
        Fact::NodeChanged { change, .. } => matches!(
            change,
            NodeChange::Blocked { .. }
                | NodeChange::Rested { .. }
                | NodeChange::Parked { .. }
                | NodeChange::Interrupting { .. }
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secrets(values: &[&str]) -> Secrets {
        Secrets::new(values.iter().map(|value| (*value).to_owned()))
    }

    #[test]
    fn every_byte_of_a_secret_is_masked() {
        let check = |values: &[&str], text: &'static str, expect: &str| {
            let masked = secrets(values).mask(Bytes::from_static(text.as_bytes()));
            assert_eq!(masked, expect.as_bytes());
        };
        check(
            &["key-12345"],
            "a key-12345key-12345 b",
            "a ****************** b",
        );
        check(
            &["key-12345", "key-12345-long"],
            "key-12345-long",
            "**************",
        );
        check(&["short-1"], "short-1", "short-1");
        check(
            &["production", "/home/someone"],
            "production /home/someone",
            "production /home/someone",
        );
        check(
            &["with\"quote1"],
            r#"{"a":"with\"quote1"}"#,
            r#"{"a":"************"}"#,
        );
    }

    #[test]
    fn each_line_of_a_secret_is_masked_by_itself() {
        let secrets = secrets(&["-- KEY --\nMIIEvQIB\n==\n"]);
        let check = |text: &'static str, expect: &str| {
            let masked = secrets.mask(Bytes::from_static(text.as_bytes()));
            assert_eq!(masked, expect.as_bytes());
        };
        check("a MIIEvQIB ==", "a ******** ==");
        check("-- KEY --\nMIIEvQIB\n==\n", &"*".repeat(22));
        check(
            r#"{"a":"-- KEY --\nMIIEvQIB\n==\n"}"#,
            &format!(r#"{{"a":"{}"}}"#, "*".repeat(25)),
        );
    }

    #[test]
    fn a_masked_json_keeps_its_shape() {
        let masked = secrets(&["key-12345"]).mask_json(&json!({"a": ["key-12345", 7]}));
        assert_eq!(masked, json!({"a": ["*********", 7]}));
    }

    #[test]
    fn the_beginning_of_a_secret_waits_for_the_rest() {
        let secrets = secrets(&["key-12345"]);
        for (text, expect) in [
            ("a key-12", 6),
            ("a k", 1),
            ("a key-12345", 0),
            ("plain", 0),
        ] {
            assert_eq!(secrets.unfinished_bytes(text), expect, "{text}");
        }
    }
}
