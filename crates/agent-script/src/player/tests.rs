use super::*;
use crate::script::parse_script;

fn player(script: &str) -> Player {
    Player::new(parse_script(script).unwrap(), &Progress::default())
}

fn prompt(text: &str) -> Prompt {
    Prompt {
        text: text.to_owned(),
        calls_as_text: false,
    }
}

/// Plays a turn to its end. Tools succeed with what `answer` returns for them.
fn play_with(play: &mut Play, mut answer: impl FnMut(&ToolUse) -> ToolOutcome) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let action = play.next_action();
        seen.push(describe_action(&action));
        match action {
            Action::Perform(tool) => play.finish_tool(answer(&tool)),
            Action::Ask { .. } => play.decide(Decision::Allowed { changed: None }),
            Action::End(_) => return seen,
            _ => {}
        }
    }
}

fn describe_action(action: &Action) -> String {
    match action {
        Action::Show(Show::Text(text)) => format!("text {text}"),
        Action::Show(Show::Thought(text)) => format!("thought {text}"),
        Action::Show(Show::MessageEnd) => "message end".to_owned(),
        Action::Show(Show::ToolStarted(tool)) => format!("start {}", tool.number),
        Action::Show(Show::ToolEnded { tool, outcome }) => {
            format!("end {} {:?}", tool.number, outcome.status)
        }
        Action::Show(Show::Usage(usage)) => format!("usage {} {}", usage.input, usage.output),
        Action::Ask { reason, .. } => format!("ask {reason}"),
        Action::Perform(tool) => match &tool.action {
            ToolAction::Run { command } => format!("run {command}"),
            ToolAction::Call { name, args } => format!("call {name} {args}"),
            other => format!("{other:?}"),
        },
        Action::Pause { ms } => format!("pause {ms}"),
        Action::End(ending) => format!("{ending:?}"),
        other => format!("{other:?}"),
    }
}

fn check(script: &str, expect: &[&str]) {
    let mut player = player(script);
    let mut play = player.begin(prompt("p"));
    let seen = play_with(&mut play, |_| ToolOutcome::completed("out"));
    assert_eq!(seen, expect, "{script}");
}

#[test]
fn text_is_cut_into_pieces() {
    check(
        "[[turn]]\nsteps = [{ say = 'abcde', chunk = 2 }]",
        &["text ab", "text cd", "text e", "Completed"],
    );
    check(
        "[[turn]]\nsteps = [{ think = 'äöü', chunk = 1, pause = 7 }]",
        &[
            "thought ä",
            "pause 7",
            "thought ö",
            "pause 7",
            "thought ü",
            "Completed",
        ],
    );
    check("[[turn]]\nsteps = [{ say = '' }]", &["Completed"]);
    check("[[turn]]\n", &["Completed"]);
}

#[test]
fn a_turn_ends_with_its_final_message_and_its_usage() {
    check(
        "[agent]\nusage = { input = 5, output = 6 }\n[[turn]]\nfinal = 'F {{prompt}}'\nsteps = [{ say = 'a' }]",
        &[
            "text a",
            "message end",
            "text F p",
            "message end",
            "usage 5 6",
            "Completed",
        ],
    );
}

#[test]
fn tools_are_shown_asked_for_and_performed() {
    check(
        "[[turn]]\nsteps = [{ run = 'make', ask = 'May I?' }, { run = 'b' }]",
        &[
            "start 1",
            "ask May I?",
            "run make",
            "end 1 Completed",
            "start 2",
            "run b",
            "end 2 Completed",
            "Completed",
        ],
    );
}

#[test]
fn endings_stop_the_turn() {
    check(
        "[[turn]]\nsteps = [{ fail = 'x' }, { say = 'never' }]",
        &["Failed { text: \"x\" }"],
    );
    check(
        "[[turn]]\nsteps = [{ rate_limit = { at = 9 } }]",
        &["RateLimited(At(9))"],
    );
    check(
        "[[turn]]\nsteps = [{ unavailable = 'x' }]",
        &["Unavailable { text: \"x\" }"],
    );
}

#[test]
fn answers_fill_placeholders() {
    let script = "[[turn]]\nsteps = [\n{ call = 'a', save = 'first' }, { call = 'b' },\n\
                  { call = 'c', args = { x = '{{first.id}}', y = ['{{result.id}}'] } },\n\
                  { say = '{{first.nope}}' }]";
    let mut player = player(script);
    let mut play = player.begin(prompt("p"));
    let seen = play_with(&mut play, |tool| {
        let mut outcome = ToolOutcome::completed("");
        outcome.value = json!({"id": format!("n{}", tool.number)});
        outcome
    });
    assert_eq!(seen[7], r#"call c {"x":"n1","y":["n2"]}"#);
    assert_eq!(
        seen[9],
        r#"Failed { text: "{{first.nope}} is not in {\"id\":\"n1\"}" }"#
    );
}

#[test]
fn a_denied_or_failed_tool_takes_the_else_branch() {
    let script =
        "[[turn]]\nsteps = [{ run = 'a', ask = true, else = [{ say = 'no' }] }, { say = 'on' }]";
    let play_denied = |stop: bool| {
        let mut player = player(script);
        let mut play = player.begin(prompt("p"));
        play.next_action();
        play.next_action();
        play.decide(Decision::Denied {
            message: "because".to_owned(),
            stop,
        });
        play_with(&mut play, |_| ToolOutcome::completed(""))
    };
    assert_eq!(
        play_denied(false),
        ["end 1 Denied", "text no", "text on", "Completed"]
    );
    assert_eq!(play_denied(true), ["end 1 Denied", "Interrupted"]);
    let mut player = player(script);
    let mut play = player.begin(prompt("p"));
    let seen = play_with(&mut play, |_| ToolOutcome::failed("exit 1"));
    assert_eq!(
        seen[3..],
        ["end 1 Failed", "text no", "text on", "Completed"]
    );
}

#[test]
fn changed_arguments_replace_the_scripts() {
    let mut player = player("[[turn]]\nsteps = [{ run = 'rm -rf /', ask = true }]");
    let mut play = player.begin(prompt("p"));
    play.next_action();
    play.next_action();
    let changed = Some(ToolAction::Run {
        command: "ls".to_owned(),
    });
    play.decide(Decision::Allowed { changed });
    let seen = play_with(&mut play, |_| ToolOutcome::completed(""));
    assert_eq!(seen, ["run ls", "end 1 Completed", "Completed"]);
}

#[test]
fn an_interrupt_ends_the_open_tool() {
    let mut player = player("[[turn]]\nsteps = [{ say = 'a' }, { run = 'b' }, { say = 'c' }]");
    let mut play = player.begin(prompt("p"));
    assert_eq!(play.next_action(), Action::Show(Show::Text("a".to_owned())));
    play.next_action();
    let Some(Show::ToolEnded { outcome, .. }) = play.interrupt() else {
        panic!("the tool is still open")
    };
    assert_eq!(outcome, ToolOutcome::interrupted());
    assert_eq!(play.interrupt(), None);
    // A late outcome has no effect.
    play.finish_tool(ToolOutcome::completed("late"));
    assert_eq!(play.next_action(), Action::End(Ending::Completed));
}

#[test]
fn turns_are_chosen_by_text_then_in_order() {
    let mut player = player(
        "[[turn]]\nsteps = [{ say = '1' }]\n\
         [[turn]]\nwhen = 'x'\nsteps = [{ say = 'x' }]\n\
         [[turn]]\nwhen = ['x', 'y']\nrepeat = true\nsteps = [{ say = 'xy' }]\n\
         [[turn]]\nsteps = [{ say = '2' }]",
    );
    let mut check = |text: &str, expect: &str| {
        let mut play = player.begin(prompt(text));
        let seen = play_with(&mut play, |_| ToolOutcome::completed(""));
        player.end(play);
        assert_eq!(seen[0], expect, "{text}");
    };
    check("y and x", "text x");
    check("y and x", "text xy");
    check("y and x", "text xy");
    check("x", "text 1");
    check("x", "text 2");
    check(
        "x",
        "Failed { text: \"the script has no turn for this prompt\" }",
    );
}

/// Another player that has only the first one's progress, as text.
fn next_process(player: &Player, script: &str) -> Player {
    let text = player.progress().to_json().to_string();
    let progress = Progress::from_json(&serde_json::from_str(&text).unwrap()).unwrap();
    assert_eq!(progress, player.progress());
    Player::new(parse_script(script).unwrap(), &progress)
}

#[test]
fn a_new_player_goes_on_where_the_last_one_stopped() {
    let script = "[[turn]]\nsteps = [{ say = '1' }]\n[[turn]]\nsteps = [{ say = '2' }]";
    let mut first = player(script);
    first.begin(prompt("p"));
    assert_eq!(first.progress().played, [0]);
    let mut play = next_process(&first, script).begin(prompt("p"));
    assert_eq!(play.next_action(), Action::Show(Show::Text("2".to_owned())));
}

#[test]
fn a_call_as_text_may_be_answered_in_another_process() {
    let script = "[[turn]]\nsteps = [{ run = 'a', else = [{ call = 'first', save = 'f' }] }, \
                  { call = 'second' }, { say = '{{f.n}} {{result.n}} {{prompt}}', chunk = 99 }]";
    let mut player = player(script);
    let mut step = |text: &str| {
        let mut play = player.begin(Prompt {
            text: text.to_owned(),
            calls_as_text: true,
        });
        let seen = play_with(&mut play, |_| ToolOutcome::failed("exit 1"));
        player.end(play);
        player = next_process(&player, script);
        seen
    };
    assert_eq!(step("go").len(), 5);
    let second = "text {\"tool_call\":{\"name\":\"second\",\"args\":{}}}\n";
    assert_eq!(
        step("{\"tool_result\":{\"ok\":true,\"result\":{\"n\":1}}}"),
        [second, "Completed"]
    );
    let seen = step("{\"tool_result\":{\"ok\":true,\"result\":{\"n\":2}}}");
    assert_eq!(seen, ["text 1 2 go", "Completed"]);
    assert_eq!(
        step("more"),
        ["Failed { text: \"the script has no turn for this prompt\" }"]
    );
}

#[test]
fn calls_without_a_server_are_text_and_the_next_prompt_answers() {
    let script = "[[turn]]\nsteps = [{ say = 'a' }, { call = 't', args = { n = 1 } }, \
                  { call = 'u', else = [{ say = 'failed: {{result}}' }] }, { say = 'got {{result}}', chunk = 99 }]";
    let mut player = player(script);
    let mut step = |text: &str| {
        let mut play = player.begin(Prompt {
            text: text.to_owned(),
            calls_as_text: true,
        });
        let seen = play_with(&mut play, |_| panic!("nothing is performed"));
        player.end(play);
        seen
    };
    let call = "text \n{\"tool_call\":{\"name\":\"t\",\"args\":{\"n\":1}}}\n";
    assert_eq!(step("go"), ["text a", call, "Completed"]);
    let second = "text {\"tool_call\":{\"name\":\"u\",\"args\":{}}}\n";
    assert_eq!(
        step("Results:\n{\"tool_result\":{\"result\":{\"ok\":true}}}"),
        [second, "Completed"]
    );
    let seen = step("{\"tool_result\":{\"error\":\"forbidden\"}}");
    assert_eq!(
        seen,
        [
            "text failed: forbidde",
            "text n",
            "text got forbidden",
            "Completed"
        ]
    );
}

#[test]
fn the_prompt_can_be_saved() {
    let mut player = player("[[turn]]\nsteps = [{ prompt_copy = 'c' }, { prompt_hash = 'h' }]");
    let mut play = player.begin(prompt("häh"));
    let copy = Action::SaveBytes {
        path: "c".to_owned(),
        bytes: "häh".as_bytes().to_vec(),
    };
    assert_eq!(play.next_action(), copy);
    let hash = blake3::hash("häh".as_bytes()).to_hex().as_bytes().to_vec();
    assert_eq!(
        play.next_action(),
        Action::SaveBytes {
            path: "h".to_owned(),
            bytes: hash
        }
    );
}
