//! What must hold for the events of every run, whatever happened to its server.
//!
//! [`Books::keep`] reads events in order and panics at the first one that cannot be: an input that is
//! consumed twice, a second end of a turn, a node, edge or artifact that is there already. What is
//! left at the end is what still waits.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::is_turn_end;

/// Where an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum InputPlace {
    Inbox,
    /// The turn that consumed it.
    Turn(String),
    /// A turn that failed has consumed it. A person may let it try again.
    FailedTurn,
}

#[derive(Debug)]
struct BookedInput {
    node: String,
    place: InputPlace,
}

/// The state that the events of a run make, as far as nothing may be lost or doubled.
#[derive(Debug, Default)]
pub(crate) struct Books {
    inputs: BTreeMap<String, BookedInput>,
    open_turns: BTreeSet<String>,
    open_tools: BTreeSet<String>,
    open_approvals: BTreeSet<String>,
    /// The ends and the type of each edge.
    edges: BTreeMap<String, String>,
    /// Every id and every natural key that must be unique, with the kind of thing in front.
    used: BTreeSet<String>,
}

impl Books {
    /// Reads all events of a run.
    pub(crate) fn keep(events: &[Value]) -> Self {
        let mut books = Self::default();
        for (number, event) in (1_u64..).zip(events) {
            assert_eq!(event["seq"], number, "the numbers are dense: {event}");
            books.use_once("event", &event["id"]);
            books.add(event);
        }
        books
    }

    fn add(&mut self, event: &Value) {
        match event["type"].as_str().unwrap() {
            "message.user" => self.receive(&event["message"]["id"], &event["nodeId"]),
            "handoff.sent" => {
                let envelope = &event["envelope"];
                self.receive(&envelope["id"], &envelope["toNodeId"]);
            }
            "node.patch" if !event["patch"]["id"].is_null() => {
                self.use_once("node", &event["patch"]["id"]);
            }
            "edge.created" => self.add_edge(&event["edge"]),
            "edge.deleted" => drop(self.edges.remove(&text(&event["edgeId"]))),
            "artifact.created" => self.add_artifact(event),
            "tool.proposed" => open(&mut self.open_tools, &event["tool"]["id"]),
            "tool.completed" => close(&mut self.open_tools, &event["toolId"]),
            "approval.requested" => open(&mut self.open_approvals, &event["approvalId"]),
            "approval.resolved" => close(&mut self.open_approvals, &event["approvalId"]),
            "turn.status" => self.add_step(event),
            _ => {}
        }
    }

    fn use_once(&mut self, kind: &str, key: &Value) {
        let is_new = self.used.insert(format!("{kind} {key}"));
        assert!(is_new, "the {kind} {key} is there twice");
    }

    fn receive(&mut self, id: &Value, node: &Value) {
        self.use_once("input", id);
        let input = BookedInput {
            node: text(node),
            place: InputPlace::Inbox,
        };
        self.inputs.insert(text(id), input);
    }

    fn add_edge(&mut self, edge: &Value) {
        let ends = format!("{} {} {}", edge["from"], edge["to"], edge["type"]);
        // The same event carries the edge again when its label, direction or gate was changed.
        if self.edges.get(&text(&edge["id"])) == Some(&ends) {
            return;
        }
        self.use_once("edge", &edge["id"]);
        let is_new = self.edges.values().all(|known| *known != ends);
        assert!(is_new, "a second edge like {edge}");
        self.edges.insert(text(&edge["id"]), ends);
    }

    /// A turn has each of its files once.
    fn add_artifact(&mut self, event: &Value) {
        let artifact = &event["artifact"];
        self.use_once("artifact", &artifact["id"]);
        let name = artifact["name"].as_str().unwrap();
        let is_of_turn = ["prompt.", "provider.", "diff.patch"];
        if is_of_turn.iter().any(|file| name.starts_with(file)) {
            let file = format!("{} {name}", event["turnId"]);
            self.use_once("file", &file.into());
        }
    }

    fn add_step(&mut self, event: &Value) {
        let turn = text(&event["turnId"]);
        if event["status"] == "turn.started" {
            self.use_once("turn", &event["turnId"]);
            self.open_turns.insert(turn.clone());
            for input in ids(&event["consumed"]) {
                let from = self.move_input(input, InputPlace::Turn(turn.clone()));
                let may_start = [InputPlace::Inbox, InputPlace::FailedTurn];
                assert!(may_start.contains(&from), "{input} is consumed twice");
            }
        } else if is_turn_end(event) {
            assert!(self.open_turns.remove(&turn), "a turn ends twice: {event}");
            let of_turn = InputPlace::Turn(turn);
            for input in ids(&event["requeued"]) {
                let from = self.move_input(input, InputPlace::Inbox);
                assert_eq!(from, of_turn, "{input} was not consumed by this turn");
            }
            if event["status"] == "turn.failed" {
                let consumed = self.inputs.values_mut();
                let consumed = consumed.filter(|input| input.place == of_turn);
                consumed.for_each(|input| input.place = InputPlace::FailedTurn);
            }
        }
    }

    /// Moves an input to another place. Returns where it was.
    fn move_input(&mut self, id: &str, to: InputPlace) -> InputPlace {
        let input = self.inputs.get_mut(id);
        let input = input.unwrap_or_else(|| panic!("the input {id} was never sent"));
        std::mem::replace(&mut input.place, to)
    }

    /// How many inputs wait for a node.
    pub(crate) fn inbox_count(&self, node: &str) -> usize {
        let inputs = self.inputs.values();
        inputs
            .filter(|input| input.node == node && input.place == InputPlace::Inbox)
            .count()
    }

    pub(crate) fn has_open_turn(&self) -> bool {
        !self.open_turns.is_empty()
    }

    /// Everything that was begun has ended. Questions and their calls may stay open.
    pub(crate) fn check_all_ended(&self) {
        assert!(self.open_turns.is_empty(), "{:?}", self.open_turns);
        assert!(self.open_tools.is_empty(), "{:?}", self.open_tools);
        assert!(self.open_approvals.is_empty(), "{:?}", self.open_approvals);
    }

    /// The state that the server shows is the one that the events make.
    pub(crate) fn check_snapshot(&self, run: &Value) {
        let mut aliases = BTreeSet::new();
        for (id, node) in run["nodes"].as_object().unwrap() {
            assert_eq!(node["inboxCount"], self.inbox_count(id), "{node:#}");
            let turn = node["turnId"].as_str();
            assert!(
                turn.is_none_or(|turn| self.open_turns.contains(turn)),
                "{node:#}"
            );
            let alias = node["alias"].as_str().map(str::to_lowercase);
            let is_new = alias.is_none_or(|alias| aliases.insert(alias));
            assert!(is_new, "a second node with the alias of {node:#}");
        }
    }
}

fn ids(list: &Value) -> impl Iterator<Item = &str> {
    let list = list.as_array().into_iter().flatten();
    list.map(|id| id.as_str().unwrap())
}

fn text(id: &Value) -> String {
    id.as_str().unwrap().to_owned()
}

fn open(set: &mut BTreeSet<String>, id: &Value) {
    assert!(set.insert(text(id)), "{id} begins twice");
}

fn close(set: &mut BTreeSet<String>, id: &Value) {
    assert!(set.remove(id.as_str().unwrap()), "{id} ends twice");
}
