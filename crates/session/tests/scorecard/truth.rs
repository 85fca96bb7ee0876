//! The ground truth of a recording.

use serde::Deserialize;

/// What is known about a recording.
#[derive(Debug, Deserialize)]
pub(crate) struct Truth {
    /// A conversation in a terminal of a person's own: when the program was ready is not known.
    #[serde(default)]
    pub(crate) live: bool,
    pub(crate) turns: Vec<TrueTurn>,
    #[serde(default)]
    pub(crate) no_turn: Vec<NoTurn>,
    #[serde(default)]
    pub(crate) unfinished: Vec<serde_json::Value>,
}

/// What is known about a turn.
#[derive(Debug, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the file")]
pub(crate) struct TrueTurn {
    pub(crate) turn: String,
    pub(crate) model_done_t: f64,
    pub(crate) ready_t: f64,
    /// When the next input was submitted; none for the last turn of a live conversation.
    pub(crate) next_t: Option<f64>,
    pub(crate) interrupted: bool,
    pub(crate) expected: Option<String>,
    /// The model server's requests: none for a program that is no agent.
    #[serde(default)]
    pub(crate) model_requests: Vec<String>,
    pub(crate) shown: Option<usize>,
    #[serde(default)]
    pub(crate) wraps: bool,
    pub(crate) stays: Option<serde_json::Value>,
    #[serde(default)]
    unreadable: Option<serde_json::Value>,
    /// Rows of the text were never painted: what there is must be marked incomplete.
    #[serde(default)]
    pub(crate) unpainted: bool,
    /// The program spoke although nothing was submitted.
    #[serde(default)]
    pub(crate) unprompted: bool,
}

impl TrueTurn {
    /// Whether the program itself leaves less than the text on the screen.
    pub(crate) fn is_unreadable(&self) -> bool {
        let unreadable = self.unreadable.as_ref();
        unreadable.is_some_and(|value| value != &serde_json::Value::Bool(false))
    }
}

/// Input that makes no turn.
#[derive(Debug, Deserialize)]
pub(crate) struct NoTurn {
    pub(crate) t: f64,
    pub(crate) until: f64,
    pub(crate) what: String,
}
