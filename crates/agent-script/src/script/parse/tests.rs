use super::*;

fn parse_steps(steps: &str) -> Result<Vec<Step>, String> {
    let script = parse_script(&format!("[[turn]]\nsteps = [{steps}]"));
    let script = script.map_err(|error| error.to_string())?;
    Ok(script
        .turns
        .into_iter()
        .flat_map(|turn| turn.steps)
        .collect())
}

fn check_step(step: &str, expect: Step) {
    assert_eq!(parse_steps(step), Ok(vec![expect]), "{step}");
}

fn check_error(text: &str, expect: &str) {
    let message = parse_script(text).map_err(|error| error.to_string());
    assert_eq!(message, Err(expect.to_owned()), "{text}");
}

fn check_step_error(step: &str, expect: &str) {
    let message = parse_steps(step).expect_err(step);
    assert!(message.starts_with("line 2: "), "{step}: {message}");
    assert!(message.contains(expect), "{step}: {message}");
}

fn pieces(chars: usize, pause_ms: u64) -> Pieces {
    Pieces { chars, pause_ms }
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn tool(action: ToolAction) -> ToolStep {
    ToolStep {
        action,
        ask: None,
        otherwise: Vec::new(),
        save: None,
    }
}

#[test]
fn steps_are_read() {
    let say = Speech {
        text: text("hi"),
        pieces: pieces(16, 0),
    };
    check_step("{ say = 'hi' }", Step::Say(say.clone()));
    let slow = Speech {
        pieces: pieces(2, 5),
        ..say
    };
    check_step("{ think = 'hi', chunk = 2, pause = 5 }", Step::Think(slow));
    check_step("{ wait = 200 }", Step::Wait { ms: 200 });
    check_step("\"end_message\"", Step::EndMessage);
    // Not a placeholder: a patch has any text.
    let patch = text("+{{x}}\n");
    check_step("{ patch = \"+{{x}}\\n\" }", Step::Patch { text: patch });
    check_step(
        "{ wait_for_file = 'a' }",
        Step::WaitForFile { path: text("a") },
    );
    check_step("{ touch = 'a' }", Step::Touch { path: text("a") });
    check_step("{ stderr = 'a' }", Step::WriteError { text: text("a") });
    check_step(
        "{ garbage = \"a\\n\" }",
        Step::Garbage {
            bytes: b"a\n".to_vec(),
        },
    );
    check_step(
        "{ garbage = { hex = 'fF00' } }",
        Step::Garbage {
            bytes: vec![255, 0],
        },
    );
    let usage = Usage {
        input: 9,
        output: 2,
        cached: 3,
        cost: 0.5,
    };
    let numbers = "{ usage = { input = 9, output = 2, cached = 3, cost = 0.5 } }";
    check_step(numbers, Step::ReportUsage(usage));
    check_step(
        "{ prompt_hash = 'h' }",
        Step::HashPrompt { path: text("h") },
    );
    check_step(
        "{ prompt_copy = 'h' }",
        Step::CopyPrompt { path: text("h") },
    );
    let child = ChildStep {
        pid_file: text("p"),
        holds_output: true,
    };
    check_step(
        "{ spawn_child = 'p', holds_stdout = true }",
        Step::SpawnChild(child),
    );
    check_step("{ rate_limit = {} }", Step::RateLimit(LimitReset::Unknown));
    check_step(
        "{ rate_limit = { resets_in = 9 } }",
        Step::RateLimit(LimitReset::InSeconds(9)),
    );
    check_step(
        "{ rate_limit = { at = 9 } }",
        Step::RateLimit(LimitReset::At(9)),
    );
    check_step(
        "{ unavailable = 'x' }",
        Step::Unavailable { text: text("x") },
    );
    check_step("{ fail = 'x' }", Step::Fail { text: text("x") });
    check_step(
        "{ crash = {} }",
        Step::Crash {
            code: 1,
            message: String::new(),
        },
    );
    let crash = Step::Crash {
        code: 3,
        message: text("e"),
    };
    check_step("{ crash = { code = 3, stderr = 'e' } }", crash);
    check_step("'silence'", Step::Silence);
    check_step("'kill_self'", Step::KillSelf);
    check_step("'close_stdout'", Step::CloseOutput);
}

#[test]
fn tools_are_read() {
    let run = ToolAction::Run {
        command: text("ls"),
    };
    check_step("{ run = 'ls' }", Step::Tool(Box::new(tool(run.clone()))));
    let asked = ToolStep {
        ask: Some(String::new()),
        ..tool(run.clone())
    };
    check_step("{ run = 'ls', ask = true }", Step::Tool(Box::new(asked)));
    check_step(
        "{ run = 'ls', ask = false }",
        Step::Tool(Box::new(tool(run.clone()))),
    );
    let full = ToolStep {
        ask: Some(text("why")),
        otherwise: vec![Step::Silence],
        save: Some(text("s")),
        ..tool(run)
    };
    let step = "{ run = 'ls', ask = 'why', else = ['silence'], save = 's' }";
    check_step(step, Step::Tool(Box::new(full)));
    let write = ToolAction::Write {
        path: text("p"),
        content: text("c"),
    };
    check_step(
        "{ write = 'p', content = 'c' }",
        Step::Tool(Box::new(tool(write))),
    );
    let append = ToolAction::Append {
        path: text("p"),
        content: text("c"),
    };
    check_step(
        "{ append = 'p', content = 'c' }",
        Step::Tool(Box::new(tool(append))),
    );
    let delete = ToolAction::Delete { path: text("p") };
    check_step("{ delete = 'p' }", Step::Tool(Box::new(tool(delete))));
    let args = json!({"n": 1, "f": 1.5, "l": ["x", true], "o": {"k": "v"}});
    let call = ToolAction::Call {
        name: text("t"),
        args,
    };
    let step = "{ call = 't', args = { n = 1, f = 1.5, l = ['x', true], o = { k = 'v' } } }";
    check_step(step, Step::Tool(Box::new(tool(call))));
    let shown = ToolAction::Show {
        name: text("T"),
        args: json!({}),
        result: text("r"),
        ok: false,
    };
    check_step(
        "{ tool = 'T', result = 'r', error = true }",
        Step::Tool(Box::new(tool(shown))),
    );
}

#[test]
fn arguments_may_be_a_text_that_is_json() {
    let call = ToolAction::Call {
        name: text("t"),
        args: json!({"b": null, "a": 1}),
    };
    check_step(
        r#"{ call = "t", args = '{"b":null,"a":1}' }"#,
        Step::Tool(Box::new(tool(call))),
    );
    check_step_error("{ call = 't', args = '{' }", "`args` is not JSON");
}

#[test]
fn settings_are_read() {
    let script = parse_script(
        "[agent]\nsession = 's'\nmodel = 'm'\nchunk = 3\npause = 4\nlog = 'l'\nstate = 'f'\n\
         placeholders = false\nusage = { input = 1 }\n\
         [[turn]]\nwhen = ['a', 'b']\nrepeat = true\nignore_interrupt = true\nfinal = 'end'\n\
         steps = [{ say = '{{free}}' }]\n[[turn]]\nwhen = 'c'",
    )
    .unwrap();
    let expect = Settings {
        session: Some(text("s")),
        model: text("m"),
        pieces: pieces(3, 4),
        placeholders: false,
        usage: Usage {
            input: 1,
            ..Usage::default()
        },
        log: Some("l".into()),
        state: Some("f".into()),
    };
    assert_eq!(script.settings, expect);
    let say = Speech {
        text: text("{{free}}"),
        pieces: pieces(3, 4),
    };
    let turn = Turn {
        when: vec![text("a"), text("b")],
        repeat: true,
        ignore_interrupt: true,
        final_message: Some(text("end")),
        steps: vec![Step::Say(say)],
    };
    assert_eq!(script.turns[0], turn);
    assert_eq!(script.turns[1].when, ["c"]);
}

#[test]
fn errors_name_the_line_and_what_is_allowed() {
    check_error("", "line 1: a script needs at least one [[turn]]");
    check_error(
        "[[turn]]\n\nstep = []",
        "line 3: unknown key `step` in a turn; allowed are: \
         when, repeat, ignore_interrupt, final, steps",
    );
    check_error(
        "[[turn]]\n[extra]",
        "line 2: unknown key `extra` in the script; allowed are: agent, turn",
    );
    check_error(
        "[agent]\nmodel = 7\n[[turn]]",
        "line 2: `model` must be a text in quotes, not integer",
    );
    check_error(
        "[[turn]]\nrepeat = 1",
        "line 2: `repeat` must be true or false, not integer",
    );
    check_error(
        "[[turn]]\nwhen = ''",
        "line 1: `when` must not be empty: leave it out instead",
    );
    check_error(
        "[[turn]]\nrepeat = true\n[[turn]]",
        "line 3: this turn is never played: an earlier turn without `when` has `repeat = true`",
    );
    check_error("turn = 1", "line 1: `turn` must be a list, not integer");
    let message = parse_script("[[turn]]\nsteps = [").expect_err("not closed");
    assert_eq!(message.line, 2);
}

#[test]
fn wrong_steps_are_explained() {
    check_step_error(
        "{ sya = 'hi' }",
        "unknown step (sya); a step has one of: say, think, run",
    );
    check_step_error(
        "'sleep'",
        "unknown step \"sleep\"; a step in quotes is one of: end_message, silence",
    );
    check_step_error(
        "{ say = 'a', run = 'b' }",
        "a step does one thing, not say and run",
    );
    check_step_error(
        "{ say = 'a', ask = true }",
        "unknown key `ask` in a step; allowed are: say, chunk, pause",
    );
    check_step_error("{ say = 1 }", "`say` must be a text in quotes, not integer");
    check_step_error("{ say = 'a', chunk = 0 }", "`chunk` must be at least 1");
    check_step_error("{ write = 'a' }", "needs `content = \"…\"`");
    check_step_error("{ wait = -1 }", "`wait` must be a whole number from 0 on");
    check_step_error(
        "{ run = 'a', ask = 1 }",
        "`ask` must be true or a reason in quotes, not integer",
    );
    check_step_error(
        "{ crash = { code = 256 } }",
        "`code` must be a number from 0 to 255",
    );
    check_step_error("{ garbage = { hex = 'f' } }", "`hex` must be pairs");
    check_step_error(
        "{ usage = { input = 1, cached = 2 } }",
        "`cached` is a part of `input`",
    );
    check_step_error(
        "{ usage = { tokens = 1 } }",
        "unknown key `tokens` in usage",
    );
    check_step_error("{ rate_limit = { at = 1, resets_in = 1 } }", "not both");
    check_step_error("{ say = '{{other.id}}' }", "nothing saves `other`");
    check_step_error(
        "{ call = 'x', args = { a = ['{{b}}'] } }",
        "nothing saves `b`",
    );
    check_step_error("1", "`a step` must be a table, not integer");
}

#[test]
fn placeholders_may_name_what_a_later_turn_saves() {
    assert!(
        parse_steps("{ say = '{{s.x}} {{result}} {{prompt}}' }, { run = 'a', save = 's' }").is_ok()
    );
}
