//! Views of the past, what was done with a world, and whether it is sound.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::beat::WriteEntry;
use super::projection::ProjectionOutput;

shapes! {
    /// What somebody could see.
    #[serde(deny_unknown_fields)]
    SeenView {
        /// Whose view.
        view: String,
        /// How many entries it held.
        count: u64,
        /// Its cursor; null if it held nothing.
        cursor: Option<String>,
        /// The newest of them, in ledger order.
        entries: Vec<WriteEntry>,
        /// Whether these are all.
        complete: bool,
    }
    /// What two people did not both see.
    #[serde(deny_unknown_fields)]
    ViewDifference {
        /// Whose view.
        view: String,
        /// The other's.
        vs: String,
        /// What only the first could see.
        only_view: Vec<WriteEntry>,
        /// What only the other could see.
        only_vs: Vec<WriteEntry>,
        /// Whether this is all.
        complete: bool,
    }
    /// Something that a verification found.
    #[serde(deny_unknown_fields)]
    Misfit {
        /// The turn that holds it.
        turn_id: String,
        /// What is wrong.
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
    /// What a verification found.
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
        /// The entries as they were committed, whoever may see them.
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
        /// Where the next page begins; null at the end.
        next_cursor: Option<String>,
    }
}

/// A page of what a reader sees or, with `audit`, of everything.
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
