//! The tools that an agent calls to work with the other nodes of its run.
//!
//! A call that waits for a person or for a verification is answered within 45 seconds: with the
//! outcome, or with `pending`. A pending outcome arrives in the agent's inbox.
//!
//! A call is made once, however often its request arrives. Two requests are the same if they have
//! the same argument `request_id`, or the same JSON-RPC id, tool and arguments in one turn: a client
//! sends its request again when it lost the connection before the answer. The answer to a repeated
//! call is made from the events of the first one.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use turnkeep_runtime::Fact;
use turnkeep_runtime::decide::{self, ToolAnswer, ToolRequest};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{AgentTurnId, ApprovalId, NodeId, ToolId};
use turnkeep_runtime::node::{Node, NodeSettings};
use turnkeep_runtime::orchestration::OrchestrationCall;
use turnkeep_runtime::tool::ToolOutcome;
use turnkeep_types::BlobHash;

use super::json::{NewNodeKind, NodeDefaults, parse_artifact_ref, read_tool_call, spawned_role};
use super::roles::{self, RoleTemplate};
use super::run_handle::{Decided, RunHandle};
use super::settings::RunsConfig;
use super::waiting_calls::CallOutcome;
use super::world_link::{NodeOrigin, choose_person};

/// How long an agent waits for the outcome of a call.
const ANSWER_WITHIN: Duration = Duration::from_secs(45);
/// How much of an artifact one call returns, in bytes.
const ARTIFACT_PAGE_BYTES: usize = 32 << 10;
/// The longest `request_id`, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 200;
/// How many events are searched at once for the result of an earlier call.
const SEARCHED_EVENTS: usize = 200;

/// Who makes a call, and by which request.
#[derive(Debug, Clone)]
pub(crate) struct ToolCaller {
    node: NodeId,
    /// The JSON-RPC id of an MCP request.
    request: Option<String>,
}

impl ToolCaller {
    /// An agent that wrote its call as a line of text.
    pub(super) fn of_line(node: NodeId) -> Self {
        let request = None;
        Self { node, request }
    }

    /// An agent that made an MCP request with this id.
    pub(crate) fn of_request(node: NodeId, id: &Value) -> Self {
        let request = Some(id.to_string());
        Self { node, request }
    }
}

/// Makes a call of a node's agent.
pub(crate) async fn call(
    handle: &Arc<RunHandle>,
    caller: &ToolCaller,
    name: &str,
    args: &Value,
) -> CallOutcome {
    match name {
        "list_nodes" => Ok(list_nodes(handle, caller.node)),
        "read_artifact" => read_artifact(handle, args).await,
        _ => change_run(handle, caller, name, args).await,
    }
}

/// The nodes that a node can reach, and how they are.
fn list_nodes(handle: &RunHandle, id: NodeId) -> Value {
    handle.read_live(|run| {
        let is_reachable =
            |other: &&Node| run.edges.values().any(|edge| edge.carries(id, other.id));
        let nodes = run.nodes().filter(is_reachable).map(|node| {
            json!({
                "nodeId": node.id.to_string(),
                "alias": node.settings.alias,
                "label": node.settings.label,
                "roleTemplate": node.settings.role,
                "status": node.status.word(),
                "inboxCount": node.inbox.len(),
                "summary": node.summary,
            })
        });
        json!({"nodes": nodes.collect::<Vec<_>>()})
    })
}

/// A page of an artifact's text.
async fn read_artifact(handle: &RunHandle, args: &Value) -> CallOutcome {
    let reference = args.get("ref").and_then(Value::as_str);
    let reference = reference.ok_or("`ref` is missing: give artifact://ID")?;
    let id = parse_artifact_ref(reference).map_err(|error| error.to_string())?;
    let number = |name| args.get(name).and_then(Value::as_u64);
    let offset = usize::try_from(number("offset").unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = number("limit").map_or(ARTIFACT_PAGE_BYTES, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    let content = handle.read(|run| run.archive.artifact(id).map(|artifact| artifact.content));
    let content = content.ok_or_else(|| format!("no artifact has the id {id}"))?;
    let bytes = handle.read_blob(content).await;
    let bytes = bytes.map_err(|error| error.to_string())?;
    let page = find_page(&bytes, offset, limit.min(ARTIFACT_PAGE_BYTES))?;
    let text = bytes.get(page.clone()).unwrap_or_default();
    Ok(json!({
        "text": String::from_utf8_lossy(text),
        "nextOffset": (page.end < bytes.len()).then_some(page.end),
        "bytes": bytes.len(),
    }))
}

/// A page of at most `limit` bytes from `offset` on, or of one character if that is longer. Neither
/// end cuts a character, so that the pages of a text together are the text.
fn find_page(bytes: &[u8], offset: usize, limit: usize) -> Result<Range<usize>, String> {
    let start = offset.min(bytes.len());
    let character = character_start(bytes, start);
    if character < start {
        return Err(format!(
            "`offset` {offset} is inside a character: use the `nextOffset` of the page before, \
             or {character}"
        ));
    }
    if limit == 0 {
        return Err("`limit` must be at least 1".to_owned());
    }
    let cut = start.saturating_add(limit).min(bytes.len());
    let end = character_start(bytes, cut);
    if end > start {
        return Ok(start..end);
    }
    let is_boundary = |at: &usize| character_start(bytes, *at) == *at;
    let end = (cut..bytes.len()).find(is_boundary).unwrap_or(bytes.len());
    Ok(start..end)
}

/// Where the character begins that contains the byte at this place. Bytes that are no UTF-8 count as
/// characters of their own.
fn character_start(bytes: &[u8], at: usize) -> usize {
    /// The longest character has four bytes.
    const CHARACTER_BYTES_MAX: usize = 4;
    let is_continuation = |at: usize| bytes.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    if !is_continuation(at) {
        return at;
    }
    let mut starts = (at.saturating_sub(CHARACTER_BYTES_MAX - 1)..at).rev();
    let start = starts.find(|start| !is_continuation(*start));
    let covers = |start: &usize| {
        let rest = bytes.get(*start..).unwrap_or_default();
        let first = rest.get(..CHARACTER_BYTES_MAX).unwrap_or(rest);
        let valid = first.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let length = valid.chars().next().map_or(0, char::len_utf8);
        *start + length > at
    };
    start.filter(covers).unwrap_or(at)
}

async fn change_run(
    handle: &Arc<RunHandle>,
    caller: &ToolCaller,
    name: &str,
    args: &Value,
) -> CallOutcome {
    // The settings of a new node are recorded as they are.
    let args = &handle.services.secrets().mask_json(args);
    let template = read_template(handle, name, args).await?;
    let mut request = read_request(handle, caller.node, name, args, template.as_ref())?;
    if let OrchestrationCall::SpawnNode(spawn) = &mut request.call {
        let person = choose_person(handle, &spawn.settings, NodeOrigin::Agent);
        spawn.settings.person = person.map_err(|refused| refused.to_string())?;
    }
    let turn = request.turn;
    let key = request_key(caller, turn, name, args)?;
    let made = handle.decide_once(key, move |run, around| {
        decide::call_tool(run, around, request.clone())
    });
    match made.await.map_err(|error| error.to_string())? {
        Decided::Now(answer) => {
            handle.recorded_calls.add(caller.node, turn, name);
            match answer {
                ToolAnswer::Done(result) => Ok(result),
                ToolAnswer::Pending { tool, approval } => {
                    wait_for_outcome(handle, tool, approval).await
                }
            }
        }
        Decided::Before { seq, .. } => find_earlier_outcome(handle, seq).await,
    }
}

/// The template of the role that a new node gets.
async fn read_template(
    handle: &Arc<RunHandle>,
    name: &str,
    args: &Value,
) -> Result<Option<RoleTemplate>, String> {
    let role = spawned_role(name, args).map_err(|error| error.to_string())?;
    let Some(role) = role else {
        return Ok(None);
    };
    let services = &handle.services;
    let roles_dir = services.settings.roles_dir.clone();
    let cwd = handle.read_live(|run| run.settings.cwd.clone());
    let read = move || roles::read(&role, cwd.as_deref(), roles_dir.as_deref());
    let template = services.run_blocking(read).await;
    template.map_err(|error| error.to_string())?.map(Some)
}

/// Checks the arguments of a call in the node's open turn.
fn read_request(
    handle: &RunHandle,
    node: NodeId,
    name: &str,
    args: &Value,
    template: Option<&RoleTemplate>,
) -> Result<ToolRequest, String> {
    let config = &handle.services.settings;
    handle.read_live(|run| {
        let caller = run.node(node).ok_or("the node is gone")?;
        let turn: AgentTurnId = caller.turn.as_ref().ok_or("no turn is open")?.id;
        let defaults = |kind: &NewNodeKind<'_>| {
            let cli = config.default_permissions(kind.provider, kind.provider_name);
            let defaults = NodeDefaults::of_role(kind.role, cli);
            match template {
                Some(template) => template.adjust(defaults),
                None => defaults,
            }
        };
        let call = read_tool_call(name, args, caller, defaults);
        let call = call.map_err(|error| error.to_string())?;
        if let OrchestrationCall::SpawnNode(spawn) = &call {
            check_child(config, caller, &spawn.settings)?;
        }
        Ok(ToolRequest {
            node,
            turn,
            args: args.clone(),
            call,
        })
    })
}

/// Rejects a child whose program is not configured, or cannot ask although the child must: its
/// permissions are never looser than its parent's.
fn check_child(config: &RunsConfig, parent: &Node, child: &NodeSettings) -> Result<(), String> {
    let program = config.program_of(child);
    program.map_err(|unknown| unknown.to_string())?;
    let own = child.permissions.cli;
    let permissions = child
        .permissions
        .tightened_by(parent.effective_permissions());
    let tightened = NodeSettings {
        permissions,
        ..child.clone()
    };
    match config.check_permissions(&tightened) {
        Err(refused) if own != permissions.cli => Err(format!(
            "the program `{}` cannot ask before it uses a tool, but its parent must: spawn the node \
             with a program that can ask, or ask the user to add it",
            refused.program
        )),
        checked => checked.map_err(|refused| refused.to_string()),
    }
}

/// The key by which a repeated call is recognized. A call by a line of text has none unless it gives
/// one: the server reads each line once.
fn request_key(
    caller: &ToolCaller,
    turn: AgentTurnId,
    name: &str,
    args: &Value,
) -> Result<Option<RequestKey>, String> {
    let fingerprint = BlobHash::of(format!("{name} {args}").as_bytes());
    let given = args.get("request_id").filter(|given| !given.is_null());
    let key = match (given, &caller.request) {
        (Some(given), _) => {
            let text = given.as_str().unwrap_or_default();
            if text.is_empty() || text.len() > REQUEST_ID_BYTES_MAX {
                return Err(format!(
                    "`request_id` must be a text of 1 to {REQUEST_ID_BYTES_MAX} bytes"
                ));
            }
            format!("tool {} {text}", caller.node)
        }
        // A client that reconnects may count its ids anew, so another call with the same id is
        // another call.
        (None, Some(id)) => format!("mcp {} {turn} {id} {fingerprint}", caller.node),
        (None, None) => return Ok(None),
    };
    Ok(Some(RequestKey { key, fingerprint }))
}

/// The outcome of a call that was made before.
async fn find_earlier_outcome(handle: &Arc<RunHandle>, first: u64) -> CallOutcome {
    // The first event is the call itself. Its id finds the outcome among the events behind it. If the
    // first event is no call, the request id belongs to another kind of request.
    let mut next = first;
    let mut tool: Option<ToolId> = None;
    loop {
        let events = handle.read_events(next, SEARCHED_EVENTS).await;
        let events = events.map_err(|error| error.to_string())?;
        for event in &events {
            match &event.fact {
                Fact::ToolProposed(call) if event.seq == first => tool = Some(call.id),
                Fact::ToolCompleted {
                    tool: done,
                    outcome,
                } if Some(*done) == tool => {
                    return outcome_of(outcome);
                }
                _ => {}
            }
        }
        let Some(last) = events.last() else {
            break;
        };
        next = last.seq + 1;
    }
    match tool {
        Some(tool) => wait_for_outcome(handle, tool, None).await,
        None => Err("`request_id` was used for another request: choose another one".to_owned()),
    }
}

fn outcome_of(outcome: &ToolOutcome) -> CallOutcome {
    let text = outcome.output.as_deref().unwrap_or_default();
    if outcome.ok {
        Ok(serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
    } else {
        let reason = outcome.error.as_deref();
        Err(reason.unwrap_or("the call has failed").to_owned())
    }
}

async fn wait_for_outcome(
    handle: &RunHandle,
    tool: ToolId,
    approval: Option<ApprovalId>,
) -> CallOutcome {
    let mut outcome = handle.waiting_calls.wait(tool);
    match tokio::time::timeout(ANSWER_WITHIN, &mut outcome).await {
        Ok(Ok(outcome)) => return outcome,
        Ok(Err(_)) => return Err("the server is stopping".to_owned()),
        Err(_) => handle.waiting_calls.give_up(tool),
    }
    // The outcome may have come in the same moment. From here on it goes to the inbox.
    if let Ok(outcome) = outcome.try_recv() {
        handle.waiting_calls.forget(tool);
        return outcome;
    }
    let mut pending = json!({"pending": true});
    // A call that waits for a verification has none.
    if let Some(approval) = approval {
        pending["approvalId"] = approval.to_string().into();
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all pages of a text.
    fn pages(bytes: &[u8], limit: usize) -> Vec<Vec<u8>> {
        let mut pages = Vec::new();
        let mut offset = 0;
        while offset < bytes.len() {
            let page = find_page(bytes, offset, limit).unwrap();
            assert!(page.start == offset && page.end > offset, "{page:?}");
            offset = page.end;
            pages.push(bytes[page].to_vec());
        }
        pages
    }

    #[test]
    fn pages_of_a_text_are_whole_characters_and_together_the_text() {
        for text in ["ä".repeat(10), "aä€😀".repeat(5), "plain".to_owned()] {
            for limit in 1..=9 {
                let pages = pages(text.as_bytes(), limit);
                let texts: Vec<&str> = pages
                    .iter()
                    .map(|page| std::str::from_utf8(page).unwrap())
                    .collect();
                assert_eq!(texts.concat(), text, "{limit}");
                assert!(pages.iter().all(|page| page.len() <= limit.max(4)));
            }
        }
        // Bytes that are no text are cut anywhere.
        let noise = [0x80; 9];
        assert_eq!(pages(&noise, 4), [vec![0x80; 4], vec![0x80; 4], vec![0x80]]);
        let torn = [b'a', 0xE2, 0x82, b'b', 0x82];
        assert_eq!(pages(&torn, 2).concat(), torn);
    }

    #[test]
    fn an_offset_inside_a_character_is_refused_with_the_right_one() {
        let text = "aä😀".as_bytes();
        for (offset, right) in [(2, 1), (4, 3), (5, 3), (6, 3)] {
            let refused = find_page(text, offset, 10).unwrap_err();
            assert!(refused.ends_with(&format!("or {right}")), "{refused}");
        }
        for offset in [0, 1, 3, 7] {
            assert_eq!(find_page(text, offset, 10), Ok(offset..text.len()));
        }
        assert_eq!(find_page(text, 100, 10), Ok(7..7));
        assert!(find_page(text, 0, 0).is_err());
    }
}
