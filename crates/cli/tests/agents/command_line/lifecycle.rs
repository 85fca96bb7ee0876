//! `run new`, `pause`, `resume`, `complete`, `fork`, `delete` and `export`.

use std::fmt::Write as _;

use super::*;
use crate::team::provider;

#[test]
fn a_configured_program_works_where_no_other_is_installed() {
    let mut team = Team::start(SCRIPT);
    let sandbox = &team.sandbox;
    let mut config = provider(sandbox, "mine", Some("jsonl"));
    for missing in ["claude", "codex", "gemini"] {
        writeln!(
            config,
            "[providers.{missing}]\ncommand = \"/nowhere/{missing}\""
        )
        .unwrap();
    }
    std::fs::write(sandbox.path("config.toml"), config).unwrap();
    team.restart();
    let cwd = team.work().display().to_string();
    let command = ["run", "new", "Write it", "--detach", "--cwd", &cwd];
    let output = team.sandbox.output(&command, b"");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("program: mine turnkeep-agent-script "),
        "{said}"
    );
    let shown = String::from_utf8(output.stdout).unwrap();
    let run = team.get("/api/runs?summary=1")["runs"][0]["id"].take();
    let run = run.as_str().unwrap();
    assert_eq!(
        replace_id(&shown, run, "RUN"),
        "run RUN: Write it\n\
         it goes on when this terminal closes; `turnkeep run watch RUN` shows it\n"
    );
    let shown = team.show(run);
    let node = shown["nodes"].as_object().unwrap().keys().next().unwrap();
    assert_eq!(shown["nodes"][node]["providerName"], "mine");
    assert_eq!(team.wait_for_turn_end(run, node, 1), "turn.completed");
}

#[test]
fn a_run_is_paused_and_goes_on() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "run pause
         run pause
         run resume",
        "
        $ run pause
        Build it: paused (user)
        $ run pause
        Build it: paused (user)
        $ run resume
        Build it: running",
    );
    assert_eq!(desk.status(), "running");
}

#[test]
fn a_completed_run_says_where_its_work_is() {
    let desk = Desk::with_two(json!({}));
    desk.play("one", "WRITE A");
    desk.type_and_check(
        "run complete",
        "
        $ run complete
        Build it: completed

        changed 1 file: a.txt
        the changes are on turnkeep/RUN/one
        `turnkeep run apply` brings them into the directory; worktrees stay until then
        commit message: Build it",
    );
    assert_eq!(desk.status(), "completed");
}

#[test]
fn a_fork_waits_until_it_is_resumed() {
    let desk = Desk::with_one(json!({}));
    let last = desk.team.show(&desk.run)["lastSeq"].clone();
    desk.type_and_check(
        "run fork @last --at 9999",
        &format!(
            "
            $ run fork @last --at 9999
            error: `--at` is 9999, but the last event is {last}
            [exit status: 1]"
        ),
    );
    let shown = desk.type_commands("run fork @last --title Another");
    let runs = desk.team.get("/api/runs?summary=1");
    let fork = runs["runs"][0]["id"].as_str().unwrap();
    check(
        &replace_id(&shown, fork, "FORK"),
        "
        $ run fork @last --title Another
        run FORK: Another, paused
        `turnkeep run resume FORK` lets it go on",
    );
    assert_eq!(desk.team.show(fork)["status"], "paused");
    assert_eq!(desk.status(), "running");
}

#[test]
fn the_cause_of_a_run_is_asked_for_by_a_head_of_its_id() {
    let desk = Desk::with_one(json!({}));
    let head = &desk.run[..4];
    for name in [
        "run:@last",
        &format!("run:{head}"),
        &format!("run:{}", desk.run),
    ] {
        desk.type_and_check(
            &format!("why {name}"),
            &format!(
                "
                $ why {}
                run      Build it, by operator, TIME
                         run:RUN
                person   the operator
                         person:operator",
                replace_id(name, &desk.run, "RUN")
            ),
        );
    }
}

#[test]
fn a_run_is_deleted_only_after_a_yes() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "run delete @last
         run delete @last --yes
         run show
         run list",
        "
        $ run delete @last
        error: deleting a run must be confirmed
        hint: add --yes
        [exit status: 2]
        $ run delete @last --yes
        deleted Build it; its events stay in the log
        $ run show
        error: there is no run yet
        hint: `turnkeep run new \"what to do\"` starts one
        [exit status: 1]
        $ run list
        there are no runs; `turnkeep run new \"what to do\"` starts one",
    );
    let gone = desk
        .team
        .request("GET", &format!("/api/runs/{}", desk.run), None);
    assert_eq!(gone.status, 404);
}

#[test]
fn an_export_and_a_recording_go_to_standard_output() {
    let desk = Desk::with_one(json!({}));
    desk.play("one", "WRITE A");
    let sandbox = &desk.team.sandbox;
    let to_stdout = |args: &[&str]| {
        let output = sandbox.output(args, b"");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let archive = to_stdout(&["run", "export", "@last", "-o", "-"]);
    assert_eq!(archive[..4], *b"PK\x03\x04");
    let script = to_stdout(&["run", "record", "@last", "-"]);
    assert!(String::from_utf8(script).unwrap().contains("[[turn]]"));
    assert!(!sandbox.path("-").exists());
    // What went through a pipe can be imported from one.
    let imported = sandbox.output(&["run", "import", "-", "--copy"], &archive);
    assert!(imported.status.success(), "{imported:?}");
}
