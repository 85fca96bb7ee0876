//! How far a script has been played, for the next process.

use serde_json::{Value, json};

use crate::tool::ToolOutcome;

/// What a later process has to know to go on: see [`super::Player::progress`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// The indexes of the turns that were played and do not repeat.
    pub played: Vec<usize>,
    pub suspended: Option<SuspendedTurn>,
}

/// A turn that waits for the answer to a call which it wrote as text.
///
/// Its steps are not kept but done again, silently, with the answers that its tools gave.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspendedTurn {
    pub turn: usize,
    pub prompt: String,
    pub answers: Vec<Answer>,
}

/// What is remembered of a tool's outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub ok: bool,
    pub value: Value,
}

impl Progress {
    pub fn to_json(&self) -> Value {
        let suspended = self.suspended.as_ref().map(|turn| {
            let answers: Vec<Value> = turn
                .answers
                .iter()
                .map(|a| json!({"ok": a.ok, "value": a.value}))
                .collect();
            json!({"turn": turn.turn, "prompt": turn.prompt, "answers": answers})
        });
        json!({"played": self.played, "suspended": suspended})
    }

    /// Reads what [`Self::to_json`] made. Anything else is `None`.
    pub fn from_json(json: &Value) -> Option<Progress> {
        let played = json.get("played")?.as_array()?;
        let suspended = json.get("suspended").filter(|turn| !turn.is_null());
        Some(Progress {
            played: played.iter().map(read_index).collect::<Option<_>>()?,
            suspended: match suspended {
                Some(turn) => Some(SuspendedTurn::from_json(turn)?),
                None => None,
            },
        })
    }
}

impl SuspendedTurn {
    fn from_json(json: &Value) -> Option<SuspendedTurn> {
        let answers = json.get("answers")?.as_array()?;
        Some(SuspendedTurn {
            turn: read_index(json.get("turn")?)?,
            prompt: json.get("prompt")?.as_str()?.to_owned(),
            answers: answers
                .iter()
                .map(Answer::from_json)
                .collect::<Option<_>>()?,
        })
    }
}

fn read_index(json: &Value) -> Option<usize> {
    usize::try_from(json.as_u64()?).ok()
}

impl Answer {
    fn from_json(json: &Value) -> Option<Answer> {
        Some(Answer {
            ok: json.get("ok")?.as_bool()?,
            value: json.get("value")?.clone(),
        })
    }

    pub(super) fn to_outcome(&self) -> ToolOutcome {
        ToolOutcome::with_value(self.ok, self.value.clone())
    }
}
