//! Answers to the control requests of `claude`. The id of the request is inside `response`.

use serde_json::{Value, json};

use crate::field::{list_at, object_at, text_at};
use crate::request::{Answer, RequestError};

/// What must be remembered of a question until it is answered.
#[derive(Debug)]
pub(super) struct ToolQuestion {
    /// An allowed tool gets its arguments from the answer, also if they are unchanged.
    input: Value,
    /// The rules that the program suggests for "always".
    suggested_rules: Vec<Value>,
}

impl ToolQuestion {
    pub(super) fn from_record(record: &Value) -> Self {
        let suggestions = list_at(record, "/request/permission_suggestions").iter();
        let rules = suggestions.filter(|one| text_at(one, "/type") == Some("addRules"));
        Self {
            input: object_at(record, "/request/input"),
            suggested_rules: rules.map(limit_to_session).collect(),
        }
    }

    pub(super) fn can_allow_always(&self) -> bool {
        !self.suggested_rules.is_empty()
    }
}

/// The program suggests to write its rules into the settings of the project or of the user. Ours hold
/// for the session only: an approval in a run must not outlive the run.
fn limit_to_session(suggestion: &Value) -> Value {
    let mut rule = suggestion.clone();
    if let Value::Object(fields) = &mut rule {
        fields.insert("destination".to_owned(), json!("session"));
    }
    rule
}

pub(super) fn answer_question(
    request_id: &str,
    question: &ToolQuestion,
    answer: Answer,
) -> Result<Value, RequestError> {
    let decision = match answer {
        Answer::Allow => json!({"behavior": "allow", "updatedInput": question.input}),
        Answer::AllowWith(args) if args.is_object() => {
            json!({"behavior": "allow", "updatedInput": args})
        }
        Answer::AllowWith(_) => return Err(RequestError::ArgsNotAnObject),
        Answer::AllowAlways => json!({
            "behavior": "allow",
            "updatedInput": question.input,
            "updatedPermissions": question.suggested_rules,
        }),
        Answer::Deny { reason } => return Ok(deny_question(request_id, &reason)),
    };
    Ok(succeed(request_id, &decision))
}

pub(super) fn deny_question(request_id: &str, reason: &str) -> Value {
    // The program rejects a denial without a message.
    let message = match reason.trim() {
        "" => "A person denied this call.",
        reason => reason,
    };
    succeed(request_id, &json!({"behavior": "deny", "message": message}))
}

fn succeed(request_id: &str, decision: &Value) -> Value {
    json!({"type": "control_response", "response": {
        "subtype": "success",
        "request_id": request_id,
        "response": decision,
    }})
}

/// The answer to a control request of a kind that this client does not offer.
pub(super) fn refuse_control(request_id: &str, subtype: &str) -> Value {
    json!({"type": "control_response", "response": {
        "subtype": "error",
        "request_id": request_id,
        "error": format!("this client does not answer {subtype}"),
    }})
}
