//! Views of the past, the audit log of a world, and its verification.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::beat::WriteEntry;
use super::projection::ProjectionOutput;

shapes! {
    /// What somebody could see.
    #[serde(deny_unknown_fields)]
    SeenView {
        /// The view of this reader.
        view: String,
        /// How many entries it held.
        count: u64,
        /// Its cursor; null if it held nothing.
        cursor: Option<String>,
        /// The newest of them, in ledger order.
        entries: Vec<WriteEntry>,
        /// Whether the list is complete.
        complete: bool,
    }
    /// What two people did not both see.
    #[serde(deny_unknown_fields)]
    ViewDifference {
        /// The view of this reader.
        view: String,
        /// The other's.
        vs: String,
        /// What only the first could see.
        only_view: Vec<WriteEntry>,
        /// What only the other could see.
        only_vs: Vec<WriteEntry>,
        /// Whether the list is complete.
        complete: bool,
    }
    /// One finding of a verification.
    #[serde(deny_unknown_fields)]
    Misfit {
        /// The turn that holds it.
        turn_id: String,
        /// The fault.
        what: String,
    }
    /// A run of words that their author could not have seen.
    #[serde(deny_unknown_fields)]
    Leak {
        /// Where it is.
        entry_id: String,
        /// Where it was, hidden from the author.
        source_entry_id: String,
        /// The run.
        text: String,
    }
    /// The result of a verification.
    #[serde(deny_unknown_fields)]
    Verification {
        /// Whether everything fits.
        sound: bool,
        /// Entries that were checked.
        entries: u64,
        /// Bundles that were checked.
        bundles: u64,
        /// Answers that were made again.
        answers: u64,
        /// Answers that were not: they show a bundle that was refused or wrote nothing as it was
        /// sent, which is not recorded.
        answers_skipped: u64,
        /// What does not fit.
        faults: Vec<Misfit>,
        /// Where leaks were asked for: a report, never a verdict.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        leaks: Option<Vec<Leak>>,
    }
    /// A page of all entries.
    #[serde(deny_unknown_fields)]
    EveryEntry {
        /// The cursor that was asked with.
        cursor_before: Option<String>,
        /// Pass it as `cursor` to go on: a number, and not a reader's cursor; null where nothing
        /// was written.
        cursor_after: Option<String>,
        /// The entries as committed, whatever their audience.
        entries: Vec<WriteEntry>,
    }
    /// A stream as the audit reads it.
    #[serde(deny_unknown_fields)]
    AuditStream {
        /// The page.
        stream: EveryEntry,
    }
    /// A line of the audit.
    #[serde(deny_unknown_fields)]
    AuditLine {
        /// When, by the server's clock; null where the record has no time of its own.
        at: Option<String>,
        /// Who.
        principal: String,
        /// What was done.
        what: String,
        /// The request that it belongs to.
        request_id: Option<String>,
        /// More.
        #[schema(value_type = Object)]
        details: serde_json::Value,
    }
    /// A page of the audit.
    #[serde(deny_unknown_fields)]
    AuditPage {
        /// Oldest first.
        lines: Vec<AuditLine>,
        /// The start of the next page; null at the end.
        next_cursor: Option<String>,
    }
}

/// A page of the reader's view or, with `audit`, of all entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StreamAnswer {
    /// A reader's.
    Reader(ProjectionOutput),
    /// The audit's.
    Audit(AuditStream),
}

/// A view, or the difference of two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ViewAnswer {
    /// One.
    Seen(SeenView),
    /// Two.
    Difference(ViewDifference),
}
