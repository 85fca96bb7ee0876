use super::harness::{RAW, Workplace};

struct Ran {
    code: Option<i32>,
    output: String,
    errors: String,
}

fn run(workplace: &Workplace, prompt: &str) -> Ran {
    let mut agent = workplace.start(&[RAW, &["--state", "state.json"]].concat());
    agent.send_text(&format!("{prompt}\n"));
    agent.close_input();
    let mut lines = Vec::new();
    while let Some(line) = agent.read_bytes() {
        lines.push(String::from_utf8(line).unwrap());
    }
    Ran {
        code: agent.wait().code(),
        output: lines.join("\n"),
        errors: agent.errors(),
    }
}

#[test]
fn the_prompt_goes_in_and_the_answer_comes_out() {
    let workplace = Workplace::with_example("happy.toml");
    let first = run(&workplace, "make hello.txt");
    assert_eq!(first.code, Some(0), "{}", first.errors);
    assert_eq!(
        first.output,
        "I will create it.\nThe file hello.txt now exists."
    );
    // The state file makes the next process play the next turn.
    let second = run(&workplace, "line one\nline two\n");
    assert_eq!(second.output, "You said: line one\nline two");
}

#[test]
fn a_failure_is_an_exit_code() {
    let workplace = Workplace::with_example("crash.toml");
    let failed = run(&workplace, "error");
    assert_eq!(
        (failed.code, failed.errors.as_str()),
        (Some(1), "the model refused\n")
    );
    let limited = run(&workplace, "limit");
    assert_eq!(limited.code, Some(1));
    assert_eq!(
        limited.errors,
        "429: rate limit reached; try again in 3600 seconds\n"
    );
    let crashed = run(&workplace, "crash");
    assert_eq!(crashed.code, Some(3));
    assert_eq!(crashed.output, "I feel");
}

#[test]
fn calls_are_lines_and_the_next_process_goes_on() {
    let script =
        "[[turn]]\nsteps = [{ say = 'asking' }, { call = 'list_nodes' }, { say = '{{result.n}}' }]";
    let workplace = Workplace::new(script);
    let first = run(&workplace, "go");
    assert_eq!(
        first.output,
        "asking\n{\"tool_call\":{\"name\":\"list_nodes\",\"args\":{}}}"
    );
    let results = "The results:\n{\"tool_result\":{\"name\":\"list_nodes\",\"ok\":true,\"result\":{\"n\":4}}}\n";
    assert_eq!(run(&workplace, results).output, "4");
    assert_eq!(
        run(&workplace, "more").errors,
        "the script has no turn for this prompt\n"
    );
}
