//! A team of real programs builds a feature: from an empty data directory to the changes in the user's
//! files.
//!
//! The lead lets a planner plan, and asks the person if its program can. Then two implementers build at the same time, each
//! in a worktree. The lead hears of both in one turn and completes the run. The check passes only on
//! the work of both. The person approves every command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::model::{COMPLETION_TOKENS, PROMPT_TOKENS, Reply, Topic};
use crate::office::Office;
use crate::programs::{CLAUDE, CODEX, GEMINI, RealProgram};
use crate::team::bookkeeping::Books;
use crate::team::event_socket::EventSocket;
use crate::team::{Team, is_completion, is_turn_end};

/// The program of each node.
#[derive(Debug, Clone, Copy)]
struct Cast {
    lead: RealProgram,
    planner: RealProgram,
    a: RealProgram,
    b: RealProgram,
}

impl Cast {
    const fn all(program: RealProgram) -> Self {
        Self {
            lead: program,
            planner: program,
            a: program,
            b: program,
        }
    }

    fn members(&self) -> [(&'static str, RealProgram); 4] {
        [
            ("orch", self.lead),
            ("planner", self.planner),
            ("a", self.a),
            ("b", self.b),
        ]
    }

    /// Each program once.
    fn programs(&self) -> Vec<RealProgram> {
        let mut programs: Vec<RealProgram> = Vec::new();
        for (_, program) in self.members() {
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn a_team_of_claude_builds_a_feature() {
    play(Cast::all(CLAUDE));
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn a_team_of_codex_builds_a_feature() {
    play(Cast::all(CODEX));
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn a_team_of_gemini_builds_a_feature() {
    play(Cast::all(GEMINI));
}

#[test]
#[ignore = "needs the agent programs: ./x real-agents"]
fn a_mixed_team_builds_a_feature() {
    play(Cast {
        lead: CLAUDE,
        planner: GEMINI,
        a: CODEX,
        b: CLAUDE,
    });
}

/// `check.sh` needs the work of both implementers, so it passes in neither worktree.
const CHECK: &str = "#!/bin/sh
test -f a.txt || { echo a is missing; exit 1; }
test -f b.txt || { echo b is missing; exit 1; }
";

/// What the model says. A worktree lies beside those of the other nodes, so each implementer can wait
/// until the other one has begun.
fn topics() -> Vec<Topic> {
    let topic = |when, replies| Topic { when, replies };
    let call = |tool, args| Reply::Call { tool, args };
    let hand_off =
        |to: &str, message: &str| call("send_handoff", json!({"to": to, "message": message}));
    let claim = json!({"summary": "Both parts are built", "ok": true});
    vec![
        topic(
            "PLEASE PLAN",
            vec![
                hand_off("planner", "PLAN IT"),
                Reply::Say("The planner plans."),
            ],
        ),
        topic(
            "PLAN IT",
            vec![
                Reply::Run(
                    "mkdir -p docs src; echo first a, then b > docs/plan.md; echo x > src/x",
                ),
                Reply::Say("The plan is made."),
            ],
        ),
        topic("The plan is made", vec![Reply::Say("A good plan.")]),
        // The end of the prompt that an automatic run gives its lead when nothing happens.
        topic(
            "Take the next step",
            vec![
                call("ask_user", json!({"question": "Shall we build it?"})),
                Reply::Say("I asked."),
            ],
        ),
        topic(
            "PLEASE BUILD",
            vec![
                hand_off("a", "BUILD A"),
                hand_off("b", "BUILD B"),
                Reply::Say("Both build."),
            ],
        ),
        topic(
            "BUILD A",
            vec![
                Reply::Run("echo a > a.txt; until test -f ../*/b.txt; do sleep 0.1; done"),
                Reply::Say("Part a is ready."),
            ],
        ),
        topic(
            "BUILD B",
            vec![
                Reply::Run("echo b > b.txt; until test -f ../*/a.txt; do sleep 0.1; done"),
                Reply::Say("Part b is ready."),
            ],
        ),
        topic(
            "is ready.",
            vec![call("complete_run", claim), Reply::Say("All done.")],
        ),
    ]
}

/// The run and its nodes.
struct TeamStory {
    office: Office,
    /// Whether the lead asks the person.
    asks: bool,
    orch: String,
    planner: String,
    a: String,
    b: String,
    socket: EventSocket,
    /// The events so far.
    events: Vec<Value>,
}

fn play(cast: Cast) {
    let mut story = TeamStory::prepare(cast);
    let mine = git_state(&story.team().work());
    story.plan();
    story.check_first_prompt();
    story.check_plan();
    story.build();
    story.check_handoffs();
    story.check_approvals();
    story.check_work();
    story.check_completion();
    story.check_usage();
    assert_eq!(
        mine,
        git_state(&story.team().work()),
        "the user's repository is as it was"
    );
    story.check_landing();
}

impl TeamStory {
    /// Creates the run and its team. The run is paused meanwhile: a quiet automatic run would prompt
    /// its lead before the others are there.
    fn prepare(cast: Cast) -> Self {
        let office = Office::open(&cast.programs(), topics());
        fs::write(office.team.work().join("check.sh"), CHECK).unwrap();
        // An automatic run asks its lead for the next step, and this lead asks the person.
        let asks = cast.lead.offers_questions;
        let office = office.begin(json!({
            "goal": "Make the check pass\nwith a and b", "globalMode": "PLANNING",
            "mode": if asks { "AUTO" } else { "INTERACTIVE" }, "verify": ["sh check.sh"],
        }));
        let (team, run) = (&office.team, &office.run);
        team.patch(&office.of_run(""), &json!({"status": "paused"}));
        let roles = [
            ("orchestrator", json!({"alias": "orch", "wakeOn": "all"})),
            ("planner", json!({"alias": "planner"})),
            ("implementer", json!({"alias": "a"})),
            ("implementer", json!({"alias": "b"})),
        ];
        let mut members = cast.members().into_iter();
        let [orch, planner, a, b] = roles.map(|(role, settings)| {
            let (_, program) = members.next().unwrap();
            team.add_node(run, role, program.name, settings)
        });
        // The lead does not ask the reviewer, and does not wait for it.
        team.add_node(run, "reviewer", cast.lead.name, json!({}));
        for peer in ["planner", "a", "b", "reviewer"] {
            let edge = team.connect(run, "orch", peer);
            let kind = (&edge["type"], &edge["label"]);
            assert_eq!(kind, (&json!("handoff"), &json!("task")));
        }
        for node in team.show(run)["nodes"].as_object().unwrap().values() {
            assert_eq!(node["permissions"]["cliPermissionsMode"], "gated", "{node}");
        }
        let socket = team.watch(run, 0);
        Self {
            office,
            asks,
            orch,
            planner,
            a,
            b,
            socket,
            events: Vec::new(),
        }
    }

    fn team(&self) -> &Team {
        &self.office.team
    }

    /// Reads events until the check holds, and approves every command on the way. The question of the
    /// lead stays open.
    fn go_on(&mut self, what: &str, check: impl Fn(&Value) -> bool) {
        loop {
            let event = self.socket.next_event();
            let event = event.unwrap_or_else(|| panic!("{what}: {}", self.socket.end()));
            self.events.push(event.clone());
            if event["type"] == "approval.requested" && event["kind"] == "tool" {
                self.approve(&event);
            }
            if check(&event) {
                return;
            }
        }
    }

    /// A node that waits for a decision is blocked, and the person sees why.
    fn approve(&self, asked: &Value) {
        let node = asked["nodeId"].as_str().unwrap();
        assert_eq!(self.office.show_node(node)["status"], "blocked");
        let target = format!("approval:{}", asked["approvalId"].as_str().unwrap());
        let waiting = self.team().get("/api/attention");
        let mut items = waiting["items"].as_array().unwrap().iter();
        assert!(items.any(|item| item["ref"] == target), "{waiting:#}");
        self.team().resolve(asked, &json!({"status": "approved"}));
    }

    /// Lets the team plan until the lead has asked what to do next, if it can.
    fn plan(&mut self) {
        let chat = json!({"content": "PLEASE PLAN"});
        self.team().post(&self.office.of_run("/chat"), &chat);
        self.team().resume(&self.office.run);
        let (asks, orch) = (self.asks, self.orch.clone());
        self.go_on("the end of the plan", |event| {
            let is_question = event["type"] == "approval.requested" && event["kind"] == "question";
            let is_read = event["nodeId"] == orch.as_str() && event["content"] == "A good plan.";
            if asks { is_question } else { is_read }
        });
        self.end_turns();
    }

    /// Lets the team build until the lead has completed the run.
    fn build(&mut self) {
        let implement = json!({"globalMode": "IMPLEMENTATION"});
        self.team().patch(&self.office.of_run(""), &implement);
        self.office.chat("orch", "PLEASE BUILD");
        self.go_on("the completion", is_completion);
        self.end_turns();
    }

    /// Reads until no turn is open.
    fn end_turns(&mut self) {
        while Books::keep(&self.events).has_open_turn() {
            self.go_on("the end of a turn", is_turn_end);
        }
    }

    fn events_of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Value> {
        let events = self.events.iter();
        events.filter(move |event| event["nodeId"] == node)
    }

    /// The metadata of the diffs of a node, turn by turn.
    fn diffs_of(&self, node: &str) -> Vec<Value> {
        let diffs = self.team().artifacts_of(&self.office.run, node, "diff");
        diffs
            .into_iter()
            .map(|mut diff| diff["metadata"].take())
            .collect()
    }

    fn envelopes(&self) -> Vec<&Value> {
        let sent = self.events.iter();
        let sent = sent.filter(|event| event["type"] == "handoff.sent");
        sent.map(|event| &event["envelope"]).collect()
    }

    /// The message lands at the lead, whose prompt is an artifact before the program has it. The model
    /// gets exactly its text.
    fn check_first_prompt(&self) {
        let mut messages = self.events.iter();
        let message = messages.find(|event| event["type"] == "message.user");
        assert_eq!(message.unwrap()["nodeId"], self.orch.as_str());
        let of_lead: Vec<&Value> = self.events_of(&self.orch).collect();
        let is_sent = |event: &&Value| event["status"] == "waiting_for_model";
        let sent = of_lead.iter().position(is_sent).unwrap();
        let before = of_lead[..sent].iter();
        let names: Vec<&Value> = before
            .filter(|event| event["type"] == "artifact.created")
            .map(|event| &event["artifact"]["name"])
            .collect();
        assert_eq!(names, ["prompt.full.txt", "prompt.blocks.json"]);
        let prompts = self
            .team()
            .artifacts_of(&self.office.run, &self.orch, "prompt");
        let full = self.team().read_artifact(&self.office.run, &prompts[0]);
        assert!(full.contains("PLEASE PLAN"), "{full}");
        let mut asked = self.office.model.all_asked().into_iter();
        assert!(asked.any(|asked| asked.mentions(&full)), "{full}");
    }

    /// In PLANNING mode the plan of the planner stays, and its forbidden file is restored.
    fn check_plan(&self) {
        let diff = &self.diffs_of(&self.planner)[0];
        assert_eq!(diff["filesChanged"], json!(["docs/plan.md"]), "{diff}");
        assert_eq!(diff["violation"], json!(["src/x"]), "{diff}");
        let planner = self.office.show_node(&self.planner);
        assert_eq!(planner["status"], "idle");
        assert_eq!(planner["workspace"]["kind"], "worktree");
        assert!(
            !worktree_of(&self.office, &self.planner)
                .join("src/x")
                .exists()
        );
    }

    /// The lead calls the server's tool; the workers end without a report, so the server sends what
    /// they said last. The lead hears of both implementers in one turn.
    fn check_handoffs(&self) {
        let envelopes = self.envelopes();
        let told = |from: &str, to: &str, message: &str, is_by_server: bool| {
            let mut found = envelopes.iter().filter(|envelope| {
                envelope["fromNodeId"] == from
                    && envelope["toNodeId"] == to
                    && envelope["payload"]["message"] == message
                    && (envelope["meta"]["synthesized"] == true) == is_by_server
            });
            let envelope = found
                .next()
                .unwrap_or_else(|| panic!("{message}: {envelopes:#?}"));
            assert!(found.next().is_none(), "{message} is sent twice");
            &envelope["id"]
        };
        for (node, message) in [
            (&self.planner, "PLAN IT"),
            (&self.a, "BUILD A"),
            (&self.b, "BUILD B"),
        ] {
            told(&self.orch, node, message, false);
        }
        told(&self.planner, &self.orch, "The plan is made.", true);
        let reports = [
            told(&self.a, &self.orch, "Part a is ready.", true),
            told(&self.b, &self.orch, "Part b is ready.", true),
        ];
        let starts = self.events_of(&self.orch);
        let mut starts = starts.filter(|event| event["status"] == "turn.started");
        let reads_both = |event: &Value| {
            let consumed = event["consumed"].as_array().unwrap();
            reports.iter().all(|report| consumed.contains(report))
        };
        assert!(starts.any(reads_both), "one turn reads both reports");
    }

    /// Each worker asked before it ran its command, and no other node asked.
    fn check_approvals(&self) {
        for (node, words) in [
            (&self.planner, "docs/plan.md"),
            (&self.a, "echo a > a.txt"),
            (&self.b, "echo b > b.txt"),
        ] {
            let asked: Vec<&Value> = self
                .events_of(node)
                .filter(|event| event["type"] == "approval.requested")
                .collect();
            let [asked] = asked[..] else {
                panic!("one command: {asked:#?}");
            };
            let context = asked["context"].as_str().unwrap();
            assert!(context.contains(words), "{context}");
            let mut done = self.events_of(node);
            let done = done.find(|event| {
                event["type"] == "tool.completed" && event["toolId"] == asked["tool"]["id"]
            });
            assert_eq!(done.unwrap()["result"]["ok"], true, "{done:#?}");
        }
        let of_lead: Vec<&Value> = self
            .events_of(&self.orch)
            .filter(|event| event["type"] == "approval.requested")
            .collect();
        let questions = usize::from(self.asks);
        assert_eq!(of_lead.len(), questions, "only its question: {of_lead:#?}");
    }

    /// The turns of the implementers overlap, and each has its diff, made in a worktree of its own.
    fn check_work(&self) {
        let seq_of = |node: &str, is_meant: &dyn Fn(&Value) -> bool| {
            let mut events = self.events_of(node);
            events.find(|event| is_meant(event)).unwrap()["seq"]
                .as_u64()
                .unwrap()
        };
        let started = |node| seq_of(node, &|event| event["status"] == "turn.started");
        let ended = |node| seq_of(node, &is_turn_end);
        assert!(started(&self.a) < ended(&self.b) && started(&self.b) < ended(&self.a));
        for (node, file) in [(&self.a, "a.txt"), (&self.b, "b.txt")] {
            let shown = self.office.show_node(node);
            assert_eq!(shown["workspace"]["kind"], "worktree", "{shown}");
            assert_eq!(self.diffs_of(node)[0]["filesChanged"], json!([file]));
            assert!(!self.team().work().join(file).exists());
            let worktree = worktree_of(&self.office, node);
            assert!(!check_passes(&worktree), "the check needs both");
        }
        // Turns that change nothing have their diffs, too.
        let of_lead = self.diffs_of(&self.orch);
        assert!(of_lead.iter().all(|diff| diff["filesChanged"] == json!([])));
    }

    /// The claim is verified on the work of both, and nothing starts behind the completion.
    fn check_completion(&self) {
        let phases = self.events.iter();
        let phases: Vec<&Value> = phases
            .filter(|event| event["type"] == "run.phase")
            .map(|event| &event["phase"])
            .collect();
        assert_eq!(phases, ["EXECUTE", "VERIFY", "DONE"]);
        let reports = self
            .team()
            .artifacts_of(&self.office.run, &self.orch, "report");
        let report = self.team().read_artifact(&self.office.run, &reports[0]);
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["ok"], true, "{report:#}");
        let end = self.events.iter().position(is_completion).unwrap();
        let mut behind = self.events[end..].iter();
        assert!(!behind.any(|event| event["status"] == "turn.started"));
    }

    /// The nodes sum to the run, which used what the model gave out.
    fn check_usage(&self) {
        let run = self.team().show(&self.office.run);
        let nodes = run["nodes"].as_object().unwrap().values();
        let answers = self.office.model.all_asked().len() as u64;
        for (name, tokens) in [
            ("promptTokens", PROMPT_TOKENS),
            ("completionTokens", COMPLETION_TOKENS),
        ] {
            let used = |usage: &Value| usage[name].as_u64().unwrap();
            let of_nodes: u64 = nodes.clone().map(|node| used(&node["usage"])).sum();
            assert_eq!(of_nodes, used(&run["usage"]), "{name}");
            assert_eq!(of_nodes, answers * tokens, "{name} of {answers} answers");
        }
    }

    /// What was verified lands in the user's directory once, and a turn can be taken back.
    fn check_landing(&self) {
        let work = self.team().work();
        let apply = self.office.of_run("/apply");
        let applied = self.team().post(&apply, &json!({}));
        let files = ["a.txt", "b.txt", "docs/plan.md"];
        assert_eq!(applied["applied"], json!(files));
        assert_eq!(applied["verified"], true, "{applied}");
        assert!(check_passes(&work));
        assert_eq!(self.team().post(&apply, &json!({}))["applied"], json!([]));
        let turn = self.diffs_of(&self.b)[0]["turnId"]
            .as_str()
            .unwrap()
            .to_owned();
        let revert = self.office.of_run(&format!("/turns/{turn}/revert"));
        let reverted = self.team().post(&revert, &json!({}));
        assert_eq!(reverted["paths"], json!(["b.txt"]));
        assert!(!work.join("b.txt").exists() && work.join("a.txt").exists());
    }
}

fn worktree_of(office: &Office, node: &str) -> PathBuf {
    let worktrees = office.team.sandbox.data().join("worktrees");
    worktrees.join(&office.run).join(node)
}

fn check_passes(dir: &Path) -> bool {
    let check = Command::new("sh").arg("check.sh").current_dir(dir).output();
    check.unwrap().status.success()
}

/// What git says about the user's own state.
fn git_state(dir: &Path) -> Vec<String> {
    let commands = [
        &["rev-parse", "HEAD"][..],
        &["status", "--short"],
        &["stash", "list"],
        &["diff", "--cached"],
    ];
    let git = |args: &&[&str]| {
        let mut command = Command::new("git");
        command.args(*args).current_dir(dir);
        let output = command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    commands.iter().map(git).collect()
}
