//! The state of a run as a client makes it from the events, compared with the state that the server
//! shows.
//!
//! Like every client, [`check_served_run`] assigns the fields of patches, keeps edges, artifacts,
//! approvals and rules, and adds up what turns used. It shares no code with the server and the
//! runtime. The events come from the log and the snapshot from memory, so equality means that the
//! server keeps no state of a run beside its log, and that the events tell clients all of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// What the server shows of a run at one moment.
#[derive(Debug)]
pub(crate) struct ServedRun {
    /// The snapshot. `lastSeq` is the number of the last event that it includes.
    pub(crate) run: Value,
    /// `None` if they could not be read at the same moment.
    pub(crate) decisions: Option<Decisions>,
}

/// What people have to decide about a run, and what they decided for later calls.
#[derive(Debug)]
pub(crate) struct Decisions {
    pub(crate) approvals: Vec<Value>,
    pub(crate) rules: Vec<Value>,
}

impl ServedRun {
    pub(crate) fn last_seq(&self) -> u64 {
        self.run["lastSeq"].as_u64().unwrap()
    }
}

/// Panics if the events of a run up to its snapshot do not make the state that the server shows.
///
/// `events` are all events of the run, the first one first. The run may have gone on since the
/// snapshot was made.
pub(crate) fn check_served_run(served: &ServedRun, events: &[Value]) {
    let mut folded = FoldedRun::default();
    for event in events {
        if event["seq"].as_u64().unwrap() > served.last_seq() {
            break;
        }
        folded.add(event);
    }
    let mut differences = Vec::new();
    compare(
        "run",
        &plain_run(&served.run),
        &folded.snapshot(),
        &mut differences,
    );
    if let Some(Decisions { approvals, rules }) = &served.decisions {
        let shown = by_id(approvals, "approvalId");
        compare(
            "approvals",
            &shown,
            &json!(folded.approvals),
            &mut differences,
        );
        let shown = by_id(rules, "id");
        compare("rules", &shown, &json!(folded.rules), &mut differences);
    }
    assert!(
        differences.is_empty(),
        "the events of {} do not make the state that the server shows:\n{}",
        served.run["id"],
        differences.join("\n")
    );
}

type Fields = Map<String, Value>;

/// What the events of a run make.
#[derive(Debug, Default)]
struct FoldedRun {
    run: Fields,
    nodes: BTreeMap<String, Fields>,
    edges: BTreeMap<String, Value>,
    artifacts: BTreeMap<String, Value>,
    approvals: BTreeMap<String, Value>,
    rules: BTreeMap<String, Value>,
    used: Used,
    /// What each node used, also the deleted ones.
    used_by_node: BTreeMap<String, Used>,
}

impl FoldedRun {
    fn add(&mut self, event: &Value) {
        let next = self
            .run
            .get("lastSeq")
            .map_or(1, |last| last.as_u64().unwrap() + 1);
        assert_eq!(
            event["seq"], next,
            "the numbers of events are dense: {event}"
        );
        match event["type"].as_str().unwrap() {
            "run.patch" => self.patch_run(event),
            "run.phase" => assign(&mut self.run, &json!({"phase": event["phase"]})),
            "run.mode" => {
                let modes = json!({"mode": event["mode"], "globalMode": event["globalMode"]});
                assign(&mut self.run, &modes);
            }
            "node.patch" => assign(self.nodes.entry(id_of(&event["nodeId"])).or_default(), &event["patch"]),
            // The server says that the program is silent; the node is as it was.
            "node.progress" if event["notice"] != "silence" => self.patch_node(
                event,
                &json!({"status": event["status"], "summary": event["summary"], "lastActivityAt": event["ts"]}),
            ),
            "node.deleted" => drop(self.nodes.remove(&id_of(&event["nodeId"]))),
            // The same event carries the edge again when it was changed.
            "edge.created" => {
                let edge = &event["edge"];
                self.edges.insert(id_of(&edge["id"]), edge.clone());
            }
            "edge.deleted" => take(&mut self.edges, &event["edgeId"]),
            "artifact.created" => put(&mut self.artifacts, &event["artifact"]),
            "approval.requested" => {
                self.approvals.insert(id_of(&event["approvalId"]), approval_of(event));
            }
            "approval.resolved" => take(&mut self.approvals, &event["approvalId"]),
            "turn.status" => self.step(event),
            "telemetry.usage" => self.use_up(event),
            _ => {}
        }
        assign(
            &mut self.run,
            &json!({"updatedAt": event["ts"], "lastSeq": event["seq"]}),
        );
    }

    fn patch_run(&mut self, event: &Value) {
        assign(&mut self.run, &event["patch"]);
        if event["ruleAdded"].is_object() {
            put(&mut self.rules, &event["ruleAdded"]);
        }
        if event["ruleDeleted"].is_string() {
            take(&mut self.rules, &event["ruleDeleted"]);
        }
    }

    fn patch_node(&mut self, event: &Value, patch: &Value) {
        let node = id_of(&event["nodeId"]);
        let fields = self.nodes.get_mut(&node);
        assign(
            fields.unwrap_or_else(|| panic!("no node yet: {event}")),
            patch,
        );
    }

    /// A node shows its open turn.
    fn step(&mut self, event: &Value) {
        let open_turn = match event["status"].as_str().unwrap() {
            "turn.started" => &event["turnId"],
            "turn.completed" | "turn.interrupted" | "turn.failed" => &Value::Null,
            _ => return,
        };
        self.patch_node(event, &json!({"turnId": open_turn}));
    }

    fn use_up(&mut self, event: &Value) {
        let used = Used::of_report(event);
        self.used.add(used);
        let node = self.used_by_node.entry(id_of(&event["nodeId"]));
        node.or_default().add(used);
    }

    /// The run as [`plain_run`] makes it of a snapshot.
    fn snapshot(&self) -> Value {
        let mut run = self.run.clone();
        run.insert("usage".to_owned(), self.used.view());
        run.insert("edges".to_owned(), json!(self.edges));
        run.insert("artifacts".to_owned(), json!(self.artifacts));
        let nodes = self.nodes.iter().map(|(id, fields)| {
            let mut fields = fields.clone();
            let used = self.used_by_node.get(id).copied().unwrap_or_default();
            fields.insert("usage".to_owned(), used.view());
            (id.clone(), Value::Object(fields))
        });
        run.insert("nodes".to_owned(), Value::Object(nodes.collect()));
        Value::Object(run)
    }
}

/// A snapshot without what no event records, and with exact amounts of money.
fn plain_run(run: &Value) -> Value {
    let mut run = run.clone();
    run["usage"] = Used::of(&run["usage"], &run["usage"]["costUsd"]).view();
    for node in run["nodes"].as_object_mut().unwrap().values_mut() {
        node["usage"] = Used::of(&node["usage"], &node["usage"]["costUsd"]).view();
        node.as_object_mut().unwrap().remove("connection");
    }
    run
}

/// An open approval is the event that requested it, without the envelope.
fn approval_of(requested: &Value) -> Value {
    let mut approval = requested.clone();
    let fields = approval.as_object_mut().unwrap();
    for name in ["id", "runId", "ts", "seq", "type"] {
        fields.remove(name);
    }
    approval
}

/// Tokens and money. Money is counted in millionths of a dollar, so that sums are exact.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    prompt: u64,
    completion: u64,
    cached: u64,
    micro_usd: u64,
}

impl Used {
    fn of(tokens: &Value, dollars: &Value) -> Self {
        let count = |name: &str| tokens[name].as_u64().unwrap_or_default();
        let [prompt, completion] = ["promptTokens", "completionTokens"].map(count);
        assert_eq!(count("totalTokens"), prompt + completion, "{tokens}");
        Self {
            prompt,
            completion,
            cached: count("cachedTokens"),
            micro_usd: micro_usd(dollars),
        }
    }

    fn of_report(event: &Value) -> Self {
        Self::of(&event["usage"], &event["costUsd"])
    }

    fn add(&mut self, more: Self) {
        self.prompt += more.prompt;
        self.completion += more.completion;
        self.cached += more.cached;
        self.micro_usd += more.micro_usd;
    }

    fn view(self) -> Value {
        let Self {
            prompt,
            completion,
            cached,
            micro_usd,
        } = self;
        json!({"prompt": prompt, "completion": completion, "cached": cached, "microUsd": micro_usd})
    }
}

/// A report without costs costs nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few dollars"
)]
fn micro_usd(dollars: &Value) -> u64 {
    (dollars.as_f64().unwrap_or_default() * 1e6).round() as u64
}

/// Assigns the fields of a patch. Null means that a field has no value any more.
fn assign(fields: &mut Fields, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
}

fn id_of(id: &Value) -> String {
    id.as_str().unwrap().to_owned()
}

fn put(table: &mut BTreeMap<String, Value>, row: &Value) {
    let earlier = table.insert(id_of(&row["id"]), row.clone());
    assert_eq!(earlier, None, "it is there twice: {row}");
}

fn take(table: &mut BTreeMap<String, Value>, id: &Value) {
    let row = table.remove(id.as_str().unwrap());
    assert!(row.is_some(), "{id} is not there");
}

fn by_id(rows: &[Value], name: &str) -> Value {
    let rows = rows.iter().map(|row| (id_of(&row[name]), row.clone()));
    Value::Object(rows.collect())
}

/// Notes every field that differs. A field that is missing has no value.
fn compare(place: &str, shown: &Value, folded: &Value, differences: &mut Vec<String>) {
    let (Value::Object(shown), Value::Object(folded)) = (shown, folded) else {
        if shown != folded {
            differences.push(format!(
                "{place}: the server shows {shown}, the events make {folded}"
            ));
        }
        return;
    };
    let names = shown
        .keys()
        .chain(folded.keys().filter(|name| !shown.contains_key(*name)));
    for name in names {
        let [shown, folded] =
            [shown, folded].map(|fields| fields.get(name).unwrap_or(&Value::Null));
        compare(&format!("{place}.{name}"), shown, folded, differences);
    }
}
