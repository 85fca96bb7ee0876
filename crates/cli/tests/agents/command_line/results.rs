//! `run verify`, `run apply`, `diff`, and `node revert`.

use super::*;

#[test]
fn a_failed_verification_says_what_failed_and_what_to_do() {
    let desk = Desk::with_one(json!({"verify": ["echo first", "sh check.sh", "echo last"]}));
    desk.write(
        "check.sh",
        "seq 30\necho 'expected 2, found 1' >&2\nexit 3\n",
    );
    let shown = desk.type_commands("run verify");
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "$ run verify",
            "the verification failed: `sh check.sh` failed with exit status 3",
            "    … 11 lines before",
            "    12",
        ],
        "{shown}"
    );
    check(
        &lines[lines.len() - 5..].join("\n"),
        "
            expected 2, found 1
        let a node repair it, then verify again:
            turnkeep node chat --run RUN one \"…\"
            turnkeep run verify RUN
        [exit status: 1]",
    );
    let json = desk.type_commands("run verify --json");
    assert!(json.contains("\"ok\":false"), "{json}");
    assert!(json.ends_with("[exit status: 1]\n"), "{json}");
    desk.write("check.sh", "echo fine\n");
    desk.type_and_check(
        "run verify",
        "
        $ run verify
        the verification passed",
    );
    assert_eq!(desk.status(), "running", "verifying completes nothing");
}

#[test]
fn a_command_that_is_ended_and_one_that_says_nothing_are_named() {
    let desk = Desk::with_one(json!({"verify": ["kill -9 $$"]}));
    desk.type_and_check(
        "run verify",
        "
        $ run verify
        the verification failed: `kill -9 $$` was killed
            it printed nothing
        let a node repair it, then verify again:
            turnkeep node chat --run RUN one \"…\"
            turnkeep run verify RUN
        [exit status: 1]",
    );
}

#[test]
fn without_commands_nothing_is_verified() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "run verify",
        "
        $ run verify
        nothing was checked: the run has no verification commands",
    );
}

#[test]
fn changes_that_conflict_are_named_by_file_and_node_and_nothing_is_applied() {
    let desk = Desk::with_two(json!({"verify": ["true"]}));
    desk.play("one", "WRITE A");
    desk.play("two", "WRITE OTHER A");
    desk.type_and_check(
        "run verify
         run apply",
        "
        $ run verify
        the verification failed: changes conflict, so no command ran
            a.txt: changed by one and two
        let one node fit its changes to the others, then verify again:
            turnkeep diff --run RUN one
            turnkeep diff --run RUN two
            turnkeep node chat --run RUN two \"…\"
            turnkeep run verify RUN
        [exit status: 1]
        $ run apply
        error: nothing was applied, because changes conflict in a.txt
        hint: `turnkeep run verify RUN` says whose changes they are; a change of yours in the directory counts too
        [exit status: 1]",
    );
    assert_eq!(desk.read("a.txt"), None);
}

#[test]
fn work_is_applied_once_and_says_whether_it_was_verified() {
    let desk = Desk::with_two(json!({"verify": ["test -f a.txt"]}));
    desk.type_and_check(
        "run apply",
        "
        $ run apply
        nothing is new since the last time",
    );
    desk.play("one", "WRITE A");
    desk.type_and_check(
        "diff one
         run verify
         run apply
         run apply",
        "
        $ diff one
        diff --git a/a.txt b/a.txt
        new file mode 100644
        index 0000000000000000000000000000000000000000..571dd10e9bf837653ec75d27dc5992325db7479b
        --- /dev/null
        +++ b/a.txt
        @@ -0,0 +1 @@
        +from one
        $ run verify
        the verification passed
        $ run apply
        applied a.txt
        verified: the commands passed on exactly this state
        $ run apply
        nothing is new since the last time",
    );
    assert_eq!(desk.read("a.txt").as_deref(), Some("from one\n"));
}

#[test]
fn what_was_not_verified_says_so() {
    for (commands, said) in [
        (
            json!(["true"]),
            "not verified: `turnkeep run verify RUN` runs the commands",
        ),
        (
            json!([]),
            "not verified: the run has no verification commands",
        ),
    ] {
        let desk = Desk::with_two(json!({"verify": commands}));
        desk.play("one", "WRITE A");
        let shown = desk.type_commands("run apply");
        assert_eq!(shown, format!("$ run apply\napplied a.txt\n{said}\n"));
    }
}

#[test]
fn a_turn_is_shown_and_taken_back_unless_its_files_were_changed_since() {
    let desk = Desk::with_one(json!({}));
    desk.type_and_check(
        "diff one
         node revert one",
        "
        $ diff one
        error: one has completed no turn yet
        [exit status: 1]
        $ node revert one
        error: one has completed no turn yet
        [exit status: 1]",
    );
    desk.play("one", "WRITE A");
    desk.write("a.txt", "mine\n");
    desk.type_and_check(
        "diff one --turn 2
         node revert one",
        "
        $ diff one --turn 2
        error: one has no such turn
        hint: it has completed 1: --turn takes 1 to 1
        [exit status: 2]
        $ node revert one
        error: nothing was restored, because these files were changed since: a.txt
        hint: --path FILE restores another file of the turn alone
        [exit status: 1]",
    );
    assert_eq!(desk.read("a.txt").as_deref(), Some("mine\n"));
    desk.write("a.txt", "from one\n");
    desk.type_and_check(
        "node revert one",
        "
        $ node revert one
        restored a.txt",
    );
    assert_eq!(desk.read("a.txt"), None);
}

#[test]
fn a_file_that_a_node_may_not_write_is_kept_or_taken_back() {
    let desk = Desk::with_one(json!({}));
    desk.team
        .add_node(&desk.run, "planner", "claude", skip("plan"));
    desk.play("one", "WRITE A");
    desk.play("plan", "PLAN");
    desk.type_and_check(
        "node revert one --keep
         node revert plan --path nope.txt
         node revert plan --path plan.md",
        "
        $ node revert one --keep
        error: the turn wrote no file that the node may not write
        [exit status: 1]
        $ node revert plan --path nope.txt
        error: the turn did not change nope.txt
        hint: it changed plan.md, src/x
        [exit status: 1]
        $ node revert plan --path plan.md
        restored plan.md",
    );
    let shown = desk.type_commands("inbox");
    assert!(
        shown.contains("turnkeep node revert --run RUN plan --keep"),
        "{shown}"
    );
    desk.type_and_check(
        "node revert plan --keep
         inbox",
        "
        $ node revert plan --keep
        kept src/x
        $ inbox
        nothing waits for you",
    );
    assert_eq!(desk.read("src/x").as_deref(), Some("x\n"));
    assert_eq!(desk.read("plan.md"), None);
}

#[test]
fn a_turn_without_changes_has_nothing_to_take_back() {
    let desk = Desk::with_one(json!({}));
    desk.play("one", "hello");
    desk.type_and_check(
        "diff one
         node revert one",
        "
        $ diff one
        $ node revert one
        the turn changed no files",
    );
}
