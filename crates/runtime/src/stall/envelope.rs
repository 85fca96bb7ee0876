//! When two envelopes are the same.
//!
//! Everything that the receiver reads is compared. Only what differs by itself is masked: times,
//! UUIDs and temporary paths. Numbers are not: "Fix file 1" and "Fix file 2" are two tasks.

use serde_json::json;
use turnkeep_types::BlobHash;

use crate::input::Envelope;

/// The hash of an envelope without what differs by itself. `diff` is the hash of the changes that the
/// server has attached to a reply in the sender's place: the attached artifact is a new one each time,
/// also if the changes are the same.
pub(super) fn sign_envelope(envelope: &Envelope, diff: Option<BlobHash>) -> BlobHash {
    let structured = envelope.structured.as_ref();
    let status = envelope.status.as_ref();
    let reason = status.and_then(|status| status.reason.as_deref());
    let artifacts = envelope.artifacts.iter().map(ToString::to_string);
    let artifacts: Vec<String> = artifacts.filter(|_| diff.is_none()).collect();
    let read = json!({
        "message": mask_message(&envelope.message),
        "structured": structured.map(|value| mask_message(&value.to_string())),
        "artifacts": artifacts,
        "ok": status.map(|status| status.ok),
        "reason": reason.map(mask_message),
        "contextPack": envelope.context_pack.map(|pack| pack.to_string()),
        "diff": diff.map(|diff| diff.to_string()),
    });
    BlobHash::of(read.to_string().as_bytes())
}

/// Removes from a message what differs between equal messages: case, white space, times, UUIDs and
/// temporary paths.
fn mask_message(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !masked.is_empty() {
            masked.push(' ');
        }
        if word.contains("/tmp/") || word.contains("/var/folders/") {
            masked.push_str("<path>");
        } else {
            mask_word(&word.to_lowercase(), &mut masked);
        }
    }
    masked
}

fn mask_word(word: &str, masked: &mut String) {
    let mut rest = word;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        // A number in the middle of something, such as the line in `main.rs:10:31`, is no time.
        let is_beginning = !before.is_some_and(|c: char| c.is_alphanumeric() || ".:-_".contains(c));
        let length = if is_beginning {
            find_volatile_length(rest)
        } else {
            0
        };
        if length > 0 {
            masked.push('#');
        } else {
            masked.push(first);
        }
        let (passed, behind) = rest.split_at(length.max(first.len_utf8()));
        before = passed.chars().next_back();
        rest = behind;
    }
}

/// The length of the UUID, date or time with which a text begins; 0 if it begins with none.
fn find_volatile_length(text: &str) -> usize {
    let patterns = [
        "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh",
        "dddd-dd-ddtdd:dd:dd",
        "dddd-dd-ddtdd:dd",
        "dddd-dd-dd",
        "dd:dd:dd",
        "d:dd:dd",
        "dd:dd",
        "d:dd",
    ];
    let lengths = patterns.map(|pattern| find_length(text, pattern));
    lengths.into_iter().find(|length| *length > 0).unwrap_or(0)
}

/// How long the match of a pattern is: `d` is a digit, `h` a hex digit, anything else itself. A time
/// may have a fraction and an offset behind it.
fn find_length(text: &str, pattern: &str) -> usize {
    let matches = |(found, wanted): (u8, u8)| match wanted {
        b'd' => found.is_ascii_digit(),
        b'h' => found.is_ascii_hexdigit(),
        wanted => found == wanted,
    };
    let mut pairs = text.bytes().zip(pattern.bytes());
    if text.len() < pattern.len() || !pairs.all(matches) {
        return 0;
    }
    let behind = text.get(pattern.len()..).unwrap_or_default();
    let tail = if pattern.contains(':') {
        behind.find(|c: char| !(c.is_ascii_digit() || ".,+-:z".contains(c)))
    } else {
        Some(0)
    };
    let tail = tail.unwrap_or(behind.len());
    // A longer word is something else, such as a version or an id of another kind.
    let next = behind.get(tail..).and_then(|rest| rest.chars().next());
    if next.is_some_and(char::is_alphanumeric) {
        return 0;
    }
    pattern.len() + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_ids_and_temporary_paths_are_masked() {
        for (text, expect) in [
            ("Fix file 1", "fix file 1"),
            ("Fix  File\n12", "fix file 12"),
            (
                "Built at 10:31, again at 9:02:17.5",
                "built at # again at #",
            ),
            ("since 2026-11-18T10:31:05.123Z", "since #"),
            ("since 2026-11-18 10:31", "since # #"),
            (
                "run 0b5f1c9e-8a3d-4c55-9a67-0123456789ab failed",
                "run # failed",
            ),
            (r#"{"at":"10:31","n":3}"#, r##"{"at":"#","n":3}"##),
            ("wrote /tmp/x.Ab12/out.txt", "wrote <path>"),
            ("main.rs:10:31 in 4fc59184", "main.rs:10:31 in 4fc59184"),
            ("version 10.31", "version 10.31"),
            ("ä 10:31 ä", "ä # ä"),
            ("", ""),
        ] {
            assert_eq!(mask_message(text), expect);
        }
    }
}
