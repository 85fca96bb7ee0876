//! The demo's run: four agents work on the shop until three things wait for the person.
//!
//! The lead hands work to two implementers, each in a worktree. It claims completion too early: the
//! check fails, and an implementer corrects the mistake. Then one agent asks whether it may delete a
//! file, the lead asks a question, and the reviewer goes in circles until the run is paused.
//!
//! The person may approve or deny, answer, and continue in any order. The lead waits for the replies
//! to all that it handed out (`wakeOn: all`), and completes the run when the last one is there.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::agents::{self, EXPLAINED_FILE, PROVIDER};
use super::directory::DemoDirectory;
use super::ledger::WORLD;
use super::repository::VERIFY;
use crate::answer::{text_at, text_of};
use crate::commands::run::client::run_path;
use crate::commands::run::events::RunEvents;
use crate::failure::Failure;
use crate::http::{Call, Http};

const GOAL: &str = "Give a discount of 10 % on ten or more pieces of one item\n\
    The receipt names the discount.";
const FIRST_MESSAGE: &str = "Please start. The price and the receipt can be changed side by side.";
/// So many equal turns are a stall. The default would let the reviewer go in circles for longer.
const STALL_AFTER: u32 = 3;
/// A short wait for further envelopes: an agent that plays a script is faster than a model.
const FAN_IN_MS: u32 = 100;

/// What the tour shows of the run.
pub(super) struct TeamThings {
    pub(super) run: String,
    pub(super) approval_node: String,
    pub(super) node_stalled: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// A node of the run, and where it stands in the graph.
struct Member {
    alias: &'static str,
    label: &'static str,
    role: &'static str,
    wake_on: &'static str,
    position: [i32; 2],
}

const MEMBERS: [Member; 4] = [
    Member {
        alias: "lead",
        label: "Lead",
        role: "orchestrator",
        wake_on: "all",
        position: [0, 160],
    },
    Member {
        alias: "pricing",
        label: "Pricing",
        role: "implementer",
        wake_on: "any",
        position: [360, 40],
    },
    Member {
        alias: "receipt",
        label: "Receipt",
        role: "implementer",
        wake_on: "any",
        position: [360, 280],
    },
    Member {
        alias: "reviewer",
        label: "Reviewer",
        role: "reviewer",
        wake_on: "any",
        position: [720, 40],
    },
];
const EDGES: [[&str; 2]; 3] = [
    ["lead", "pricing"],
    ["lead", "receipt"],
    ["pricing", "reviewer"],
];

/// Makes the run, and follows it until it waits for the person.
pub(super) async fn fill_run(http: &mut Http, directory: &DemoDirectory) -> Result<TeamThings> {
    let run = create_run(http, &json!(directory.repository())).await?;
    let mut events = RunEvents::open(http, &run, 0).await?;
    let chat = json!({"content": FIRST_MESSAGE});
    http.json(Call::post(run_path(&run, "/chat"), &chat))
        .await?;
    let waiting = follow_until_waiting(&mut events).await?;
    // The failed check is known to be corrected before anybody looks.
    http.json(Call::post(run_path(&run, "/verify"), &json!({})))
        .await?;
    let line = agents::explained_line().context("the script lacks the line of the tour")?;
    Ok(TeamThings {
        run,
        approval_node: waiting.approval_node,
        node_stalled: waiting.stalled_node,
        file: EXPLAINED_FILE.to_owned(),
        line,
    })
}

async fn create_run(http: &mut Http, cwd: &Value) -> Result<String> {
    let body = json!({
        "cwd": cwd,
        "goal": GOAL,
        "world": WORLD,
        "verify": [VERIFY],
        "limits": {"stallAfter": STALL_AFTER, "fanInMs": FAN_IN_MS},
    });
    let made = http.json(Call::post("/api/runs", &body)).await?;
    let run = text_at(&made, "/run/id").context("the server named no run")?;
    for member in &MEMBERS {
        let [x, y] = member.position;
        let node = json!({
            "label": member.label,
            "alias": member.alias,
            "roleTemplate": member.role,
            "provider": "custom",
            "providerName": PROVIDER,
            "wakeOn": member.wake_on,
            "position": {"x": x, "y": y},
        });
        http.json(Call::post(run_path(&run, "/nodes"), &node))
            .await?;
    }
    for [from, to] in EDGES {
        let edge = json!({"from": from, "to": to});
        http.json(Call::post(run_path(&run, "/edges"), &edge))
            .await?;
    }
    Ok(run)
}

/// The nodes that wait for the person.
struct Waiting {
    approval_node: String,
    stalled_node: String,
}

/// Reads events until an approval and a question are open and a node has stalled. Three agents cause
/// them, so they come in any order.
async fn follow_until_waiting(events: &mut RunEvents) -> Result<Waiting> {
    let (mut approval_node, mut has_question, mut stalled_node) = (None, false, None);
    while let Some(event) = events.next().await? {
        let event = event.json;
        let node = text_of(&event, "nodeId").to_owned();
        match text_of(&event, "type") {
            "approval.requested" if text_of(&event, "kind") == "question" => has_question = true,
            "approval.requested" => approval_node = Some(node),
            "run.stalled" => stalled_node = Some(node),
            "turn.status" if text_of(&event, "status") == "turn.failed" => {
                let detail = text_of(&event, "detail");
                return Failure::new(format!("an agent failed: {detail}")).fail();
            }
            _ => {}
        }
        if let (Some(approval_node), Some(stalled_node), true) =
            (&approval_node, &stalled_node, has_question)
        {
            return Ok(Waiting {
                approval_node: approval_node.clone(),
                stalled_node: stalled_node.clone(),
            });
        }
    }
    Failure::new("the run was deleted").fail()
}
