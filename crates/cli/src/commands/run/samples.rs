//! Runs, nodes and events for tests.

use serde_json::{Value, json};
use turnkeep_wire::runs::{NodeView, RunView};

use super::events::RunEvent;

const TIME: &str = "2026-01-01T12:00:00.000Z";

fn usage() -> Value {
    json!({ "promptTokens": 0, "completionTokens": 0, "totalTokens": 0, "cachedTokens": 0, "costUsd": 0.0 })
}

/// An idle node.
pub(crate) fn node_json(id: &str, alias: &str, role: &str) -> Value {
    json!({
        "id": id, "runId": "run1", "label": format!("The {role}"), "roleTemplate": role,
        "alias": alias, "provider": "claude", "status": "idle", "summary": "",
        "createdAt": TIME, "lastActivityAt": TIME,
        "capabilities": { "spawnNodes": false, "writeCode": true, "writeDocs": true,
                          "runCommands": true, "delegateOnly": false },
        "permissions": { "cliPermissionsMode": "gated", "spawnRequiresApproval": true },
        "session": { "resetCommands": ["/new"] }, "inboxCount": 0, "wakeOn": "any", "depth": 0,
        "usage": usage(),
    })
}

pub(crate) fn node(id: &str, alias: &str, role: &str) -> NodeView {
    serde_json::from_value(node_json(id, alias, role)).unwrap()
}

/// A running run with an orchestrator `lead` (`n1`) and an implementer `impl` (`n2`).
pub(crate) fn run() -> RunView {
    let nodes = json!({
        "n1": node_json("n1", "lead", "orchestrator"),
        "n2": node_json("n2", "impl", "implementer"),
    });
    serde_json::from_value(json!({
        "id": "run1", "contractVersion": "1", "status": "running", "phase": "EXECUTE",
        "mode": "INTERACTIVE", "globalMode": "IMPLEMENTATION", "createdAt": TIME,
        "updatedAt": TIME, "lastSeq": 10, "title": "Fix the refund", "verify": [], "setup": [],
        "budget": {}, "usage": usage(), "nodes": nodes, "edges": {}, "artifacts": {},
        "limits": { "maxConcurrentTurns": 4, "maxNodes": 24, "maxSpawnDepth": 3, "stallAfter": 5,
                    "fanInMs": 300, "silenceWarnMs": 0, "silenceEndMs": 0, "turnEndMs": 0,
                    "approvalMs": 0 },
    }))
    .unwrap()
}

/// An event of a node, with the fields of its body.
pub(crate) fn event(seq: u64, node: &str, kind: &str, body: &Value) -> RunEvent {
    let mut json = json!({
        "id": format!("e{seq}"), "runId": "run1", "ts": TIME, "seq": seq, "nodeId": node,
        "type": kind,
    });
    for (name, value) in body.as_object().into_iter().flatten() {
        json[name] = value.clone();
    }
    let event = RunEvent::new(json);
    assert!(event.view.is_some(), "{}", event.json);
    event
}

/// A tool call in an event.
pub(crate) fn tool(name: &str, args: &Value) -> Value {
    json!({ "id": "t1", "name": name, "args": args })
}
