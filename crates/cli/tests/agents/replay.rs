//! Replay gives the live state: the log of each run is compared with everything that the server makes
//! of it.
//!
//! - The records, read from the store and applied by the runtime, make the state that is shown.
//! - The events, folded as a client folds them, make that state too. Each fits its schema.
//! - No input is lost or consumed twice, and nothing begins or ends twice.
//! - The file of events and the copies of artifacts have what the log has.
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
use super::bookkeeping::Books;
use super::folded_run::{Decisions, ServedRun, check_served_run};

/// How many records are read at once.
const PAGE_RECORDS: u32 = 512;
/// How often a run and its decisions are read until no event comes between them.
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
        if let Some(served) = read_served_run(team, id) {
            let events = team.events(id);
            check_served_run(&served, &events);
            check_books(&served, &events);
            team.check_event_file_has(id, events);
            check_artifact_files(&served);
            check_records(&served, &reader.read_events(team, id));
        }
    }
}

/// Nothing is lost or doubled, up to the snapshot.
fn check_books(served: &ServedRun, events: &[Value]) {
    let count = usize::try_from(served.last_seq()).unwrap();
    Books::keep(&events[..count]).check_snapshot(&served.run);
}

/// The copies of artifacts are written before their events are in the file.
fn check_artifact_files(served: &ServedRun) {
    for artifact in served.run["artifacts"].as_object().unwrap().values() {
        let path = Path::new(artifact["path"].as_str().unwrap());
        // A test may put a directory in the place of a file, so that the server cannot write it.
        if !path.is_dir() {
            let copy = std::fs::read(path);
            let copy = copy.unwrap_or_else(|error| panic!("{error}: {artifact}"));
            assert_eq!(
                artifact["contentHash"],
                json!(Hash(BlobHash::of(&copy))),
                "{artifact}"
            );
        }
    }
}

/// The records of a run make the state that the server shows, when the runtime applies them.
fn check_records(served: &ServedRun, events: &[Event]) {
    let mut replayed = Run::new(served.run["id"].as_str().unwrap().parse().unwrap());
    // The log may have grown since the snapshot was made.
    let until_snapshot = events
        .iter()
        .take_while(|event| event.seq <= served.last_seq());
    for (number, event) in (1..).zip(until_snapshot) {
        assert_eq!(event.seq, number, "the numbers of events are dense");
        replayed.apply(event);
    }
    let mut differences = Vec::new();
    compare("run", &served.run, &run_fields(&replayed), &mut differences);
    let approvals = by_id(replayed.live.approvals.values().map(|approval| {
        let fields = approval_fields(approval);
        (approval.id.to_string(), fields)
    }));
    if let Some(decisions) = &served.decisions {
        let shown = by_id(decisions.approvals.iter().map(|shown| {
            let id = shown["approvalId"].as_str().unwrap();
            (id.to_owned(), shown.clone())
        }));
        compare("approvals", &shown, &approvals, &mut differences);
    }
    assert!(
        differences.is_empty(),
        "a replay of the log of {} is not what the server shows:\n{}",
        served.run["id"],
        differences.join("\n")
    );
}

/// Reads a run, its approvals and its rules. The answers belong together if no event came between
/// them, which an agent that prints all the time may prevent.
/// Returns `None` for a run that is deleted.
fn read_served_run(team: &Team, id: &str) -> Option<ServedRun> {
    let mut run = read_run(team, id)?;
    for _ in 0..READS_MAX {
        let decisions = read_decisions(team, id);
        let before = run;
        run = read_run(team, id)?;
        if before["lastSeq"] == run["lastSeq"] {
            let decisions = Some(decisions);
            return Some(ServedRun { run, decisions });
        }
    }
    let decisions = None;
    Some(ServedRun { run, decisions })
}

fn read_decisions(team: &Team, run: &str) -> Decisions {
    let rows = |list: &str, field: &str| {
        let mut listed = team.get(&format!("/api/{list}"))[list].take();
        let rows = listed.as_array_mut().unwrap().iter_mut();
        let of_run = rows.filter(|row| row["runId"] == run);
        of_run.map(|row| row[field].take()).collect()
    };
    Decisions {
        approvals: rows("approvals", "approval"),
        rules: rows("rules", "rule"),
    }
}

fn read_run(team: &Team, id: &str) -> Option<Value> {
    let mut answered = team.request("GET", &format!("/api/runs/{id}"), None);
    (answered.status == 200).then(|| answered.body["run"].take())
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
        let options = Options {
            token: team.token().map(str::to_owned),
            ..Options::default()
        };
        let connected = Client::connect(&address, options);
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
