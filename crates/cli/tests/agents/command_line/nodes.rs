//! `node add`, `chat`, `interrupt`, `retry` and `reset`, `edge add`, and `inbox`.

use super::*;

#[test]
fn a_node_is_added_or_the_terminal_says_why_not() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "node add reviewer --alias review --provider codex
         node add implementer --alias shell --provider raw
         node add reviewer --alias review
         node add plumber
         node add reviewer --provider nope",
        "
        $ node add reviewer --alias review --provider codex
        added review: reviewer, codex
        $ node add implementer --alias shell --provider raw
        added shell: implementer, raw
        $ node add reviewer --alias review
        error: the alias `review` is taken: choose another
        [exit status: 1]
        $ node add plumber
        error: no role is called `plumber`: use one of orchestrator, planner, implementer, reviewer, tester, docs, or write .turnkeep/roles/plumber.md
        [exit status: 1]
        $ node add reviewer --provider nope
        error: there is no program `nope`
        hint: there are: claude, codex, gemini, acp, jsonl, raw, stream-json
        [exit status: 2]",
    );
    let run = desk.team.show(&desk.run);
    assert_eq!(run["nodes"].as_object().unwrap().len(), 3);
    let mode = |alias| desk.node(alias)["permissions"]["cliPermissionsMode"].clone();
    assert_eq!([mode("review"), mode("shell")], ["gated", "skip"]);
}

#[test]
fn an_edge_is_shown_as_it_is_now() {
    let desk = Desk::with_two(json!({}));
    desk.type_and_check(
        "edge add one two
         edge add one two
         edge add one two --gate --one-way
         edge add one two
         edge add one one
         edge add one nobody",
        "
        $ edge add one two
        one <-> two (handoff, task)
        $ edge add one two
        already there: one <-> two (handoff, task)
        $ edge add one two --gate --one-way
        changed: one -> two (handoff, task, gate)
        $ edge add one two
        already there: one -> two (handoff, task, gate)
        $ edge add one one
        error: an edge needs two different nodes
        [exit status: 1]
        $ edge add one nobody
        error: the run has no node `nobody`
        hint: its nodes are one, two
        [exit status: 1]",
    );
    let run = desk.team.show(&desk.run);
    let edges: Vec<&Value> = run["edges"].as_object().unwrap().values().collect();
    assert_eq!(edges.len(), 1);
    assert_eq!(
        [&edges[0]["gate"], &edges[0]["bidirectional"]],
        [true, false]
    );
}

#[test]
fn a_message_must_say_something_and_reach_somebody() {
    let desk = Desk::with_two(json!({}));
    let shown = desk.type_commands(
        "node chat one -
         node chat nobody hello
         node chat hello",
    );
    check(
        &shown,
        "
        $ node chat one -
        error: standard input is empty
        [exit status: 2]
        $ node chat nobody hello
        error: the run has no node `nobody`
        hint: its nodes are one, two
        [exit status: 1]
        $ node chat hello
        error: say which node is meant: one, two
        [exit status: 1]",
    );
    let sandbox = &desk.team.sandbox;
    let empty = sandbox.output(&["node", "chat", "one", " "], b"");
    let said = String::from_utf8(empty.stderr).unwrap();
    assert!(
        said.contains("invalid value ' ' for '<TEXT>': it is empty"),
        "{said}"
    );
    assert_eq!(empty.status.code(), Some(2));
}

#[test]
fn a_failed_turn_waits_in_the_inbox_until_it_is_tried_again() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "inbox
         node retry one
         node chat one PRINT",
        "
        $ inbox
        nothing waits for you
        $ node retry one
        error: the last turn of this node did not fail, so there is nothing to try again
        [exit status: 1]
        $ node chat one PRINT
        sent to one; `turnkeep run watch` shows what it does",
    );
    let node = desk.node_id("one");
    assert_eq!(
        desk.team.wait_for_turn_end(&desk.run, &node, 1),
        "turn.failed"
    );
    std::fs::write(desk.team.sandbox.path("paper"), "").unwrap();
    let shown = desk.type_commands(
        "inbox
         node retry one",
    );
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[1].starts_with("RUN DATE failure one: "), "{shown}");
    assert!(lines[1].contains("out of paper"), "{shown}");
    check(
        &lines[2..].join("\n"),
        "
            turnkeep node retry --run RUN one
            turnkeep node chat --run RUN one \"…\"
        RUN DATE finished the run is failed
            turnkeep run resume RUN
            turnkeep node chat --run RUN \"…\"
            turnkeep inbox dismiss RUN
        $ node retry one
        one tries again",
    );
    assert_eq!(
        desk.team.wait_for_turn_end(&desk.run, &node, 2),
        "turn.completed"
    );
    desk.type_and_check(
        "inbox",
        "
        $ inbox
        nothing waits for you",
    );
}

#[test]
fn a_turn_is_interrupted_and_a_session_begins_anew() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "node chat one WAIT",
        "
        $ node chat one WAIT
        sent to one; `turnkeep run watch` shows what it does",
    );
    desk.wait_for_waiting();
    desk.type_and_check(
        "node interrupt one",
        "
        $ node interrupt one
        one is being interrupted",
    );
    let node = desk.node_id("one");
    assert_eq!(
        desk.team.wait_for_turn_end(&desk.run, &node, 1),
        "turn.interrupted"
    );
    desk.type_and_check(
        "node interrupt one
         node reset one
         node reset nobody",
        "
        $ node interrupt one
        one has no open turn
        $ node reset one
        one begins a new session with its next turn
        $ node reset nobody
        error: the run has no node `nobody`
        hint: its nodes are one
        [exit status: 1]",
    );
    assert_eq!(desk.node("one")["session"]["sessionId"], Value::Null);
}

#[test]
fn the_end_of_a_run_is_in_the_inbox_until_it_is_dismissed() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "inbox dismiss --all
         inbox dismiss @last
         run complete
         inbox
         inbox dismiss @last
         inbox
         inbox dismiss @last",
        "
        $ inbox dismiss --all
        no run has ended that you have not dismissed
        $ inbox dismiss @last
        error: the run has not ended, so there is nothing to dismiss
        [exit status: 1]
        $ run complete
        Build it: completed
        $ inbox
        RUN DATE finished the run is completed
            turnkeep run apply RUN
            turnkeep node chat --run RUN \"…\"
            turnkeep inbox dismiss RUN
        $ inbox dismiss @last
        dismissed Build it
        $ inbox
        nothing waits for you
        $ inbox dismiss @last
        dismissed Build it",
    );
    desk.type_and_check(
        "run resume @last
         run complete
         inbox dismiss --all
         inbox",
        "
        $ run resume @last
        Build it: running
        $ run complete
        Build it: completed
        $ inbox dismiss --all
        dismissed Build it
        $ inbox
        nothing waits for you",
    );
}

#[test]
fn a_call_that_waits_is_in_the_inbox_with_the_commands_that_decide() {
    let desk = Desk::with_one(json!({}));
    let asker = desk.team.add_node(
        &desk.run,
        "implementer",
        "claude",
        json!({"alias": "asker"}),
    );
    desk.team.chat(&desk.run, &asker, "ASK");
    let requested = desk.team.wait_for(&desk.run, "an approval", |event| {
        event["type"] == "approval.requested"
    });
    let id = requested["approvalId"].as_str().unwrap();
    let work = desk.team.work();
    let shown = desk.type_commands("inbox").replace(id, "APPROVAL");
    check(
        &shown,
        "
        $ inbox
        RUN DATE approval run `echo done > asked.txt` in HOME/work
            turnkeep approvals approve APPROVAL
            turnkeep approvals deny APPROVAL --reason \"…\"",
    );
    desk.type_commands(&format!("approvals approve {id}"));
    assert_eq!(
        desk.team.wait_for_turn_end(&desk.run, &asker, 1),
        "turn.completed"
    );
    assert!(work.join("asked.txt").exists());
}
