//! Which events of a run become entries of its world, and how the entries read.

use serde_json::{Value, json};
use turnkeep_ledger::Principal;
use turnkeep_ledger::ids::{Name, OPERATOR, SYSTEM};
use turnkeep_runtime::ids::NodeId;
use turnkeep_runtime::input::Envelope;
use turnkeep_runtime::words::RunStatus;
use turnkeep_runtime::{Event, Fact, Run};

/// What the server calls itself in the requests that it makes for runs.
const INVOKER: &str = "turnkeep-run";

/// An entry to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WorldReport {
    /// By which a repetition is recognized, after a restart too.
    pub(super) request_id: String,
    pub(super) author: Principal,
    text: String,
    /// Who may see it besides the author. Empty for a public entry.
    readers: Vec<String>,
    /// A word for the entry, for the note about its rejection.
    pub(super) what: &'static str,
    /// The node whose log gets that note.
    pub(super) node: Option<NodeId>,
    /// The nodes that it is from and to.
    pub(super) nodes: Vec<NodeId>,
}

/// The entry that an event becomes.
pub(super) fn report_of(run: &Run, event: &Event) -> Option<WorldReport> {
    match &event.fact {
        Fact::EnvelopeSent(envelope) => report_handoff(run, envelope),
        Fact::RunCreated(settings) => Some(report_step(event, &settings.title, "began")),
        Fact::RunStatusChanged { status, .. } => {
            let verb = match status {
                RunStatus::Completed => "was completed",
                RunStatus::Failed => "failed",
                RunStatus::Queued | RunStatus::Running | RunStatus::Paused => return None,
            };
            Some(report_step(event, &run.live.settings.title, verb))
        }
        _ => None,
    }
}

fn report_handoff(run: &Run, envelope: &Envelope) -> Option<WorldReport> {
    // From the archive: a node may be deleted by now, and the person of a node never changes.
    let person = |node| run.archive.added_node(node)?.settings.person.clone();
    let (from, to) = (person(envelope.from)?, person(envelope.to)?);
    let operator = OPERATOR.to_owned();
    // Two nodes of a run may be one person, who needs no word about that.
    let readers = if from == to {
        vec![operator]
    } else {
        vec![to, operator]
    };
    Some(WorldReport {
        request_id: envelope.id.to_string(),
        author: Principal::Person {
            id: Name::new(&from)?,
            write: true,
        },
        text: envelope.message.clone(),
        readers,
        what: "a handoff",
        node: Some(envelope.from),
        nodes: vec![envelope.from, envelope.to],
    })
}

fn report_step(event: &Event, title: &str, verb: &str) -> WorldReport {
    WorldReport {
        request_id: event.id.to_string(),
        author: Principal::System,
        text: format!("The run \"{title}\" {verb}."),
        readers: Vec::new(),
        what: "the news of the run",
        node: None,
        nodes: Vec::new(),
    }
}

impl WorldReport {
    /// The envelope of the beat. Nothing in it speaks as the operator.
    pub(super) fn envelope(&self) -> Value {
        json!({
            "request_id": self.request_id,
            "invoker": { "invoker_id": INVOKER, "invoker_role": "INVOKER", "notes": null },
            "operator": { "operator_id": OPERATOR, "input_text": "" },
            "mode": { "kind": "BEAT", "client_intent": null },
        })
    }

    /// The bundle with the one entry.
    pub(super) fn bundle(&self) -> Value {
        let (author, class, channel) = match &self.author {
            Principal::Person { id, .. } => (id.as_str(), "PERSON", "PEOPLE"),
            Principal::System | Principal::Owner => (SYSTEM, "SYSTEM", "VOICE"),
        };
        let scope = if self.readers.is_empty() {
            "PUBLIC"
        } else {
            "PRIVATE"
        };
        let entry = json!({
            "request_id": self.request_id,
            "author": { "author_id": author, "author_class": class },
            "visibility": { "scope": scope, "visible_to": self.readers },
            "channel": channel,
            "text": self.text,
        });
        json!({
            "bundle_id": null,
            "request_id": self.request_id,
            "proposed_by": { "engine": INVOKER, "actor": author },
            "entries": [entry],
            "wrote": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_its_author_in_every_place_where_the_ledger_looks() {
        let report = WorldReport {
            request_id: "r".to_owned(),
            author: Principal::System,
            text: "The run began.".to_owned(),
            readers: Vec::new(),
            what: "the news of the run",
            node: None,
            nodes: Vec::new(),
        };
        let bundle = report.bundle();
        assert_eq!(bundle["proposed_by"]["actor"], "SYSTEM");
        let entry = &bundle["entries"][0];
        assert_eq!(entry["author"]["author_class"], "SYSTEM");
        assert_eq!(entry["visibility"]["scope"], "PUBLIC");
        assert_eq!(entry["channel"], "VOICE");

        let handoff = WorldReport {
            author: Principal::Person {
                id: Name::new("lead").unwrap(),
                write: true,
            },
            readers: vec!["coder".to_owned(), OPERATOR.to_owned()],
            ..report
        };
        let entry = handoff.bundle()["entries"][0].take();
        assert_eq!(entry["author"]["author_id"], "lead");
        assert_eq!(
            entry["visibility"]["visible_to"],
            json!(["coder", "GEORGE"])
        );
        assert_eq!(entry["channel"], "PEOPLE");
        let envelope = handoff.envelope();
        assert_eq!(envelope["request_id"], entry["request_id"]);
        assert_eq!(envelope["operator"]["input_text"], "");
    }
}
