//! The server's refusals: what it refused, and what the person can do about it.

use hyper::StatusCode;
use serde_json::Value;
use turnkeep_types::TurnId;
use turnkeep_wire::ErrorReason;

use crate::answer::{text_at, text_of};

/// A lost turn in a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) turn: TurnId,
    /// The nearest turn before it that is left.
    pub(crate) earlier: Option<TurnId>,
    /// Its depth, if a later turn reveals it.
    pub(crate) depth: Option<u64>,
}

/// The command-line options behind the fields of a request.
const OPTIONS: &[(&str, &str)] = &[
    ("declared_overrides.time.declared_world_time", "--time"),
    ("declared_overrides.time.timezone", "--timezone"),
    ("tool.constraints.time_window.from", "--from"),
    ("tool.constraints.time_window.to", "--to"),
    ("tool.constraints.time_window", "--from and --to"),
    ("tool.constraints.limit", "-n"),
    ("tool.constraints.context", "--context"),
    ("tool.query_text", "the query"),
    ("seq", "--at"),
];

/// The server's message, with the option in place of the field's path. The person gave an option
/// and never saw the path.
fn name_option(message: String, details: &Value) -> String {
    let path = text_of(details, "path");
    match OPTIONS.iter().find(|(known, _)| *known == path) {
        Some((path, option)) => message.replacen(path, option, 1),
        None => message,
    }
}

/// What a person may do with a token.
const PERSON_TOKEN_HINT: &str = "a person's token opens what is that person's, and nothing else";

/// The server's refusal.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct HttpRefusal {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// The error's code.
    pub(crate) code: String,
    pub(crate) message: String,
    /// The ids and values that the error is about, by name.
    pub(crate) details: Value,
    /// Why a ledger rejected a bundle, if that is what happened.
    pub(crate) rejection: Option<String>,
    /// Whether a person's token was refused, and not the owner's.
    pub(crate) by_person_token: bool,
}

impl HttpRefusal {
    /// Reads an error response. A body that is not the server's own, such as a proxy's page, leaves
    /// only the status.
    pub(crate) fn new(status: StatusCode, body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let details = body.pointer("/error/details").cloned().unwrap_or_default();
        let code = text_at(&body, "/error/code");
        let message = text_at(&body, "/error/message");
        let message = message.unwrap_or_else(|| format!("the server answered {status}"));
        Self {
            status,
            code: code.unwrap_or_else(|| status.as_u16().to_string()),
            message: name_option(message, &details),
            // A ledger answers a rejected bundle with the bundle instead of an error object.
            rejection: text_at(&body, "/bundle/rejection/reason"),
            details,
            by_person_token: false,
        }
    }

    /// The lost turn, if the server refused because damage of the log lost it.
    pub(crate) fn lost_turn(error: &anyhow::Error) -> Option<Gap> {
        let Self {
            status, details, ..
        } = error.downcast_ref()?;
        // The same status reports a damaged payload. Then the turn itself is there.
        if *status != StatusCode::INTERNAL_SERVER_ERROR || details.get("hash").is_some() {
            return None;
        }
        let turn_id = |name: &str| text_of(details, name).parse().ok();
        let next_depth = details.get("next_depth").and_then(Value::as_u64);
        Some(Gap {
            turn: turn_id("turn_id")?,
            earlier: turn_id("earlier_turn_id"),
            depth: next_depth.and_then(|next| next.checked_sub(1)),
        })
    }

    /// The files that were changed by somebody else, if the server refused because of them.
    pub(crate) fn conflicting_files(error: &anyhow::Error) -> Option<Vec<&str>> {
        let Self {
            status, details, ..
        } = error.downcast_ref()?;
        let files = details.get("paths")?.as_array()?;
        let is_conflict = *status == StatusCode::CONFLICT;
        is_conflict.then(|| files.iter().filter_map(Value::as_str).collect())
    }

    /// What the person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self.code.as_str() {
            "Unauthorized" => self.unauthorized_hint(),
            "Forbidden" => self.forbidden_hint()?,
            "NotFound" => self.not_found_hint()?,
            "Conflict" => return self.conflict_hint(),
            "Unprocessable" => self.field_hint()?,
            "Unavailable" if self.is_because(ErrorReason::WorldUnreadable) => {
                "`turnkeep doctor` checks what else may be wrong"
            }
            // A client's own bytes can be undecodable too; those are not in the log.
            "DecodeError" if self.status.is_server_error() => {
                "`turnkeep verify` lists what is damaged"
            }
            code => store_hint(code).or_else(|| ledger_hint(code))?,
        };
        Some(hint.to_owned())
    }

    fn is_because(&self, reason: ErrorReason) -> bool {
        let details = self.details.as_object();
        details.and_then(ErrorReason::from_details) == Some(reason)
    }

    fn unauthorized_hint(&self) -> &'static str {
        if self.by_person_token {
            "it may have ended or been revoked: whoever gave it to you can mint another"
        } else {
            "give the server's token with --token, or the server's data directory with --data"
        }
    }

    fn forbidden_hint(&self) -> Option<&'static str> {
        if self.is_because(ErrorReason::HostNotAllowed) {
            Some(
                "the server does not accept this host: start it with --allow-host, or use its own address",
            )
        } else if self.details.get("world_id").is_some() {
            // The store refuses writes to the contexts of a world.
            Some("`turnkeep world write` and `turnkeep invoke` write to a world")
        } else {
            self.by_person_token.then_some(PERSON_TOKEN_HINT)
        }
    }

    fn not_found_hint(&self) -> Option<&'static str> {
        // A hint could reveal what the person may not know: that something exists.
        if self.by_person_token {
            None
        } else if self.details.get("ref").is_some() {
            // The message says what is wrong with the ref. The server has the route.
            None
        } else if self.is_because(ErrorReason::WorldUnknown) {
            Some("`turnkeep world list` lists the worlds; `turnkeep world new` makes one")
        } else if self.is_because(ErrorReason::PersonUnknown) {
            Some("`turnkeep world person WORLD list` lists those who were added, `… add` adds one")
        } else {
            Some(self.missing_hint())
        }
    }

    fn field_hint(&self) -> Option<&'static str> {
        if self.is_because(ErrorReason::FieldMissing) {
            Some(
                "`turnkeep registry types TYPE@VERSION` lists the fields; --allow-missing appends without this one",
            )
        } else if self.is_because(ErrorReason::FieldUnknown) {
            Some("`turnkeep registry types TYPE@VERSION` lists the fields")
        } else {
            None
        }
    }

    fn missing_hint(&self) -> &'static str {
        let is_about = |name: &str| self.details.get(name).is_some();
        if is_about("context_id") {
            "`turnkeep ctx list` lists the contexts"
        } else if is_about("turn_id") {
            "`turnkeep log CONTEXT` lists the turns of a context"
        } else if is_about("hash") {
            "`turnkeep blob put FILE` keeps one and prints its hash"
        } else if is_about("bundle_id") || is_about("type_id") {
            "`turnkeep registry types` lists the types; `turnkeep registry put FILE` publishes a bundle"
        } else {
            "check that the server is of the same version as this command"
        }
    }

    fn conflict_hint(&self) -> Option<String> {
        let detail = |name: &str| self.details.get(name).and_then(Value::as_str);
        if let (Some(head), Some(context)) = (detail("actual_head_turn_id"), detail("context_id")) {
            return Some(format!(
                "somebody appended first: look with `turnkeep ctx show {context}`, then try again with --expected-head {head}"
            ));
        }
        let key_reused = self.is_because(ErrorReason::KeyReused);
        key_reused.then(|| KEY_REUSED_HINT.to_owned())
    }
}

const KEY_REUSED_HINT: &str = "a key stands for one request: take a new one for another";

/// The hint for a code of the store that means one thing only.
fn store_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "FailedDependency" => {
            "publish the type first: turnkeep registry put BUNDLE.json; or send bytes as they are with --msgpack"
        }
        "PreconditionFailed" => "publish the type first: turnkeep registry put BUNDLE.json",
        "TooManyRequests" => "the server is busy: try again in a moment",
        "Unavailable" => "restart the server; `turnkeep doctor` checks what may be wrong",
        "InsufficientStorage" => "free some space on the data directory's disk and try again",
        "TooLarge" => {
            "`turnkeep config show` lists the limits; the server takes others under [limits] in its configuration file"
        }
        _ => return None,
    })
}

/// The hint for a code of the ledger.
fn ledger_hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "NAME_TAKEN" => "choose another name",
        "OPERATOR_FORBIDDEN" | "VIEW_FORBIDDEN" => PERSON_TOKEN_HINT,
        "REQUEST_ID_REUSED" => KEY_REUSED_HINT,
        "IN_PROGRESS" => "the same request still runs: ask again in a moment",
        "BAD_CURSOR" => "cursors belong to one world and one reader: leave it out to start anew",
        "TIME_REGRESSION" => "a world's time never goes back: `turnkeep world show WORLD` tells it",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_servers_words_or_at_least_its_status() {
        let refused = HttpRefusal::new(
            StatusCode::NOT_FOUND,
            br#"{"error":{"code":"NotFound","message":"no","details":{}}}"#,
        );
        assert_eq!(
            (refused.code.as_str(), refused.message.as_str()),
            ("NotFound", "no")
        );
        let refused = HttpRefusal::new(StatusCode::BAD_GATEWAY, b"<html>");
        assert_eq!(refused.message, "the server answered 502 Bad Gateway");
    }
}
