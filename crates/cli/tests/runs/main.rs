//! The commands for runs, against a server with fixed answers: which requests they send, and what
//! they print.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod new_run;
mod revert;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/mod.rs"]
mod sandbox;
mod stub_server;
mod terminal;

use serde_json::{Value, json};

use sandbox::{Sandbox, check};
use stub_server::{Answers, StubServer};

const TIME: &str = "2026-01-01T12:00:00.000Z";
/// So that an age is 0 whenever the test runs.
const LATER: &str = "2999-01-01T12:00:00.000Z";
const RUN: &str = "3f2a0000-0000-4000-8000-000000000001";
const OLD_RUN: &str = "9b9b0000-0000-4000-8000-000000000002";
const LEAD: &str = "11110000-0000-4000-8000-000000000003";
const IMPL: &str = "22220000-0000-4000-8000-000000000004";
const APPROVAL: &str = "9c4e0000-0000-4000-8000-000000000005";

fn usage(tokens: u64, cost: f64) -> Value {
    json!({ "promptTokens": 0, "completionTokens": tokens, "totalTokens": tokens, "cachedTokens": 0,
            "costUsd": cost })
}

fn summary(id: &str, status: &str, title: &str) -> Value {
    json!({
        "id": id, "contractVersion": "1", "status": status, "phase": "EXECUTE",
        "mode": "INTERACTIVE", "globalMode": "IMPLEMENTATION", "createdAt": TIME,
        "updatedAt": LATER, "title": title, "usage": usage(1500, 0.42), "nodeCount": 2,
        "runningCount": 1, "openApprovals": 1,
    })
}

fn node(id: &str, alias: &str, role: &str) -> Value {
    json!({
        "id": id, "runId": RUN, "label": alias, "alias": alias, "roleTemplate": role,
        "provider": "claude", "status": "idle", "summary": "ready", "createdAt": TIME,
        "lastActivityAt": TIME, "inboxCount": 0, "wakeOn": "any", "depth": 0, "usage": usage(0, 0.0),
        "capabilities": { "spawnNodes": false, "writeCode": true, "writeDocs": true,
                          "runCommands": true, "delegateOnly": false },
        "permissions": { "cliPermissionsMode": "gated", "spawnRequiresApproval": true },
        "session": { "resetCommands": [] },
    })
}

fn run() -> Value {
    json!({
        "id": RUN, "contractVersion": "1", "status": "running", "phase": "EXECUTE",
        "mode": "INTERACTIVE", "globalMode": "IMPLEMENTATION", "createdAt": TIME,
        "updatedAt": TIME, "lastSeq": 0, "title": "Fix it", "verify": [], "setup": [],
        "cwd": "/repo", "budget": {}, "usage": usage(1500, 0.42), "artifacts": {}, "edges": {},
        "nodes": { LEAD: node(LEAD, "lead", "orchestrator"), IMPL: node(IMPL, "impl", "implementer") },
        "limits": { "maxConcurrentTurns": 4, "maxNodes": 24, "maxSpawnDepth": 3, "stallAfter": 5,
                    "fanInMs": 300, "silenceWarnMs": 0, "silenceEndMs": 0, "turnEndMs": 0,
                    "approvalMs": 0 },
    })
}

fn approval() -> Value {
    json!({
        "approvalId": APPROVAL, "nodeId": IMPL, "turnId": LEAD, "kind": "tool", "options": [],
        "tool": { "id": LEAD, "name": "Bash", "args": { "command": "rm x" } },
        "context": "wants to run a command", "createdAt": TIME,
    })
}

fn event(seq: u64, node: &str, kind: &str, body: &Value) -> Value {
    let mut event =
        json!({ "id": LEAD, "runId": RUN, "ts": TIME, "seq": seq, "nodeId": node, "type": kind });
    for (name, value) in body.as_object().unwrap() {
        event[name] = value.clone();
    }
    event
}

/// A server with one active run.
fn answers() -> Answers {
    let runs = json!({ "runs": [summary(RUN, "running", "Fix it"), summary(OLD_RUN, "completed", "Old")] });
    Answers::default()
        .json("GET /api/runs?summary=1", runs)
        .json(&format!("GET /api/runs/{RUN}"), json!({ "run": run() }))
        .json(
            "GET /api/approvals",
            json!({ "approvals": [{ "runId": RUN, "approval": approval() }] }),
        )
        .json(
            &format!("GET /api/approvals?runId={RUN}"),
            json!({ "approvals": [] }),
        )
}

/// Runs commands against the server and writes down what they print.
fn transcript(server: &StubServer, commands: &[&str]) -> String {
    let sandbox = Sandbox::new();
    let options = format!(" --server {} --token t", server.addr());
    let with_options: Vec<String> = commands
        .iter()
        .map(|command| format!("{command}{options}"))
        .collect();
    sandbox
        .transcript(&with_options.join("\n"))
        .replace(&options, "")
}

#[test]
fn runs_are_listed_shown_and_named() {
    let server = StubServer::start(answers());
    check(
        &transcript(
            &server,
            &[
                "run list",
                "run show",
                "run show x",
                "run list --active --json",
            ],
        ),
        &r"
        $ run list
        RUN   STATUS                      NODES  TOKENS  COST   UPDATED  TITLE
        3f2a  running, 1 waits for you    1/2    1.5k    $0.42  0s ago   Fix it
        9b9b  completed, 1 waits for you  1/2    1.5k    $0.42  0s ago   Old
        $ run show
        Run:       3f2a0000-0000-4000-8000-000000000001
        Title:     Fix it
        Status:    running, EXECUTE
        Mode:      INTERACTIVE, IMPLEMENTATION
        Used:      1.5k tokens $0.42
        Created:   DATE
        Directory: /repo

        NODE  ROLE          PROGRAM  STATUS  WAITING  SUMMARY
        lead  orchestrator  claude   idle    0        ready
        impl  implementer   claude   idle    0        ready
        $ run show x
        error: there is no run `x`
        hint: the newest runs are 3f2a (Fix it), 9b9b (Old); `turnkeep run list` lists all
        [exit status: 1]
        $ run list --active --json
        JSON
        "
        .replace(
            "JSON",
            &summary(RUN, "running", "Fix it")
                .to_string()
                .replace(TIME, "TIME")
                .replace(LATER, "TIME"),
        ),
    );
}

#[test]
fn a_run_can_be_left_out_where_only_one_is_active() {
    let path = format!("/api/runs/{RUN}");
    let mut answer = run();
    answer["status"] = json!("paused");
    answer["pausedReason"] = json!("user");
    let server = StubServer::start(
        answers()
            .json(&format!("PATCH {path}"), json!({ "run": answer }))
            .json(&format!("POST {path}/chat"), json!({ "messageId": LEAD }))
            .json(
                &format!("POST {path}/nodes/{IMPL}/reset"),
                json!({ "node": node(IMPL, "impl", "x") }),
            )
            .json(
                &format!("POST {path}/edges"),
                json!({ "edge": { "id": LEAD, "from": LEAD, "to": IMPL, "bidirectional": true,
                                  "type": "handoff", "label": "task", "gate": false } }),
            ),
    );
    let commands = [
        "run pause --interrupt",
        "node chat hello",
        "node chat IMPL hello --interrupt",
        "node reset 2222 --clear-inbox",
        "edge add lead impl",
        "node reset nobody",
    ];
    check(
        &transcript(&server, &commands),
        "
        $ run pause --interrupt
        Fix it: paused (user)
        $ node chat hello
        sent to the leading node; `turnkeep run watch` shows what it does
        $ node chat IMPL hello --interrupt
        sent to impl; `turnkeep run watch` shows what it does
        $ node reset 2222 --clear-inbox
        impl begins a new session with its next turn
        $ edge add lead impl
        lead <-> impl (handoff, task)
        $ node reset nobody
        error: the run has no node `nobody`
        hint: its nodes are lead, impl
        [exit status: 1]",
    );
    assert_eq!(
        server.changes(),
        [
            format!(r#"PATCH {path} {{"interrupt":true,"status":"paused"}}"#),
            format!(r#"POST {path}/chat {{"content":"hello","interrupt":false}}"#),
            format!(r#"POST {path}/chat {{"content":"hello","interrupt":true,"nodeId":"{IMPL}"}}"#),
            format!(r#"POST {path}/nodes/{IMPL}/reset {{"clearInbox":true}}"#),
            format!(r#"POST {path}/edges {{"from":"{LEAD}","to":"{IMPL}"}}"#),
        ]
    );
}

#[test]
fn approvals_are_listed_and_decided() {
    let resolve = format!("POST /api/approvals/{APPROVAL}/resolve");
    let resolution =
        json!({ "approvalId": APPROVAL, "resolution": { "status": "denied", "scope": "once" } });
    let server = StubServer::start(answers().json(&resolve, resolution));
    let commands = [
        "approvals",
        "approvals deny 9c --reason no --stop",
        "approvals approve 1",
    ];
    check(
        &transcript(&server, &commands),
        "
        $ approvals
        9c4e DATE impl in Fix it
            wants to run a command
            Bash: rm x
            in /repo
        $ approvals deny 9c --reason no --stop
        denied: Bash: rm x
        $ approvals approve 1
        error: no open approval is `1`
        hint: `turnkeep approvals` lists what waits
        [exit status: 1]",
    );
    assert_eq!(
        server.changes(),
        [format!(
            r#"{resolve} {{"status":"denied","interrupt":true,"reason":"no"}}"#
        )]
    );
}

#[test]
fn an_approval_that_was_resolved_earlier_says_where_and_how() {
    let resolved = |approval: &str, by: &str, resolution: Value| {
        let mut resolution = resolution;
        resolution["by"] = json!(by);
        json!({ "id": LEAD, "runId": OLD_RUN, "ts": "2026-01-01T12:00:00Z", "seq": 7,
            "type": "approval.resolved", "approvalId": approval, "resolution": resolution })
    };
    let denied = json!({ "status": "denied", "scope": "once", "reason": "not in my name" });
    let events = [
        resolved(
            "77aa0000-0000-4000-8000-000000000001",
            "daemon",
            json!({ "status": "denied", "scope": "once", "reason": "nobody answered in time" }),
        ),
        resolved(
            "77bb0000-0000-4000-8000-000000000001",
            "web",
            denied.clone(),
        ),
        // From a newer server.
        resolved("77cc0000-0000-4000-8000-000000000001", "telepathy", denied),
    ];
    let query = "/events?types=approval.resolved&limit=2000";
    let earlier = json!({ "status": "approved", "scope": "once", "by": "command-line" });
    let late = json!({ "error": { "code": "Conflict",
        "message": "the approval was approved already, on the command line",
        "details": { "resolution": earlier } } });
    let server = StubServer::start(
        answers()
            .json(
                &format!("GET /api/runs/{OLD_RUN}{query}"),
                json!({ "events": events, "page": { "hasMore": false } }),
            )
            .refusal(
                &format!("POST /api/approvals/{APPROVAL}/resolve"),
                409,
                late,
            ),
    );
    let commands = [
        "approvals deny 77bb",
        "approvals approve approval:77aa",
        "approvals approve 77cc",
        "approvals approve 9c4e",
    ];
    check(
        &transcript(&server, &commands),
        "
        $ approvals deny 77bb
        error: the approval was denied already in the web UI, DATE
        hint: the reason was: not in my name
        [exit status: 1]
        $ approvals approve approval:77aa
        error: the approval was denied already by Turnkeep itself, DATE
        hint: the reason was: nobody answered in time
        [exit status: 1]
        $ approvals approve 77cc
        error: no open approval is `77cc`
        hint: `turnkeep approvals` lists what waits
        [exit status: 1]
        $ approvals approve 9c4e
        error: the approval was approved already, on the command line
        [exit status: 1]",
    );
}

#[test]
fn an_edited_approval_sends_the_new_arguments() {
    let resolve = format!("POST /api/approvals/{APPROVAL}/resolve");
    let resolution =
        json!({ "approvalId": APPROVAL, "resolution": { "status": "modified", "scope": "once" } });
    let server = StubServer::start(answers().json(&resolve, resolution));
    let addr = server.addr();
    let sandbox = Sandbox::new();
    let edit = |editor: &str| {
        let args = [
            "approvals",
            "edit",
            "9c4e",
            "--server",
            &addr,
            "--token",
            "t",
        ];
        let mut command = sandbox.command(&args);
        let output = command
            .env("PATH", "/usr/bin:/bin")
            .env("EDITOR", editor)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(edit("sed -i s/rm/ls/"), "modified: Bash: rm x\n");
    let unchanged = edit("true");
    assert!(
        unchanged.starts_with("error: nothing was changed"),
        "{unchanged}"
    );
    let broken = edit("sed -i s/}/]/");
    assert!(
        broken.starts_with("error: what was edited is not JSON"),
        "{broken}"
    );
    assert_eq!(
        server.changes(),
        [format!(
            r#"{resolve} {{"status":"modified","interrupt":false,"modifiedArgs":{{"command":"ls x"}}}}"#
        )]
    );
}

#[test]
fn a_broken_stream_goes_on_after_its_last_event() {
    let delta = |seq| {
        event(
            seq,
            IMPL,
            "message.assistant.delta",
            &json!({ "delta": "Hi" }),
        )
    };
    let content = json!({ "content": "Hi\u{1b}[2J", "status": "final" });
    let completed = json!({ "patch": { "status": "completed" } });
    let stream = |since: u64| format!("/ws?runId={RUN}&since={since}");
    let server = StubServer::start(
        answers()
            .stream(&stream(0), &[delta(1), delta(2)])
            // The second connection repeats an event, which is not printed twice.
            .stream(
                &stream(2),
                &[
                    delta(2),
                    event(3, IMPL, "message.assistant.final", &content),
                    event(4, LEAD, "run.patch", &completed),
                ],
            ),
    );
    let printed = transcript(&server, &["run watch --plain --since 0"]);
    check(
        &printed,
        "
        $ run watch --plain --since 0
        12:00:00 impl says: Hi\\u{1b}[2J
        12:00:00 lead the run is completed",
    );
    let printed = transcript(&server, &["run watch @last --since 0 --json"]);
    let seqs = printed
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let seqs: Vec<u64> = seqs.filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
}

#[test]
fn a_graph_file_becomes_a_run_or_nothing() {
    let features = json!({ "resume": true, "steer": true, "approvals": true, "editArgs": true,
                           "usage": true, "cost": true, "mcp": true, "planMode": true });
    let providers = json!({ "providers": [
        { "name": "claude", "provider": "claude", "found": true, "version": "2.1", "loggedIn": true,
          "features": features },
    ] });
    let path = format!("/api/runs/{RUN}");
    let made = || {
        answers()
            .json("GET /api/providers", providers.clone())
            .json("POST /api/runs", json!({ "run": run() }))
            .json(
                &format!("POST {path}/nodes"),
                json!({ "node": node(LEAD, "lead", "orchestrator") }),
            )
            .json(&format!("POST {path}/chat"), json!({ "messageId": LEAD }))
    };
    let sandbox = Sandbox::new();
    let graph = "goal = 'Fix it'\n[[nodes]]\nalias = 'lead'\nrole = 'orchestrator'\n";
    std::fs::write(sandbox.path("graph.toml"), graph).unwrap();
    let from = |server: &StubServer| {
        let args = [
            "run",
            "from",
            "graph.toml",
            "--cwd",
            "/",
            "--server",
            &server.addr(),
            "--token",
            "t",
        ];
        let output = sandbox.output(&args, b"");
        String::from_utf8(output.stderr).unwrap() + &String::from_utf8(output.stdout).unwrap()
    };
    let server = StubServer::start(made());
    assert_eq!(
        from(&server),
        "program: claude 2.1, logged in\nrun 3f2a: Fix it\n\
         it goes on when this terminal closes; `turnkeep run watch 3f2a` shows it\n"
    );
    let create = r#"POST /api/runs {"verify":[],"setup":[],"cwd":"/","goal":"Fix it"}"#.to_owned();
    let add = format!(
        r#"POST {path}/nodes {{"label":"lead","roleTemplate":"orchestrator","provider":"claude","alias":"lead"}}"#
    );
    let chat = format!(r#"POST {path}/chat {{"content":"Fix it","interrupt":false}}"#);
    assert_eq!(server.changes(), [create.clone(), add.clone(), chat]);

    let refused = json!({ "error": { "code": "BadRequest", "message": "no such role" } });
    let server = StubServer::start(
        made()
            .refusal(&format!("POST {path}/nodes"), 400, refused)
            .json(&format!("DELETE {path}"), json!({ "runId": RUN })),
    );
    let said = from(&server);
    assert!(
        said.contains("the run could not be made, and nothing is left of it: no such role"),
        "{said}"
    );
    assert_eq!(server.changes(), [create, add, format!("DELETE {path}")]);
}

#[test]
fn without_a_server_the_commands_say_how_to_start_one() {
    check(
        &Sandbox::new().transcript("run list"),
        "
        $ run list
        error: no server runs on HOME/data, and agents work inside the server
        hint: start it with `turnkeep up` in another terminal, or with `turnkeep up &`; runs go on as long as it runs
        [exit status: 1]",
    );
}
