//! The choices that an agent offers with a question, and the answer as one of them.

use serde_json::{Value, json};

use crate::field::{list_at, text_at};
use crate::json_rpc::{id_text, response};
use crate::request::{Answer, RequestError};

/// Choices of Gemini that reach further than the tool and the session: all tools of a server, and all
/// later sessions.
const WIDE_CHOICES: &[&str] = &["proceed_always_server", "proceed_always_and_save"];

/// The ids of the offered choices. An agent names them freely; only their kinds are fixed.
#[derive(Debug)]
pub(super) struct PermissionOptions {
    id: Value,
    /// The call that the question is about.
    pub(super) call: String,
    allow_once: Option<String>,
    allow_always: Option<String>,
    reject_once: Option<String>,
    reject_always: Option<String>,
}

impl PermissionOptions {
    pub(super) fn read(id: &Value, params: &Value) -> Self {
        let find = |kind| find_choice(params, kind).map(str::to_owned);
        let call = text_at(params, "/toolCall/toolCallId");
        Self {
            id: id.clone(),
            call: call.map_or_else(|| id_text(id), str::to_owned),
            allow_once: find("allow_once"),
            allow_always: find("allow_always"),
            reject_once: find("reject_once"),
            reject_always: find("reject_always"),
        }
    }

    pub(super) fn can_allow_always(&self) -> bool {
        self.allow_always.is_some()
    }

    /// The message that answers the question. The nearest choice of the same direction stands in for
    /// one that the agent does not offer; without a choice to reject, the answer is "cancelled".
    pub(super) fn answer(&self, answer: &Answer) -> Result<Value, RequestError> {
        let (preferred, other) = match answer {
            Answer::Allow => (&self.allow_once, &self.allow_always),
            Answer::AllowAlways => (&self.allow_always, &self.allow_once),
            Answer::Deny { .. } => (&self.reject_once, &self.reject_always),
            Answer::AllowWith(_) => {
                return Err(RequestError::Unsupported("change the arguments of a tool"));
            }
        };
        match (preferred.as_ref().or(other.as_ref()), answer) {
            (Some(option), _) => Ok(self.select(option)),
            (None, Answer::Deny { .. }) => Ok(self.cancel()),
            (None, _) => Err(RequestError::Unsupported("be allowed this call")),
        }
    }

    pub(super) fn answer_or_cancel(&self, answer: &Answer) -> Value {
        self.answer(answer).unwrap_or_else(|_| self.cancel())
    }

    fn select(&self, option: &str) -> Value {
        let outcome = json!({"outcome": "selected", "optionId": option});
        response(&self.id, &json!({"outcome": outcome}))
    }

    pub(super) fn cancel(&self) -> Value {
        response(&self.id, &json!({"outcome": {"outcome": "cancelled"}}))
    }
}

/// The id of a choice of this kind, the narrowest if there are several.
fn find_choice<'a>(params: &'a Value, kind: &str) -> Option<&'a str> {
    let options = list_at(params, "/options").iter();
    let ids = options
        .filter(|option| text_at(option, "/kind") == Some(kind))
        .filter_map(|option| text_at(option, "/optionId"));
    let narrow = ids.clone().find(|id| !WIDE_CHOICES.contains(id));
    narrow.or_else(|| ids.clone().next())
}
