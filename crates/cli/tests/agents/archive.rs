//! Copies of runs: fork, export and import, record and replay.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};

use crate::team::{Team, is_completion, make_repository, names, skip};

const TALK: &str = r#"
[agent]
usage = { input = 100, output = 50 }

[[turn]]
when = "First"
steps = [
    { say = "I write it." },
    { write = "one.txt", content = "one\n" },
    { say = "One is written." },
]

[[turn]]
when = "Second"
steps = [
    { write = "two.txt", content = "two\n" },
    { say = "Two is written." },
]

[[turn]]
when = "Third"
steps = [{ say = "Something else." }]
"#;

/// A run of one node that has written two files.
fn two_turns(team: &Team) -> (String, String) {
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", skip("worker"));
    team.chat(&run, &node, "First");
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    team.chat(&run, &node, "Second");
    assert_eq!(team.wait_for_turn_end(&run, &node, 2), "turn.completed");
    (run, node)
}

fn seq_of(event: &Value) -> u64 {
    event["seq"].as_u64().unwrap()
}

/// The events without what names the run and the server.
fn without_place(events: &[Value]) -> Vec<Value> {
    let mut plain = events.to_vec();
    for event in &mut plain {
        let fields = event.as_object_mut().unwrap();
        fields.remove("runId");
        drop_fields(event, &["runId", "path"]);
    }
    plain
}

fn drop_fields(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            for name in names {
                fields.remove(*name);
            }
            // The first event has the run itself.
            if fields.contains_key("contractVersion") {
                fields.remove("id");
            }
            fields
                .values_mut()
                .for_each(|field| drop_fields(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_fields(item, names)),
        _ => {}
    }
}

fn fork(team: &Team, run: &str, body: &Value) -> String {
    let forked = team.post(&format!("/api/runs/{run}/fork"), body);
    forked["run"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_fork_shares_the_past_and_goes_its_own_way() {
    let mut team = Team::start(TALK);
    let (run, node) = two_turns(&team);
    let before = team.events(&run);
    let is_end = |event: &&Value| event["status"] == "turn.completed";
    let first_end = seq_of(before.iter().find(is_end).unwrap());
    // In the middle of a decision: the turn's end and the node at rest are one.
    let forked = fork(
        &team,
        &run,
        &json!({"seq": first_end, "title": "Another way"}),
    );
    let shown = team.show(&forked);
    assert_eq!(shown["status"], "paused");
    assert_eq!(shown["pausedReason"], "user");
    assert_eq!(shown["title"], "Another way");
    let copied = &shown["nodes"][&node];
    assert_eq!(copied["status"], "idle");
    assert!(copied["session"].get("sessionId").is_none(), "{copied}");
    assert_eq!(copied["workspace"], Value::Null);

    let events = team.events(&forked);
    let own = events
        .iter()
        .position(|event| event["patch"]["status"] == "paused");
    let own = own.unwrap();
    assert!(own as u64 <= first_end, "rounded down");
    assert_eq!(without_place(&events[..own]), without_place(&before[..own]));
    assert_ne!(events[own - 1]["ts"], events[own]["ts"]);
    team.check_event_file(&forked);

    // Its input waits again, because the turn's end is not in it.
    let is_open = !before[..own].iter().any(|event| is_end(&event));
    assert_eq!(copied["inboxCount"], u64::from(is_open));
    team.resume(&forked);
    team.chat(&forked, &node, "Third");
    team.wait_for(&forked, "the third answer", |event| {
        event["content"] == "Something else."
    });
    team.wait_for(&forked, "the end", |event| {
        seq_of(event) > own as u64 && event["status"] == "turn.completed"
    });
    assert_eq!(team.events(&run), before, "the origin is as it was");

    let newest = team.get("/api/runs?summary=1");
    assert_eq!(newest["runs"][0]["id"], *forked, "a fork is the newest run");
    let (ours, origins) = (team.events(&forked), team.events(&run));
    team.kill();
    team.restart();
    assert_eq!(team.events(&run)[..origins.len()], origins);
    assert_eq!(team.events(&forked)[..ours.len()], ours);
    team.check_event_file(&forked);
}

#[test]
fn a_fork_of_an_open_turn_has_its_input_and_denies_its_approvals() {
    const ASKS: &str = r#"
[[turn]]
repeat = true
steps = [{ run = "echo ran", ask = true }, { say = "Done." }]
"#;
    let team = Team::start(ASKS);
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let node = team.add_node(&run, "implementer", "claude", json!({}));
    team.chat(&run, &node, "Run it");
    let asked = team.wait_for(&run, "the approval", |event| {
        event["type"] == "approval.requested"
    });
    // An answer is for questions: the word "no" would let the call pass.
    let id = asked["approvalId"].as_str().unwrap();
    let answered = command(&team, &["approvals", "answer", id, "no"]);
    assert!(errors_of(&answered).contains("turnkeep approvals approve"));
    let forked = fork(&team, &run, &json!({}));
    let copied = team.show_node(&forked, &node);
    assert_eq!(copied["inboxCount"], 1, "{copied}");
    let open = team.get("/api/approvals");
    let open = open["approvals"].as_array().unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0]["runId"], *run);
    // The answer reaches the origin, though both runs know the approval.
    team.resolve(&asked, &json!({"status": "approved"}));
    assert_eq!(team.wait_for_turn_end(&run, &node, 1), "turn.completed");
    let names = names(&team.events(&forked));
    assert!(
        names.ends_with(&[
            "turn.interrupted".to_owned(),
            "approval.resolved".to_owned(),
            "node.patch".to_owned(),
            "node.patch".to_owned(),
            "node.patch".to_owned(),
            "node.patch".to_owned(),
        ]),
        "{names:?}"
    );
}

#[test]
fn a_fork_is_refused_beyond_the_ends_and_repeated_by_its_key() {
    let mut team = Team::start(TALK);
    let run = team.new_run(json!({}));
    let path = format!("/api/runs/{run}/fork");
    let last = team.events(&run).len();
    for seq in [0, last + 1] {
        let refused = team.request("POST", &path, Some(&json!({ "seq": seq })));
        assert_eq!(refused.status, 400, "{}", refused.body);
        assert_eq!(refused.body["error"]["details"]["path"], "seq");
    }
    let key = [("Idempotency-Key", "fork-1")];
    let ask = |team: &Team| {
        let forked = team.request_with("POST", &path, Some(&json!({})), &key);
        assert_eq!(forked.status, 201, "{}", forked.body);
        forked.body["run"]["id"].as_str().unwrap().to_owned()
    };
    let first = ask(&team);
    assert_eq!(ask(&team), first);
    team.kill();
    team.restart();
    assert_eq!(ask(&team), first);
    let runs = team.get("/api/runs?summary=1");
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

/// Runs a command of the binary in the team's home.
fn command(team: &Team, args: &[&str]) -> Output {
    team.sandbox.output(args, b"")
}

fn export(team: &Team, run: &str, name: &str) -> PathBuf {
    let file = team.sandbox.path(name);
    let done = command(team, &["run", "export", run, "-o", file.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{errors}");
    file
}

fn errors_of(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_export_is_the_same_run_on_another_server() {
    let team = Team::start(TALK);
    let (run, node) = two_turns(&team);
    let file = export(&team, &run, "run.zip");
    let again = command(
        &team,
        &["run", "export", &run, "-o", file.to_str().unwrap()],
    );
    assert!(errors_of(&again).contains("exists already"));
    let taken = command(&team, &["run", "import", file.to_str().unwrap()]);
    assert!(errors_of(&taken).contains("--copy"), "{taken:?}");

    let mut other = Team::start(TALK);
    make_repository(&other.work());
    let work = other.work();
    let args = [
        "run",
        "import",
        file.to_str().unwrap(),
        "--cwd",
        work.to_str().unwrap(),
        "--json",
    ];
    let imported = other.sandbox.json(&args, "");
    assert_eq!(imported["run"]["id"], *run);
    assert_eq!(imported["run"]["status"], "paused");
    let (here, there) = (team.events(&run), other.events(&run));
    let shared = here.len();
    assert_eq!(without_place(&there[..shared]), without_place(&here));
    let own = names(&there[shared..]);
    assert_eq!(
        own,
        ["run.patch", "run.patch", "node.patch", "node.patch"],
        "paused, with another directory, without a session and a workspace"
    );
    other.check_event_file(&run);
    for artifact in team.artifacts_of(&run, &node, "diff") {
        assert_eq!(
            other.read_artifact(&run, &artifact),
            team.read_artifact(&run, &artifact)
        );
    }
    let before = other.events(&run);
    other.kill();
    other.restart();
    assert_eq!(other.events(&run), before);

    // It goes on where it was imported.
    other.resume(&run);
    other.chat(&run, &node, "Third");
    assert_eq!(other.wait_for_turn_end(&run, &node, 3), "turn.completed");

    // A fork of a time before the import is not in the directory of the other server.
    let forked = fork(&other, &run, &json!({"seq": shared}));
    assert_eq!(other.show(&forked)["cwd"], json!(work));
}

#[test]
fn a_copy_is_imported_beside_its_origin() {
    let team = Team::start(TALK);
    let (run, _) = two_turns(&team);
    let file = export(&team, &run, "run.zip");
    let copied = team.sandbox.json(
        &["run", "import", file.to_str().unwrap(), "--copy", "--json"],
        "",
    );
    let copy = copied["run"]["id"].as_str().unwrap();
    assert_ne!(copy, run);
    let (origin, events) = (team.events(&run), team.events(copy));
    assert_eq!(
        without_place(&events[..origin.len()]),
        without_place(&origin)
    );
    // An export of the copy has the same records.
    let second = export(&team, copy, "copy.zip");
    assert!(fs::metadata(second).unwrap().len() > 0);
}

#[test]
fn what_is_no_archive_is_refused_and_leaves_nothing() {
    let team = Team::start(TALK);
    let (run, _) = two_turns(&team);
    let file = export(&team, &run, "run.zip");
    let whole = fs::read(&file).unwrap();
    let other = Team::start(TALK);
    let mut garbled = whole.clone();
    garbled[whole.len() / 2] ^= 1;
    let cases = [
        Vec::new(),
        b"garbage".to_vec(),
        whole[..whole.len() / 2].to_vec(),
        garbled,
        b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
    ];
    for bytes in cases {
        let refused = other.sandbox.output(&["run", "import", "-"], &bytes);
        let errors = errors_of(&refused);
        assert!(errors.contains("cannot be imported"), "{errors}");
    }
    assert_eq!(other.get("/api/runs")["runs"], json!([]));
    let leftovers = fs::read_dir(other.sandbox.data().join("run")).into_iter();
    let names = leftovers.flatten().map(|entry| entry.unwrap().file_name());
    let scratch = names.filter(|name| name.to_string_lossy().contains("scratch"));
    assert_eq!(scratch.count(), 0);
}

const TEAMWORK: &str = r#"
[agent]
usage = { input = 100, output = 50, cost = 0.0025 }

[[turn]]
when = "Split the work"
steps = [
    { think = "One part is enough." },
    { say = "I hand it off." },
    { call = "send_handoff", args = { to = "worker", message = "Write part.txt" } },
    { say = "Handed off." },
]

[[turn]]
when = "Write part.txt"
steps = [
    { write = "part.txt", content = "part\n" },
    { run = "cat part.txt", ask = true },
    { run = "exit 3" },
    { say = "The part is written: {{result.exit}}." },
]

[[turn]]
when = "The part is written"
steps = [
    { call = "complete_run", args = { summary = "All done", ok = true } },
    { say = "Finished." },
]
"#;

/// Plays the same run: a lead that hands work to a worker, whose command needs approval.
fn play_teamwork(team: &Team, protocol: &str) -> String {
    make_repository(&team.work());
    let run = team.new_run(json!({}));
    let lead = team.add_node(&run, "orchestrator", protocol, json!({"alias": "lead"}));
    let worker = team.add_node(&run, "implementer", protocol, json!({"alias": "worker"}));
    team.connect(&run, &lead, &worker);
    team.chat(&run, &lead, "Split the work");
    let mut socket = team.watch(&run, 0);
    socket.read_until("the completed run", |event| {
        if event["type"] == "approval.requested" {
            team.resolve(event, &json!({"status": "approved"}));
        }
        is_completion(event)
    });
    team.wait_for_turn_end(&run, &lead, 2);
    run
}

fn node_of(team: &Team, run: &str, alias: &str) -> String {
    let shown = team.show(run);
    let nodes = shown["nodes"].as_object().unwrap();
    let found = nodes.iter().find(|(_, node)| node["alias"] == alias);
    found.unwrap().0.clone()
}

/// `gemini` is not among them: it has no ends of messages, so texts that follow each other are one.
#[test]
fn a_recorded_script_replays_the_run_over_every_protocol_that_asks() {
    for protocol in ["claude", "codex", "acp", "jsonl", "stream-json"] {
        check_replay_of_recording(protocol);
    }
}

fn check_replay_of_recording(protocol: &str) {
    // Codex reports the exit status of a failed command, which a script does not have.
    let teamwork = match protocol {
        "codex" => TEAMWORK.replace("    { run = \"exit 3\" },\n", ""),
        _ => TEAMWORK.to_owned(),
    };
    let team = Team::start(&teamwork);
    let run = play_teamwork(&team, protocol);
    let script = team.sandbox.path("recorded.toml");
    let recorded = command(&team, &["run", "record", &run, script.to_str().unwrap()]);
    assert!(recorded.status.success(), "{recorded:?}");
    let text = fs::read_to_string(&script).unwrap();
    let replayed = Team::start(&text);
    let replay = play_teamwork(&replayed, protocol);
    let content = fs::read_to_string(replayed.work().join("part.txt")).unwrap();
    assert_eq!(content, "part\n", "{text}");
    let (first, second) = (plain_events(&team, &run), plain_events(&replayed, &replay));
    for (node, events) in &first {
        let again = &second[node];
        let lost: Vec<_> = events
            .iter()
            .filter(|event| !again.contains(event))
            .collect();
        let new: Vec<_> = again
            .iter()
            .filter(|event| !events.contains(event))
            .collect();
        assert!(
            again == events,
            "{protocol}, {node}\nlost: {lost:#?}\nnew: {new:#?}\n{text}"
        );
    }
    for alias in ["lead", "worker"] {
        let said = told(&team, &run, &node_of(&team, &run, alias));
        let again = told(&replayed, &replay, &node_of(&replayed, &replay, alias));
        assert_eq!(again, said, "{protocol}, {alias}");
    }
}

/// The events of each node as text, without ids and times and without the pieces of texts.
///
/// They are sorted: nodes work at the same time, and a call of the daemon's tools overtakes the text
/// that the program printed before it.
fn plain_events(team: &Team, run: &str) -> BTreeMap<String, Vec<String>> {
    let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let events = team.events(run);
    let aliases: BTreeMap<&str, &str> = events
        .iter()
        .filter_map(|event| Some((event["nodeId"].as_str()?, event["patch"]["alias"].as_str()?)))
        .collect();
    let place = team.sandbox.path("").display().to_string();
    for event in &events {
        let kind = event["type"].as_str().unwrap();
        // Progress is shown while it lasts, and deltas are whatever arrived together.
        if kind.contains(".delta") || kind == "node.progress" {
            continue;
        }
        let node = event["nodeId"].as_str().map_or("", |node| aliases[node]);
        let mut plain = event.clone();
        make_plain(&mut plain, &place);
        let of_node = by_node.entry(node.to_owned()).or_default();
        of_node.push(plain.to_string());
    }
    for events in by_node.values_mut() {
        events.sort();
    }
    by_node
}

/// What a node said and how its turns went, in their order.
fn told(team: &Team, run: &str, node: &str) -> Vec<String> {
    let events = team.events(run);
    let of_node = events.iter().filter(|event| event["nodeId"] == node);
    let told = of_node.filter(|event| {
        let kind = event["type"].as_str().unwrap();
        kind.contains(".final") || kind == "turn.status" || kind == "telemetry.usage"
    });
    let text =
        |event: &Value| format!("{} {} {}", event["type"], event["status"], event["content"]);
    told.map(text).collect()
}

/// Drops ids and what depends on time and place. That every id has its place is checked by the run
/// itself, which would not go on with a wrong one.
fn make_plain(value: &mut Value, place: &str) {
    const DROPPED: [&str; 9] = [
        "seq",
        "durationMs",
        "path",
        "contentHash",
        "bytes",
        "sessionId",
        "providerToolId",
        "promptHash",
        "context",
    ];
    match value {
        Value::Object(fields) => {
            for name in DROPPED {
                fields.remove(name);
            }
            fields.retain(|name, _| name != "ts" && !name.ends_with("At"));
            for field in fields.values_mut() {
                make_plain(field, place);
            }
        }
        Value::Array(items) => {
            for item in items {
                make_plain(item, place);
            }
        }
        Value::String(text) => *text = without_ids(&text.replace(place, "")),
        _ => {}
    }
}

/// The text with `ID` in the place of each UUID.
fn without_ids(text: &str) -> String {
    let is_id = |start: usize| {
        let word = text.get(start..start + 36)?;
        let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
        (word.chars().all(is_part) && word.matches('-').count() == 4).then_some(())
    };
    let mut plain = String::new();
    let mut place = 0;
    while let Some(letter) = text[place..].chars().next() {
        if is_id(place).is_some() {
            plain.push_str("ID");
            place += 36;
        } else {
            plain.push(letter);
            place += letter.len_utf8();
        }
    }
    plain
}
