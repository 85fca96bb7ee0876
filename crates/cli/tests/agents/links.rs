//! A run and what lies around it: its world, the tokens of its nodes, captured turns that are sent
//! to a node, and the question why something is there.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use turnkeep_client::broker::Connection;
use turnkeep_client::{Client, Options};
use turnkeep_types::broker::{CompletedTurn, Register, Role};

use crate::sandbox::ServerProcess;
use crate::team::{ANSWER_MAX, Team, is_completion, make_repository, skip};

/// The lead hands off, the worker writes a file and to the world, the lead completes the run.
const TEAMWORK: &str = r#"
[[turn]]
when = "Split the work"
steps = [
    { call = "send_handoff", args = { to = "coder", message = "Write part.txt" } },
    { say = "Handed off." },
]

[[turn]]
when = "Write part.txt"
steps = [
    { write = "part.txt", content = "one\ntwo\n" },
    { call = "ledger_write", args = { text = "I wrote the part.", visible_to = ["GEORGE"] } },
    { say = "The part is written." },
]

[[turn]]
when = "The part is written"
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]
"#;

/// A run in the world `payments`, with a lead and a coder.
struct Linked {
    team: Team,
    run: String,
    lead: String,
    coder: String,
}

impl Linked {
    fn start(script: &str) -> Self {
        let team = Team::start(script);
        make_repository(&team.work());
        make_world(&team);
        let run = team.new_run(json!({"world": "payments"}));
        let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
        let coder = team.add_node(&run, "implementer", "codex", skip("coder"));
        team.connect(&run, &lead, &coder);
        Self {
            team,
            run,
            lead,
            coder,
        }
    }

    /// Lets the run reach its goal.
    fn finish(&self) {
        self.team.chat(&self.run, &self.lead, "Split the work");
        self.team
            .wait_for(&self.run, "the completed run", is_completion);
    }

    /// Waits until the operator sees so many entries, and returns them.
    fn entries(&self, count: usize) -> Vec<Value> {
        wait_for_entries(&self.team, "", count)
    }
}

fn make_world(team: &Team) {
    let world = json!({
        "world_id": "payments",
        "profile": "WORKSPACE",
        "persons": [{"person_id": "Coder"}, {"person_id": "ANN", "human": true}],
    });
    team.post("/v1/worlds", &world);
}

/// The entries that a reader sees now.
fn read_entries(team: &Team, query: &str) -> Vec<Value> {
    let page = team.get(&format!("/v1/worlds/payments/stream?{query}"));
    let whole = |entry: &Value| {
        let id = entry["entry_id"].as_str().unwrap();
        team.get(&format!("/v1/worlds/payments/entries/{id}?{query}"))
    };
    let entries = page["stream"]["entries"].as_array().unwrap();
    entries.iter().map(whole).collect()
}

/// Waits until a reader sees so many entries. The task that tells the world works beside the run, so
/// they come a little later than their events.
fn wait_for_entries(team: &Team, query: &str, count: usize) -> Vec<Value> {
    let deadline = Instant::now() + ANSWER_MAX;
    loop {
        let entries = read_entries(team, query);
        if entries.len() >= count {
            assert_eq!(entries.len(), count, "{entries:#?}");
            return entries;
        }
        assert!(Instant::now() < deadline, "{entries:#?}");
        std::thread::yield_now();
    }
}

/// Author, channel and text of entries.
fn told(entries: &[Value]) -> Vec<[&str; 3]> {
    entries
        .iter()
        .map(|entry| {
            let at = |pointer| entry.pointer(pointer).and_then(Value::as_str).unwrap();
            [at("/author/author_id"), at("/channel"), at("/text")]
        })
        .collect()
}

#[test]
fn handoffs_and_the_course_of_a_run_are_told_in_its_world_once() {
    let mut linked = Linked::start(TEAMWORK);
    linked.finish();
    let entries = linked.entries(5);
    assert_eq!(
        told(&entries),
        [
            ["SYSTEM", "VOICE", "The run \"Build it\" began."],
            ["lead", "PEOPLE", "Write part.txt"],
            ["Coder", "PEOPLE", "I wrote the part."],
            ["Coder", "PEOPLE", "The part is written."],
            ["SYSTEM", "VOICE", "The run \"Build it\" was completed."],
        ]
    );
    let events = linked.team.events(&linked.run);
    let handoffs: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "handoff.sent")
        .collect();
    assert_eq!(entries[1]["request_id"], handoffs[0]["envelope"]["id"]);
    assert_eq!(entries[3]["request_id"], handoffs[1]["envelope"]["id"]);
    assert_eq!(entries[1]["visibility"]["scope"], "PRIVATE");

    // A handoff is between its two ends and the operator.
    let public = wait_for_entries(&linked.team, "as=ANN", 2);
    assert!(told(&public).iter().all(|[author, ..]| *author == "SYSTEM"));
    wait_for_entries(&linked.team, "as=lead", 4);

    linked.team.restart();
    linked.entries(5);
    let verified = linked
        .team
        .sandbox
        .output(&["world", "verify", "payments"], b"");
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(said.starts_with("sound: 5 entries"), "{said}");
}

#[test]
fn what_a_killed_server_did_not_tell_is_told_at_the_next_start() {
    let mut linked = Linked::start(TEAMWORK);
    let mut socket = linked.team.watch(&linked.run, 0);
    linked
        .team
        .chat(&linked.run, &linked.lead, "Split the work");
    let sent = socket.read_until("the handoff", |event| event["type"] == "handoff.sent");
    linked.team.kill();
    linked.team.restart();
    let deadline = Instant::now() + ANSWER_MAX;
    loop {
        let entries = read_entries(&linked.team, "");
        let id = &sent["envelope"]["id"];
        let told = entries.iter().filter(|entry| entry["request_id"] == *id);
        match told.count() {
            0 => assert!(Instant::now() < deadline, "{entries:#?}"),
            1 => break,
            _ => panic!("{entries:#?}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_node_is_a_person_of_the_world_but_no_human_and_nobody_reserved() {
    let linked = Linked::start(TEAMWORK);
    let nodes = format!("/api/runs/{}/nodes", linked.run);
    let person = |id: &str| linked.team.show_node(&linked.run, id)["person"].take();
    assert_eq!(person(&linked.lead), "lead", "it is new");
    assert_eq!(
        person(&linked.coder),
        "Coder",
        "it was there, spelled otherwise"
    );

    let node = |more: Value| {
        let mut body = json!({"label": "Tester", "roleTemplate": "tester", "provider": "claude"});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        linked.team.request("POST", &nodes, Some(&body))
    };
    for (more, path) in [
        (json!({"alias": "ann"}), "alias"),
        (json!({"label": "Ann"}), "label"),
        (json!({"person": "ANN"}), "person"),
        (json!({"person": "GEORGE"}), "person"),
        (json!({"person": "no name"}), "person"),
        (json!({"alias": "world"}), "alias"),
    ] {
        let refused = node(more.clone());
        assert_eq!(refused.status, 400, "{more}");
        assert_eq!(refused.body["error"]["details"]["path"], path, "{more}");
    }
    for expect in ["tester", "tester-2"] {
        let added = node(json!({}));
        assert_eq!(added.body["node"]["person"], expect);
    }
    let shared = node(json!({"person": "coder"}));
    assert_eq!(
        shared.body["node"]["person"], "Coder",
        "on request, two nodes are one person"
    );

    let unknown = json!({"cwd": linked.team.work(), "world": "nowhere"});
    let refused = linked.team.request("POST", "/api/runs", Some(&unknown));
    assert_eq!(refused.status, 400);
    assert_eq!(refused.body["error"]["details"]["path"], "world");
}

#[test]
fn a_world_that_refuses_a_handoff_stops_no_run() {
    let linked = Linked::start(TEAMWORK);
    linked.entries(1);
    let human = json!({"person_id": "Coder", "human": true});
    linked.team.post("/v1/worlds/payments/persons", &human);
    linked.finish();
    let noted = linked.team.wait_for(&linked.run, "the note", |event| {
        event["type"] == "node.log" && event["nodeId"] == linked.coder.as_str()
    });
    let text = noted["text"].as_str().unwrap();
    assert!(text.contains("payments did not take a handoff"), "{text}");
    let entries = linked.entries(3);
    assert!(told(&entries).iter().all(|[author, ..]| *author != "Coder"));
}

/// The agent gives its token away and waits.
const CARELESS: &str = r#"
[[turn]]
when = "Show me"
steps = [
    { run = "printf %s \"$TURNKEEP_MCP_TOKEN\" > SANDBOX/token.new && mv SANDBOX/token.new SANDBOX/token" },
    { wait_for_file = "SANDBOX/go" },
    { say = "Done." },
]
"#;

#[test]
fn a_nodes_token_opens_its_tools_and_nothing_else() {
    let linked = Linked::start(CARELESS);
    let team = &linked.team;
    team.chat(&linked.run, &linked.coder, "Show me");
    let path = team.sandbox.path("token");
    let deadline = Instant::now() + ANSWER_MAX;
    while !path.exists() {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    let token = fs::read_to_string(path).unwrap();
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    for (method, path) in [
        ("GET", "/api/runs"),
        ("POST", "/api/runs"),
        ("GET", "/api/approvals"),
        ("GET", "/v1/contexts"),
        ("GET", "/v1/worlds/payments/stream"),
        ("POST", "/v1/worlds/payments/beats"),
        ("POST", "/v1/worlds/payments/invocations"),
        ("GET", "/v1/refs/ctx:1/why"),
        ("GET", "/ws"),
        ("GET", "/"),
    ] {
        let refused = team.request_with(method, path, Some(&json!({})), &headers);
        assert!(
            [401, 403].contains(&refused.status),
            "{method} {path}: {} {}",
            refused.status,
            refused.body
        );
    }
    check_every_route(team, &headers);
    check_binary_port(team, &token);
    check_tools(team, &headers);

    fs::write(team.sandbox.path("go"), "").unwrap();
    team.wait_for_turn_end(&linked.run, &linked.coder, 1);
    team.delete(&format!("/api/runs/{}", linked.run));
    let gone = team.request_with(
        "POST",
        "/mcp",
        Some(&call("list_nodes", &json!({}))),
        &headers,
    );
    assert_eq!(gone.status, 401, "it ends with its process");
}

/// No operation of the API takes the token, whatever it is about. Tools are no operations.
fn check_every_route(team: &Team, headers: &[(&str, &str)]) {
    let document = team.get("/openapi.json");
    let mut refused = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let path = without_parameters(path);
        for (method, operation) in operations.as_object().unwrap() {
            let is_open = !operation["security"].is_array();
            if is_open || path == "/mcp" {
                continue;
            }
            let method = method.to_uppercase();
            let answered = team.request_with(&method, &path, Some(&json!({})), headers);
            let status = answered.status;
            assert!([401, 403].contains(&status), "{method} {path}: {status}");
            refused += 1;
        }
    }
    assert!(refused > 80, "only {refused} operations");
}

/// A path with some text in the place of each parameter.
fn without_parameters(path: &str) -> String {
    let parts = path
        .split('/')
        .map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<&str>>().join("/")
}

fn check_binary_port(team: &Team, token: &str) {
    let options = Options {
        token: Some(token.to_owned()),
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let connected = runtime.block_on(Client::connect(&team.binary_address(), options));
    assert!(connected.is_err(), "the binary port is the owner's");
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    })
}

fn check_tools(team: &Team, headers: &[(&str, &str)]) {
    let ask = |body: &Value| team.request_with("POST", "/mcp", Some(body), headers).body;
    let listed = ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    let tools: Vec<&str> = listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for wanted in ["list_nodes", "send_handoff", "ledger_read", "ledger_write"] {
        assert!(tools.contains(&wanted), "{wanted}: {tools:?}");
    }
    for foreign in ["store_turns", "complete_run"] {
        assert!(!tools.contains(&foreign), "{foreign}: {tools:?}");
    }
    let who = ask(&call("whoami", &json!({})));
    let who = &who["result"]["structuredContent"];
    assert_eq!(who["person_id"], "Coder");
    assert_eq!(who["may_write"], true);
    let written = ask(&call("ledger_write", &json!({"text": "Mine."})));
    assert_eq!(written["result"]["isError"], false, "{written}");
    let entries = wait_for_entries(team, "", 2);
    assert_eq!(told(&entries)[1], ["Coder", "PEOPLE", "Mine."]);
    // No argument makes it somebody else.
    let forged = ask(&call(
        "ledger_write",
        &json!({"text": "x", "author": "GEORGE"}),
    ));
    assert_eq!(forged["result"]["isError"], true, "{forged}");
}

/// The kinds of the links of a chain.
fn kinds(why: &Value) -> Vec<&str> {
    let chain = why["chain"].as_array().unwrap().iter();
    chain.map(|link| link["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_line_a_diff_and_an_entry_lead_back_to_a_person() {
    let linked = Linked::start(TEAMWORK);
    linked.finish();
    let entries = linked.entries(5);
    let team = &linked.team;
    let why = |reference: &str| {
        let encoded = reference.replace('/', "%2F").replace('#', "%23");
        team.get(&format!("/v1/refs/{encoded}/why"))
    };
    let diff = team
        .artifacts_of(&linked.run, &linked.coder, "diff")
        .remove(0);
    let diff = format!("artifact://{}", diff["id"].as_str().unwrap());

    let line = why(&format!("{diff}#part.txt:2"));
    let to_person = ["turn", "prompt", "message", "person"];
    let through_handoff = [&["turn", "prompt", "handoff"][..], &to_person].concat();
    let expect = [&["line", "diff"][..], &through_handoff].concat();
    assert_eq!(kinds(&line), expect, "{line:#}");
    assert_eq!(line["chain"][0]["summary"], "two");
    assert_eq!(line["chain"][4]["summary"], "Write part.txt");
    assert_eq!(line["chain"][4]["by"], "lead");
    assert_eq!(line["chain"][7]["summary"], "Split the work");
    assert_eq!(line["complete"], true);

    let entry = entries[1]["entry_id"].as_str().unwrap();
    let entry = why(&format!("entry:{entry}"));
    let expect = [&["entry", "handoff"][..], &to_person].concat();
    assert_eq!(kinds(&entry), expect, "{entry:#}");
    let began = entries[0]["entry_id"].as_str().unwrap();
    assert_eq!(
        kinds(&why(&format!("entry:{began}"))),
        ["entry", "run", "person"]
    );

    // Each link can be asked for itself.
    for link in line["chain"].as_array().unwrap() {
        let reference = link["ref"].as_str().unwrap();
        if link["kind"] != "person" {
            assert_eq!(
                why(reference)["chain"][0]["kind"],
                link["kind"],
                "{reference}"
            );
        }
    }
    check_unknown_refs(team, &diff);
    check_transcript(team, &linked.coder);
}

/// The lead claims too early, and repairs the work when the server tells it that the check failed.
const REPAIRED: &str = r#"
[[turn]]
when = "Build it"
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true }, else = [{ say = "Not yet." }] },
    { say = "Claimed." },
]

[[turn]]
when = "proof.txt"
steps = [
    { write = "proof.txt", content = "proof\n" },
    { say = "Repaired." },
]
"#;

#[test]
fn a_note_of_the_server_leads_to_the_turn_that_it_is_about() {
    let team = Team::start(REPAIRED);
    let run = team.new_run(json!({"verify": ["test -e proof.txt"]}));
    let lead = team.add_node(
        &run,
        "orchestrator",
        "claude",
        json!({
            "alias": "lead", "capabilities": {"writeCode": true},
            "permissions": {"cliPermissionsMode": "skip"},
        }),
    );
    team.chat(&run, &lead, "Build it");
    team.wait_for_turn_end(&run, &lead, 2);
    let diff = team.artifacts_of(&run, &lead, "diff").remove(1);
    let reference = format!(
        "artifact:%2F%2F{}%23proof.txt:1",
        diff["id"].as_str().unwrap()
    );
    let why = team.get(&format!("/v1/refs/{reference}/why"));
    let expect = [
        "line", "diff", "turn", "prompt", "note", "turn", "prompt", "message", "person",
    ];
    assert_eq!(kinds(&why), expect, "{why:#}");
    assert_eq!(why["chain"][4]["by"], "the server");
    assert_eq!(why["chain"][7]["summary"], "Build it");
    assert_eq!(why["end"], Value::Null, "it ends at a person");
}

fn check_unknown_refs(team: &Team, diff: &str) {
    let none = "00000000-0000-4000-8000-000000000000";
    for (reference, status) in [
        ("nonsense", 400),
        ("turn:x", 400),
        ("artifact:%2F%2Fx", 400),
        (&format!("turn:{none}"), 404),
        (&format!("run:{none}"), 404),
        ("turn:999999", 404),
        ("ctx:999999", 404),
        ("entry:e_00000000000000000000000001", 404),
        (&format!("{}%23part.txt:3", diff.replace('/', "%2F")), 404),
        (&format!("{}%23other.txt:1", diff.replace('/', "%2F")), 404),
    ] {
        let answer = team.request("GET", &format!("/v1/refs/{reference}/why"), None);
        assert_eq!(answer.status, status, "{reference}: {}", answer.body);
    }
}

/// A node's transcript reads like a conversation, and its turns have causes too.
fn check_transcript(team: &Team, node: &str) {
    let listed = team.get(&format!("/v1/contexts?label=turnkeep.node={node}"));
    let context = listed["contexts"][0]["context_id"].as_str().unwrap();
    let log = team.sandbox.output(&["log", context, "--oneline"], b"");
    let log = String::from_utf8(log.stdout).unwrap();
    for said in [
        "handoff ",
        ": Write part.txt",
        "assistant: The part is written.",
        "result",
    ] {
        assert!(log.contains(said), "{said}: {log}");
    }
    let newest = team.get(&format!("/v1/refs/ctx:{context}/why"));
    assert_eq!(kinds(&newest).last(), Some(&"person"), "{newest:#}");
    let shown = team
        .sandbox
        .output(&["why", &format!("ctx:{context}")], b"");
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("handoff  Write part.txt, by lead"),
        "{shown}"
    );
    assert!(shown.ends_with("person:operator\n"), "{shown}");
}

const LISTENER: &str = r#"
[[turn]]
when = "The parser drops the last line."
repeat = true
steps = [{ say = "I will look." }]
"#;

#[test]
fn a_captured_turn_is_sent_to_a_node_by_a_broker_inside_the_server_and_by_one_alone() {
    let mut team = Team::start(LISTENER);
    team.restart_with_broker();
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("coder"));
    deliver(&team, &run);
    team.wait_for_turn_end(&run, &node, 1);

    // Without a broker of its own, the server is reached over HTTP.
    team.restart();
    team.resume(&run);
    let mut command = team.sandbox.command(&["broker"]);
    command.env("XDG_RUNTIME_DIR", team.sandbox.path("run"));
    let broker = ServerProcess::start(&mut command);
    deliver(&team, &run);
    team.wait_for_turn_end(&run, &node, 2);
    drop(broker);

    let events = team.events(&run);
    let messages: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "message.user")
        .collect();
    assert_eq!(messages.len(), 2);
    for message in messages {
        assert_eq!(message["message"]["role"], "user");
        let content = &message["message"]["content"];
        assert_eq!(*content, "The parser drops the last line.");
    }
}

/// Captures a turn and delivers it to the node `coder`.
fn deliver(team: &Team, run: &str) {
    let socket = team.sandbox.path("run/turnkeep/broker.sock");
    let mut wrapper = Connection::open(&socket, Role::Wrapper, ANSWER_MAX).unwrap();
    let register = Register {
        session: "0123456789abcdef0123456789abcdef".to_owned(),
        pid: 1,
        name: Some("review".to_owned()),
        ..Register::default()
    };
    wrapper.register(register).unwrap();
    let turn = CompletedTurn {
        session: "0123456789abcdef0123456789abcdef".to_owned(),
        content: "The parser drops the last line.".into(),
        text: Some("The parser drops the last line.".to_owned()),
        ..CompletedTurn::default()
    };
    wrapper.turn_completed(turn).unwrap();
    let say = |args: &[&str]| {
        let mut command = team.sandbox.command(args);
        command.env("XDG_RUNTIME_DIR", team.sandbox.path("run"));
        let output = command.output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    let captured = say(&["capture", "review"]);
    assert!(captured.starts_with("captured"), "{captured}");
    for (args, expect) in [
        (
            ["--run", "ffffffff", "--node", "coder"],
            "there is no run `ffffffff`",
        ),
        (["--run", run, "--node", "nobody"], "nobody"),
        (["--run", run, "--node", "coder"], "delivered to node"),
    ] {
        let said = say(&[&["deliver", "node"][..], &args].concat());
        assert!(said.contains(expect), "{said}");
    }
}
