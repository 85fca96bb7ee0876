//! Requests: the commands that they become, and the field that an error names.

use serde_json::{Value, json};
use turnkeep_runtime::Run;
use turnkeep_runtime::decide::ResetInbox;
use turnkeep_runtime::node::{Capabilities, NewNode, Node, NodeSettings};
use turnkeep_runtime::orchestration::OrchestrationCall;
use turnkeep_runtime::run::RunLimits;
use turnkeep_runtime::words::{EdgeKind, Expectation, ResolvedBy, RunStatus, Scope, Verdict};
use turnkeep_runtime::{Event, Fact};
use turnkeep_wire::runs::schema_check::check_schema;
use turnkeep_wire::runs::{
    ChangeNode, ChangeRun, CreateEdge, CreateNode, CreateRun, ForkRun, PutFile, ReadArtifactArgs,
    ResetNode, ResolveApproval, SendChat, SendHandoff, TurnFiles,
};

use super::super::{
    BodyError, NewRun, RequestBody, change_node_settings, change_of_run, chat_of, edge_request,
    find_node_id, handoff_of, new_run, parse_artifact_ref, read_body, read_tool_call, reset_inbox,
    resolution_of,
};
use super::*;
use crate::error::ApiError;

fn run_with_node() -> Run {
    let mut run = Run::new(id(1));
    let new = NewNode {
        id: id(2),
        settings: node_settings("orch", "orchestrator"),
        parent: None,
        depth: 0,
    };
    let facts = [
        Fact::RunCreated(Box::new(run_settings())),
        Fact::NodeAdded(Box::new(new)),
    ];
    for (seq, fact) in (1..).zip(facts) {
        run.apply(&Event {
            id: id(seq.into()),
            seq,
            at: NOW,
            node: Some(id(2)),
            turn: None,
            request: None,
            made: None,
            fact,
        });
    }
    run
}

/// Where and why a body is rejected.
#[track_caller]
fn check_bad<T: RequestBody + std::fmt::Debug>(body: &Value, path: &str, message: &str) {
    check_error(read_body::<T>(body).unwrap_err(), path, message);
}

#[track_caller]
fn check_error(error: BodyError, path: &str, message: &str) {
    let text = error.to_string();
    let error = ApiError::from(error);
    assert_eq!(error.code.status(), 400);
    let found = error.details.get("path").and_then(Value::as_str);
    assert_eq!(found.unwrap_or_default(), path, "{text}");
    assert!(text.contains(message), "{text}");
}

/// A body that reads, fits its schema, and is written as it was read.
#[track_caller]
fn check_good<T>(name: &str, body: &Value) -> T
where
    T: RequestBody + serde::Serialize + PartialEq + std::fmt::Debug,
{
    let read: T = read_body(body).unwrap();
    let written = json_of(&read);
    check_schema(name, body).unwrap();
    check_schema(name, &written).unwrap();
    for (field, value) in body.as_object().unwrap() {
        assert_eq!(&written[field], value, "{field}");
    }
    read
}

#[test]
fn an_error_has_the_path_of_the_wrong_value() {
    check_bad::<SendChat>(&json!({}), "content", "is missing");
    check_bad::<SendChat>(&json!({"content": 1}), "content", "must be a string");
    check_bad::<SendChat>(&json!({"content": null}), "content", "must be a string");
    check_bad::<SendChat>(
        &json!({"content": "x", "interrupt": "yes"}),
        "interrupt",
        "must be true or false, not string \"yes\"",
    );
    check_bad::<ChangeRun>(
        &json!({"status": "done"}),
        "status",
        "is `done`, which is not one of: queued, running, paused, completed, failed",
    );
    check_bad::<ChangeRun>(&json!({"status": 1}), "status", "must be one of: queued");
    check_bad::<ChangeRun>(
        &json!({"limits": {"fanInMs": -1}}),
        "limits.fanInMs",
        "must be a whole number from 0 on, not integer `-1`",
    );
    check_bad::<ChangeRun>(
        &json!({"limits": {"maxNodes": 5_000_000_000_u64}}),
        "limits.maxNodes",
        "must be a whole number",
    );
    check_bad::<ChangeRun>(&json!({"budget": []}), "budget", "must be an object");
    check_bad::<CreateRun>(
        &json!({"verify": ["make", 1]}),
        "verify[1]",
        "must be a string",
    );
    check_bad::<CreateRun>(&json!({"verify": "make"}), "verify", "must be a list");
    check_bad::<CreateRun>(&json!([]), "", "the body must be an object");
    check_bad::<SendHandoff>(
        &json!({"to": "a", "message": "m", "artifacts": ["artifact://x", 1]}),
        "artifacts[1]",
        "must be a reference",
    );
}

#[test]
fn a_wrapped_body_is_unwrapped_and_its_errors_have_the_whole_path() {
    let edge: CreateEdge = read_body(&json!({"edge": {"from": "a", "to": "b"}})).unwrap();
    assert_eq!(edge.to, "b");
    let change: ChangeNode = read_body(&json!({"patch": {"label": "x"}})).unwrap();
    assert_eq!(change.label.as_deref(), Some("x"));
    let change: ChangeNode = read_body(&json!({"node": {"label": "x"}})).unwrap();
    assert_eq!(change.label.as_deref(), Some("x"));
    let resolve: ResolveApproval = read_body(&json!({"resolution": {"status": "denied"}})).unwrap();
    assert_eq!(resolve.reason, None);
    check_bad::<CreateEdge>(
        &json!({"edge": {"from": "a", "to": 1}}),
        "edge.to",
        "must be a string",
    );
    // Besides other fields it is an unknown field like any other.
    check_bad::<CreateEdge>(
        &json!({"edge": {"from": "a", "to": "b"}, "from": "a"}),
        "to",
        "is missing",
    );
    check_bad::<CreateEdge>(&json!({"edge": 1}), "from", "is missing");
}

#[test]
fn unknown_fields_are_ignored_and_fixed_ones_are_not() {
    let chat: SendChat = read_body(&json!({"content": "x", "color": "red"})).unwrap();
    assert_eq!(chat.content, "x");
    for field in ["status", "usage", "person"] {
        check_bad::<ChangeNode>(&json!({field: "x"}), field, "cannot be set");
    }
    check_bad::<ChangeNode>(
        &json!({"node": {"session": {"sessionId": "s"}}}),
        "node.session.sessionId",
        "cannot be set",
    );
    check_bad::<ChangeRun>(&json!({"cwd": "/"}), "cwd", "cannot be set");
}

#[test]
fn a_new_run_has_the_defaults() {
    let body: CreateRun = check_good("CreateRun", &json!({}));
    let NewRun { settings, .. } = new_run(body, RunLimits::default()).unwrap();
    assert_eq!(settings.mode, Mode::Interactive);
    assert_eq!(settings.global_mode, GlobalMode::Implementation);
    assert_eq!(settings.limits, RunLimits::default());
    let body = check_good(
        "CreateRun",
        &json!({
            "cwd": "/work", "goal": "g", "title": "t", "mode": "AUTO", "globalMode": "PLANNING",
            "team": "pair", "world": "payments", "verify": ["make test"], "setup": ["make"],
            "docsNode": "docs", "budget": {"tokens": 10, "costUsd": 0.1},
            "limits": {"stallAfter": 0, "maxConcurrentTurns": 2},
        }),
    );
    let new = new_run(body, RunLimits::default()).unwrap();
    assert_eq!(new.docs_node.as_deref(), Some("docs"));
    assert_eq!(new.settings.budget.cost_micro_usd, Some(100_000));
    assert_eq!(new.settings.limits.open_turns_max, 2);
    assert_eq!(new.settings.limits.fan_in_ms, 300);
}

#[test]
fn a_run_out_of_bounds_is_rejected_with_the_path() {
    let check = |body: Value, path: &str, message: &str| {
        let body: CreateRun = read_body(&body).unwrap();
        let error = new_run(body, RunLimits::default()).unwrap_err();
        check_error(error, path, message);
    };
    check(json!({"title": "x".repeat(81)}), "title", "81 characters");
    check(json!({"verify": ["make", " "]}), "verify[1]", "is empty");
    check(json!({"setup": vec!["x"; 65]}), "setup", "more than 64");
    check(
        json!({"budget": {"costUsd": -1.0}}),
        "budget.costUsd",
        "from 0",
    );
    check(
        json!({"limits": {"fanInMs": 5001}}),
        "limits.fanInMs",
        "from 0 to 5000",
    );
    check(
        json!({"limits": {"maxNodes": 0}}),
        "limits.maxNodes",
        "from 1",
    );
    check(
        json!({"limits": {"maxConcurrentTurns": 0}}),
        "limits.maxConcurrentTurns",
        "at least 1",
    );
}

#[test]
fn a_change_of_a_run_keeps_what_is_left_out_and_clears_what_is_null() {
    let run = run_with_node();
    let change = |body: Value| {
        let body: ChangeRun = check_good("ChangeRun", &body);
        change_of_run(&body, &run.live).unwrap()
    };
    let paused = change(json!({"status": "paused", "interrupt": true}));
    assert_eq!(paused.status, Some(RunStatus::Paused));
    assert!(paused.interrupt);
    assert_eq!(paused.settings, None);
    // The same values again are no change.
    assert_eq!(change(json!({"title": "Fix the refund"})).settings, None);
    let cleared = change(json!({"goal": null, "budget": null, "docsNode": "ORCH"}));
    let settings = cleared.settings.unwrap();
    assert_eq!(settings.goal, None);
    assert_eq!(settings.budget.tokens, None);
    assert_eq!(settings.docs_node, Some(id(2)));
    assert_eq!(settings.cwd.as_deref(), Some("/work"));
    let body: ChangeRun = read_body(&json!({"docsNode": "nobody"})).unwrap();
    let error = change_of_run(&body, &run.live).unwrap_err();
    check_error(error, "docsNode", "names no node");
}

fn settings_of(body: &Value) -> Result<NodeSettings, BodyError> {
    let body: CreateNode = read_body(body)?;
    let defaults = NodeDefaults::of_role(&body.role_template, CliPermissions::Gated);
    super::super::node_settings(body, defaults)
}

#[test]
fn a_role_gives_the_rights_that_a_request_leaves_out() {
    let check = |role: &str, spawns: bool, writes_code: bool| {
        let body = json!({"label": "x", "roleTemplate": role, "provider": "codex"});
        check_good::<CreateNode>("CreateNode", &body);
        let settings = settings_of(&body).unwrap();
        let expect = Capabilities {
            spawn_nodes: spawns,
            write_code: writes_code,
            write_docs: true,
            run_commands: true,
            delegate_only: false,
        };
        assert_eq!(settings.capabilities, expect, "{role}");
        assert_eq!(settings.permissions.spawn_requires_approval, !spawns);
        assert_eq!(settings.reset_commands, ["/new", "/clear"]);
    };
    check("orchestrator", true, false);
    check("Orchestrator", true, false);
    check("planner", false, false);
    check("reviewer", false, false);
    check("implementer", false, true);
    check("tester", false, true);
    check("docs", false, true);
    check("our-own", false, true);
}

#[test]
fn a_request_overrides_single_rights() {
    let settings = settings_of(&json!({
        "label": "x", "role": "planner", "provider": "custom", "providerName": "local",
        "capabilities": {"writeCode": true, "runCommands": false},
        "permissions": {"cliPermissionsMode": "skip"}, "wakeOn": "all",
        "session": {"resetCommands": []}, "position": {"x": 1, "y": 2.5},
    }))
    .unwrap();
    assert!(settings.capabilities.write_code);
    assert!(settings.capabilities.write_docs);
    assert!(!settings.capabilities.run_commands);
    assert_eq!(settings.permissions.cli, CliPermissions::Skip);
    assert!(settings.permissions.spawn_requires_approval);
    assert_eq!(settings.wake_on, WakeOn::All);
    assert!(settings.reset_commands.is_empty());
    let custom = json!({"label": "x", "roleTemplate": "docs", "provider": "custom"});
    check_error(
        settings_of(&custom).unwrap_err(),
        "providerName",
        "is missing",
    );
    let unknown = json!({"label": "x", "roleTemplate": "docs", "provider": "eliza"});
    check_error(
        settings_of(&unknown).unwrap_err(),
        "provider",
        "is `eliza`, which is not one of: codex, claude, gemini, custom",
    );
}

#[test]
fn a_change_of_a_node_keeps_what_is_left_out_and_clears_what_is_null() {
    let current = NodeSettings {
        custom_system_prompt: Some("Be brief.".to_owned()),
        ..node_settings("a", "implementer")
    };
    let change = |body: Value| {
        let body: ChangeNode = check_good("ChangeNode", &body);
        change_node_settings(body, &current).unwrap()
    };
    assert_eq!(change(json!({})), current);
    let changed = change(json!({
        "alias": null, "customSystemPrompt": null, "label": "new", "provider": "codex",
        "capabilities": {"writeDocs": false}, "position": {"x": 1.0, "y": 2.0},
    }));
    assert_eq!(changed.alias, None);
    assert_eq!(changed.custom_system_prompt, None);
    assert_eq!(changed.label, "new");
    assert_eq!(changed.provider, Provider::Codex);
    assert!(changed.capabilities.write_code);
    assert!(!changed.capabilities.write_docs);
    assert_eq!(changed.role, "implementer");
}

#[test]
fn small_requests_become_commands() {
    let body = check_good(
        "CreateEdge",
        &json!({"from": "a", "to": "b", "type": "report", "bidirectional": false, "gate": true}),
    );
    let edge = edge_request(&body);
    assert_eq!((edge.from, edge.to), ("a", "b"));
    assert_eq!(edge.kind, Some(EdgeKind::Report));
    assert_eq!(edge.bidirectional, Some(false));
    assert_eq!(edge.gate, Some(true));
    let body = check_good("SendChat", &json!({"content": "x", "nodeId": "a"}));
    let chat = chat_of(&body);
    assert_eq!(
        (chat.content, chat.node, chat.interrupt),
        ("x", Some("a"), false)
    );
    let body = check_good(
        "ResolveApproval",
        &json!({"status": "modified", "modifiedArgs": {"cmd": "ls"}, "scope": "node"}),
    );
    let resolution = resolution_of(body, ResolvedBy::Web);
    assert_eq!(resolution.verdict, Verdict::Modified);
    assert_eq!(resolution.modified_args, Some(json!({"cmd": "ls"})));
    assert_eq!(resolution.scope, Scope::Node);
    assert_eq!(resolution.by, Some(ResolvedBy::Web));
    let denied = resolution_of(
        read_body(&json!({"status": "denied"})).unwrap(),
        ResolvedBy::Api,
    );
    assert_eq!(denied.scope, Scope::Once);
    let clear: ResetNode = check_good("ResetNode", &json!({"clearInbox": true}));
    assert_eq!(reset_inbox(&clear), ResetInbox::Clear);
    assert_eq!(
        reset_inbox(&read_body(&json!({})).unwrap()),
        ResetInbox::Keep
    );
    check_good::<TurnFiles>("TurnFiles", &json!({"paths": ["src/x"]}));
    check_good::<ForkRun>("ForkRun", &json!({"seq": 7}));
    check_good::<PutFile>("PutFile", &json!({"text": "# Role"}));
    check_good::<ReadArtifactArgs>(
        "ReadArtifactArgs",
        &json!({"ref": "artifact://x", "limit": 9}),
    );
}

#[test]
fn a_handoff_names_artifacts_in_every_form() {
    let run = run_with_node();
    let artifact = id_text(4);
    let body = check_good(
        "SendHandoff",
        &json!({
            "from": "orch", "to": "a", "message": "m", "structured": {"k": [1]},
            "artifacts": [
                format!("artifact://{artifact}"),
                {"ref": format!("artifact://diff/{artifact}")},
            ],
            "status": {"ok": false, "reason": "r"},
            "response": {"expectation": "optional", "replyTo": id_text(7)},
            "contextRef": format!("contextpack://pack/{artifact}"),
        }),
    );
    let handoff = handoff_of(&body, &run.live).unwrap();
    assert_eq!(handoff.from, id(2));
    assert_eq!(handoff.artifacts, [id(4), id(4)]);
    assert_eq!(handoff.context_pack, Some(id(4)));
    assert_eq!(handoff.expectation, Some(Expectation::Optional));
    assert_eq!(handoff.reply_to, Some(id(7)));
    let reference = |text: String| {
        let body = json!({"from": "orch", "to": "a", "message": "m", "contextRef": text});
        let body: SendHandoff = read_body(&body).unwrap();
        handoff_of(&body, &run.live).unwrap().context_pack
    };
    for scheme in ["contextpack://", "artifact://", "artifact://diff/"] {
        assert_eq!(
            reference(format!("{scheme}{artifact}")),
            Some(id(4)),
            "{scheme}"
        );
    }
    // The names that agents know from other places.
    let alias = json!({"fromNodeId": id_text(2), "toNodeId": "a", "summary": "m"});
    let body: SendHandoff = read_body(&alias).unwrap();
    assert_eq!(handoff_of(&body, &run.live).unwrap().message, "m");
}

#[test]
fn a_bad_handoff_is_rejected_with_the_path() {
    let run = run_with_node();
    let check = |more: Value, path: &str| {
        let mut body = json!({"from": "orch", "to": "a", "message": "m"});
        for (field, value) in more.as_object().unwrap() {
            body[field] = value.clone();
        }
        let body: SendHandoff = read_body(&body).unwrap();
        let error = handoff_of(&body, &run.live).unwrap_err();
        check_error(error, path, "");
    };
    check(json!({"from": null}), "from");
    check(json!({"from": "nobody"}), "from");
    check(json!({"artifacts": ["artifact://x"]}), "artifacts[0]");
    check(json!({"artifacts": [id_text(4)]}), "artifacts[0]");
    check(json!({"contextRef": "contextpack://"}), "contextRef");
    check(json!({"response": {"replyTo": "x"}}), "response.replyTo");
    assert!(parse_artifact_ref(&format!("artifact://a/b/{}", id_text(4))).is_err());
}

#[test]
fn a_node_is_found_by_id_and_by_alias() {
    let run = run_with_node();
    for (name, found) in [
        (id_text(2).as_str(), true),
        ("orch", true),
        ("ORCH", true),
        ("The orch", false),
        ("", false),
    ] {
        assert_eq!(find_node_id(&run.live, name).is_some(), found, "{name}");
    }
}

fn tool_call(name: &str, args: &Value) -> Result<OrchestrationCall, BodyError> {
    let new = NewNode {
        id: id(2),
        settings: node_settings("orch", "orchestrator"),
        parent: None,
        depth: 0,
    };
    let caller = Node::new(new, NOW);
    read_tool_call(name, args, &caller, |kind| {
        NodeDefaults::of_role(kind.role, CliPermissions::Gated)
    })
}

#[test]
fn an_agent_calls_the_tools_of_the_daemon() {
    let args = json!({
        "label": "Coder", "role": "implementer", "alias": "b", "instructions": "Be careful.",
        "input": "Fix it.", "capabilities": {"writeDocs": false},
    });
    let OrchestrationCall::SpawnNode(spawn) = tool_call("spawn_node", &args).unwrap() else {
        panic!("another call");
    };
    assert_eq!(spawn.settings.provider, Provider::Claude);
    assert_eq!(spawn.settings.role, "implementer");
    assert!(!spawn.settings.capabilities.write_docs);
    assert_eq!(spawn.input.as_deref(), Some("Be careful.\n\nFix it."));
    assert!(spawn.connect);
    let args =
        json!({"to": "b", "summary": "do it", "artifacts": [format!("artifact://{}", id_text(4))]});
    let OrchestrationCall::SendHandoff(handoff) = tool_call("send_handoff", &args).unwrap() else {
        panic!("another call");
    };
    assert_eq!(handoff.message, "do it");
    assert_eq!(handoff.artifacts, [id(4)]);
    let args = json!({"question": "Which?", "options": ["a"]});
    assert!(tool_call("ask_user", &args).is_ok());
    assert!(tool_call("create_edge", &json!({"from": "a", "to": "b"})).is_ok());
    let args = json!({"summary": "done", "ok": true, "evidence": "tests pass"});
    assert!(tool_call("complete_run", &args).is_ok());
    let check = |name: &str, args: Value, path: &str| {
        check_error(tool_call(name, &args).unwrap_err(), path, "");
    };
    check("spawn_node", json!({"label": "x"}), "roleTemplate");
    check("ask_user", json!({}), "question");
    check("complete_run", json!({"summary": "x", "ok": false}), "ok");
    check("launch_missiles", json!({}), "name");
}
