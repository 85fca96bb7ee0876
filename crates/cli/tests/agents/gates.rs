//! Edges with a gate: a success is delivered only if the commands of the run pass where the sender works.

use serde_json::{Value, json};

use crate::team::{Team, make_repository, skip};

/// The worker claims success too early, repairs its work and claims again.
const SCRIPT: &str = r#"
[[turn]]
when = ["(worker) of run"]
steps = [
    { call = "send_handoff", args = { to = "lead", message = "READY", status = { ok = true } }, else = [
        { write = "fixed.txt", content = "fixed\n" },
        { call = "send_handoff", args = { to = "lead", message = "FIXED", status = { ok = true } } },
    ] },
    { say = "Reported." },
]

[[turn]]
when = ["(lead) of run"]
repeat = true
steps = [{ say = "I heard of it." }]

[[turn]]
repeat = true
steps = [{ say = "Nothing to write." }]
"#;

struct Gated {
    team: Team,
    run: String,
    worker: String,
    lead: String,
}

fn start() -> Gated {
    let team = Team::start(SCRIPT);
    make_repository(&team.work());
    let run = team.new_run(json!({"verify": ["test -f fixed.txt"]}));
    let lead = team.add_node(&run, "orchestrator", "claude", skip("lead"));
    let worker = team.add_node(&run, "implementer", "claude", skip("worker"));
    // With a second writer, each works in a worktree.
    team.add_node(&run, "implementer", "claude", skip("other"));
    let edge = json!({"from": "worker", "to": "lead", "gate": true});
    team.post(&format!("/api/runs/{run}/edges"), &edge);
    Gated {
        team,
        run,
        worker,
        lead,
    }
}

impl Gated {
    fn send(&self, message: &str) {
        let body = json!({
            "from": "worker", "to": "lead", "message": message, "status": {"ok": true},
        });
        self.team
            .post(&format!("/api/runs/{}/handoffs", self.run), &body);
    }

    fn reports(&self) -> Vec<Value> {
        let reports = self.team.artifacts_of(&self.run, &self.worker, "report");
        let read = |report| self.team.read_artifact(&self.run, report);
        reports
            .iter()
            .map(|report| serde_json::from_str(&read(report)).unwrap())
            .collect()
    }

    fn wait_for_delivery(&self, message: &str) {
        self.team.wait_for(&self.run, message, |event| {
            event["type"] == "handoff.sent" && event["envelope"]["payload"]["message"] == message
        });
    }
}

#[test]
fn a_gate_holds_a_claim_until_the_commands_pass_and_delivers_it_once() {
    let gated = start();
    let Gated {
        team,
        run,
        worker,
        lead,
    } = &gated;
    team.chat(run, worker, "Work");
    assert_eq!(team.wait_for_turn_end(run, worker, 1), "turn.completed");
    assert_eq!(team.wait_for_turn_end(run, lead, 1), "turn.completed");
    let events = team.events(run);
    let steps: Vec<&str> = events
        .iter()
        .filter(|event| event["nodeId"] == worker.as_str())
        .filter_map(|event| match event["type"].as_str()? {
            "artifact.created" if event["artifact"]["kind"] == "report" => Some("report"),
            kind @ ("handoff.held" | "handoff.refused" | "handoff.sent") => Some(kind),
            _ => None,
        })
        .collect();
    let expect = [
        "handoff.held",
        "report",
        "handoff.refused",
        "handoff.held",
        "report",
        "handoff.sent",
    ];
    assert_eq!(steps, expect);
    let refused = events
        .iter()
        .find(|event| event["type"] == "tool.completed" && event["result"]["ok"] == false);
    let told = refused.unwrap()["error"]["message"].to_string();
    assert!(told.contains("test -f fixed.txt"), "{told}");

    let sent: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "handoff.sent")
        .map(|event| &event["envelope"])
        .collect();
    let [sent] = sent.as_slice() else {
        panic!("one envelope is delivered: {sent:#?}")
    };
    assert_eq!(sent["payload"]["message"], "FIXED");
    let consumed = events.iter().filter(|event| {
        let consumed = event["consumed"].as_array();
        consumed.is_some_and(|consumed| consumed.contains(&sent["id"]))
    });
    assert_eq!(consumed.count(), 1);

    let reports = gated.reports();
    let diffs = team.artifacts_of(run, worker, "diff");
    assert_eq!(
        (&reports[0]["ok"], &reports[1]["ok"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(reports[0]["tree"], diffs[0]["metadata"]["baseTree"]);
    assert_eq!(reports[1]["tree"], diffs[0]["metadata"]["headTree"]);
    assert!(
        !team.work().join("fixed.txt").exists(),
        "the worker's own directory counts"
    );
}

/// A gate verifies the directory of one node, and not what is applied.
#[test]
fn the_report_of_a_gate_does_not_speak_for_the_run() {
    let gated = start();
    let Gated { team, run, .. } = &gated;
    team.chat(run, &gated.worker, "Work");
    team.wait_for_turn_end(run, &gated.worker, 1);
    let verify = format!("/api/runs/{run}/verify");
    assert_eq!(team.post(&verify, &json!({}))["ok"], true);
    gated.send("AGAIN");
    gated.wait_for_delivery("AGAIN");
    let last = gated.reports().pop().unwrap();
    assert_eq!(
        (&last["ok"], &last["scope"]),
        (&json!(true), &json!("node"))
    );
    // The tree of the worker is the one that lands, but only the run's verification counts.
    let applied = team.post(&format!("/api/runs/{run}/apply"), &json!({}));
    assert_eq!(applied["applied"], json!(["fixed.txt"]));
    assert_eq!(applied["verified"], true, "{applied}");

    let gated = start();
    let Gated { team, run, .. } = &gated;
    team.chat(run, &gated.worker, "Work");
    team.wait_for_turn_end(run, &gated.worker, 1);
    let applied = team.post(&format!("/api/runs/{run}/apply"), &json!({}));
    assert_eq!(applied["tree"], gated.reports()[1]["tree"]);
    assert_eq!(applied["verified"], false, "only the gate looked at it");
}
