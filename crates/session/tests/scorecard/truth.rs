//! The ground truth of a recording.

use serde::Deserialize;

/// What is known about a recording.
#[derive(Debug, Deserialize)]
pub(crate) struct Truth {
    pub(crate) turns: Vec<TrueTurn>,
    #[serde(default)]
    pub(crate) no_turn: Vec<NoTurn>,
    #[serde(default)]
    pub(crate) unfinished: Vec<serde_json::Value>,
}

/// What is known about a turn.
#[derive(Debug, Deserialize)]
pub(crate) struct TrueTurn {
    pub(crate) turn: String,
    pub(crate) model_done_t: f64,
    pub(crate) ready_t: f64,
    pub(crate) next_t: f64,
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
    pub(crate) unreadable: Option<serde_json::Value>,
}

/// Input that makes no turn.
#[derive(Debug, Deserialize)]
pub(crate) struct NoTurn {
    pub(crate) t: f64,
    pub(crate) until: f64,
    pub(crate) what: String,
}
