//! The server killed with SIGKILL in the middle of a run, again and again, at chosen events.
//!
//! Each chain of kills has one data directory. For each kill it plays a run of two nodes until the
//! chosen event comes over `/ws`, kills the server in that moment, and damages what a power failure may
//! damage. The next start must find every event that was seen, pause the run, and complete it after a
//! resume, in the state of a run that was not killed. The runs of earlier kills must stay as they are.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::team::bookkeeping::Books;
use crate::team::event_socket::EventSocket;
use crate::team::{ANSWER_MAX, Team, is_completion, make_repository, name_of};

/// Every turn repeats: an agent that starts again does the same again.
const SCRIPT: &str = r#"
[[turn]]
when = ["(lead) of run", "The part is written"]
repeat = true
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]

[[turn]]
when = ["(lead) of run"]
repeat = true
steps = [
    { say = "I hand it off." },
    { call = "send_handoff", args = { to = "worker", message = "WRITE IT" } },
    { say = "Handed off." },
]

[[turn]]
when = ["(worker) of run"]
repeat = true
steps = [
    { spawn_child = "SANDBOX/child.pid" },
    { say = "I write." },
    { run = "echo it runs", ask = "May I?" },
    { write = "part.txt", content = "part\n" },
    { say = "The part is written." },
]
"#;

/// While `hang` exists, the verification does not end.
const VERIFY: &str =
    "if test -e SANDBOX/hang; then echo $$ > SANDBOX/verify.pid; exec sleep 600; fi
test -f part.txt";

/// What else happened when the power failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Nothing,
    /// The last events are durable, and the file of events does not have them yet.
    FileBehind,
    /// The last line of the file of events is half written.
    FileCut,
    FileGarbled,
    FileGone,
    /// Half a frame at the end of the log.
    TornLog,
}

/// When the server is killed.
#[derive(Debug, Clone, Copy)]
struct Kill {
    /// The event, by [`kill_name`].
    at: &'static str,
    nth: usize,
    damage: Damage,
}

const fn kill(at: &'static str, nth: usize, damage: Damage) -> Kill {
    Kill { at, nth, damage }
}

/// The name of an event among those at which the server is killed.
fn kill_name(event: &Value) -> String {
    match event["type"].as_str().unwrap() {
        "artifact.created" => format!("artifact {}", text(&event["artifact"]["kind"])),
        "run.phase" => format!("phase {}", text(&event["phase"])),
        "run.patch" if is_completion(event) => "completed".to_owned(),
        _ => name_of(event),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn kills_at_the_first_half_of_a_run_with_worktrees() {
    let mut chain = Chain::start("claude");
    make_repository(&chain.team.work());
    for kill in [
        kill("message.user", 1, Damage::Nothing),
        kill("turn.started", 1, Damage::FileBehind),
        kill("artifact prompt", 1, Damage::Nothing),
        kill("waiting_for_model", 1, Damage::TornLog),
        kill("message.assistant.delta", 1, Damage::FileCut),
        kill("tool.proposed", 1, Damage::Nothing),
        kill("handoff.sent", 1, Damage::Nothing),
        kill("handoff.sent", 1, Damage::TornLog),
    ] {
        chain.kill_and_recover(kill);
    }
}

#[test]
fn kills_at_the_second_half_of_a_run() {
    let mut chain = Chain::start("codex");
    for kill in [
        kill("turn.completed", 1, Damage::FileGone),
        kill("turn.started", 2, Damage::Nothing),
        kill("waiting_for_model", 2, Damage::FileGarbled),
        kill("approval.requested", 1, Damage::Nothing),
        kill("approval.resolved", 1, Damage::TornLog),
        kill("artifact diff", 2, Damage::FileBehind),
        kill("handoff.sent", 2, Damage::Nothing),
        kill("phase VERIFY", 1, Damage::Nothing),
        kill("artifact report", 1, Damage::FileCut),
        kill("phase DONE", 1, Damage::FileBehind),
        kill("completed", 1, Damage::TornLog),
    ] {
        chain.kill_and_recover(kill);
    }
}

#[test]
fn kills_of_programs_that_cannot_resume_a_session() {
    let mut chain = Chain::start("jsonl");
    for kill in [
        kill("waiting_for_model", 1, Damage::FileGone),
        kill("message.assistant.delta", 1, Damage::Nothing),
        kill("handoff.sent", 1, Damage::FileGarbled),
        kill("approval.requested", 1, Damage::FileCut),
        kill("message.assistant.final", 2, Damage::Nothing),
        kill("phase VERIFY", 1, Damage::TornLog),
    ] {
        chain.kill_and_recover(kill);
    }
}

/// The server is killed while events are durable that the file of events does not have: nothing could
/// be written there since the run began.
#[test]
fn kills_between_the_durable_events_and_their_file() {
    let mut chain = Chain::start("claude");
    for at in ["turn.started", "tool.completed", "phase VERIFY"] {
        chain.kill_behind_blocked_file(kill(at, 1, Damage::Nothing));
    }
}

/// A program whose session can be resumed goes on with the session that it had.
#[test]
fn kills_keep_the_sessions_of_programs() {
    for protocol in ["claude", "codex", "gemini", "acp"] {
        let mut chain = Chain::start(protocol);
        chain.expect_end();
        let mut watched = chain.new_run();
        let kill = kill("message.assistant.delta", 1, Damage::Nothing);
        watched.play_until_kill(&chain.team, kill);
        let node = text(&watched.events[watched.events.len() - 1]["nodeId"]).to_owned();
        let session = chain.team.show_node(&watched.run, &node)["session"]["sessionId"].take();
        assert!(session.is_string(), "{protocol}: {session}");
        chain.recover(&mut watched, kill);
        let events = chain.team.events(&watched.run);
        // The scripted agent repeats a past like this one when it loads a session.
        let repeats = events
            .iter()
            .any(|event| event.to_string().contains("An earlier answer."));
        assert!(!repeats, "{protocol}: the past is no answer");
        let named = events
            .iter()
            .filter(|event| event["nodeId"] == node.as_str());
        let named = named.map(|event| &event["patch"]["session"]["sessionId"]);
        let names: Vec<&Value> = named.filter(|name| !name.is_null()).collect();
        assert!(
            names.iter().all(|name| **name == session),
            "{protocol}: {names:?}"
        );
        // The scripted agent makes up a new session name unless the server asks it to resume one. The
        // prompt of a resumed session has only the news.
        let mut sent = events.iter().filter(|event| {
            event["nodeId"] == node.as_str() && event["status"] == "waiting_for_model"
        });
        let after_kill = sent.nth(1).unwrap();
        assert_eq!(
            after_kill["promptKind"], "delta",
            "{protocol}: {after_kill}"
        );
    }
}

/// The processes of a killed server end with it: those of agents, their children, and those of a
/// verification.
#[test]
fn a_killed_server_leaves_no_process_behind() {
    let mut chain = Chain::start("claude");
    let mut watched = chain.new_run();
    let home = chain.team.sandbox.path("");
    fs::write(home.join("hang"), "").unwrap();
    watched.play_until(&chain.team, |name, _| name == "phase VERIFY");
    let verification = wait_for_pid(&home.join("verify.pid"));
    let child = wait_for_pid(&home.join("child.pid"));
    assert!(is_alive(&child) && is_alive(&verification));
    chain.team.kill();
    let deadline = Instant::now() + ANSWER_MAX;
    while is_alive(&child) || is_alive(&verification) {
        assert!(Instant::now() < deadline, "a process survives the server");
        std::thread::yield_now();
    }
}

/// Waits until a process has written its id.
fn wait_for_pid(file: &Path) -> String {
    let deadline = Instant::now() + ANSWER_MAX;
    loop {
        let pid = fs::read_to_string(file).unwrap_or_default();
        if !pid.trim().is_empty() {
            return pid.trim().to_owned();
        }
        assert!(Instant::now() < deadline, "no {}", file.display());
        std::thread::yield_now();
    }
}

/// Whether a process runs. A zombie does not: it has ended, and its parent has not read its status.
fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, rest)| &rest[..1]);
    !matches!(state, None | Some("Z" | "X"))
}

/// A data directory in which one run after the other is killed.
struct Chain {
    team: Team,
    protocol: &'static str,
    /// What a run comes to that is not killed.
    expected: Option<Value>,
    /// The runs of earlier kills, with the number of their last event.
    ended: Vec<(String, u64)>,
}

impl Chain {
    fn start(protocol: &'static str) -> Self {
        Self {
            team: Team::start(SCRIPT),
            protocol,
            expected: None,
            ended: Vec::new(),
        }
    }

    /// Creates the run and sends it on its way.
    fn new_run(&self) -> WatchedRun {
        let run = self.new_team();
        self.send_on_its_way(run)
    }

    fn send_on_its_way(&self, run: String) -> WatchedRun {
        self.team.chat(&run, "lead", "PLEASE LEAD");
        WatchedRun {
            socket: self.team.watch(&run, 0),
            run,
            events: Vec::new(),
        }
    }

    /// Creates a run with its nodes.
    fn new_team(&self) -> String {
        let team = &self.team;
        fs::remove_file(team.work().join("part.txt")).ok();
        let verify = VERIFY.replace("SANDBOX", text(&json!(team.sandbox.path(""))));
        let run = team.new_run(json!({"verify": [verify], "limits": {"fanInMs": 30}}));
        let gated = |alias: &str| {
            let permissions = json!({"cliPermissionsMode": "gated"});
            json!({"alias": alias, "permissions": permissions})
        };
        team.add_node(&run, "orchestrator", self.protocol, gated("lead"));
        team.add_node(&run, "implementer", self.protocol, gated("worker"));
        // A second writer, so that the worker gets a worktree where there is a repository.
        team.add_node(&run, "implementer", self.protocol, gated("idle"));
        team.connect(&run, "lead", "worker");
        run
    }

    /// Plays a run to its end, unless that was done before, to know what the others must come to.
    fn expect_end(&mut self) {
        if self.expected.is_none() {
            let mut watched = self.new_run();
            watched.play_to_the_end(&self.team);
            self.expected = Some(lasting_state(&self.team, &watched.run));
        }
    }

    fn kill_and_recover(&mut self, kill: Kill) {
        self.expect_end();
        let mut watched = self.new_run();
        watched.play_until_kill(&self.team, kill);
        self.recover(&mut watched, kill);
    }

    /// The same for a run whose file of events could not be written since it began.
    fn kill_behind_blocked_file(&mut self, kill: Kill) {
        self.expect_end();
        let run = self.new_team();
        self.team.check_event_file(&run);
        self.team.terminate();
        let file = self.team.run_dir(&run).join("events.jsonl");
        let kept = file.with_extension("kept");
        fs::rename(&file, &kept).unwrap();
        fs::create_dir(&file).unwrap();
        self.team.restart();
        self.team.resume(&run);
        let mut watched = self.send_on_its_way(run);
        watched.play_until_kill(&self.team, kill);
        self.team.kill();
        fs::remove_dir(&file).unwrap();
        fs::rename(&kept, &file).unwrap();
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines < watched.events.len(), "{kill:?}: the file is behind");
        self.recover(&mut watched, kill);
    }

    /// Kills the server if it is not dead yet, and starts it again. The run goes on to its end.
    fn recover(&mut self, watched: &mut WatchedRun, kill: Kill) {
        self.team.kill();
        watched.read_rest();
        self.damage(&watched.run, kill.damage);
        self.team.restart();
        self.check_restarted(watched, kill);
        self.complete(watched, kill);
        self.check_ended_runs();
        let last = self.team.show(&watched.run)["lastSeq"].as_u64().unwrap();
        self.ended.push((watched.run.clone(), last));
    }

    fn damage(&self, run: &str, damage: Damage) {
        let file = self.team.run_dir(run).join("events.jsonl");
        let lines = fs::read_to_string(&file).unwrap_or_default();
        match damage {
            Damage::Nothing => {}
            Damage::FileBehind => {
                let all: Vec<&str> = lines.split_inclusive('\n').collect();
                let kept = all.len().saturating_sub(3);
                fs::write(&file, all[..kept].concat()).unwrap();
            }
            Damage::FileCut => {
                let bytes = lines.as_bytes();
                fs::write(&file, &bytes[..bytes.len() - bytes.len() / 7]).unwrap();
            }
            Damage::FileGarbled => fs::write(&file, lines.replace("seq", "qes")).unwrap(),
            Damage::FileGone => fs::remove_file(&file).unwrap_or_default(),
            Damage::TornLog => tear_log(&self.team.sandbox.data()),
        }
    }

    /// Everything that was seen is still there, and the run waits for a person.
    fn check_restarted(&self, watched: &WatchedRun, kill: Kill) {
        let events = self.team.events(&watched.run);
        let seen = &watched.events;
        assert_eq!(&events[..seen.len()], seen, "{kill:?}: seen means durable");
        let books = Books::keep(&events);
        let run = self.team.show(&watched.run);
        books.check_snapshot(&run);
        if !events.iter().any(is_completion) {
            assert_eq!(run["status"], "paused", "{kill:?}");
            assert_eq!(run["pausedReason"], "daemon-restart", "{kill:?}");
        }
        books.check_all_ended();
        self.team.check_event_file(&watched.run);
    }

    /// The run goes on by itself once it is resumed. Nothing is lost or done twice.
    fn complete(&self, watched: &mut WatchedRun, kill: Kill) {
        let team = &self.team;
        let last = team.show(&watched.run)["lastSeq"].as_u64().unwrap();
        let was_completed = team.events(&watched.run).iter().any(is_completion);
        if !was_completed {
            team.resume(&watched.run);
            watched.socket = team.watch(&watched.run, last);
            watched.play_to_the_end(team);
        }
        let events = team.events(&watched.run);
        let books = Books::keep(&events);
        books.check_all_ended();
        let run = team.show(&watched.run);
        books.check_snapshot(&run);
        let mut state = lasting_state(team, &watched.run);
        let expected = self.expected.clone().unwrap();
        let expected_inboxes = &expected["inboxes"];
        if was_completed {
            // The last turn of a completed run is not repeated: its inputs wait for the next one.
            state["inboxes"] = expected_inboxes.clone();
        } else if state["inboxes"]["lead"].as_u64().unwrap() <= repeated_handoffs(&events) {
            state["inboxes"]["lead"] = expected_inboxes["lead"].clone();
        }
        assert_eq!(state, expected, "{kill:?}");
        team.check_event_file(&watched.run);
    }

    fn check_ended_runs(&self) {
        for (run, last) in &self.ended {
            let events = self.team.events(run);
            let mut behind = events[usize::try_from(*last).unwrap()..].iter();
            // What becomes of a worktree is noted a little after the end.
            let is_late = behind.all(|event| event["type"] == "node.log");
            assert!(is_late, "something happens in {run}: {events:#?}");
        }
    }
}

/// A run that is being played.
struct WatchedRun {
    run: String,
    socket: EventSocket,
    /// All events that were seen before the kill.
    events: Vec<Value>,
}

impl WatchedRun {
    /// Reads events and approves what is asked, until the check holds for an event and its name. The
    /// event for which it holds is not answered.
    fn play_until(&mut self, team: &Team, mut check: impl FnMut(&str, &Value) -> bool) {
        loop {
            let event = self.socket.next_event();
            let event = event.unwrap_or_else(|| panic!("the run ended: {:#?}", self.events));
            let stops = check(&kill_name(&event), &event);
            self.events.push(event);
            if stops {
                return;
            }
            let event = &self.events[self.events.len() - 1];
            if event["type"] == "approval.requested" {
                team.resolve(event, &json!({"status": "approved"}));
            }
        }
    }

    /// Plays until the event at which the server is killed.
    fn play_until_kill(&mut self, team: &Team, kill: Kill) {
        let mut count = 0;
        self.play_until(team, |name, _| {
            count += usize::from(name == kill.at);
            count == kill.nth
        });
    }

    /// Plays until the run is completed and every turn has ended.
    fn play_to_the_end(&mut self, team: &Team) {
        self.play_until(team, |name, _| name == "completed");
        // The lead completes the run in the middle of its turn.
        let run = self.run.clone();
        let is_over = || !Books::keep(&team.events(&run)).has_open_turn();
        if !is_over() {
            self.play_until(team, |_, _| is_over());
        }
    }

    /// Reads what the killed server had sent already: that, too, must be durable.
    fn read_rest(&mut self) {
        while let Some(event) = self.socket.next_event() {
            self.events.push(event);
        }
    }
}

/// How often the lead handed its work off again, because it went on after a kill. The replies to these
/// handoffs may come behind the turn that completes the run, and then wait in its inbox.
fn repeated_handoffs(events: &[Value]) -> u64 {
    let handoffs = events.iter().filter(|event| {
        event["type"] == "handoff.sent" && event["envelope"]["payload"]["message"] == "WRITE IT"
    });
    (handoffs.count() as u64).saturating_sub(1)
}

/// What a run has come to, whatever happened on the way.
fn lasting_state(team: &Team, run: &str) -> Value {
    let shown = team.show(run);
    let nodes = shown["nodes"].as_object().unwrap();
    let alias = |id: &Value| nodes[text(id)]["alias"].clone();
    let each = |field: &str| {
        let values = nodes.values();
        let rows = values.map(|node| (text(&node["alias"]).to_owned(), node[field].clone()));
        rows.collect::<BTreeMap<String, Value>>()
    };
    let edges = shown["edges"].as_object().unwrap().values();
    let ends = |edge: &Value| json!([alias(&edge["from"]), alias(&edge["to"]), edge["type"]]);
    let approvals = team.get(&format!("/api/approvals?runId={run}"));
    json!({
        "status": shown["status"],
        "phase": shown["phase"],
        "nodes": each("status"),
        "inboxes": each("inboxCount"),
        "edges": edges.map(ends).collect::<Vec<Value>>(),
        "approvals": approvals["approvals"],
    })
}

/// Leaves half a frame behind the last one, as a write that was cut short does.
fn tear_log(data: &Path) {
    const SEGMENT_HEADER: u64 = 64;
    const FRAME_HEADER: usize = 128;
    let mut torn = None;
    for path in log_segments(data) {
        let file = File::open(&path).unwrap();
        let mut offset = SEGMENT_HEADER;
        let mut header = vec![0; FRAME_HEADER];
        let mut last = Vec::new();
        while file.read_exact_at(&mut header, offset).is_ok() && header.starts_with(b"TKF1") {
            let length = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            let bytes = FRAME_HEADER as u64 + u64::from(length(8)) + u64::from(length(12));
            offset += bytes.next_multiple_of(8);
            last.clone_from(&header);
        }
        if !last.is_empty() {
            torn = Some((path, offset, last));
        }
    }
    let (path, offset, header) = torn.unwrap();
    let file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&header[..FRAME_HEADER - 8], offset)
        .unwrap();
    file.sync_all().unwrap();
}

fn log_segments(data: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(data.join("log")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "seg"));
    paths.sort();
    paths
}
