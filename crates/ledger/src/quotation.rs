//! Verbatim pieces of entries, and how many of them fit into a number of bytes.
//!
//! A quotation is a contiguous piece of an entry's text on character boundaries, at most
//! [`QUOTATION_BYTES_MAX`] long. Quotations are joined by newlines, in ledger order. Those that do
//! not fit are left out, the oldest first. A quotation is only cut if nothing else would be left.

use std::collections::HashSet;
use std::ops::Range;

use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::ids::EntryId;
use crate::json::Node;
use crate::view::View;

/// Longer texts are quoted in part.
pub const QUOTATION_BYTES_MAX: usize = crate::search::EXCERPT_BYTES_MAX;

/// The bytes of an id in a JSON list, with its quotes and a comma.
pub(crate) const LISTED_ID_BYTES: usize = 31;

/// A piece of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotation<'a> {
    /// The entry's number.
    pub(crate) number: u32,
    /// The entry.
    pub entry: &'a Entry,
    /// The byte range in the entry's text.
    pub range: Range<usize>,
}

impl<'a> Quotation<'a> {
    /// The beginning of an entry; a short entry is quoted whole.
    pub(crate) fn beginning(number: u32, entry: &'a Entry) -> Self {
        Self {
            number,
            entry,
            range: 0..entry.text.floor_char_boundary(QUOTATION_BYTES_MAX),
        }
    }

    /// The quoted text.
    pub fn text(&self) -> &'a str {
        self.entry.text.get(self.range.clone()).unwrap_or_default()
    }
}

/// Joins quotations by newlines.
pub(crate) fn join_texts(quotations: &[Quotation<'_>]) -> String {
    quotations
        .iter()
        .map(Quotation::text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// How many bytes a text takes inside the quotes of a JSON string.
pub(crate) fn json_bytes(text: &str) -> usize {
    text.bytes().map(json_width).sum()
}

fn json_width(byte: u8) -> usize {
    match byte {
        // `serde_json` writes these with one backslash, the other control characters as in `\u0001`,
        // and all other bytes of UTF-8 unchanged.
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

/// The remaining space for quotations, as text bytes and as JSON bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    text: usize,
    json: usize,
}

impl Space {
    /// Space for so many bytes of text, without a JSON limit.
    pub(crate) fn of_text(bytes: usize) -> Self {
        // One more for the newline behind the last quotation, which `join` does not write.
        Self {
            text: bytes.saturating_add(1),
            json: usize::MAX,
        }
    }

    /// Space for so many bytes of JSON, including the list of ids.
    pub(crate) fn of_json(bytes: usize) -> Self {
        Self {
            text: usize::MAX,
            json: bytes,
        }
    }

    /// Adds a limit of JSON bytes.
    pub(crate) fn and_json(self, bytes: usize) -> Self {
        Self {
            json: self.json.min(bytes),
            ..self
        }
    }

    /// The remaining JSON bytes.
    pub(crate) fn json_left(self) -> usize {
        self.json
    }

    /// Uses up so many JSON bytes.
    pub(crate) fn use_json(&mut self, json: usize) {
        self.json = self.json.saturating_sub(json);
    }

    /// Uses up the space of a text, if it fits.
    fn try_take(&mut self, text: &str) -> bool {
        let left = self.text.checked_sub(text.len() + 1);
        // In JSON the newline is escaped, and the pack lists the entry's id.
        let json_left = self
            .json
            .checked_sub(json_bytes(text) + json_width(b'\n') + LISTED_ID_BYTES);
        let (Some(text), Some(json)) = (left, json_left) else {
            return false;
        };
        *self = Self { text, json };
        true
    }

    /// The longest beginning of a quotation that fits; `None` if not even one character does.
    fn shorten<'a>(self, quotation: &Quotation<'a>) -> Option<Quotation<'a>> {
        let text = quotation.text();
        let mut json = self.json.checked_sub(json_width(b'\n') + LISTED_ID_BYTES)?;
        // Byte by byte, because JSON writes some bytes longer: a quotation mark takes two. A character
        // that is cut in its middle is dropped below.
        let mut fit = 0;
        for byte in text.bytes().take(self.text.saturating_sub(1)) {
            let Some(left) = json.checked_sub(json_width(byte)) else {
                break;
            };
            json = left;
            fit += 1;
        }
        let end = text.floor_char_boundary(fit);
        let range = quotation.range.start..quotation.range.start + end;
        (end > 0).then(|| Quotation {
            range,
            ..quotation.clone()
        })
    }

    /// Selects quotations, given newest first, as long as they fit, and returns them in ledger
    /// order. It skips entries in `taken` and adds those that it selects. If the very first one
    /// does not fit, its beginning is quoted.
    pub(crate) fn fill<'a>(
        &mut self,
        newest_first: impl Iterator<Item = Quotation<'a>>,
        taken: &mut HashSet<u32>,
    ) -> Vec<Quotation<'a>> {
        let mut quotations = Vec::new();
        for quotation in newest_first {
            if taken.contains(&quotation.number) {
                continue;
            }
            if self.try_take(quotation.text()) {
                taken.insert(quotation.number);
                quotations.push(quotation);
                continue;
            }
            // Stops here even if an older, shorter entry would fit: gaps would mislead the reader.
            if quotations.is_empty()
                && let Some(shorter) = self.shorten(&quotation)
            {
                self.try_take(shorter.text());
                taken.insert(shorter.number);
                quotations.push(shorter);
            }
            break;
        }
        quotations.sort_by_key(|quotation| quotation.number);
        quotations
    }
}

/// The newest visible entries as quotations.
pub(crate) fn quote_newest<'a>(view: &View<'a>) -> impl Iterator<Item = Quotation<'a>> + use<'a> {
    view.newest_first()
        .map(|(number, entry)| Quotation::beginning(number, entry))
}

/// The ids of entries as texts, for a pack.
pub(crate) fn id_texts<'e>(ids: impl IntoIterator<Item = &'e EntryId>) -> Vec<String> {
    ids.into_iter().map(EntryId::to_string).collect()
}

/// The entries that a pack cites. Rejects a pack that cites a hidden or unknown entry.
pub(crate) fn cited_entries<'a>(view: &View<'a>, pack: &Node<'_>) -> Result<Vec<&'a Entry>, Fault> {
    let ids = pack.field("provenance")?.field("used_entry_ids")?.items()?;
    let entry = |node: &Node<'_>| {
        let entry = node.text()?.parse().ok().and_then(|id| view.entry(id));
        entry.ok_or_else(|| node.fault("is no entry of this view"))
    };
    ids.iter().map(entry).collect()
}

/// Rejects a text with a line that is in none of the sources.
pub(crate) fn check_lines_verbatim(text: &Node<'_>, sources: &[&str]) -> Result<(), Fault> {
    let made_up = text
        .text()?
        .split('\n')
        .find(|line| !sources.iter().any(|source| source.contains(line)));
    match made_up {
        Some(_) => Err(Fault::new(
            Code::PackInvalid,
            text.path.clone(),
            "holds a line that nobody wrote",
        )),
        None => Ok(()),
    }
}
