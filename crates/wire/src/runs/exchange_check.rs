//! Checks requests to `/api` and their answers against the schemas, for tests.
//!
//! Every route is in the tables below. One that is not fails the check, so that a new route cannot
//! be forgotten.

use serde_json::{Map, Value};

use super::schema_check::{check_body, check_event, check_schema};

/// A request and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    pub method: &'a str,
    /// With the query.
    pub path: &'a str,
    /// The body of the request, if it is JSON.
    pub body: Option<&'a Value>,
    pub status: u16,
    /// The answer. A text that is no JSON counts as a string.
    pub answer: &'a Value,
}

/// Checks an exchange. The error says what does not fit.
pub fn check_exchange(exchange: &Exchange<'_>) -> Result<(), String> {
    let (path, query) = exchange.path.split_once('?').unwrap_or((exchange.path, ""));
    let Some(route) = path.strip_prefix("/api/") else {
        return Ok(());
    };
    // Questions about a resource have no body.
    if matches!(exchange.method, "HEAD" | "OPTIONS") || (300..400).contains(&exchange.status) {
        return Ok(());
    }
    let parts: Vec<&str> = route.split('/').collect();
    if !(200..300).contains(&exchange.status) {
        return check_error(exchange.answer);
    }
    if let (Some(schema), Some(body)) = (request_schema(exchange.method, &parts), exchange.body) {
        check_body(schema, unwrap_body(body))?;
    }
    match answer_shape(exchange.method, &parts, query) {
        Some(AnswerShape::File) => Ok(()),
        Some(AnswerShape::Schema(schema)) => {
            check_schema(schema, exchange.answer)?;
            check_events(exchange.answer)
        }
        None => Err("the tables of exchange_check do not name this route".to_owned()),
    }
}

/// The schema of a page describes its events only by what they share.
fn check_events(answer: &Value) -> Result<(), String> {
    let events = answer.get("events").and_then(Value::as_array);
    events.into_iter().flatten().try_for_each(check_event)
}

/// What a successful answer is.
enum AnswerShape {
    /// A file, a stream or a schema.
    File,
    Schema(&'static str),
}

fn request_schema(method: &str, parts: &[&str]) -> Option<&'static str> {
    let schema = match (method, parts) {
        ("POST", ["runs"]) => "CreateRun",
        ("PATCH", ["runs", _]) => "ChangeRun",
        ("POST", ["runs", _, "nodes"]) => "CreateNode",
        ("PATCH", ["runs", _, "nodes", _]) => "ChangeNode",
        ("POST", ["runs", _, "nodes", _, "reset"]) => "ResetNode",
        ("POST", ["runs", _, "edges"]) => "CreateEdge",
        ("POST", ["runs", _, "chat"]) => "SendChat",
        ("POST", ["runs", _, "handoffs"]) => "SendHandoff",
        ("POST", ["runs", _, "turns", _, _]) => "TurnFiles",
        ("POST", ["runs", _, "fork"]) => "ForkRun",
        ("POST", ["approvals", _, "resolve"]) => "ResolveApproval",
        ("PUT", ["roles" | "teams", _]) => "PutFile",
        _ => return None,
    };
    Some(schema)
}

fn answer_shape(method: &str, parts: &[&str], query: &str) -> Option<AnswerShape> {
    let schema = match (method, parts) {
        ("GET", ["runs"]) if query.contains("summary=1") => "RunSummaryList",
        ("GET", ["runs"]) => "RunList",
        ("POST", ["runs"] | ["runs", "import"] | ["runs", _, "fork" | "dismiss"])
        | ("GET" | "PATCH", ["runs", _]) => "RunAnswer",
        ("DELETE", ["runs", _]) => "RunGone",
        ("GET", ["runs", _, "events"]) => "EventPage",
        ("POST", ["runs", _, "nodes"] | ["runs", _, "nodes", _, _])
        | ("PATCH", ["runs", _, "nodes", _]) => "NodeAnswer",
        ("DELETE", ["runs", _, "nodes", _]) => "NodeGone",
        ("POST", ["runs", _, "edges"]) => "EdgeAnswer",
        ("DELETE", ["runs", _, "edges", _]) => "EdgeGone",
        ("POST", ["runs", _, "chat"]) => "ChatAccepted",
        ("POST", ["runs", _, "handoffs"]) => "HandoffAccepted",
        ("POST", ["runs", _, "apply"]) => "AppliedChanges",
        ("POST", ["runs", _, "verify"]) => "VerificationAnswer",
        ("POST", ["runs", _, "turns", _, _]) => "TurnFilesAnswer",
        ("GET", ["runs", _, "why"]) => "WhyGraph",
        ("GET", ["runs", _, "artifacts"]) => "ArtifactList",
        ("GET", ["runs", _, "artifacts", _]) if query.is_empty() => "ArtifactAnswer",
        ("GET", ["approvals"]) => "ApprovalList",
        ("POST", ["approvals", _, "resolve"]) => "ApprovalResolvedAnswer",
        ("GET", ["rules"]) => "RuleList",
        ("DELETE", ["rules", _]) => "RuleGone",
        ("GET", ["attention"]) => "AttentionList",
        ("GET", ["providers"]) => "ProviderList",
        ("GET", ["fs"]) => "DirectoryListing",
        ("GET", ["roles"]) => "RoleList",
        ("GET" | "PUT", ["roles", _]) => "RoleFile",
        ("GET", ["teams"]) => "TeamList",
        ("GET" | "PUT", ["teams", _]) => "TeamFile",
        ("DELETE", ["roles" | "teams", _]) => "FileGone",
        (
            "GET",
            ["runs", _, "artifacts", _]
            | ["runs", _, "export" | "record"]
            | ["schemas"]
            | ["schemas", _],
        ) => return Some(AnswerShape::File),
        _ => return None,
    };
    Some(AnswerShape::Schema(schema))
}

/// The body inside of a wrapper such as `{"node": …}`.
fn unwrap_body(body: &Value) -> &Value {
    let inner = ["node", "edge", "resolution", "patch"]
        .iter()
        .find_map(|name| body.get(name));
    inner.filter(|inner| inner.is_object()).unwrap_or(body)
}

/// All errors have one form.
fn check_error(answer: &Value) -> Result<(), String> {
    let error = answer.get("error").and_then(Value::as_object);
    let fits = |error: &Map<String, Value>| {
        let is_text = |name: &str| {
            let text = error.get(name).and_then(Value::as_str);
            text.is_some_and(|text| !text.is_empty())
        };
        let has_details = error.get("details").is_some_and(Value::is_object);
        is_text("code") && is_text("message") && has_details && error.len() == 3
    };
    if error.is_some_and(fits) && answer.as_object().is_some_and(|answer| answer.len() == 1) {
        Ok(())
    } else {
        Err("the error does not have the form {error: {code, message, details}}".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "literals read better")]
    fn check(method: &str, path: &str, body: Value, status: u16, answer: Value) -> bool {
        let body = Some(&body);
        let answer = &answer;
        check_exchange(&Exchange {
            method,
            path,
            body,
            status,
            answer,
        })
        .is_ok()
    }

    #[test]
    fn bodies_answers_and_errors_must_fit_and_every_route_is_known() {
        let gone = || json!({"name": "mine"});
        assert!(check("DELETE", "/api/roles/mine", json!({}), 200, gone()));
        assert!(!check(
            "DELETE",
            "/api/roles/mine",
            json!({}),
            200,
            json!({})
        ));
        assert!(!check(
            "DELETE",
            "/api/nothing/mine",
            json!({}),
            200,
            gone()
        ));
        assert!(check("GET", "/v1/contexts", json!({}), 200, json!(1)));

        let accepted = || json!({"messageId": "0b5f1c9e-8a3d-4c55-9a67-0123456789ab"});
        let chat = |body: Value| check("POST", "/api/runs/r/chat", body, 201, accepted());
        assert!(chat(json!({"content": "Go", "unknown": 1})));
        assert!(chat(json!({"patch": {"content": "Go"}})));
        assert!(!chat(json!({"content": 1})));
        assert!(!chat(json!({})));

        let error = json!({"code": "NotFound", "message": "no run", "details": {}});
        let refused = |answer: Value| check("GET", "/api/runs/r", json!(1), 404, answer);
        assert!(refused(json!({"error": error})));
        assert!(!refused(json!({"error": error, "more": 1})));
        assert!(!refused(
            json!({"error": {"code": "NotFound", "message": "no run"}})
        ));
        assert!(!refused(json!("no run")));
    }
}
