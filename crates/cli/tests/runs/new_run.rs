//! `run new`: which program the nodes get, and that no half of a run is left behind.

use serde_json::{Value, json};

use super::*;

fn program(name: &str, provider: &str, logged_in: Option<bool>, approvals: bool) -> Value {
    json!({
        "name": name, "provider": provider, "found": true, "version": "2.1", "loggedIn": logged_in,
        "features": { "resume": true, "steer": true, "approvals": approvals, "editArgs": true,
                      "usage": true, "cost": true, "mcp": true, "planMode": true },
    })
}

/// A server that makes runs with one node, `impl`, behind `claude`.
fn server_that_makes_runs(programs: &[Value]) -> Answers {
    let path = format!("/api/runs/{RUN}");
    let mut made = run();
    made["nodes"] = json!({ IMPL: node(IMPL, "impl", "implementer") });
    answers()
        .json("GET /api/providers", json!({ "providers": programs }))
        .json("POST /api/runs", json!({ "run": made }))
        .json(
            &format!("PATCH {path}/nodes/{IMPL}"),
            json!({ "node": node(IMPL, "impl", "implementer") }),
        )
        .json(&format!("POST {path}/chat"), json!({ "messageId": LEAD }))
        .json(&format!("DELETE {path}"), json!({ "runId": RUN }))
}

#[test]
fn a_node_gets_another_program_only_if_its_own_cannot_work_or_one_is_named() {
    let claude = |logged_in| program("claude", "claude", logged_in, true);
    let mine = program("mine", "custom", None, true);
    let shell = program("shell", "custom", None, false);
    let changed_to = |programs: &[Value], provider: &str| {
        let server = StubServer::start(server_that_makes_runs(programs));
        let command = format!("run new x --detach{provider}");
        let shown = transcript(&server, &[&command]);
        assert!(shown.contains("run 3f2a: Fix it"), "{shown}");
        let changes = server.changes();
        let patch = format!("PATCH /api/runs/{RUN}/nodes/{IMPL} ");
        let patch = changes
            .iter()
            .find_map(|change| change.strip_prefix(&patch));
        patch.map(|patch| serde_json::from_str::<Value>(patch).unwrap())
    };
    assert_eq!(changed_to(&[claude(Some(true)), mine.clone()], ""), None);
    // The command says that it takes the program that is logged in, so the node must have it.
    let to_mine = json!({ "provider": "custom", "providerName": "mine" });
    let programs = [claude(Some(false)), mine];
    assert_eq!(changed_to(&programs, ""), Some(to_mine.clone()));
    assert_eq!(changed_to(&programs, " --provider mine"), Some(to_mine));
    // A program that cannot ask must not be told to.
    assert_eq!(
        changed_to(&[claude(None), shell], " --provider shell"),
        Some(json!({
            "provider": "custom", "providerName": "shell",
            "permissions": { "cliPermissionsMode": "skip" },
        }))
    );
}

#[test]
fn a_run_whose_nodes_are_refused_is_deleted_again() {
    let programs = [
        program("claude", "claude", None, true),
        program("codex", "codex", None, true),
    ];
    let refused = json!({ "error": { "code": "Unprocessable", "message": "codex cannot" } });
    let server = StubServer::start(server_that_makes_runs(&programs).refusal(
        &format!("PATCH /api/runs/{RUN}/nodes/{IMPL}"),
        422,
        refused,
    ));
    check(
        &transcript(&server, &["run new x --detach --provider codex"]),
        "
        $ run new x --detach --provider codex
        program: codex 2.1
        error: the run could not be made, and nothing is left of it: codex cannot
        [exit status: 1]",
    );
    assert_eq!(
        server.changes().last(),
        Some(&format!("DELETE /api/runs/{RUN}"))
    );
}

#[test]
fn an_empty_goal_makes_nothing() {
    let server = StubServer::start(server_that_makes_runs(&[]));
    let sandbox = Sandbox::new();
    let addr = server.addr();
    for goal in ["", " \n"] {
        let args = ["run", "new", goal, "--server", &addr, "--token", "t"];
        let output = sandbox.output(&args, b"");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("for '<GOAL>': it is empty"), "{said}");
        assert_eq!(output.status.code(), Some(2));
    }
    assert!(server.changes().is_empty());
}
