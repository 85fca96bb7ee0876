//! `turnkeep mcp` driven by `rmcp`, the protocol's own Rust client, in each revision that both
//! speak.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod sandbox;

use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
    ServerNotification, SubscriptionFilter,
};
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::net::unix::pipe;

/// A client whose server is a `turnkeep mcp` with ANN's token.
struct Agent {
    child: Child,
    client: RunningService<RoleClient, ClientConfig>,
}

impl Agent {
    async fn start(sandbox: &Sandbox, version: &ProtocolVersion) -> Self {
        let minted = sandbox.json(&["world", "token", "team", "ANN", "--write", "--json"], "");
        let mut command = sandbox.command(&["mcp"]);
        command.env("TURNKEEP_TOKEN", minted["token"].as_str().unwrap());
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdin =
            pipe::Sender::from_owned_fd(OwnedFd::from(child.stdin.take().unwrap())).unwrap();
        let stdout =
            pipe::Receiver::from_owned_fd(OwnedFd::from(child.stdout.take().unwrap())).unwrap();
        let mut info = ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("rmcp-test", "1"),
        );
        info.protocol_version = version.clone();
        let lifecycle = if *version == ProtocolVersion::V_2026_07_28 {
            ClientLifecycleMode::Discover {
                preferred_versions: vec![version.clone()],
            }
        } else {
            ClientLifecycleMode::Initialize
        };
        let client = info
            .serve_with_lifecycle((stdout, stdin), lifecycle)
            .await
            .unwrap();
        Self { child, client }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let arguments = arguments.as_object().unwrap().clone();
        let call = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.client.call_tool(call).await.unwrap();
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.unwrap()
    }

    async fn end(mut self) {
        self.client.cancel().await.unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

fn with_team() -> Sandbox {
    let sandbox = Sandbox::new();
    let transcript = sandbox.transcript(
        "world new team --person ANN --person BOB
         invoke team refund",
    );
    assert!(!transcript.contains("error"), "{transcript}");
    sandbox
}

async fn reads_and_writes(agent: &Agent, text: &str) {
    let tools = agent.client.list_all_tools().await.unwrap();
    assert!(
        tools.iter().any(|tool| tool.name == "ledger_write"),
        "{tools:?}"
    );
    let me = agent.call("whoami", json!({})).await;
    assert_eq!(
        (&me["person_id"], &me["world_id"]),
        (&json!("ANN"), &json!("team"))
    );
    let found = agent
        .call("ledger_search", json!({ "query": "refund" }))
        .await;
    assert_eq!(found["results"][0]["audience"], "everyone", "{found}");
    let write = json!({ "text": text, "visible_to": ["bob"], "request_id": text });
    let first = agent.call("ledger_write", write.clone()).await;
    let again = agent.call("ledger_write", write).await;
    assert_eq!(first["bundle_id"], again["bundle_id"]);
    assert_eq!(again["replayed"], true, "{again}");
    let news = agent
        .call("ledger_read", json!({ "cursor": me["cursor_now"] }))
        .await;
    assert!(news.to_string().contains(text), "{news}");
}

#[tokio::test]
async fn the_rust_sdk_reads_and_writes_in_every_revision() {
    let sandbox = with_team();
    let server = sandbox.up(&[]);
    for version in [
        ProtocolVersion::V_2025_06_18,
        ProtocolVersion::V_2025_11_25,
        ProtocolVersion::V_2026_07_28,
    ] {
        let agent = Agent::start(&sandbox, &version).await;
        let peer = agent.client.peer_info().unwrap();
        assert_eq!(peer.protocol_version, version);
        assert!(
            peer.instructions.as_ref().unwrap().contains("ANN"),
            "{peer:?}"
        );
        reads_and_writes(&agent, &format!("written in {version}")).await;
        agent.end().await;
    }
    server.terminate();
}

#[tokio::test]
async fn the_rust_sdk_is_notified_of_new_entries() {
    let sandbox = with_team();
    let server = sandbox.up(&[]);
    let agent = Agent::start(&sandbox, &ProtocolVersion::V_2026_07_28).await;
    let [resource] = <[_; 1]>::try_from(agent.client.list_all_resources().await.unwrap()).unwrap();
    let filter = SubscriptionFilter::builder()
        .resource_subscriptions([resource.uri.clone()])
        .build();
    let mut news = agent.client.listen(filter).await.unwrap();
    sandbox.transcript("invoke team News.");
    let Some(ServerNotification::ResourceUpdatedNotification(updated)) = news.next().await.unwrap()
    else {
        panic!("no notification that the resource was updated");
    };
    assert_eq!(updated.params.uri, resource.uri);
    news.cancel().await.unwrap();
    agent.end().await;
    server.terminate();
}
