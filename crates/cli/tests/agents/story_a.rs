//! A small team builds a feature: from an empty data directory to the changes in the user's files.
//!
//! The lead plans with a planner, lets two implementers build at the same time, is refused twice, and
//! completes the run. One script plays all agents; a person answers what they ask. Programs of every
//! protocol play it, and `programs` says what differs between them.

mod programs;
mod usage;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use self::programs::{
    ACP, CODEX, GEMINI, JSONL, PTY, RAW, STREAM_JSON, command_of, provider_tables,
};
pub(crate) use self::programs::{CLAUDE, StoryProgram};
use crate::sandbox::Sandbox;
use crate::team::bookkeeping::Books;
use crate::team::event_socket::EventSocket;
use crate::team::replay::refresh_recording;
use crate::team::{Answered, Team, is_completion, is_turn_end, make_repository, name_of};

/// `check.sh` needs the work of both implementers, so it passes in neither worktree.
const CHECK: &str = "#!/bin/sh
test -f a.txt || { echo a is missing; exit 1; }
test -f b.txt || { echo b is missing; exit 1; }
grep -q good b.txt || { echo b is bad; exit 1; }
";

#[test]
fn nothing_opens_without_the_token() {
    let sandbox = Sandbox::new();
    let server = sandbox.up(&[]);
    let address = server.http().trim_start_matches("http://").to_owned();
    let bearer = format!("Bearer {}", server.token());
    let link = server.said["link"].as_str().unwrap();
    let (_, opened) = link.split_once(&address).unwrap();
    let (status, page) = ask(&address, opened, &[("Host", &address)]);
    assert!(status < 400, "the printed link opens: {status} {page}");
    let own = ("Host", address.as_str());
    let token = ("Authorization", bearer.as_str());
    for path in ["/api/runs", "/ws", "/api/approvals"] {
        let refused = [
            vec![own],
            vec![own, ("Authorization", "Bearer t_wrong")],
            vec![own, token, ("Origin", "http://evil.example")],
            vec![("Host", "evil.example"), token],
        ];
        for headers in refused {
            let (status, _) = ask(&address, path, &headers);
            assert!(
                [401, 403].contains(&status),
                "{path} {headers:?} is answered {status}"
            );
        }
    }
    let (status, body) = ask(&address, "/api/runs", &[own, token]);
    assert_eq!(status, 200);
    assert!(body.ends_with(r#"{"runs":[]}"#), "{body}");
}

/// Sends a request with exactly these headers. Returns the status and the whole answer.
fn ask(address: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut head = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in headers {
        writeln!(head, "{name}: {value}\r").unwrap();
    }
    write!(stream, "{head}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer)
}

/// The run of the story and its nodes.
pub(crate) struct Story {
    program: &'static StoryProgram,
    pub(crate) run: String,
    orch: String,
    planner: String,
    a: String,
    b: String,
    /// A run in the same directory, to see that runs do not wait for each other.
    other_run: String,
    socket: EventSocket,
    events: Vec<Value>,
}

/// Starts a server whose agents play the story in a repository with a failing test.
pub(crate) fn start_story(program: &StoryProgram) -> Team {
    let team = Team::start_with(&program.script(), provider_tables);
    fs::write(team.work().join("check.sh"), CHECK).unwrap();
    make_repository(&team.work());
    team
}

impl Story {
    /// Creates the run and its team. The run is paused meanwhile: a quiet run in AUTO mode would
    /// prompt its lead before the others are there.
    pub(crate) fn prepare(team: &Team, program: &'static StoryProgram) -> Self {
        let run = team.new_run(json!({
            "goal": "Make the check pass\nwith a and b", "mode": "AUTO", "globalMode": "PLANNING",
            "verify": ["sh check.sh"], "limits": {"fanInMs": 20},
        }));
        team.patch(&format!("/api/runs/{run}"), &json!({"status": "paused"}));
        let add = |role: &str, alias: &str, more: Value| {
            let mut settings = json!({"alias": alias});
            settings
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            team.add_node(&run, role, &program.provider_of(alias), settings)
        };
        let orch = add("orchestrator", "orch", json!({"wakeOn": "all"}));
        let planner = add("planner", "planner", json!({}));
        let spawning = json!({
            "capabilities": {"spawnNodes": true},
            "permissions": {"spawnRequiresApproval": false},
        });
        let a = add("implementer", "a", spawning);
        let b = add("implementer", "b", json!({}));
        add("reviewer", "reviewer", json!({}));
        let other_run = team.new_run(json!({}));
        let provider = program.provider_of("other");
        team.add_node(&other_run, "reviewer", &provider, json!({"alias": "other"}));
        let socket = team.watch(&run, 0);
        Self {
            program,
            run,
            orch,
            planner,
            a,
            b,
            other_run,
            socket,
            events: Vec::new(),
        }
    }

    /// Reads events until the check holds, and answers the approvals on the way.
    fn go_on(&mut self, team: &Team, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.socket.next_event();
            let event = event.unwrap_or_else(|| panic!("{what}: {}", self.socket.end()));
            self.events.push(event.clone());
            if event["type"] == "approval.requested" {
                self.decide(team, &event);
            }
            if check(&event) {
                return event;
            }
        }
    }

    /// What the person decides about a call. The question of the lead stays open.
    fn decide(&self, team: &Team, requested: &Value) {
        let call = requested["tool"]["args"].to_string();
        let deny = |reason: &str| {
            team.resolve(requested, &json!({"status": "denied", "reason": reason}));
        };
        let approve = || team.resolve(requested, &json!({"status": "approved"}));
        if call.contains("original") {
            self.check_blocked(team, requested);
            self.change_command(team, requested);
        } else if call.contains("denied.txt") {
            deny("not that file");
        } else if call.contains("chained.txt") {
            deny("no chains");
        } else if call.contains("true test again") {
            approve();
        } else if call.contains("true test") {
            self.allow_for_run(team, requested);
        } else if call.contains("refused") {
            deny("no refused helpers");
        } else if call.contains("helper") {
            approve();
        }
    }

    /// Approves a command with other arguments. If the program takes none, the answer is refused and
    /// the approval stays open.
    fn change_command(&self, team: &Team, requested: &Value) {
        let changed = changed_arguments(&requested["tool"]["args"]);
        let modified = json!({"status": "modified", "modifiedArgs": changed});
        if self.program.takes_other_arguments() {
            team.resolve(requested, &modified);
        } else {
            let refused = answer(team, requested, &modified);
            assert_eq!(refused.status, 422, "{}", refused.body);
            team.resolve(requested, &json!({"status": "approved"}));
        }
    }

    /// Approves a command and all that are like it. If no rule can be made of the call, the answer is
    /// refused and the approval stays open.
    fn allow_for_run(&self, team: &Team, requested: &Value) {
        let always = json!({"status": "approved", "scope": "run"});
        if self.program.makes_rules() {
            team.resolve(requested, &always);
        } else {
            let refused = answer(team, requested, &always);
            assert_eq!(refused.status, 422, "{}", refused.body);
            team.resolve(requested, &json!({"status": "approved"}));
        }
    }

    /// A node that waits for a decision is blocked, and the person sees why.
    fn check_blocked(&self, team: &Team, requested: &Value) {
        assert_eq!(team.show_node(&self.run, &self.b)["status"], "blocked");
        let target = format!("approval:{}", requested["approvalId"].as_str().unwrap());
        let waiting = team.get("/api/attention");
        let mut items = waiting["items"].as_array().unwrap().iter();
        assert!(items.any(|item| item["ref"] == target), "{waiting:#}");
    }

    /// Connects the team, and lets it plan until the lead asks what to do next.
    pub(crate) fn plan(&mut self, team: &Team) {
        for peer in ["planner", "a", "b", "reviewer"] {
            let edge = team.connect(&self.run, "orch", peer);
            assert_eq!(
                (&edge["type"], &edge["label"]),
                (&json!("handoff"), &json!("task"))
            );
            assert_eq!(edge["bidirectional"], true);
        }
        let edge = team.connect(&self.run, "a", "orch");
        assert_eq!(
            (&edge["type"], &edge["label"]),
            (&json!("report"), &json!("report"))
        );
        let chat = json!({"content": "PLEASE PLAN"});
        team.post(&format!("/api/runs/{}/chat", self.run), &chat);
        team.resume(&self.run);
        self.go_on(team, "the question", |event| {
            event["type"] == "approval.requested" && event["kind"] == "question"
        });
        let orch = self.orch.clone();
        self.go_on(team, "the rest of the lead", |event| {
            event["nodeId"] == orch.as_str() && event["patch"]["status"] == "idle"
        });
    }

    /// Lets the team build until the lead has completed the run and its turn is over.
    pub(crate) fn build(&mut self, team: &Team) {
        let run = format!("/api/runs/{}", self.run);
        team.patch(&run, &json!({"globalMode": "IMPLEMENTATION"}));
        team.chat(&self.other_run, "other", "Work, too");
        team.chat(&self.run, "orch", "PLEASE BUILD");
        self.go_on(team, "the completion", is_completion);
        let orch = self.orch.clone();
        self.go_on(team, "the lead's end", |event| {
            event["nodeId"] == orch.as_str() && is_turn_end(event)
        });
        let run = self.run.clone();
        let is_quiet = || !Books::keep(&team.events(&run)).has_open_turn();
        if !is_quiet() {
            self.go_on(team, "the end of all turns", |_| is_quiet());
        }
    }

    /// Plays the whole story. Returns its events.
    pub(crate) fn play(mut self, team: &Team) -> Vec<Value> {
        self.plan(team);
        self.build(team);
        self.events
    }

    fn events_of<'a>(&'a self, node: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events
            .iter()
            .filter(move |event| event["nodeId"] == node)
    }
}

/// Answers an approval, and returns what the server says.
fn answer(team: &Team, requested: &Value, body: &Value) -> Answered {
    let id = requested["approvalId"].as_str().unwrap();
    team.request("POST", &format!("/api/approvals/{id}/resolve"), Some(body))
}

/// The arguments of a command with another command in them.
fn changed_arguments(args: &Value) -> Value {
    let mut changed = args.clone();
    for argument in changed.as_object_mut().unwrap().values_mut() {
        if argument == "echo original" {
            *argument = "echo changed".into();
        }
    }
    changed
}

#[test]
fn a_team_of_claude_plans_builds_verifies_and_lands_a_feature() {
    let PlayedStory { team, run } = play_and_check(&CLAUDE);
    refresh_recording(&team, &run, "story-a");
}

#[test]
fn a_team_of_codex_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&CODEX);
}

#[test]
fn a_team_of_gemini_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&GEMINI);
}

#[test]
fn a_team_over_acp_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&ACP);
}

#[test]
fn a_team_over_stream_json_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&STREAM_JSON);
}

#[test]
fn a_team_over_jsonl_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&JSONL);
}

#[test]
fn a_team_of_raw_programs_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&RAW);
}

#[test]
fn a_team_in_terminals_plans_builds_verifies_and_lands_a_feature() {
    play_and_check(&PTY);
}

/// The server after the story, and the story's run.
struct PlayedStory {
    team: Team,
    run: String,
}

fn play_and_check(program: &'static StoryProgram) -> PlayedStory {
    let team = start_story(program);
    let mine = git_state(&team.work());
    let mut story = Story::prepare(&team, program);
    check_identity(&team, &story);
    story.plan(&team);
    check_first_prompt(&team, &story);
    check_plan(&team, &story);
    story.build(&team);
    check_modes(&team, &story);
    check_commands(&story);
    check_spawn(&team, &story);
    check_reports(&story);
    check_workspaces(&team, &story);
    check_workspaces_stay(&story);
    assert_eq!(
        mine,
        git_state(&team.work()),
        "the user's repository is as it was"
    );
    check_completion(&team, &story);
    usage::check_usage(&team, &story);
    check_apply(&team, &story);
    team.check_event_file(&story.run);
    PlayedStory {
        team,
        run: story.run,
    }
}

/// What git says about the user's own state.
fn git_state(dir: &Path) -> Vec<String> {
    let commands = [
        &["rev-parse", "HEAD"][..],
        &["status", "--short"],
        &["stash", "list"],
        &["diff", "--cached"],
    ];
    commands.iter().map(|args| git(dir, args)).collect()
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn check_identity(team: &Team, story: &Story) {
    let run = team.show(&story.run);
    assert_eq!(run["contractVersion"], "1");
    assert_eq!(run["title"], "Make the check pass");
    assert_eq!(
        (&run["mode"], &run["globalMode"]),
        (&json!("AUTO"), &json!("PLANNING"))
    );
    for node in run["nodes"].as_object().unwrap().values() {
        let mode = &node["permissions"]["cliPermissionsMode"];
        assert_eq!(mode, story.program.permission_mode(), "{node}");
    }
    let lead = &run["nodes"][&story.orch];
    assert_eq!(lead["capabilities"]["spawnNodes"], true);
    assert_eq!(lead["permissions"]["spawnRequiresApproval"], false);
    for event in team.events(&story.run) {
        let id = event["id"].as_str().unwrap();
        let ts = event["ts"].as_str().unwrap();
        assert_eq!((id.len(), id.matches('-').count()), (36, 4), "{id}");
        assert!(ts.ends_with('Z') && ts.len() >= 20, "{ts}");
    }
    team.check_event_file(&story.run);
}

/// The prompt is an artifact before the program has it, and the program gets exactly its bytes.
fn check_first_prompt(team: &Team, story: &Story) {
    let chat = story
        .events
        .iter()
        .find(|event| event["type"] == "message.user");
    assert_eq!(
        chat.unwrap()["nodeId"],
        story.orch.as_str(),
        "the lead is meant"
    );
    let names: Vec<String> = story.events_of(&story.orch).map(name_of).collect();
    let sent = names
        .iter()
        .position(|name| name == "waiting_for_model")
        .unwrap();
    let before = names[..sent]
        .iter()
        .filter(|name| *name == "artifact.created");
    assert_eq!(before.count(), 2, "{names:?}");
    let prompts = team.artifacts_of(&story.run, &story.orch, "prompt");
    let names: Vec<&Value> = prompts[..2].iter().map(|prompt| &prompt["name"]).collect();
    assert_eq!(names, ["prompt.full.txt", "prompt.blocks.json"]);
    let full = team.read_artifact(&story.run, &prompts[0]);
    let blocks: Value = serde_json::from_str(&team.read_artifact(&story.run, &prompts[1])).unwrap();
    let received = fs::read_to_string(team.sandbox.path("orch.hash")).unwrap();
    assert_eq!(blocks["sentHash"], received.trim());
    assert_eq!(
        blocks["fullHash"],
        blake3::hash(full.as_bytes()).to_string()
    );
    assert!(full.contains("PLEASE PLAN"), "{full}");
}

/// In PLANNING mode the planner's plan stays, and its forbidden file is restored.
fn check_plan(team: &Team, story: &Story) {
    let diffs = team.artifacts_of(&story.run, &story.planner, "diff");
    assert_eq!(
        diffs[0]["metadata"]["filesChanged"],
        json!(["docs/plan.md"])
    );
    assert_eq!(diffs[0]["metadata"]["violation"], json!(["src/x"]));
    assert_eq!(team.show_node(&story.run, &story.planner)["status"], "idle");
    assert!(!team.work().join("src/x").exists());
    // The lead changed nothing, and its turns have their diffs all the same.
    let diffs = team.artifacts_of(&story.run, &story.orch, "diff");
    assert!(diffs.len() >= 2, "{diffs:#?}");
    assert!(
        diffs
            .iter()
            .all(|diff| diff["metadata"]["filesChanged"] == json!([]))
    );
}

/// Changed modes reach the next prompt, which is still a delta where the program keeps its session.
fn check_modes(team: &Team, story: &Story) {
    let changed = story
        .events
        .iter()
        .find(|event| event["type"] == "run.mode");
    let changed = changed.unwrap();
    assert_eq!(changed["mode"], "AUTO");
    assert_eq!(changed["globalMode"], "IMPLEMENTATION");
    let prompts = team.artifacts_of(&story.run, &story.orch, "prompt");
    let blocks: Vec<Value> = prompts
        .iter()
        .filter(|prompt| prompt["name"] == "prompt.blocks.json")
        .map(|prompt| serde_json::from_str(&team.read_artifact(&story.run, prompt)).unwrap())
        .collect();
    let build = blocks
        .iter()
        .find(|blocks| blocks["task"].to_string().contains("PLEASE BUILD"));
    let build = build.unwrap();
    let kind = if story.program.keeps_session {
        "delta"
    } else {
        "full"
    };
    assert_eq!(build["kind"], kind);
    assert_ne!(build["mode"], blocks[0]["mode"]);
    assert_eq!(build["role"], blocks[0]["role"]);
}

/// Changed arguments reach the program, a denied call fails alone, and a rule answers what it covers.
fn check_commands(story: &Story) {
    if !story.program.asks() {
        return;
    }
    let calls: BTreeMap<String, &Value> = story
        .events_of(&story.b)
        .filter(|event| event["type"] == "tool.proposed")
        .filter_map(|event| Some((command_of(&event["tool"])?.to_owned(), event)))
        .collect();
    let outcome = |command: &str| {
        let id = &calls[command]["tool"]["id"];
        let mut events = story.events.iter();
        events
            .find(|event| event["type"] == "tool.completed" && event["toolId"] == *id)
            .unwrap()
    };
    let changed = outcome("echo original");
    assert_eq!(changed["result"]["ok"], true, "{changed}");
    let expected = if story.program.takes_other_arguments() {
        "changed"
    } else {
        "original"
    };
    let output = changed["result"]["output"].as_str().unwrap();
    assert_eq!(output.trim(), expected, "{changed}");
    for (command, ok) in [
        ("touch denied.txt", false),
        ("true test", true),
        ("true test again", true),
        ("true test; touch chained.txt", false),
    ] {
        assert_eq!(outcome(command)["result"]["ok"], ok, "{command}");
    }
    let asked: Vec<&str> = story
        .events_of(&story.b)
        .filter(|event| event["type"] == "approval.requested")
        .filter_map(|event| command_of(&event["tool"]))
        .collect();
    let mut expected = vec![
        "echo original",
        "touch denied.txt",
        "true test",
        "true test again",
        "true test; touch chained.txt",
    ];
    if story.program.makes_rules() {
        // The rule answers this one.
        expected.retain(|command| *command != "true test again");
    }
    assert_eq!(asked, expected);
}

/// A node that does not lead asks before it spawns, whatever its settings say, and its child is no
/// freer than itself.
fn check_spawn(team: &Team, story: &Story) {
    let spawns: Vec<&Value> = story
        .events_of(&story.a)
        .filter(|event| event["type"] == "approval.requested")
        .collect();
    assert_eq!(spawns.len(), 2, "{spawns:#?}");
    let refused = &spawns[0]["tool"]["id"];
    let failed = story
        .events
        .iter()
        .find(|event| event["type"] == "tool.completed" && event["toolId"] == *refused);
    assert_eq!(failed.unwrap()["result"]["ok"], false);
    let run = team.show(&story.run);
    let nodes = run["nodes"].as_object().unwrap();
    assert_eq!(nodes.len(), 6, "the refused child does not exist");
    let child = nodes
        .values()
        .find(|node| node["alias"] == "helper")
        .unwrap();
    assert_eq!(child["parentId"], story.a.as_str());
    // It asked for `skip`, and its parent is gated where the program can ask.
    let mode = &child["permissions"]["cliPermissionsMode"];
    assert_eq!(mode, story.program.permission_mode());
    let mut envelopes = story
        .events
        .iter()
        .filter(|event| event["type"] == "handoff.sent");
    assert!(envelopes.any(|event| {
        event["envelope"]["toNodeId"] == child["id"]
            && event["envelope"]["payload"]["message"] == "HELP A"
    }));
}

/// Both implementers end without a report: the lead hears of both in one turn, and does not wait for
/// the reviewer whom it never asked. A terminal shows more behind the last words.
fn check_reports(story: &Story) {
    let reports: Vec<&Value> = story
        .events
        .iter()
        .filter(|event| event["type"] == "handoff.sent")
        .map(|event| &event["envelope"])
        .filter(|envelope| envelope["toNodeId"] == story.orch.as_str())
        .filter(|envelope| {
            envelope["payload"]["message"]
                .as_str()
                .unwrap()
                .contains("is built.")
        })
        .collect();
    assert_eq!(reports.len(), 2);
    assert!(
        reports
            .iter()
            .all(|report| report["meta"]["synthesized"] == true)
    );
    let consuming: Vec<&Value> = story
        .events_of(&story.orch)
        .filter(|event| event["status"] == "turn.started")
        .map(|event| &event["consumed"])
        .filter(|consumed| reports.iter().any(|report| has_id(consumed, &report["id"])))
        .collect();
    let [both] = consuming.as_slice() else {
        panic!("the lead woke more than once: {consuming:#?}")
    };
    assert!(reports.iter().all(|report| has_id(both, &report["id"])));
}

fn has_id(ids: &Value, id: &Value) -> bool {
    ids.as_array().unwrap().contains(id)
}

/// A node's workspace is fixed at its first turn, and never moves.
fn check_workspaces_stay(story: &Story) {
    for node in [&story.orch, &story.planner, &story.a, &story.b] {
        let fixed: Vec<&Value> = story
            .events_of(node)
            .filter(|event| event["type"] == "node.patch")
            .map(|event| &event["patch"]["workspace"])
            .filter(|workspace| !workspace.is_null())
            .collect();
        assert_eq!(fixed.len(), 1, "{fixed:#?}");
    }
}

/// The two writers work in worktrees of their own, and each diff applies to its base.
fn check_workspaces(team: &Team, story: &Story) {
    let scratch = team.sandbox.path("scratch");
    for (node, file) in [(&story.a, "a.txt"), (&story.b, "b.txt")] {
        let shown = team.show_node(&story.run, node);
        assert_eq!(shown["workspace"]["kind"], "worktree", "{shown}");
        let diffs = team.artifacts_of(&story.run, node, "diff");
        let patch = team.read_artifact(&story.run, &diffs[0]);
        let target = scratch.join(file);
        git(
            &team.work(),
            &["clone", "--quiet", ".", target.to_str().unwrap()],
        );
        fs::write(target.join("../patch"), patch).unwrap();
        git(&target, &["apply", "../patch"]);
        assert!(
            target.join(file).exists(),
            "the untracked file is in the diff"
        );
        assert!(!team.work().join(file).exists());
    }
    // Turns of three agents in two runs were open at once: each waited for a file of the others.
    assert_eq!(
        team.wait_for_turn_end(&story.other_run, &other_node(team, story), 1),
        "turn.completed"
    );
}

fn other_node(team: &Team, story: &Story) -> String {
    let run = team.show(&story.other_run);
    let nodes = run["nodes"].as_object().unwrap();
    nodes.keys().next().unwrap().clone()
}

/// The worktree of a node.
fn worktree_of(team: &Team, story: &Story, node: &str) -> PathBuf {
    let shown = team.show_node(&story.run, node);
    let branch = format!(
        "branch refs/heads/{}",
        shown["workspace"]["branch"].as_str().unwrap()
    );
    let list = git(&team.work(), &["worktree", "list", "--porcelain"]);
    let entry = list
        .split("\n\n")
        .find(|entry| entry.contains(&branch))
        .unwrap();
    let path = entry
        .lines()
        .next()
        .unwrap()
        .strip_prefix("worktree ")
        .unwrap();
    PathBuf::from(path)
}

/// Two claims are refused with their reasons, the third is verified, and nothing starts behind it.
fn check_completion(team: &Team, story: &Story) {
    let failures: Vec<String> = story
        .events_of(&story.orch)
        .filter(|event| event["type"] == "tool.completed" && event["result"]["ok"] == false)
        .map(|event| event["error"]["message"].to_string())
        .collect();
    let [conflict, failed] = failures.as_slice() else {
        panic!("two claims are refused: {failures:#?}")
    };
    assert!(conflict.contains("both.txt"), "{conflict}");
    assert!(failed.contains("b is bad"), "{failed}");
    let phases: Vec<&Value> = story
        .events
        .iter()
        .filter(|event| event["type"] == "run.phase")
        .map(|event| &event["phase"])
        .collect();
    let expected = [
        "EXECUTE", "VERIFY", "EXECUTE", "VERIFY", "EXECUTE", "VERIFY", "DONE",
    ];
    assert_eq!(phases, expected);
    let end = story.events.iter().position(is_completion).unwrap();
    let mut behind = story.events[end..].iter();
    assert!(!behind.any(|event| event["status"] == "turn.started"));
    for node in [&story.a, &story.b] {
        let alone = Command::new("sh")
            .arg("check.sh")
            .current_dir(worktree_of(team, story, node))
            .status();
        assert!(!alone.unwrap().success(), "the check needs both");
    }
    let reports = team.artifacts_of(&story.run, &story.orch, "report");
    assert_eq!(reports.len(), 3, "{reports:#?}");
}

/// What was verified lands in the user's directory, once.
fn check_apply(team: &Team, story: &Story) {
    let apply = format!("/api/runs/{}/apply", story.run);
    let applied = team.post(&apply, &json!({}));
    assert_eq!(
        applied["applied"],
        json!(["a.txt", "b.txt", "both.txt", "docs/plan.md"])
    );
    assert_eq!(applied["verified"], true, "{applied}");
    let check = Command::new("sh")
        .arg("check.sh")
        .current_dir(team.work())
        .status();
    assert!(check.unwrap().success());
    fs::write(team.work().join("mine.txt"), "the user's\n").unwrap();
    assert_eq!(team.post(&apply, &json!({}))["applied"], json!([]));
    assert_eq!(
        fs::read_to_string(team.work().join("mine.txt")).unwrap(),
        "the user's\n"
    );
}
