//! What must hold for the events of every run, whatever happened to its server.
//!
//! [`Books::keep`] reads events in order and panics at the first one that cannot be: an input that is
//! consumed twice, a second end of a turn, a node, edge or artifact that is there already. What is
//! left at the end is what still waits.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::team::is_turn_end;

/// Where an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputPlace {
    Inbox,
    Turn,
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
                self.use_once("alias", &event["patch"]["alias"]);
            }
            "edge.created" => self.add_edge(&event["edge"]),
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
        self.use_once("edge", &edge["id"]);
        let ends = format!("{} {} {}", edge["from"], edge["to"], edge["type"]);
        self.use_once("connection", &ends.into());
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
            self.open_turns.insert(turn);
            self.move_inputs(&event["consumed"], InputPlace::Inbox, InputPlace::Turn);
        } else if is_turn_end(event) {
            assert!(self.open_turns.remove(&turn), "a turn ends twice: {event}");
            self.move_inputs(&event["requeued"], InputPlace::Turn, InputPlace::Inbox);
        }
    }

    fn move_inputs(&mut self, ids: &Value, from: InputPlace, to: InputPlace) {
        for id in ids.as_array().into_iter().flatten() {
            let input = self.inputs.get_mut(id.as_str().unwrap());
            let input = input.unwrap_or_else(|| panic!("the input {id} was never sent"));
            assert_eq!(input.place, from, "the input {id} moves twice");
            input.place = to;
        }
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
        for (id, node) in run["nodes"].as_object().unwrap() {
            assert_eq!(node["inboxCount"], self.inbox_count(id), "{node:#}");
            let turn = node["turnId"].as_str();
            assert!(
                turn.is_none_or(|turn| self.open_turns.contains(turn)),
                "{node:#}"
            );
        }
    }
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
