//! Replay gives the live state: the records of each run are read from the store, folded by the
//! runtime, and compared with what the server shows.
//!
//! The harness calls [`check_all_runs`] before a server ends, after each start, and at the end of
//! every test that did not fail before. So each test is also a test that the server keeps no state
//! of a run beside its log.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use turnkeep_client::message::{GetRange, ReadOptions};
use turnkeep_client::{Client, Options, verify};
use turnkeep_runtime::approval::Approval;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::edge::Edge;
use turnkeep_runtime::node::{BlockReason, Node};
use turnkeep_runtime::usage::Usage;
use turnkeep_runtime::words::PausedReason;
use turnkeep_runtime::{Event, Run, record};
use turnkeep_types::{BlobHash, ContextId, Timestamp};
use turnkeep_wire::json::{Hash, Time};

use super::Team;

/// How many records are read at once.
const PAGE_RECORDS: u32 = 512;
/// How often a run and its approvals are read until no event comes between them.
const READS_MAX: usize = 30;

/// Compares every run that the server shows with its records. Panics with the differences.
pub(crate) fn check_all_runs(team: &Team) {
    let listed = team.get("/api/runs?summary=1");
    let ids: Vec<&str> = listed["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap())
        .collect();
    if ids.is_empty() {
        return;
    }
    let reader = RecordReader::open(team);
    for id in ids {
        if let Some(shown) = ShownRun::read(team, id) {
            check_run(&shown, &reader.read_events(team, id));
        }
    }
}

fn check_run(shown: &ShownRun, events: &[Event]) {
    let mut replayed = Run::new(shown.run["id"].as_str().unwrap().parse().unwrap());
    // The log may have grown since the snapshot was made.
    let until_snapshot = events.iter().take_while(|event| event.seq <= shown.seq());
    for (number, event) in (1..).zip(until_snapshot) {
        assert_eq!(event.seq, number, "the numbers of events are dense");
        replayed.apply(event);
    }
    let mut differences = Vec::new();
    compare("run", &shown.run, &run_fields(&replayed), &mut differences);
    let approvals = by_id(replayed.live.approvals.values().map(|approval| {
        let fields = approval_fields(approval);
        (approval.id.to_string(), fields)
    }));
    if let Some(shown) = &shown.approvals {
        compare("approvals", shown, &approvals, &mut differences);
    }
    assert!(
        differences.is_empty(),
        "a replay of the log of {} is not what the server shows:\n{}",
        shown.run["id"],
        differences.join("\n")
    );
}

/// What the server shows of a run at one moment.
struct ShownRun {
    run: Value,
    /// The open approvals by their ids. `None` if the run was never quiet for long enough to read
    /// them at the same moment.
    approvals: Option<Value>,
}

impl ShownRun {
    /// Reads the run and its approvals. The answers belong together if no event came between them,
    /// which an agent that prints all the time may prevent.
    /// Returns `None` for a run that is deleted.
    fn read(team: &Team, id: &str) -> Option<Self> {
        let mut run = read_run(team, id)?;
        for _ in 0..READS_MAX {
            let listed = team.get(&format!("/api/approvals?runId={id}"));
            let before = run;
            run = read_run(team, id)?;
            if before["lastSeq"] == run["lastSeq"] {
                let approvals = Some(approvals_by_id(&listed));
                return Some(Self { run, approvals });
            }
        }
        let approvals = None;
        Some(Self { run, approvals })
    }

    /// The number of the last event that the snapshot has.
    fn seq(&self) -> u64 {
        self.run["lastSeq"].as_u64().unwrap()
    }
}

fn read_run(team: &Team, id: &str) -> Option<Value> {
    let mut answered = team.request("GET", &format!("/api/runs/{id}"), None);
    (answered.status == 200).then(|| answered.body["run"].take())
}

fn approvals_by_id(listed: &Value) -> Value {
    let listed = listed["approvals"].as_array().unwrap().iter();
    by_id(listed.map(|listed| {
        let approval = &listed["approval"];
        let id = approval["approvalId"].as_str().unwrap();
        (id.to_owned(), approval.clone())
    }))
}

/// Reads the stored records of runs over the binary protocol.
struct RecordReader {
    runtime: Runtime,
    client: Client,
}

/// A record as it is stored, and the long texts that it names.
struct StoredRecord {
    payload: Vec<u8>,
    blobs: BTreeMap<BlobHash, Vec<u8>>,
    event: Event,
}

impl RecordReader {
    fn open(team: &Team) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let address = team.binary_address();
        let connected = Client::connect(&address, Options::default());
        let client = runtime.block_on(connected).unwrap();
        Self { runtime, client }
    }

    fn read_events(&self, team: &Team, run: &str) -> Vec<Event> {
        let records = self.read_records(team, run).into_iter();
        records.map(|record| record.event).collect()
    }

    /// All records of a run, the first one first.
    fn read_records(&self, team: &Team, run: &str) -> Vec<StoredRecord> {
        let context = find_context(team, run);
        let mut records = Vec::new();
        loop {
            let range = GetRange {
                context,
                start_depth: u32::try_from(records.len()).unwrap(),
                limit: PAGE_RECORDS,
                options: ReadOptions {
                    include_payload: true,
                    ..ReadOptions::default()
                },
            };
            let page = self.runtime.block_on(self.client.range(range)).unwrap();
            if page.is_empty() {
                return records;
            }
            let payloads = page.iter().map(|item| verify::payload(item).unwrap());
            records.extend(payloads.map(|payload| self.decode(&payload)));
        }
    }

    fn decode(&self, payload: &[u8]) -> StoredRecord {
        let blobs = RefCell::new(BTreeMap::new());
        let find_blob = |hash: &BlobHash| {
            let bytes = self.runtime.block_on(self.client.blob(*hash)).ok()?;
            blobs.borrow_mut().insert(*hash, bytes.to_vec());
            Some(bytes)
        };
        let event = record::decode(payload, &find_blob).unwrap();
        StoredRecord {
            payload: payload.to_vec(),
            blobs: blobs.into_inner(),
            event,
        }
    }
}

/// Writes the records of a run to `testdata/runs`, for the tests of the runtime, if `UPDATE` is set.
pub(crate) fn refresh_recording(team: &Team, run: &str, name: &str) {
    if std::env::var_os("UPDATE").is_none() {
        return;
    }
    let mut text = String::new();
    for record in RecordReader::open(team).read_records(team, run) {
        let blobs = record.blobs.values().map(hex::encode);
        let line = json!({
            "kind": record.event.fact.wire_name(),
            "record": hex::encode(&record.payload),
            "blobs": blobs.collect::<Vec<String>>(),
        });
        writeln!(text, "{line}").unwrap();
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/runs");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(format!("{name}.jsonl")), text).unwrap();
}

/// The context of a run's events. The transcripts of its nodes have contexts of their own.
fn find_context(team: &Team, run: &str) -> ContextId {
    let path = format!("/v1/contexts?limit=1000&label=turnkeep.run={run}");
    let listed = team.get(&path);
    let mut contexts = listed["contexts"].as_array().unwrap().iter();
    let is_of_run = |context: &&Value| context["labels"]["turnkeep.node"].is_null();
    let found = contexts.find(is_of_run).unwrap();
    found["context_id"].as_str().unwrap().parse().unwrap()
}

/// Compares what the replay says with what the server shows. The server may show more fields, but no
/// more nodes, edges, artifacts or approvals.
fn compare(place: &str, shown: &Value, replayed: &Value, differences: &mut Vec<String>) {
    let (Value::Object(shown), Value::Object(replayed)) = (shown, replayed) else {
        if shown != replayed {
            differences.push(format!(
                "{place}: the server shows {shown}, the replay gives {replayed}"
            ));
        }
        return;
    };
    let is_collection = ["nodes", "edges", "artifacts", "approvals"]
        .iter()
        .any(|name| place.rsplit('.').next() == Some(name));
    let of_server = shown.keys().filter(|_| is_collection);
    let names: BTreeSet<&String> = replayed.keys().chain(of_server).collect();
    for name in names {
        // A field without a value is left out.
        let (shown, replayed) = (shown.get(name), replayed.get(name));
        let (shown, replayed) = (
            shown.unwrap_or(&Value::Null),
            replayed.unwrap_or(&Value::Null),
        );
        compare(&format!("{place}.{name}"), shown, replayed, differences);
    }
}

fn by_id(rows: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(rows.collect::<Map<String, Value>>())
}

fn run_fields(run: &Run) -> Value {
    let live = &run.live;
    let nodes = live
        .nodes()
        .map(|node| (node.id.to_string(), node_fields(node)));
    let edges = live.edges.values();
    let artifacts = run.archive.artifacts();
    json!({
        "id": live.id.to_string(),
        "status": live.status.word(),
        "pausedReason": live.paused_reason.map(PausedReason::word),
        "phase": live.phase.word(),
        "mode": live.mode.word(),
        "globalMode": live.global_mode.word(),
        "createdAt": time(live.created_at),
        "updatedAt": time(live.updated_at),
        "lastSeq": live.last_seq,
        "title": live.settings.title,
        "goal": live.settings.goal,
        "cwd": live.settings.cwd,
        "world": live.settings.world,
        "verify": live.settings.verify,
        "setup": live.settings.setup,
        "docsNode": live.settings.docs_node.map(|node| node.to_string()),
        "usage": usage_fields(&live.usage),
        "nodes": by_id(nodes),
        "edges": by_id(edges.map(|edge| (edge.id.to_string(), edge_fields(edge)))),
        "artifacts": by_id(artifacts.map(|artifact| (artifact.id.to_string(), artifact_fields(artifact)))),
    })
}

fn node_fields(node: &Node) -> Value {
    let settings = &node.settings;
    json!({
        "id": node.id.to_string(),
        "label": settings.label,
        "alias": settings.alias,
        "person": settings.person,
        "roleTemplate": settings.role,
        "provider": settings.provider.word(),
        "providerName": settings.provider_name,
        "permissions": {
            "cliPermissionsMode": settings.permissions.cli.word(),
            "spawnRequiresApproval": settings.permissions.spawn_requires_approval,
        },
        "wakeOn": settings.wake_on.word(),
        "parentId": node.parent.map(|parent| parent.to_string()),
        "depth": node.depth,
        "status": node.status.word(),
        "block": node.block.as_ref().map(block_fields),
        "summary": node.summary,
        "createdAt": time(node.created_at),
        "lastActivityAt": time(node.last_activity_at),
        "session": {"sessionId": node.session.id},
        "inboxCount": node.inbox.len(),
        "turnId": node.turn.as_ref().map(|turn| turn.id.to_string()),
        "workspace": node.workspace.as_ref().map(|workspace| json!({
            "kind": workspace.kind.word(),
            "branch": workspace.branch,
        })),
        "retryAt": node.retry_at.map(time),
        "usage": usage_fields(&node.usage),
    })
}

fn block_fields(reason: &BlockReason) -> Value {
    match reason {
        BlockReason::Approvals => json!({"reason": "approvals"}),
        BlockReason::Stall => json!({"reason": "stall"}),
        BlockReason::Violation { turn, paths } => {
            json!({"reason": "violation", "turnId": turn.to_string(), "paths": paths})
        }
    }
}

fn edge_fields(edge: &Edge) -> Value {
    json!({
        "from": edge.from.to_string(),
        "to": edge.to.to_string(),
        "bidirectional": edge.bidirectional,
        "type": edge.kind.word(),
        "label": edge.label,
    })
}

fn artifact_fields(artifact: &Artifact) -> Value {
    json!({
        "kind": artifact.kind.word(),
        "name": artifact.name,
        "nodeId": artifact.node.map(|node| node.to_string()),
        "createdAt": time(artifact.created_at),
        "contentHash": Hash(artifact.content),
        "bytes": artifact.bytes,
    })
}

fn approval_fields(approval: &Approval) -> Value {
    json!({
        "nodeId": approval.node.to_string(),
        "turnId": approval.turn.to_string(),
        "tool": {
            "id": approval.tool.id.to_string(),
            "name": approval.tool.name,
            "args": approval.tool.args,
        },
        "context": approval.context,
        "createdAt": time(approval.created_at),
    })
}

fn usage_fields(usage: &Usage) -> Value {
    json!({
        "promptTokens": usage.prompt_tokens,
        "completionTokens": usage.completion_tokens,
        "totalTokens": usage.total_tokens(),
        "cachedTokens": usage.cached_tokens,
        "costUsd": dollars(usage.cost_micro_usd),
    })
}

/// An amount of money, written and read as the server's was: a parser may be off by the last bit.
#[expect(clippy::cast_precision_loss, reason = "the amounts of tests are small")]
fn dollars(micro_usd: u64) -> Value {
    let text = json!(micro_usd as f64 / 1e6).to_string();
    serde_json::from_str(&text).unwrap()
}

fn time(at: Timestamp) -> Value {
    json!(Time(at))
}
