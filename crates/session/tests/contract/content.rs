//! Turn content: boundaries, bytes, exclusions.

use crate::play::{Cut, Play};
use turnkeep_session::detector::{GENERIC, Profile, presets};

/// The content of the only turn.
fn content(play: &Play, preset: &str) -> Vec<u8> {
    let turns = play.turns(preset);
    assert_eq!(turns.len(), 1, "{turns:?}");
    turns.into_iter().next().unwrap().content
}

fn asked() -> Play {
    Play::new().print("> ").rest()
}

#[test]
fn start_is_the_first_byte_of_agent_output_after_the_input_was_submitted() {
    let play = Play::new()
        .print("banner\r\n> ")
        .rest()
        .submit("hi")
        .print("first\r\nlast\r\n> ")
        .rest();
    assert_eq!(content(&play, GENERIC), b"first\r\nlast\r\n");
}

#[test]
fn end_is_the_last_byte_before_the_line_containing_the_detected_prompt() {
    let play = asked().submit("hi").print("one\r\ntwo\r\nhost> ").rest();
    assert_eq!(content(&play, GENERIC), b"one\r\ntwo\r\n");
}

#[test]
fn turn_content_is_captured_as_raw_bytes_with_ansi_sequences_preserved() {
    let bytes = b"\x1b[31mred\x1b[0m\r\n\x1b]8;;x\x07link\x1b]8;;\x07\r\n\xff\xfe\x00bin\r\n";
    let play = asked().submit("hi").print_bytes(bytes).print("> ").rest();
    assert_eq!(content(&play, GENERIC), bytes);
}

#[test]
fn echoed_user_input_is_excluded_from_turn_content() {
    let echoes: [(&str, Play); 10] = [
        ("live", asked().submit("say it").print("it\r\n> ")),
        ("late", asked().keys("say it\r").print("say it\r\nit\r\n> ")),
        (
            "raced",
            asked()
                .keys("say it\r")
                .print("say")
                .wait(5)
                .print(" it\r\nit\r\n> "),
        ),
        (
            "repainted",
            asked()
                .keys("say it")
                .print("say it")
                .keys("\r")
                .print("\r> say it\x1b[K\r\nit\r\n> "),
        ),
        (
            "corrected",
            asked().keys("sayx\x7f it\r").print("say it\r\nit\r\n> "),
        ),
        (
            "in a burst after a pause",
            asked()
                .keys("s")
                .print("s")
                .rest()
                .keys("ay it\r")
                .print("ay it\r\nit\r\n> "),
        ),
        (
            "corrected and shown so",
            asked()
                .keys("sayx\x7f it\r")
                .print("sayx\x08 \x08 it\r\nit\r\n> "),
        ),
        (
            "repainted after a pause",
            asked()
                .keys("sa")
                .print("sa")
                .rest()
                .keys("y it\r")
                .print("\r\x1b[K> \x1b[1msay it\x1b[m\r\nit\r\n> "),
        ),
        (
            "two lines in a burst",
            asked()
                .keys("one\rsay it\r")
                .print("one\r\nsay it\r\nit\r\n> "),
        ),
        (
            "pasted",
            asked()
                .keys("\x1b[200~say\nit\x1b[201~\r")
                .print("say\r\nit\r\nit\r\n> "),
        ),
    ];
    for (name, play) in echoes {
        assert_eq!(content(&play.rest(), GENERIC), b"it\r\n", "{name}");
    }
}

#[test]
fn the_last_keys_are_echo_though_a_preview_was_painted_below_the_line() {
    let prompt = "\x1b[1G\x1b[0J> \x1b[3G";
    let preview = "\r\n\x1b[90m[Function: say]\x1b[39m\x1b[6G\x1b[1A";
    let play = Play::new()
        .raw()
        .print(prompt)
        .rest()
        .keys("say")
        .print(&format!("say{preview}"));
    let play = play
        .wait(30)
        .keys("(")
        .print("\x1b[1B\x1b[2K\x1b[1A(")
        .wait(30);
    let play = play
        .keys("it)\r")
        .print(&format!("it)\r\r\nit\r\n{prompt}"))
        .rest();
    assert_eq!(content(&play, "node"), b"it\r\n");
}

#[test]
fn the_echo_behind_a_prompt_that_continues_an_input_is_excluded() {
    let mut presets = presets();
    presets
        .add_toml(
            "own",
            "[prompt]\ncursor = '^own> $'\ncontinuation = '^ +-> $'\n",
        )
        .unwrap();
    let play = Play::new()
        .canonical()
        .print("own> ")
        .rest()
        .keys("one\\\r")
        .print("one\\\r\n  -> ")
        .rest();
    let play = play.keys("two\\\r").print("two\\\r\n  -> ").rest();
    let play = play.keys("it\r").print("it\r\nit\r\nown> ").rest();
    for cut in [Cut::Whole, Cut::Bytes] {
        let turns = play.turns_of(presets.get("own").unwrap(), cut);
        let contents: Vec<_> = turns.iter().map(|turn| turn.content.as_slice()).collect();
        assert_eq!(contents, [b"it\r\n"], "{cut:?}");
    }
}

#[test]
fn output_of_a_program_that_does_not_echo_is_not_taken_for_an_echo() {
    let play = asked().keys("hi\r").print("hello\r\nyou\r\n> ").rest();
    assert_eq!(content(&play, GENERIC), b"hello\r\nyou\r\n");
}

#[test]
fn the_same_words_later_in_the_output_stay() {
    let play = asked().submit("echo").print("echo\r\necho\r\n> ").rest();
    assert_eq!(content(&play, GENERIC), b"echo\r\necho\r\n");
}

#[test]
fn the_caret_c_that_answers_an_interrupt_is_echo_and_another_is_not() {
    let play = asked()
        .submit("run")
        .print("a ^C\r\n")
        .keys("\x03")
        .print("^Cstopped ^C\r\n> ")
        .rest();
    assert_eq!(content(&play, GENERIC), b"a ^C\r\nstopped ^C\r\n");
}

#[test]
fn the_caret_c_may_come_behind_a_flood_that_was_on_its_way() {
    let flood = "y\r\n".repeat(20_000);
    let play = asked()
        .submit("yes")
        .print(&flood)
        .keys("\x03")
        .print(&format!("{flood}y^C\r\n> "))
        .rest();
    let content = content(&play, GENERIC);
    assert!(
        content.ends_with(b"y\r\ny\r\n"),
        "{:?}",
        &content[content.len() - 9..]
    );
}

#[test]
fn a_turn_of_which_only_an_image_was_kept_is_a_turn() {
    let image = format!("\x1b]1337;File=:{}\x07", "A".repeat(9 << 20));
    let play = asked()
        .submit("show")
        .print(&image)
        .print("the end\r\n> ")
        .rest();
    let turns = play.turns(GENERIC);
    assert_eq!((turns.len(), turns[0].truncated), (1, true));
}

#[test]
fn text_is_the_content_with_carriage_return_backspace_and_erase_applied() {
    for (bytes, text) in [
        ("10%\r20%\r100%\r\ndone\r\n", "100%\ndone"),
        ("abc\x08\x08X\r\n", "aXc"),
        ("secret\r\x1b[Kshown   \r\n", "shown"),
        ("one\r\ntwo\x1b[1A\rONE\x1b[1B\r\n", "ONE\ntwo"),
        ("a\tb\r\n", "a       b"),
        (
            "\x1b[32mgr\x1b[1men\x1b[0m\r\n\r\nend\r\n\r\n",
            "gren\n\nend",
        ),
        (
            "shown\r\n\x1b[?1049h\x1b[2Jpager\x1b[?1049lafter\r\n",
            "shown\nafter",
        ),
        ("abcdef\x1b[4D\x1b[2P!\r\n", "ab!f"),
        ("line\x1b[9999Cx\x1b[2K\r\nok\r\n", "\nok"),
    ] {
        let play = asked().submit("go").print(bytes).print("> ").rest();
        let turns = play.turns(GENERIC);
        assert_eq!(turns[0].text, text, "{bytes:?}");
        assert_eq!(turns[0].content, bytes.as_bytes());
    }
}

#[test]
fn a_pager_on_the_alternate_screen_shows_no_prompt_and_belongs_to_content_not_to_text() {
    let pager = "\x1b[?1049hpage\r\n> \r\n> ";
    let play = asked()
        .submit("man")
        .print(pager)
        .rest()
        .keys("q")
        .print("\x1b[?1049lbye\r\n> ")
        .rest();
    let turns = play.turns(GENERIC);
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].text, "bye");
    assert_eq!(
        turns[0].content,
        format!("{pager}\x1b[?1049lbye\r\n").as_bytes()
    );
}

#[test]
fn a_line_program_that_ends_without_a_newline_keeps_its_last_words() {
    let bash = Play::new()
        .raw()
        .print("\x1b[?2004hdemo$ ")
        .rest()
        .submit("printf abc");
    let bash = bash.print("\x1b[?2004l\rabc\x1b[?2004hdemo$ ").rest();
    assert_eq!(bash.turns("bash")[0].text, "abc");
    let python = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .submit("print('abc', end='')")
        .print("abc>>> ")
        .rest();
    assert_eq!(python.turns("python")[0].content, b"abc");
}

#[test]
fn the_lines_of_a_continued_input_are_not_content() {
    let play = Play::new()
        .raw()
        .print(">>> ")
        .rest()
        .submit("for i in [1]:")
        .print("... ")
        .rest();
    let play = play
        .submit("  print(i)")
        .print("... ")
        .rest()
        .submit("")
        .print("1\r\n>>> ")
        .rest();
    let turns = play.turns("python");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0].content, b"1\r\n");
}

#[test]
fn shell_integration_marks_bound_the_content_exactly() {
    let play = Play::new()
        .print("\x1b]133;A\x07two-line\r\nλ \x1b]133;B\x07")
        .rest()
        .submit("ls");
    let play = play
        .print("\x1b]133;C\x07file\r\n\x1b]133;D;0\x07\x1b]133;A\x07two-line\r\nλ \x1b]133;B\x07")
        .rest();
    let turns = play.turns("bash");
    assert_eq!(turns.len(), 1, "{turns:?}");
    assert_eq!(turns[0].content, b"file\r\n");
    assert_eq!(turns[0].signal.to_string(), "marks");
}

#[test]
fn content_beyond_the_limit_is_cut_at_its_head_and_says_so() {
    let line = "x".repeat(1023) + "\n";
    let mut play = asked().submit("flood");
    for _ in 0..9 {
        play = play.print(&line.repeat(1024));
    }
    let turns = play
        .print("> ")
        .rest()
        .turns_of(presets().get(GENERIC).unwrap(), Cut::Whole);
    assert!(turns[0].truncated);
    assert_eq!(
        turns[0].content.len(),
        8 * 1024 * 1024 - 2,
        "the echo's line feed counts too"
    );
}

#[test]
fn a_turn_says_which_pattern_the_session_was_started_with_by_its_profile() {
    assert_eq!(Profile::from_pattern("^x> $").unwrap().pattern(), "^x> $");
    assert_eq!(presets().get("sqlite3").unwrap().pattern(), "^sqlite> $");
}

#[test]
fn keys_that_a_pager_took_are_no_part_of_the_next_input() {
    let play = Play::new()
        .raw()
        .print("$ ")
        .rest()
        .submit("less f")
        .canonical();
    let play = play
        .print("\x1b[?1049hpage\r\n(END)")
        .rest()
        .keys("q")
        .print("\r\x1b[K\x1b[?1049lshown\r\n");
    let play = play
        .raw()
        .print("$ ")
        .rest()
        .keys("echo 3\r")
        .print("echo 3\r\n")
        .canonical();
    let turns = play.print("3\r\n").raw().print("$ ").rest().turns("bash");
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert_eq!(turns[1].content, b"3\r\n");
}

#[test]
fn a_paste_of_several_lines_that_the_line_editor_paints_again_is_echo() {
    let prompt = "\x1b[?2004h$ ";
    let play = Play::new()
        .raw()
        .print(prompt)
        .rest()
        .submit("true")
        .canonical()
        .print("\x1b[?2004l\rok\r\n");
    let play = play
        .raw()
        .print(prompt)
        .rest()
        .keys("\x1b[200~echo p1\necho p2\x1b[201~");
    let play = play
        .print("\x1b[7mecho p1\r\n\recho p2\x1b[27m")
        .rest()
        .keys("\r");
    let play = play
        .print("\x1b[A\r$ echo p1\r\n\recho p2\r\n")
        .canonical()
        .print("\x1b[?2004l\rp1\r\np2\r\n");
    let turns = play.raw().print(prompt).rest().turns("bash");
    assert_eq!(turns.len(), 2, "{turns:?}");
    assert_eq!(turns[1].text, "p1\np2");
}

#[test]
fn the_programs_own_caret_c_after_an_interrupt_stays() {
    let play = asked().submit("run").print("a\r\n").keys("\x03").wait(300);
    let play = play.print("the key ^C was pressed\r\n> ").rest();
    assert_eq!(content(&play, GENERIC), b"a\r\nthe key ^C was pressed\r\n");
}

/// The contents with a pattern of the user's own.
fn contents(play: &Play, pattern: &str) -> Vec<String> {
    let turns = play.turns_of(Profile::from_pattern(pattern).unwrap(), Cut::Whole);
    turns
        .into_iter()
        .map(|turn| String::from_utf8(turn.content).unwrap())
        .collect()
}

#[test]
fn echo_is_excluded_however_the_keys_come_in_bursts() {
    let db = asked_db;
    let typed = |first: &str| db().keys(first).print(first).rest();
    let bursts: [(&str, Play); 5] = [
        (
            "the rest and Enter",
            typed("a").keys("bc\r").print("bc\r\nout\r\ndb> "),
        ),
        (
            "edited",
            db().keys("ab\x7fc\r").print("ab\x08 \x08c\r\nout\r\ndb> "),
        ),
        (
            "edited after a pause",
            typed("x")
                .keys("ab\x7fc\r")
                .print("ab\x08 \x08c\r\nout\r\ndb> "),
        ),
        (
            "repainted",
            typed("se")
                .keys("lect\r")
                .print("\r\x1b[K\x1b[1mdb> \x1b[0mselect\r\nout\r\ndb> "),
        ),
        (
            "wrapped",
            typed("se")
                .keys("lect 1\r")
                .print("lect \r1\r\nout\r\ndb> "),
        ),
    ];
    for (name, play) in bursts {
        assert_eq!(contents(&play.rest(), "^db> "), ["out\r\n"], "{name}");
    }
}

#[test]
fn lines_of_one_burst_are_turns_of_their_own_where_a_prompt_comes_between() {
    let burst = Play::new()
        .print("db> ")
        .rest()
        .keys("abc\rdefg\rhi\r")
        .print("abc\r\ndefg\r\nhi\r\n");
    let play = burst
        .print("out 4\r\ndb> ")
        .wait(400)
        .print("out 5\r\ndb> ")
        .wait(400);
    let play = play.print("out 6\r\ndb> ").rest();
    assert_eq!(
        contents(&play, "^db> "),
        ["out 4\r\n", "out 5\r\n", "out 6\r\n"]
    );
}

#[test]
fn the_echo_of_a_line_typed_ahead_is_excluded_from_the_turn_that_runs() {
    let play = asked()
        .submit("a")
        .print("b\r\n")
        .rest()
        .keys("b\r")
        .print("b\r\nb\r\n> ")
        .rest();
    assert_eq!(
        contents(&play, "^> "),
        ["b\r\nb\r\n"],
        "once, and only behind where it was typed"
    );
}

#[test]
fn a_key_for_a_pager_is_not_looked_for_in_the_echo_of_the_next_line() {
    let bash = Play::new()
        .raw()
        .print("\x1b[?2004hdemo$ ")
        .rest()
        .submit("man")
        .canonical();
    let bash = bash
        .print("\x1b[?2004l\r\x1b[?1049hpage\r\n(END)")
        .rest()
        .keys("q");
    let bash = bash
        .print("\r\x1b[K\x1b[?1049l")
        .raw()
        .print("\x1b[?2004hdemo$ ")
        .rest();
    let bash = bash
        .keys("echo 3\r")
        .print("echo 3\r\n\x1b[?2004l\r3\r\n\x1b[?2004hdemo$ ")
        .rest();
    assert_eq!(
        bash.turns("bash").last().unwrap().content,
        b"\x1b[?2004l\r3\r\n"
    );
}

#[test]
fn a_pasted_input_that_the_line_editor_repaints_at_enter_is_excluded() {
    let bash = Play::new().raw().print("\x1b[?2004hdemo$ ").rest();
    let paste = "\x1b[200~echo p1\necho p2\x1b[201~";
    let painted = "\x1b[7mecho p1\r\necho p2\x1b[27m";
    let answer =
        "\x1b[A\x08\x08\x08\x08echo p1\r\n\recho p2\r\n\x1b[?2004l\rp1\r\np2\r\n\x1b[?2004hdemo$ ";
    let later = bash
        .clone()
        .keys(paste)
        .print(painted)
        .rest()
        .keys("\r")
        .print(answer)
        .rest();
    let at_once = bash
        .keys(&format!("{paste}\r"))
        .print(painted)
        .print(answer)
        .rest();
    for (name, play) in [("later", later), ("at once", at_once)] {
        assert_eq!(
            content(&play, "bash"),
            b"\x1b[?2004l\rp1\r\np2\r\n",
            "{name}"
        );
    }
}

#[test]
fn the_line_of_the_main_screen_goes_on_after_a_pager() {
    let pager = "\x1b[?1049h1\r\n(END)";
    let shell = Play::new()
        .print("P$ ")
        .rest()
        .submit("less")
        .print(pager)
        .rest()
        .keys("q");
    let left = shell
        .print("\r\x1b[K\x1b[?1049lP$ ")
        .rest()
        .submit("echo 3")
        .print("3\r\nP$ ")
        .rest();
    assert_eq!(
        contents(&left, "^P\\$ "),
        [format!("{pager}\r\x1b[K\x1b[?1049l"), "3\r\n".to_owned()]
    );
    let glued = Play::new()
        .print("P$ ")
        .rest()
        .submit("less")
        .print("\x1b[?1049hP$ \x1b[?1049ltail")
        .rest();
    assert_eq!(
        contents(&glued, "^P\\$ "),
        [""; 0],
        "a row of the alternate screen is no prompt"
    );
}

#[test]
fn a_prompt_that_replaces_what_stood_on_its_row_is_seen() {
    for erase in [
        "\r\x1b[K",
        "\x1b[1G\x1b[K",
        "\x1b[2K\r",
        "\x08\x08\x08\x1b[K",
    ] {
        let play = asked_db()
            .submit("run")
            .print(&format!("A\r\n10%{erase}db> "))
            .rest();
        assert_eq!(contents(&play, "^db> $"), ["A\r\n"], "{erase:?}");
    }
}

fn asked_db() -> Play {
    Play::new().print("db> ").rest()
}

#[test]
fn an_answer_that_begins_like_a_prompt_makes_no_empty_turn_and_is_not_lost() {
    let play = Play::new()
        .print("P$ ")
        .rest()
        .submit("x")
        .print("P$ \r\nrest\r\nP$ ")
        .rest();
    assert_eq!(contents(&play, "P\\$ $"), ["rest\r\n"]);
}

#[test]
fn enter_in_the_middle_of_a_turn_that_was_typed_ahead_does_not_cut_it() {
    let play = asked_db()
        .keys("a\rb\r")
        .print("a\r\nb\r\nout 1\r\ndb> ")
        .rest()
        .print("out 2\r\n")
        .rest();
    let play = play
        .keys("c\r")
        .print("c\r\nmore\r\ndb> ")
        .rest()
        .print("out 3\r\ndb> ")
        .rest();
    assert_eq!(
        contents(&play, "^db> "),
        ["out 1\r\n", "out 2\r\nmore\r\n", "out 3\r\n"]
    );
}

#[test]
fn a_prompt_of_several_lines_is_cut_off_where_bracketed_paste_was_switched_on() {
    let prompt = "\x1b[?2004h┌─[me]─[~]\r\n└─$ ";
    let play = Play::new().raw().print(prompt).rest();
    let silent = play
        .clone()
        .submit("true")
        .print(&format!("\x1b[?2004l\r{prompt}"))
        .rest();
    assert_eq!(silent.turns("bash"), [], "its upper line is no answer");
    let said = play
        .submit("printf a")
        .print(&format!("\x1b[?2004l\ra{prompt}"))
        .rest();
    assert_eq!(content(&said, "bash"), b"\x1b[?2004l\ra");
    let always_on = Play::new()
        .raw()
        .print("\x1b[?2004h>>> ")
        .rest()
        .submit("1")
        .print("1\r\n>>> ")
        .rest();
    assert_eq!(
        content(&always_on, "python"),
        b"1\r\n",
        "what was on before the turn tells nothing"
    );
}
