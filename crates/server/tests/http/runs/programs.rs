//! Agent programs, played by shell scripts that speak JSON lines: the prompts that they get, the
//! questions that they may ask, and how the server ends those that misbehave. The clock stands still
//! unless a test moves it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use turnkeep_agents::launch::{AgentProgram, CustomProtocol, ProgramKind};
use turnkeep_journal::MemoryStorage;
use turnkeep_server::ServerConfig;
use turnkeep_types::Timestamp;
use turnkeep_wire::transcript::{self, TranscriptItem};

use super::socket::EventClient;
use super::start_on;
use crate::client::{NOW_MS, Reply, Server, within};
use crate::stopped_time::StoppedTime;

const MINUTE: Duration = Duration::from_mins(1);

/// Asks before it works, and writes each line that it reads to a file.
const ASKING: &str = r#"
while read -r line; do
    printf '%s\n' "$line" >> DIR/read
    case "$line" in
    *message.user*FETCH*)
        echo '{"type":"approval.requested","approvalId":"a","tool":{"id":"t","name":"fetch","args":{"url":"http://localhost"}}}' ;;
    *message.user*CHAIN*)
        echo '{"type":"approval.requested","approvalId":"a","tool":{"id":"t","name":"command","args":{"cmd":"make test && git push"}}}' ;;
    *message.user*)
        echo '{"type":"approval.requested","approvalId":"a","tool":{"id":"t","name":"command","args":{"cmd":"make test"}}}' ;;
    *interrupt*)
        echo '{"type":"turn.status","status":"turn.interrupted"}' ;;
    *denied*) ;;
    *approval.resolved*)
        echo '{"type":"tool.completed","toolId":"t","result":{"ok":true}}'
        echo '{"type":"turn.status","status":"turn.completed"}' ;;
    esac
done
"#;

/// Says the same to every prompt, and writes each line that it reads to a file.
const PLAIN: &str = r#"
echo started >> DIR/read
while read -r line; do
    printf '%s\n' "$line" >> DIR/read
    case "$line" in
    *'"start"'*)
        echo '{"type":"session","sessionId":"s-1"}' ;;
    *message.user*)
        echo '{"type":"message.assistant.final","content":"Done."}'
        echo '{"type":"turn.status","status":"turn.completed"}' ;;
    esac
done
"#;

fn add_program(config: &mut ServerConfig, dir: &Path, script: &str) {
    let mut program = AgentProgram::new(ProgramKind::Custom(CustomProtocol::Jsonl), "sh");
    let script = script.replace("DIR", dir.to_str().unwrap());
    program.args = vec!["-c".to_owned(), script];
    config.runs.custom.insert("mine".to_owned(), program);
}

/// A server whose nodes run a script, with one run.
struct Desk {
    server: Server,
    dir: tempfile::TempDir,
    run: String,
}

impl Desk {
    async fn start(script: &str) -> Self {
        Self::start_on(MemoryStorage::new(), script, |_| {}).await
    }

    async fn start_on(
        disk: MemoryStorage,
        script: &str,
        change: impl FnOnce(&mut ServerConfig),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        fs::create_dir(&work).unwrap();
        let server = start_on(disk, dir.path(), |config| {
            add_program(config, dir.path(), script);
            change(config);
        })
        .await;
        let reply = server.post("/api/runs", &json!({"cwd": work})).send().await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        let run = reply.json()["run"]["id"].as_str().unwrap().to_owned();
        Self { server, dir, run }
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        let path = path.replace("RUN", &format!("/api/runs/{}", self.run));
        self.server.post(&path, body).send().await
    }

    async fn add_node(&self, alias: &str) -> String {
        let gated = json!({"cliPermissionsMode": "gated"});
        let body = json!({"label": alias, "alias": alias, "roleTemplate": "implementer",
            "provider": "custom", "providerName": "mine", "permissions": gated});
        let reply = self.post("RUN/nodes", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        reply.json()["node"]["id"].as_str().unwrap().to_owned()
    }

    async fn chat(&self, node: &str, content: &str) {
        let body = json!({"nodeId": node, "content": content});
        let reply = self.post("RUN/chat", &body).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
    }

    /// All events so far.
    async fn events(&self) -> Vec<Value> {
        let path = format!("/api/runs/{}/events?limit=2000", self.run);
        let page = self.server.read(&path).await;
        page["events"].as_array().unwrap().clone()
    }

    async fn count(&self, is_meant: impl Fn(&Value) -> bool) -> usize {
        let events = self.events().await;
        events.iter().filter(|event| is_meant(event)).count()
    }

    /// Waits for the event with this number among those for which the check holds.
    async fn wait_for(&self, count: usize, is_meant: impl Fn(&Value) -> bool) -> Value {
        let query = format!("?runId={}&since=0", self.run);
        let mut client = EventClient::open(&self.server, &query).await;
        let mut left = count;
        loop {
            let event = client.next_event().await;
            left -= usize::from(is_meant(&event));
            if left == 0 {
                return event;
            }
        }
    }

    /// How a turn of a node ended.
    async fn wait_for_end(&self, node: &str, count: usize) -> Value {
        let ends = ["turn.completed", "turn.failed", "turn.interrupted"];
        self.wait_for(count, |event| {
            let status = event["status"].as_str().unwrap_or_default();
            event["nodeId"] == node && event["type"] == "turn.status" && ends.contains(&status)
        })
        .await
    }

    /// Waits for a question of a node, and returns the route that answers it.
    async fn wait_for_question(&self, node: &str, count: usize) -> String {
        let asked = self.wait_for(count, |event| {
            event["nodeId"] == node && event["type"] == "approval.requested"
        });
        let asked = asked.await;
        format!(
            "/api/approvals/{}/resolve",
            asked["approvalId"].as_str().unwrap()
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The lines that the programs have read.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("read")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until the programs have read a line with these words.
    async fn wait_for_line(&self, words: &str) -> String {
        let read = async {
            loop {
                let lines = self.lines();
                if let Some(line) = lines.into_iter().find(|line| line.contains(words)) {
                    return line;
                }
                tokio::task::yield_now().await;
            }
        };
        within(read).await
    }
}

#[tokio::test]
async fn an_approval_is_answered_once_and_a_denial_may_stop_the_turn() {
    let desk = Desk::start(ASKING).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "Test it").await;
    let resolve = desk.wait_for_question(&node, 1).await;
    let unsaid = desk.post(&resolve, &json!({"status": "modified"})).await;
    assert_eq!(unsaid.error(400, "BadRequest")["path"], "modifiedArgs");
    let unknown = desk.post(&resolve, &json!({"status": "flying"})).await;
    assert_eq!(unknown.status, 400);
    let denied = json!({"status": "denied", "reason": "not now", "interrupt": true});
    assert_eq!(desk.post(&resolve, &denied).await.status, 200);
    let end = desk.wait_for_end(&node, 1).await;
    assert_eq!(end["status"], "turn.interrupted", "{end}");
    let answer = desk.wait_for_line("approval.resolved").await;
    assert!(answer.contains(r#""reason":"not now""#), "{answer}");
    let again = desk.post(&resolve, &json!({"status": "approved"})).await;
    let earlier = &again.error(409, "Conflict")["resolution"];
    assert_eq!(
        (&earlier["status"], &earlier["reason"]),
        (&json!("denied"), &json!("not now"))
    );
    desk.server.stop().await;
}

#[tokio::test]
async fn a_rule_answers_for_its_node_or_for_all_until_it_is_deleted() {
    let desk = Desk::start(ASKING).await;
    let (a, b) = (desk.add_node("a").await, desk.add_node("b").await);
    let questions = async |node: &str| {
        let is_question =
            |event: &Value| event["type"] == "approval.requested" && event["nodeId"] == node;
        desk.count(is_question).await
    };
    desk.chat(&a, "Test it").await;
    let resolve = desk.wait_for_question(&a, 1).await;
    let for_node = json!({"status": "approved", "scope": "node"});
    assert_eq!(desk.post(&resolve, &for_node).await.status, 200);
    desk.wait_for_end(&a, 1).await;
    desk.chat(&a, "Test it again").await;
    desk.wait_for_end(&a, 2).await;
    assert_eq!(questions(&a).await, 1, "the rule answers for its node");

    desk.chat(&b, "Test it").await;
    let resolve = desk.wait_for_question(&b, 1).await;
    let for_run = json!({"status": "approved", "scope": "run"});
    assert_eq!(desk.post(&resolve, &for_run).await.status, 200);
    desk.wait_for_end(&b, 1).await;
    let c = desk.add_node("c").await;
    desk.chat(&c, "Test it").await;
    desk.wait_for_end(&c, 1).await;
    assert_eq!(questions(&c).await, 0, "the rule answers for all nodes");

    let rules = desk.server.read("/api/rules").await;
    let rules = rules["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2, "{rules:#?}");
    let of_run = rules.iter().find(|rule| rule["rule"]["nodeId"].is_null());
    let id = of_run.unwrap()["rule"]["id"].as_str().unwrap();
    let deleted = desk.server.delete(&format!("/api/rules/{id}")).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    desk.chat(&c, "Test it again").await;
    desk.wait_for_question(&c, 1).await;
    desk.server.stop().await;
}

#[tokio::test]
async fn a_lasting_yes_that_makes_no_rule_goes_to_the_program_or_is_refused() {
    let desk = Desk::start(ASKING).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "FETCH it").await;
    let resolve = desk.wait_for_question(&node, 1).await;
    let for_run = json!({"status": "approved", "scope": "run"});
    let refused = desk.post(&resolve, &for_run).await;
    assert_eq!(refused.error(422, "Unprocessable")["path"], "scope");
    let for_node = json!({"status": "approved", "scope": "node"});
    assert_eq!(desk.post(&resolve, &for_node).await.status, 200);
    desk.wait_for_end(&node, 1).await;
    let answer = desk.wait_for_line("approval.resolved").await;
    assert!(answer.contains(r#""scope":"session""#), "{answer}");
    assert_eq!(
        desk.server.read("/api/rules").await["rules"],
        json!([]),
        "the program keeps it, not the server"
    );
    desk.server.stop().await;
}

#[tokio::test]
async fn an_approval_lists_its_scopes_and_a_chained_command_makes_a_rule_of_its_beginning() {
    let desk = Desk::start(ASKING).await;
    let node = desk.add_node("a").await;
    let scopes = async || {
        let open = desk.server.read("/api/approvals").await;
        open["approvals"][0]["scopes"].clone()
    };
    let once = json!({"status": "approved"});
    desk.chat(&node, "Test it").await;
    let resolve = desk.wait_for_question(&node, 1).await;
    assert_eq!(scopes().await, json!(["once", "node", "run"]));
    assert_eq!(desk.post(&resolve, &once).await.status, 200);
    desk.wait_for_end(&node, 1).await;

    desk.chat(&node, "CHAIN it").await;
    let resolve = desk.wait_for_question(&node, 2).await;
    assert_eq!(scopes().await, json!(["once", "node", "run"]));
    let lasting = json!({"status": "approved", "scope": "run"});
    assert_eq!(desk.post(&resolve, &lasting).await.status, 200);
    desk.wait_for_end(&node, 2).await;
    let rules = desk.server.read("/api/rules").await;
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1);
    assert!(rules.to_string().contains(r#""make test""#), "{rules}");
    desk.server.stop().await;
}

#[tokio::test]
async fn other_arguments_are_refused_with_an_answer_that_does_not_use_them() {
    let desk = Desk::start(ASKING).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "Test it").await;
    let resolve = desk.wait_for_question(&node, 1).await;
    let mixed = json!({"status": "approved", "modifiedArgs": {"cmd": "make"}});
    let refused = desk.post(&resolve, &mixed).await;
    assert_eq!(refused.error(400, "BadRequest")["path"], "modifiedArgs");
    let modified = json!({"status": "modified", "modifiedArgs": {"cmd": "make"}});
    assert_eq!(desk.post(&resolve, &modified).await.status, 200);
    desk.server.stop().await;
}

#[tokio::test]
async fn a_reset_is_typed_and_marked_and_the_next_prompt_is_whole() {
    let desk = Desk::start(PLAIN).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "First").await;
    desk.wait_for_end(&node, 1).await;
    let reply = desk.post("RUN/nodes/a/reset", &json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let typed = desk.wait_for_line("reset").await;
    assert_eq!(typed, r#"{"type":"reset","commands":["/new","/clear"]}"#);
    desk.chat(&node, "Second").await;
    desk.wait_for_end(&node, 2).await;
    let starts = desk.lines().into_iter().filter(|line| line == "started");
    assert_eq!(starts.count(), 1, "the program was not started again");
    let is_full = |event: &Value| event["promptKind"] == "full";
    assert_eq!(desk.count(is_full).await, 2);

    let store = desk.server.store.clone();
    let mut contexts = store.contexts(None);
    let of_node = contexts.find(|context| context.labels.get("turnkeep.node") == Some(&node));
    let turns = store.last(of_node.unwrap().id, 100).unwrap();
    let texts = turns.iter().filter_map(|turn| {
        let payload = store.payload(turn).unwrap();
        match transcript::decode_item(&turn.declared, &payload.raw().unwrap()).unwrap() {
            TranscriptItem::UserMessage(message) => Some((message.role, message.text)),
            TranscriptItem::AssistantMessage(message) => Some(("answer".to_owned(), message.text)),
            _ => None,
        }
    });
    let texts: Vec<_> = texts.collect();
    let roles: Vec<&str> = texts.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "answer", "system", "user", "answer"]);
    assert!(texts[2].1.contains("The session was reset"), "{texts:?}");
    desk.server.stop().await;
}

#[tokio::test]
async fn a_session_of_a_jsonl_program_goes_on_after_a_restart() {
    let disk = MemoryStorage::new();
    let desk = Desk::start_on(disk.clone(), PLAIN, |_| {}).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "First").await;
    desk.wait_for_end(&node, 1).await;
    let Desk { server, dir, run } = desk;
    server.stop().await;
    let server = start_on(disk, dir.path(), |config| {
        add_program(config, dir.path(), PLAIN);
    })
    .await;
    let desk = Desk { server, dir, run };
    let path = format!("/api/runs/{}", desk.run);
    let running = json!({"status": "running"});
    assert_eq!(desk.server.patch(&path, &running).await.status, 200);
    desk.chat(&node, "Second").await;
    desk.wait_for_end(&node, 2).await;
    let lines = desk.lines();
    let starts = lines
        .iter()
        .filter(|line| line.contains(r#""type":"start""#));
    let starts: Vec<Value> = starts
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let sessions: Vec<&Value> = starts.iter().map(|start| &start["sessionId"]).collect();
    assert_eq!(sessions, [&Value::Null, &json!("s-1")]);
    let is_delta = |event: &Value| event["promptKind"] == "delta";
    assert_eq!(desk.count(is_delta).await, 1);
    desk.server.stop().await;
}

/// Moves both clocks: that of the server and that of its timers.
async fn pass(desk: &Desk, time: &StoppedTime, by: Duration) {
    let now = turnkeep_types::Clock::now(&*desk.server.clock);
    let by_ms = u64::try_from(by.as_millis()).unwrap();
    desk.server.clock.set(Timestamp(now.0 + by_ms));
    time.advance(by).await;
}

fn is_silence_warning(event: &Value) -> bool {
    event["type"] == "node.progress"
}

#[tokio::test]
async fn bytes_that_make_no_event_are_no_silence() {
    // A dot without a line break for each line of the pipe.
    let script = "read -r start; read -r prompt; while read -r x; do printf .; done < DIR/pipe";
    let desk = Desk::start(script).await;
    let pipe = desk.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let time = StoppedTime::begin();
    let node = desk.add_node("a").await;
    desk.chat(&node, "Work").await;
    desk.wait_for(1, |event| event["status"] == "waiting_for_model")
        .await;
    let open = move || fs::OpenOptions::new().write(true).open(pipe).unwrap();
    let mut pipe = tokio::task::spawn_blocking(open).await.unwrap();
    for _ in 0..3 {
        pass(&desk, &time, 2 * MINUTE).await;
        writeln!(pipe, "x").unwrap();
        let now = turnkeep_types::Clock::now(&*desk.server.clock);
        let path = format!("/api/runs/{}", desk.run);
        loop {
            let shown = desk.server.read(&path).await;
            let heard = &shown["run"]["nodes"][&node]["connection"]["lastOutputAt"];
            if *heard == json!(turnkeep_wire::json::Time(now)) {
                break;
            }
        }
    }
    assert_eq!(desk.count(is_silence_warning).await, 0);
    pass(&desk, &time, 3 * MINUTE).await;
    let warning = desk.wait_for(1, is_silence_warning).await;
    let expect = Timestamp(NOW_MS + 9 * 60_000);
    assert_eq!(warning["ts"], json!(turnkeep_wire::json::Time(expect)));
    drop(time);
    desk.server.stop().await;
}

#[tokio::test]
async fn a_program_that_never_says_a_word_is_stopped_and_killed() {
    let desk = Desk::start("trap '' INT; exec sleep 600").await;
    let time = StoppedTime::begin();
    let node = desk.add_node("a").await;
    desk.chat(&node, "Work").await;
    desk.wait_for(1, |event| event["status"] == "waiting_for_model")
        .await;
    pass(&desk, &time, 15 * MINUTE).await;
    let end = {
        let mut end = std::pin::pin!(desk.wait_for_end(&node, 1));
        loop {
            let step = pass(&desk, &time, Duration::from_millis(100));
            tokio::select! {
                biased;
                end = &mut end => break end,
                () = tokio::task::yield_now() => step.await,
            }
        }
    };
    assert_eq!(end["status"], "turn.failed", "{end}");
    let detail = end["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("timed out: it printed nothing"),
        "{detail}"
    );
    drop(time);
    desk.server.stop().await;
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_so_in_the_log() {
    let change = |config: &mut ServerConfig| {
        let program = config.runs.custom.get_mut("mine").unwrap();
        "/nonexistent/agent".clone_into(&mut program.command);
    };
    let desk = Desk::start_on(MemoryStorage::new(), PLAIN, change).await;
    let node = desk.add_node("a").await;
    let reply = desk.post("RUN/nodes/a/start", &json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let logged = desk.wait_for(1, |event| event["type"] == "node.log").await;
    assert_eq!(logged["nodeId"], json!(node));
    let text = logged["text"].as_str().unwrap();
    assert!(text.contains("/nonexistent/agent"), "{text}");
    let shown = desk.server.read(&format!("/api/runs/{}", desk.run)).await;
    assert_eq!(shown["run"]["nodes"][&node]["status"], "idle");
    desk.server.stop().await;
}

#[tokio::test]
async fn a_flood_of_error_output_makes_a_bounded_number_of_events() {
    let script = r#"
read -r start; read -r prompt
i=0; while [ $i -lt 2000 ]; do echo "warning $i" >&2; i=$((i+1)); done
echo '{"type":"turn.status","status":"turn.completed"}'
read -r more
"#;
    let desk = Desk::start(script).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "Work").await;
    assert_eq!(
        desk.wait_for_end(&node, 1).await["status"],
        "turn.completed"
    );
    // The clock stands still, so at most one period's lines pass, and the note about the others.
    let logged = desk.count(|event| event["type"] == "node.log").await;
    assert!((1..=51).contains(&logged), "{logged}");
    desk.server.stop().await;
}

#[tokio::test]
async fn a_malformed_call_is_reported_to_the_model() {
    let script = r#"
read -r start
while read -r line; do
    printf '%s\n' "$line" >> DIR/read
    case "$line" in
    *message.user*) echo '{"tool_call":{"nme":"list_nodes"}}' ;;
    esac
    echo '{"type":"turn.status","status":"turn.completed"}'
done
"#;
    let desk = Desk::start(script).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "Work").await;
    assert_eq!(
        desk.wait_for_end(&node, 1).await["status"],
        "turn.completed"
    );
    let told: Value = serde_json::from_str(&desk.wait_for_line("tool.results").await).unwrap();
    assert_eq!(told["results"], json!([]));
    let note = told["notes"][0].as_str().unwrap();
    assert!(note.contains("nme"), "{note}");
    desk.server.stop().await;
}

#[tokio::test]
async fn calls_without_end_fail_the_turn() {
    let script = r#"
read -r start
while read -r line; do
    printf '%s\n' "$line" >> DIR/read
    echo '{"tool_call":{"name":"list_nodes","args":{}}}'
    echo '{"type":"turn.status","status":"turn.completed"}'
done
"#;
    let desk = Desk::start(script).await;
    let node = desk.add_node("a").await;
    desk.chat(&node, "Work").await;
    let end = desk.wait_for_end(&node, 1).await;
    assert_eq!(end["status"], "turn.failed", "{end}");
    let detail = end["detail"].as_str().unwrap();
    assert!(
        detail.contains("called tools more than 8 times"),
        "{detail}"
    );
    let results = desk.lines().into_iter();
    let results = results.filter(|line| line.contains("tool.results"));
    assert_eq!(results.count(), 8);
    desk.server.stop().await;
}
