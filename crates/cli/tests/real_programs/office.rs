//! A server whose providers are the real programs, and a repository for them to work in.

use serde_json::{Value, json};

use crate::model::{Model, Topic};
use crate::programs::{RealProgram, configure};
use crate::sandbox::Sandbox;
use crate::team::{Answered, Team, is_turn_end, make_repository};

/// A server, the model behind its programs, and a run.
pub(crate) struct Office {
    pub(crate) team: Team,
    pub(crate) model: Model,
    pub(crate) run: String,
}

impl Office {
    /// Starts a server with these programs, and a model for them.
    pub(crate) fn open(programs: &[RealProgram], topics: Vec<Topic>) -> Self {
        let sandbox = Sandbox::new();
        let model = Model::start(topics);
        let config = configure(programs, &sandbox, model.address);
        Self {
            team: Team::start_configured(sandbox, &config),
            model,
            run: String::new(),
        }
    }

    /// Makes the directory a repository, and creates a run in it.
    pub(crate) fn begin(mut self, settings: Value) -> Self {
        make_repository(&self.team.work());
        self.run = self.team.new_run(settings);
        self
    }

    /// Kills the server, as by a power failure, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.team.kill();
        self.team.restart();
    }

    /// The path of something of the run.
    pub(crate) fn of_run(&self, rest: &str) -> String {
        format!("/api/runs/{}{rest}", self.run)
    }

    /// Adds a node of the program that asks before it uses a tool.
    pub(crate) fn add_node(&self, program: RealProgram, role: &str) -> String {
        let gated = json!({"permissions": {"cliPermissionsMode": "gated"}});
        self.team.add_node(&self.run, role, program.name, gated)
    }

    pub(crate) fn show_node(&self, node: &str) -> Value {
        self.team.show_node(&self.run, node)
    }

    pub(crate) fn chat(&self, node: &str, content: &str) {
        self.team.chat(&self.run, node, content);
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.team.show(&self.run)["lastSeq"].as_u64().unwrap()
    }

    /// Waits for an event after a number for which the check holds.
    pub(crate) fn wait_for(&self, seq: u64, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        self.team.watch(&self.run, seq).read_until(what, check)
    }

    /// Waits for the end of the turn that a node began after a number, and returns its events.
    pub(crate) fn wait_for_turn(&self, seq: u64, node: &str) -> TurnSeen {
        let ended = self.wait_for(seq, "the end of the turn", |event| {
            event["nodeId"] == node && is_turn_end(event)
        });
        let mut events = self.team.events(&self.run);
        events.retain(|event| event["turnId"] == ended["turnId"]);
        TurnSeen {
            end: ended["status"].as_str().unwrap().to_owned(),
            events,
        }
    }

    /// Answers an approval, and returns what the server says.
    pub(crate) fn resolve(&self, asked: &Value, resolution: &Value) -> Answered {
        let id = asked["approvalId"].as_str().unwrap();
        let path = format!("/api/approvals/{id}/resolve");
        self.team.request("POST", &path, Some(resolution))
    }
}

/// A turn that has ended.
pub(crate) struct TurnSeen {
    pub(crate) end: String,
    pub(crate) events: Vec<Value>,
}

impl TurnSeen {
    pub(crate) fn of_type(&self, kind: &str) -> Vec<&Value> {
        let events = self.events.iter();
        events.filter(|event| event["type"] == kind).collect()
    }

    /// The only event of a type.
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let found = self.of_type(kind);
        assert_eq!(found.len(), 1, "{kind}: {:#?}", self.events);
        found[0]
    }

    pub(crate) fn diff(&self) -> &Value {
        let created = self.of_type("artifact.created");
        let mut diffs = created.iter().map(|event| &event["artifact"]);
        let diff = diffs.rfind(|artifact| artifact["kind"] == "diff");
        diff.unwrap()
    }
}
