//! Append, then act: nothing reaches a program, and no line reaches the file of events, before the
//! event that announces it is durable.
//!
//! The disk finishes a sync only when the test lets it. While a sync waits, the test compares what
//! the program got with the events that the server shows.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};

use super::held_disk::{Gate, HeldDisk};
use super::start_on;
use crate::client::{Server, within};

/// Asks before it works, and writes down that it runs and each line that it reads.
const PROGRAM: &str = r#"
echo started >> DIR/got
while read -r line; do
    printf '%s\n' "$line" >> DIR/got
    case "$line" in
    *message.user*)
        echo '{"type":"approval.requested","approvalId":"q","tool":{"id":"t","name":"command","args":{"cmd":"make"}}}' ;;
    *approval.resolved*)
        echo '{"type":"tool.completed","toolId":"t","result":{"ok":true}}'
        echo '{"type":"turn.status","status":"turn.completed"}' ;;
    esac
done
"#;

/// More requests than an early action would need to show itself.
const LOOKS: usize = 20;

struct HeldRun {
    server: Server,
    dir: tempfile::TempDir,
    run: String,
    disk: HeldDisk,
    /// How often a sync waited.
    stalls: usize,
}

impl HeldRun {
    async fn begin() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let disk = HeldDisk::default();
        let server = start_on(disk.clone(), dir.path(), |config| {
            let mut program = AgentProgram::new(ProgramKind::Custom(CustomProtocol::Jsonl), "sh");
            let script = PROGRAM.replace("DIR", dir.path().to_str().unwrap());
            program.args = vec!["-c".to_owned(), script];
            config.runs.custom.insert("mine".to_owned(), program);
        })
        .await;
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        let body = json!({"cwd": work, "goal": "g"});
        let reply = server.post("/api/runs", &body).send().await;
        let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
        let gated = json!({"cliPermissionsMode": "gated"});
        let node = json!({"label": "a", "roleTemplate": "implementer", "provider": "custom",
            "providerName": "mine", "permissions": gated});
        let path = format!("/api/runs/{run}/nodes");
        assert_eq!(server.post(&path, &node).send().await.status, 201);
        Self {
            server,
            dir,
            run,
            disk,
            stalls: 0,
        }
    }

    fn gate(&self) -> &Gate {
        &self.disk.gate
    }

    async fn events(&self) -> Vec<Value> {
        let path = format!("/api/runs/{}/events?limit=2000", self.run);
        self.server.read(&path).await["events"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// Lets the syncs pass one by one until the check holds for an event, and looks at each.
    async fn step_until(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        let found = async {
            loop {
                let events = self.events().await;
                if let Some(event) = events.iter().find(|event| is_meant(event)) {
                    return event.clone();
                }
                if self.gate().has_waiting_sync() {
                    self.stalls += 1;
                    for _ in 0..LOOKS {
                        self.check_announced().await;
                    }
                    self.gate().let_one_pass();
                }
            }
        };
        within(found).await
    }

    /// Whatever the program got has been announced.
    async fn check_announced(&self) {
        // Read before the events, so that these have whatever was announced first.
        let got = read_lines(&self.dir.path().join("got"));
        let path = self.dir.path().join("data/runs").join(&self.run);
        let in_file = read_lines(&path.join("events.jsonl")).len();
        let events = self.events().await;
        assert!(in_file <= events.len(), "the file is ahead of the log");
        let is_announced = |check: &dyn Fn(&Value) -> bool| events.iter().any(check);
        for line in got {
            let announced = if line == "started" {
                is_announced(&|event| event["status"] == "turn.started")
            } else if line.contains("message.user") {
                let names = ["prompt.full.txt", "prompt.blocks.json"];
                is_announced(&|event| event["status"] == "waiting_for_model")
                    && names
                        .iter()
                        .all(|name| is_announced(&|event| event["artifact"]["name"] == *name))
            } else if line.contains("approval.resolved") {
                is_announced(&|event| event["type"] == "approval.resolved")
            } else {
                continue;
            };
            assert!(announced, "{line} is not announced in {events:#?}");
        }
    }
}

fn read_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn nothing_reaches_a_program_before_its_event_is_durable() {
    let mut held = HeldRun::begin().await;
    held.gate().hold();
    let chat = format!("/api/runs/{}/chat", held.run);
    let chat = held.server.post(&chat, &json!({"content": "Work"}));
    let chat = tokio::spawn(chat.send());
    let asked = held
        .step_until(|event| event["type"] == "approval.requested")
        .await;
    let resolve = format!(
        "/api/approvals/{}/resolve",
        asked["approvalId"].as_str().unwrap()
    );
    let resolve = held
        .server
        .post(&resolve, &json!({"status": "approved"}))
        .send();
    let resolve = tokio::spawn(resolve);
    held.step_until(|event| event["status"] == "turn.completed")
        .await;
    held.gate().open();
    assert_eq!(chat.await.unwrap().status, 201);
    assert_eq!(resolve.await.unwrap().status, 200);
    let got = read_lines(&held.dir.path().join("got"));
    assert_eq!(got[0], "started");
    assert!(got.iter().any(|line| line.contains("approval.resolved")));
    // The message, the prompt, the question, the answer, and the end.
    assert!(held.stalls >= 5, "{}", held.stalls);
    held.server.stop().await;
}
