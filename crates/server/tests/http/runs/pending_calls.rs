//! Calls of an agent that wait for a person, or for a verification, longer than the agent waits for
//! the call.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_journal::MemoryStorage;

use super::socket::EventClient;
use super::start_on;
use crate::client::{Reply, Server, within};
use crate::stopped_time::StoppedTime;

/// Shows its token to the test, and never ends its turn.
const PROGRAM: &str = r#"
printf %s "$TURNKEEP_MCP_TOKEN" > DIR/token.new
mv DIR/token.new DIR/token
while read -r line; do :; done
"#;

/// A node that may spawn others with a person's approval, in its turn.
struct Caller {
    server: Server,
    dir: tempfile::TempDir,
    run: String,
    node: String,
    token: String,
}

/// A reviewer in its turn.
async fn begin_turn() -> Caller {
    let dir = tempfile::tempdir().unwrap();
    begin_turn_as(dir, "reviewer", json!({"goal": "g"})).await
}

async fn begin_turn_as(dir: tempfile::TempDir, role: &str, mut settings: Value) -> Caller {
    let server = start_on(MemoryStorage::new(), dir.path(), |config| {
        let kind = ProgramKind::Custom(CustomProtocol::StreamJson);
        let mut program = AgentProgram::new(kind, "sh");
        let script = PROGRAM.replace("DIR", dir.path().to_str().unwrap());
        program.args = vec!["-c".to_owned(), script];
        config.runs.custom.insert("mine".to_owned(), program);
    })
    .await;
    settings["cwd"] = json!(dir.path());
    let reply = server.post("/api/runs", &settings).send().await;
    let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
    let body = json!({"label": "a", "alias": "a", "roleTemplate": role,
        "provider": "custom", "providerName": "mine", "capabilities": {"spawnNodes": true}});
    let path = format!("/api/runs/{run}/nodes");
    let reply = server.post(&path, &body).send().await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    let node = reply.json()["node"]["id"].as_str().unwrap().to_owned();
    server.chat(&run, "Go").await;
    let token = within(read_when_there(&dir.path().join("token"))).await;
    let caller = Caller {
        server,
        dir,
        run,
        node,
        token,
    };
    let works = |event: &Value| event["status"] == "waiting_for_model";
    caller.wait_for(works).await;
    caller
}

async fn read_when_there(path: &Path) -> String {
    loop {
        if let Ok(text) = fs::read_to_string(path) {
            return text;
        }
        tokio::task::yield_now().await;
    }
}

impl Caller {
    /// Calls `spawn_node` over MCP. The answer comes later.
    fn spawn_node(&self, alias: &str) -> tokio::task::JoinHandle<Reply> {
        let arguments = json!({"label": alias, "alias": alias, "roleTemplate": "reviewer"});
        self.call(alias, "spawn_node", &arguments)
    }

    /// Calls a tool over MCP. The answer comes later.
    fn call(&self, id: &str, tool: &str, arguments: &Value) -> tokio::task::JoinHandle<Reply> {
        let message = json!({
            "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        let call = self.server.post("/mcp", &message);
        let call = call.header("authorization", &format!("Bearer {}", self.token));
        tokio::spawn(call.send())
    }

    /// The first event of the run for which the check holds.
    async fn wait_for(&self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let query = format!("?runId={}&since=0", self.run);
        let mut client = EventClient::open(&self.server, &query).await;
        loop {
            let event = client.next_event().await;
            if is_meant(&event) {
                return event;
            }
        }
    }

    /// The approval that the call for this node waits for.
    async fn wait_for_approval(&self, alias: &str) -> String {
        let asks = |event: &Value| {
            event["type"] == "approval.requested" && event["tool"]["args"]["alias"] == alias
        };
        let asked = self.wait_for(asks).await;
        asked["approvalId"].as_str().unwrap().to_owned()
    }

    async fn resolve(&self, approval: &str, answer: &Value) {
        let path = format!("/api/approvals/{approval}/resolve");
        let reply = self.server.post(&path, answer).send().await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// The note about an earlier call with these words in the caller's inbox.
    async fn wait_for_note(&self, words: &str) -> String {
        let is_note = |event: &Value| {
            let message = &event["message"];
            event["type"] == "message.user"
                && message["role"] == "system"
                && message["nodeId"] == self.node.as_str()
                && message["content"].as_str().unwrap().contains(words)
        };
        let note = self.wait_for(is_note).await;
        note["message"]["content"].as_str().unwrap().to_owned()
    }

    async fn shown(&self) -> Value {
        let path = format!("/api/runs/{}", self.run);
        self.server.read(&path).await["run"].take()
    }
}

/// What a call answered.
fn result_of(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let answer = reply.json();
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["structuredContent"].clone()
}

#[tokio::test]
async fn an_unanswered_call_is_pending_and_its_outcome_comes_by_the_inbox() {
    let caller = begin_turn().await;
    let time = StoppedTime::begin();
    for (alias, answer, words) in [
        ("yes", json!({"status": "approved"}), "is done"),
        (
            "no",
            json!({"status": "denied", "reason": "Enough nodes"}),
            "was refused: Enough nodes",
        ),
    ] {
        let call = caller.spawn_node(alias);
        let approval = caller.wait_for_approval(alias).await;
        time.advance(Duration::from_secs(44)).await;
        assert!(!call.is_finished(), "the agent still waits");
        let answered = time.advance_until(Duration::from_millis(500), call).await;
        assert_eq!(
            result_of(&answered.unwrap()),
            json!({"pending": true, "approvalId": approval})
        );
        caller.resolve(&approval, &answer).await;
        let note = caller.wait_for_note(words).await;
        let shown = caller.shown().await;
        let nodes = shown["nodes"].as_object().unwrap();
        assert_eq!(nodes.len(), 2, "{nodes:#?}");
        let child = nodes.values().find(|node| node["alias"] == "yes").unwrap();
        let names_child = note.contains(child["id"].as_str().unwrap());
        assert_eq!(names_child, alias == "yes", "{note}");
    }
    let waiting = &caller.shown().await["nodes"][&caller.node]["inboxCount"];
    assert_eq!(*waiting, 2, "both wait for the next turn");
    drop(time);
    caller.server.stop().await;
    drop(caller.dir);
}

#[tokio::test]
async fn a_call_that_is_answered_in_time_gets_its_outcome_itself() {
    let caller = begin_turn().await;
    let time = StoppedTime::begin();
    let call = caller.spawn_node("child");
    let approval = caller.wait_for_approval("child").await;
    time.advance(Duration::from_secs(44)).await;
    caller
        .resolve(&approval, &json!({"status": "approved"}))
        .await;
    let result = result_of(&call.await.unwrap());
    let shown = caller.shown().await;
    let child = &shown["nodes"][result["nodeId"].as_str().unwrap()];
    assert_eq!(child["alias"], "child", "{result}");
    assert_eq!(shown["nodes"][&caller.node]["inboxCount"], 0);
    drop(time);
    caller.server.stop().await;
    drop(caller.dir);
}

#[tokio::test]
async fn a_claim_that_is_verified_for_long_is_pending_and_its_verdict_comes_by_the_inbox() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("check");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    // Open for reading too, so that the writer never waits.
    let mut verdict = OpenOptions::new();
    let mut verdict = verdict.read(true).write(true).open(&pipe).unwrap();
    let command = format!(
        "echo looking; read -r code < '{}'; exit $code",
        pipe.display()
    );
    let settings = json!({"goal": "g", "verify": [command]});
    let caller = begin_turn_as(dir, "orchestrator", settings).await;
    let time = StoppedTime::begin();
    for (code, status, words) in [
        (3, "running", "was refused: verification failed"),
        (0, "completed", "is done"),
    ] {
        let claim = json!({"summary": format!("All but {code}"), "ok": true});
        let call = caller.call(&format!("claim-{code}"), "complete_run", &claim);
        let path = format!("/api/runs/{}", caller.run);
        while caller.server.read(&path).await["run"]["phase"] != "VERIFY" {
            assert!(!call.is_finished(), "the claim is verified");
        }
        time.advance(Duration::from_secs(44)).await;
        assert!(!call.is_finished(), "the agent still waits");
        let answered = time.advance_until(Duration::from_millis(500), call).await;
        assert_eq!(result_of(&answered.unwrap()), json!({"pending": true}));
        writeln!(verdict, "{code}").unwrap();
        caller.wait_for_note(words).await;
        assert_eq!(caller.shown().await["status"], status);
    }
    drop(time);
    caller.server.stop().await;
    drop(caller.dir);
}
