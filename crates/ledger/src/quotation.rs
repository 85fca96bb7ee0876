//! Verbatim pieces of entries, and how many of them fit.
//!
//! A quotation is a contiguous piece of an entry's text on character boundaries, at most
//! [`QUOTATION_BYTES_MAX`] long. Several are joined by newlines, in ledger order. What does not fit is left
//! out, the oldest first; only where nothing else would be left is a quotation cut shorter.

use std::collections::HashSet;
use std::ops::Range;

use crate::entry::Entry;
use crate::fault::{Code, Fault};
use crate::ids::EntryId;
use crate::json::Node;
use crate::view::View;

/// A longer text is quoted in part.
pub const QUOTATION_BYTES_MAX: usize = crate::search::EXCERPT_BYTES_MAX;

/// What an id takes in a list of a JSON document, with its quotes and a comma.
pub(crate) const LISTED_ID_BYTES: usize = 31;

/// A piece of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quotation<'a> {
    /// The entry's number.
    pub(crate) number: u32,
    /// The entry.
    pub entry: &'a Entry,
    /// Which bytes of its text.
    pub range: Range<usize>,
}

impl<'a> Quotation<'a> {
    /// The beginning of an entry; all of it if it is short.
    pub(crate) fn beginning(number: u32, entry: &'a Entry) -> Self {
        Self {
            number,
            entry,
            range: 0..entry.text.floor_char_boundary(QUOTATION_BYTES_MAX),
        }
    }

    /// The words.
    pub fn text(&self) -> &'a str {
        self.entry.text.get(self.range.clone()).unwrap_or_default()
    }
}

/// The words of quotations, joined by newlines.
pub(crate) fn join(quotations: &[Quotation<'_>]) -> String {
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
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..=0x1f => 6,
        _ => 1,
    }
}

/// What is left of the space for quotations, as text and inside a JSON document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    text: usize,
    json: usize,
}

impl Space {
    /// For a text of so many bytes, without regard to the document.
    pub(crate) fn of_text(bytes: usize) -> Self {
        // One more for the newline that nothing follows.
        Self {
            text: bytes.saturating_add(1),
            json: usize::MAX,
        }
    }

    /// For so many bytes of a JSON document, which also lists the ids of what is quoted.
    pub(crate) fn of_json(bytes: usize) -> Self {
        Self {
            text: usize::MAX,
            json: bytes,
        }
    }

    /// The same with at most so many bytes of a JSON document.
    pub(crate) fn and_json(self, bytes: usize) -> Self {
        Self {
            json: self.json.min(bytes),
            ..self
        }
    }

    /// Bytes of a JSON document that are left.
    pub(crate) fn json(self) -> usize {
        self.json
    }

    /// Takes so many bytes of the document away.
    pub(crate) fn spend(&mut self, json: usize) {
        self.json = self.json.saturating_sub(json);
    }

    fn take(&mut self, text: &str) -> bool {
        let left = self.text.checked_sub(text.len() + 1);
        let json_left = self
            .json
            .checked_sub(json_bytes(text) + json_width(b'\n') + LISTED_ID_BYTES);
        let (Some(text), Some(json)) = (left, json_left) else {
            return false;
        };
        *self = Self { text, json };
        true
    }

    /// The longest beginning of a quotation that fits; none when not one character does.
    fn shorten<'a>(self, quotation: &Quotation<'a>) -> Option<Quotation<'a>> {
        let text = quotation.text();
        let mut json = self.json.checked_sub(json_width(b'\n') + LISTED_ID_BYTES)?;
        let fit = text
            .bytes()
            .take(self.text.saturating_sub(1))
            .take_while(|&byte| {
                let left = json.checked_sub(json_width(byte));
                json = left.unwrap_or_default();
                left.is_some()
            });
        let end = text.floor_char_boundary(fit.count());
        let range = quotation.range.start..quotation.range.start + end;
        (end > 0).then(|| Quotation {
            range,
            ..quotation.clone()
        })
    }

    /// Takes what fits of quotations that come newest first, and gives it in ledger order. An entry
    /// that is among the taken is not quoted again. The first that does not fit ends it; if it is
    /// the only one, its beginning is quoted.
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
            let fits = self.take(quotation.text());
            let shorter = (!fits && quotations.is_empty())
                .then(|| self.shorten(&quotation))
                .flatten();
            if let Some(quotation) = if fits { Some(quotation) } else { shorter } {
                if !fits {
                    self.take(quotation.text());
                }
                taken.insert(quotation.number);
                quotations.push(quotation);
            }
            if !fits {
                break;
            }
        }
        quotations.sort_by_key(|quotation| quotation.number);
        quotations
    }
}

/// The newest visible entries, as far as they may be quoted.
pub(crate) fn newest<'a>(view: &View<'a>) -> impl Iterator<Item = Quotation<'a>> + use<'a> {
    view.newest_first()
        .map(|(number, entry)| Quotation::beginning(number, entry))
}

/// The ids of entries, as a pack lists them.
pub(crate) fn listed<'e>(ids: impl IntoIterator<Item = &'e EntryId>) -> Vec<String> {
    ids.into_iter().map(EntryId::to_string).collect()
}

/// The entries that a pack says it used. All of them must be visible.
pub(crate) fn used<'a>(view: &View<'a>, pack: &Node<'_>) -> Result<Vec<&'a Entry>, Fault> {
    let ids = pack.field("provenance")?.field("used_entry_ids")?.items()?;
    let entry = |node: &Node<'_>| {
        let entry = node.text()?.parse().ok().and_then(|id| view.entry(id));
        entry.ok_or_else(|| node.fault("is no entry of this view"))
    };
    ids.iter().map(entry).collect()
}

/// Refuses a text of which a line is in none of the sources.
pub(crate) fn lines_are_verbatim(text: &Node<'_>, sources: &[&str]) -> Result<(), Fault> {
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
