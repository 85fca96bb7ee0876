//! Completeness, interruption and queued input of line programs.

use crate::play::Play;
use std::time::Duration;
use turnkeep_session::detector::{GENERIC, State};

fn asked() -> Play {
    Play::new().print("> ").rest()
}

/// A REPL at its prompt.
fn python() -> Play {
    Play::new().raw().print(">>> ").rest()
}

fn texts(play: &Play, preset: &str) -> Vec<String> {
    play.turns(preset)
        .into_iter()
        .map(|turn| turn.text)
        .collect()
}

#[test]
fn if_the_agent_never_shows_a_subsequent_prompt_no_completed_turn_is_produced() {
    let play = asked().submit("hi").print("half an ans").rest().rest();
    assert_eq!(play.turns(GENERIC), []);
}

#[test]
fn there_is_no_timeout_based_completion() {
    let mut play = asked().submit("hi").print("thinking\r\n");
    for _ in 0..100 {
        play = play.rest();
    }
    assert_eq!(play.turns(GENERIC), []);
    assert_eq!(
        texts(&play.print("done\r\n> ").rest(), GENERIC),
        ["thinking\ndone"]
    );
}

#[test]
fn an_interrupted_turn_is_produced_and_must_be_marked() {
    let stopped = asked()
        .submit("run")
        .print("part\r\n")
        .keys("\x03")
        .print("^C\r\n> ")
        .rest();
    let turns = stopped.turns(GENERIC);
    assert_eq!(
        (turns[0].text.as_str(), turns[0].interrupted),
        ("part", true)
    );
    let signalled = asked()
        .submit("run")
        .print("part\r\n")
        .signal()
        .print("\r\n> ")
        .rest();
    assert!(signalled.turns(GENERIC)[0].interrupted);
    let normal = asked().submit("run").print("all\r\n> ").rest();
    assert!(!normal.turns(GENERIC)[0].interrupted);
}

#[test]
fn the_flag_of_one_turn_does_not_reach_the_next() {
    let play = asked()
        .submit("a")
        .print("1\r\n")
        .keys("\x03")
        .print("> ")
        .rest()
        .submit("b")
        .print("2\r\n> ")
        .rest();
    let flags: Vec<bool> = play
        .turns(GENERIC)
        .iter()
        .map(|turn| turn.interrupted)
        .collect();
    assert_eq!(flags, [true, false]);
}

#[test]
fn ctrl_c_at_an_idle_prompt_makes_no_turn() {
    let play = asked().keys("draft\x03").print("draft^C\r\n> ").rest();
    assert_eq!(play.turns(GENERIC), []);
}

#[test]
fn enter_typed_while_busy_counts_as_the_submit_of_the_next_turn() {
    let play = asked()
        .submit("a")
        .print("1\r\n")
        .keys("b\r")
        .print("2\r\n> ")
        .rest()
        .print("b\r\n3\r\n> ")
        .rest();
    assert_eq!(texts(&play, GENERIC), ["1\n2", "3"]);
}

#[test]
fn an_enter_that_a_running_program_took_does_not_spoil_the_next_turn() {
    let play = python()
        .submit("input('name? ')")
        .print("name? ")
        .rest()
        .submit("bob")
        .print("'bob'\r\n>>> ")
        .rest();
    let play = play.submit("1").print("1\r\n>>> ").rest();
    let texts = texts(&play, "python");
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[1], "1");
}

#[test]
fn a_line_that_a_running_program_read_is_not_the_submit_of_the_next_turn() {
    let bash = || Play::new().raw().print("\x1b[?2004hdemo$ ").rest();
    let reads = bash()
        .submit("read x; sleep 1")
        .canonical()
        .print("\x1b[?2004l\r")
        .rest();
    let read = reads
        .keys("hello\r")
        .print("hello\r\ngot it\r\n")
        .rest()
        .raw()
        .print("\x1b[?2004hdemo$ ")
        .rest();
    assert_eq!(
        read.states("bash").last(),
        Some(&State::Ready),
        "the prompt rests"
    );
    let listed = read
        .clone()
        .keys("ls /\t\t")
        .print("ls /\x07\r\nbin/ etc/\r\ndemo$ ls /")
        .rest();
    let listed = listed.keys("\x15").print("\r\x1b[Kdemo$ ").rest();
    assert_eq!(
        texts(&listed, "bash"),
        ["got it"],
        "a list of completions is no answer"
    );
    let again = read
        .submit("echo 2")
        .canonical()
        .print("\x1b[?2004l\r2\r\n")
        .rest();
    let again = again.raw().print("\x1b[?2004hdemo$ ").rest();
    assert_eq!(texts(&again, "bash"), ["got it", "2"]);
}

#[test]
fn several_inputs_before_one_boundary_are_one_turn() {
    let play = asked()
        .submit("a")
        .print("1\r\n")
        .keys("b\r")
        .print("b\r\n2\r\n")
        .keys("c\r")
        .print("3\r\n> ")
        .rest();
    assert_eq!(play.turns(GENERIC).len(), 1);
}

#[test]
fn text_like_a_prompt_is_none_while_the_tty_is_canonical() {
    let play = python()
        .submit("slow()")
        .canonical()
        .print(">>> ")
        .rest()
        .print("not yet\r\n")
        .raw()
        .print(">>> ")
        .rest();
    assert_eq!(texts(&play, "python"), [">>> not yet"]);
}

#[test]
fn a_canonical_phase_that_was_too_short_to_see_does_not_matter() {
    let play = python().submit("1").print("1\r\n>>> ").rest();
    let turns = play.turns("python");
    assert_eq!(turns[0].text, "1");
    assert_eq!(turns[0].signal.to_string(), "tty");
}

#[test]
fn bracketed_paste_tells_the_prompt_where_the_tty_cannot_be_read() {
    let play = Play::new()
        .print("\x1b[?2004hdb=> ")
        .rest()
        .submit("select 1;");
    let busy = play.print("\x1b[?2004l\rdb=> ").rest();
    assert_eq!(busy.turns("psql"), []);
    let turns = busy.print("\r\n1\r\n\x1b[?2004hdb=> ").rest().turns("psql");
    assert_eq!(turns[0].signal.to_string(), "paste");
}

#[test]
fn a_prompt_inside_of_a_transaction_ends_a_turn_and_one_that_continues_does_not() {
    let at = |prompt: &str| format!("\x1b[?2004h{prompt}");
    for prompt in ["db=*# ", "db=!# ", "db=*> ", "db=?> ", "db=# "] {
        let play = Play::new()
            .print(&at("db=# "))
            .rest()
            .submit("begin;")
            .print("\x1b[?2004l\rBEGIN\r\n");
        assert_eq!(
            play.print(&at(prompt)).rest().turns("psql").len(),
            1,
            "{prompt:?}"
        );
    }
    for prompt in ["db-# ", "db'# ", "db(# ", "db-*# ", "db$*> "] {
        let play = Play::new()
            .print(&at("db=# "))
            .rest()
            .submit("select")
            .print("\x1b[?2004l\r");
        assert_eq!(
            play.print(&at(prompt)).rest().turns("psql"),
            [],
            "{prompt:?}"
        );
    }
}

#[test]
fn start_is_the_submit_and_end_the_moment_of_detection() {
    let play = asked().submit("a").wait(500).print("1\r\n> ").rest();
    let turn = play.turns(GENERIC).remove(0);
    assert_eq!(turn.start, Duration::from_secs(1));
    assert_eq!(turn.end, Duration::from_millis(1600));
}

#[test]
fn the_states_of_a_session_are_told() {
    let play = asked().submit("a").print("1\r\n> ").rest();
    assert_eq!(
        play.states(GENERIC),
        [State::Ready, State::Working, State::Ready]
    );
}

#[test]
fn a_line_that_a_running_program_took_is_no_submit_of_the_next_turn() {
    let play = Play::new()
        .raw()
        .print("$ ")
        .rest()
        .submit("read x; echo got")
        .canonical()
        .rest();
    let play = play
        .submit("hello")
        .print("got\r\n")
        .raw()
        .print("$ ")
        .rest();
    assert_eq!(play.states("bash").last(), Some(&State::Ready));
    let listed = play.keys("\t\t").print("\r\na b\r\n$ ").rest();
    assert_eq!(
        listed.turns("bash").len(),
        1,
        "a list of completions is no turn"
    );
}

#[test]
fn a_line_typed_ahead_that_the_line_editor_shows_is_the_next_turn() {
    let play = Play::new()
        .raw()
        .print("$ ")
        .rest()
        .submit("sleep 1; echo one")
        .canonical()
        .rest();
    let play = play
        .submit("echo two")
        .print("one\r\n")
        .raw()
        .print("$ ")
        .wait(30)
        .print("echo two\r\n");
    let turns = play
        .canonical()
        .print("two\r\n")
        .raw()
        .print("$ ")
        .rest()
        .turns("bash");
    assert!(
        turns.last().is_some_and(|turn| turn.text.ends_with("two")),
        "{turns:?}"
    );
}

#[test]
fn commands_of_the_program_make_no_turn_but_those_that_ask_do() {
    let prompt = "\x1b[?2004h> ";
    let aider = |line: &str| {
        let asked = Play::new()
            .raw()
            .print(prompt)
            .rest()
            .submit(line)
            .canonical();
        asked
            .print("\x1b[?2004lsaid\r\n")
            .rest()
            .raw()
            .print(prompt)
            .rest()
            .turns("aider")
            .len()
    };
    for (line, turns) in [
        ("/tokens", 0),
        ("!ls", 0),
        ("/ask why?", 1),
        ("/ask", 0),
        ("why?", 1),
        ("/code it", 1),
        ("/coder", 0),
    ] {
        assert_eq!(aider(line), turns, "{line}");
    }
}
