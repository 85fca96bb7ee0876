//! Lines typed ahead and lines typed to a running program, in the bytes that the programs print for
//! them.

use crate::play::{Cut, Play};
use turnkeep_session::detector::{Detection, Profile, State, presets};

/// The contents of all turns; each way to cut the bytes gives the same.
fn contents(play: &Play, profile: &Profile) -> Vec<String> {
    let turns = |cut| {
        let turns = play.turns_of(profile.clone(), cut).into_iter();
        turns
            .map(|turn| String::from_utf8(turn.content).unwrap())
            .collect::<Vec<_>>()
    };
    let whole = turns(Cut::Whole);
    assert_eq!(turns(Cut::Bytes), whole, "byte by byte");
    whole
}

fn preset(name: &str) -> Profile {
    presets().get(name).unwrap()
}

fn pattern(pattern: &str) -> Profile {
    Profile::from_pattern(pattern).unwrap()
}

const ON: &str = "\x1b[?2004h";
const OFF: &str = "\x1b[?2004l\r";

/// Bash at its prompt.
fn bash() -> Play {
    Play::new().raw().print(&format!("{ON}P$ ")).rest()
}

#[test]
fn lines_of_one_write_are_split_where_a_prompt_stands_before_the_echo_of_the_next() {
    let bash_bytes = format!("echo 1\r\n{OFF}1\r\n{ON}P$ echo 2\r\n{OFF}2\r\n{ON}P$ ");
    let shell = |profile| {
        (
            profile,
            bash().keys("echo 1\recho 2\r").print(&bash_bytes),
            format!("{OFF}1\r\n"),
        )
    };
    let python = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .keys("print(1)\rprint(2)\r")
        .print("p");
    let python = python.print("rint(1)\r\n1\r\n>>> print(2)\r\n2\r\n>>> ");
    let pyrepl = Play::new()
        .raw()
        .print(&format!("{ON}>>> "))
        .rest()
        .keys("print(1)\rprint(2)\r");
    let pyrepl = pyrepl.print(&format!(
        "print(1)\x1b[12D\n\r\x1b[?2004l1\r\n{ON}>>> \x1b[4D\x1b[4C"
    ));
    let pyrepl = pyrepl.print(&format!("print(2)\x1b[12D\n\r\x1b[?2004l2\r\n{ON}>>> "));
    let node_prompt = "\x1b[1G\x1b[0J> \x1b[3G";
    let node = Play::new()
        .raw()
        .print(node_prompt)
        .rest()
        .keys("f(1)\rf(2)\r")
        .print("f(1)\r\r\n\x1b[33m1\r\n");
    let node = node.print(&format!(
        "{node_prompt}f(2)\r\r\n\x1b[33m2\r\n{node_prompt}"
    ));
    let sqlite = Play::new()
        .raw()
        .print(&format!("{ON}sqlite> "))
        .rest()
        .keys("select 1;\rselect 2;\r");
    let sqlite = sqlite.print(&format!(
        "select 1;\r\n{OFF}1\r\n{ON}sqlite> select 2;\r\n{OFF}2\r\n{ON}sqlite> "
    ));
    let zsh_prompt =
        "\r\x1b[0m\x1b[JP# \x1b[K\x1b[74C\x1b[38;5;240m23:29\x1b[39m\x1b[79D\x1b[?2004h";
    let zsh = Play::new()
        .raw()
        .print(zsh_prompt)
        .rest()
        .keys("echo 1\recho 2\r");
    let zsh = zsh.print(&format!("e\x08echo 1\x1b[?2004l\r\r\n1\r\n{zsh_prompt}"));
    let zsh = zsh.print(&format!("e\x08echo 2\x1b[?2004l\r\r\n2\r\n{zsh_prompt}"));
    for (profile, play, first) in [
        (preset("zsh"), zsh.clone(), "1\r\n".to_owned()),
        (pattern("P# $"), zsh, "1\r\n".to_owned()),
        shell(preset("bash")),
        shell(pattern("P\\$ $")),
        shell(pattern("^P\\$ ")),
        (preset("python"), python, "1\r\n".to_owned()),
        (preset("python"), pyrepl, "\r\x1b[?2004l1\r\n".to_owned()),
        (preset("node"), node, "\x1b[33m1\r\n".to_owned()),
        (preset("sqlite3"), sqlite, format!("{OFF}1\r\n")),
    ] {
        let second = first.replace('1', "2");
        assert_eq!(
            contents(&play.rest(), &profile),
            [first, second],
            "{}",
            profile.pattern()
        );
    }
}

#[test]
fn lines_without_output_continued_ones_and_output_without_a_line_feed_are_split_as_well() {
    let typed = "cd /tmp\rprintf abc\rfor i in 1 2; do\recho $i\rdone\recho end\r";
    let printed = format!(
        "cd /tmp\r\n{OFF}{ON}/tmp$ printf abc\r\n{OFF}abc{ON}/tmp$ for i in 1 2; do\r\n{OFF}{ON}> echo $i\r\n\
         {OFF}{ON}> done\r\n{OFF}1\r\n2\r\n{ON}/tmp$ echo end\r\n{OFF}end\r\n{ON}/tmp$ "
    );
    let found = contents(&bash().keys(typed).print(&printed).rest(), &preset("bash"));
    assert_eq!(
        found,
        [
            format!("{OFF}abc"),
            format!("{OFF}1\r\n2\r\n"),
            format!("{OFF}end\r\n")
        ]
    );
    let python = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .keys("print('a', end='')\rprint(2)\r");
    let python = python
        .print("print('a', end='')\r\na>>> print(2)\r\n2\r\n>>> ")
        .rest();
    assert_eq!(contents(&python, &preset("python")), ["a", "2\r\n"]);
}

#[test]
fn a_line_typed_ahead_that_runs_before_its_prompt_rests_is_a_turn_of_its_own() {
    let play = bash()
        .submit("sleep 1; echo 4")
        .canonical()
        .print(OFF)
        .rest();
    let play = play.keys("echo 5\r").print("echo 5\r\n").rest().raw();
    let play = play
        .print(&format!("4\r\n{ON}P$ echo 5\r\n{OFF}5\r\n{ON}P$ "))
        .rest();
    assert_eq!(
        contents(&play, &preset("bash")),
        [format!("{OFF}4\r\n"), format!("{OFF}5\r\n")]
    );
}

#[test]
fn a_line_typed_at_a_prompt_that_has_not_rested_yet_is_a_turn_of_its_own() {
    let play = bash()
        .keys("echo 1\r")
        .print(&format!("echo 1\r\n{OFF}1\r\n{ON}P$ "))
        .wait(9)
        .keys("echo 2\r");
    let play = play.print(&format!("echo 2\r\n{OFF}2\r\n{ON}P$ ")).rest();
    assert_eq!(
        contents(&play, &preset("bash")),
        [format!("{OFF}1\r\n"), format!("{OFF}2\r\n")]
    );
    assert_eq!(play.states("bash").last(), Some(&State::Ready));
}

#[test]
fn what_stands_behind_a_prompt_is_the_answer_to_a_line_that_the_tty_echoed_before() {
    let play = Play::new()
        .canonical()
        .print("db> ")
        .rest()
        .keys("abc\rdefg\r")
        .print("abc\r\ndefg\r\n");
    let play = play
        .print("out 4\r\n\x1b[1mdb> \x1b[mout 5\r\nmore\r\ndb> ")
        .rest();
    assert_eq!(
        contents(&play, &pattern("^db> ")),
        ["out 4\r\n", "\x1b[mout 5\r\nmore\r\n"]
    );
    let unsplit = ["out 4\r\n\x1b[1mdb> \x1b[mout 5\r\nmore\r\n"];
    assert_eq!(
        contents(&play, &pattern("^db> $")),
        unsplit,
        "no line matches, and no prompt rests"
    );
}

#[test]
fn a_question_of_the_program_is_no_prompt_although_its_answer_stands_behind_it() {
    let bash = bash()
        .submit("read -p 'n> ' x")
        .canonical()
        .print(OFF)
        .print("n> ")
        .rest();
    let bash = bash
        .keys("bob\r")
        .print("bob\r\nhi\r\n")
        .raw()
        .print(&format!("{ON}P$ "))
        .rest();
    assert_eq!(
        contents(&bash, &preset("bash")),
        [format!("{OFF}n> \r\nhi\r\n")]
    );
    let python = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .submit("input('a>>> ')")
        .print("a>>> ")
        .wait(20);
    let python = python.keys("bob\r").print("bob\r\n'bob'\r\n>>> ").rest();
    let found = contents(&python, &preset("python"));
    assert!(found.concat().ends_with("'bob'\r\n"), "{found:?}");
}

#[test]
fn input_that_a_running_program_echoes_at_once_is_excluded_and_its_question_stays() {
    let read = || bash().submit("read x").canonical().print(OFF).rest();
    let end = |play: Play| {
        play.print("got answer\r\n")
            .raw()
            .print(&format!("{ON}P$ "))
            .rest()
    };
    let at_once = end(read().keys("answer\r").print("answer\r\n"));
    let by_keys = read()
        .keys("an")
        .print("an")
        .wait(90)
        .keys("swer")
        .print("swer")
        .wait(90);
    let by_keys = end(by_keys.keys("\r").print("\r\n"));
    let asked = bash()
        .submit("read x")
        .canonical()
        .print(OFF)
        .print("x? ")
        .rest();
    let asked = end(asked
        .keys("answer")
        .print("answer")
        .rest()
        .keys("\r")
        .print("\r\n"));
    let between = end(read()
        .keys("ans")
        .print("ans")
        .wait(9)
        .print("tick\r\n")
        .keys("wer\r")
        .print("wer\r\n"));
    for (name, play, expect) in [
        ("at once", at_once, "got answer\r\n"),
        ("key by key", by_keys, "got answer\r\n"),
        ("asked", asked, "x? \r\ngot answer\r\n"),
        (
            "with output between",
            between,
            "anstick\r\nwer\r\ngot answer\r\n",
        ),
    ] {
        assert_eq!(
            contents(&play, &preset("bash")),
            [format!("{OFF}{expect}")],
            "{name}"
        );
    }
    let python = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .submit("input('name? ')")
        .print("name? ")
        .rest();
    let python = python.keys("bob\r").print("bob\r\n'bob'\r\n>>> ").rest();
    assert_eq!(
        contents(&python, &preset("python")),
        ["name? \r\n'bob'\r\n"]
    );
}

#[test]
fn a_line_that_the_first_prompt_takes_is_a_turn_though_that_prompt_never_rested() {
    let bash_answer = format!("{OFF}1\r\n{ON}P$ ");
    let started = || {
        Play::new()
            .print("Welcome\r\n")
            .raw()
            .print(&format!("{ON}P$ "))
            .wait(9)
    };
    let at_prompt = started()
        .keys("echo 1\r")
        .print(&format!("echo 1\r\n{bash_answer}"));
    let by_keys = started()
        .keys("echo")
        .print("echo")
        .wait(9)
        .keys(" 1")
        .print(" 1")
        .wait(9)
        .keys("\r");
    let by_keys = by_keys.print(&format!("\r\n{bash_answer}"));
    let before = Play::new()
        .canonical()
        .keys("echo 1\r")
        .print("echo 1\r\nWelcome\r\n")
        .wait(9)
        .raw();
    let before = before.print(&format!("{ON}P$ echo 1\r\n{bash_answer}"));
    for (name, play, profile, content) in [
        (
            "at the prompt",
            &at_prompt,
            preset("bash"),
            format!("{OFF}1\r\n"),
        ),
        (
            "at a prompt that only its pattern tells",
            &at_prompt,
            pattern("^P\\$ $"),
            format!("{OFF}1\r\n"),
        ),
        (
            "key by key",
            &by_keys,
            preset("bash"),
            format!("{OFF}1\r\n"),
        ),
        (
            "before the prompt",
            &before,
            preset("bash"),
            format!("{OFF}1\r\n"),
        ),
        (
            "key by key, by its pattern",
            &by_keys,
            pattern("^P\\$ $"),
            format!("{OFF}1\r\n"),
        ),
    ] {
        assert_eq!(
            contents(&play.clone().rest(), &profile),
            [content],
            "{name}"
        );
    }
}

#[test]
fn a_line_that_was_read_before_the_first_prompt_is_no_turn() {
    let asked = Play::new()
        .canonical()
        .print("Name? ")
        .rest()
        .keys("bob\r")
        .print("bob\r\nHello bob\r\n");
    let asked = asked.raw().print(&format!("{ON}P$ ")).rest();
    for profile in [preset("bash"), pattern("^P\\$ $")] {
        let told = asked.clone().print("a word from the background\r\n").rest();
        assert_eq!(contents(&told, &profile), Vec::<String>::new());
        assert_eq!(
            asked.detections(profile.clone(), Cut::Whole).last(),
            Some(&Detection::State(State::Ready))
        );
        let then = asked
            .clone()
            .submit("echo 1")
            .print(&format!("{OFF}1\r\n{ON}P$ "))
            .rest();
        assert_eq!(contents(&then, &profile), [format!("{OFF}1\r\n")]);
    }
}

#[test]
fn more_lines_than_are_remembered_make_no_turn_up() {
    let lines: Vec<String> = (0..200).map(|n| format!("echo {n}")).collect();
    let numbered = lines.iter().enumerate();
    let printed: Vec<String> = numbered
        .map(|(n, line)| format!("{line}\r\n{OFF}{n}\r\n{ON}P$ "))
        .collect();
    let found = contents(
        &bash()
            .keys(&(lines.join("\r") + "\r"))
            .print(&printed.concat())
            .rest(),
        &preset("bash"),
    );
    assert_eq!(found[..3], [0, 1, 2].map(|n| format!("{OFF}{n}\r\n")));
    // The first, and the 64 that wait: the newest of them is the last line, whose turn is the last
    // one.
    assert_eq!(found.len(), 65);
    assert_eq!(found[64], format!("{OFF}199\r\n"));
}
