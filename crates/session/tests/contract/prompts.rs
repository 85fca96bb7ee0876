//! Patterns, presets and the first prompt.

use crate::play::{Cut, Play};
use turnkeep_session::detector::{
    Detection, GENERIC, PatternError, PresetError, Profile, ProfileError, presets,
};

fn with_pattern(play: &Play, pattern: &str) -> Vec<String> {
    let turns = play.turns_of(Profile::from_pattern(pattern).unwrap(), Cut::Whole);
    turns.into_iter().map(|turn| turn.text).collect()
}

#[test]
fn raw_terminal_control_codes_must_not_affect_prompt_detection() {
    for prompt in [
        "> ",
        "\x1b[1;32m>\x1b[0m ",
        "\x1b]0;title> here\x07> ",
        "\x1b[1G\x1b[0J> \x1b[3G",
    ] {
        let play = Play::new()
            .print(prompt)
            .rest()
            .submit("hi")
            .print("hello\r\n")
            .print(prompt)
            .rest();
        let texts: Vec<String> = play
            .turns(GENERIC)
            .into_iter()
            .map(|turn| turn.text)
            .collect();
        assert_eq!(texts, ["hello"], "{prompt:?}");
    }
}

#[test]
fn patterns_containing_literal_newlines_must_be_rejected_at_configuration_time_with_a_diagnostic() {
    for (pattern, shown) in [
        ("ab\ncd", "column 3)\n    ab⏎cd\n      ^"),
        ("é>\n", "column 3)\n    é>⏎\n      ^"),
        (r"ready\n> ", "column 6)\n    ready\\n> \n         ^"),
        ("\r", "column 1)\n    ⏎\n    ^"),
        (r"a\x0ab", "column 2)\n    a\\x0ab\n     ^"),
        (r"a\x{a}", "column 2)\n    a\\x{a}\n     ^"),
        (r"\u000A", "column 1)\n    \\u000A\n    ^"),
        (r"a\u{a}b", "column 2)\n    a\\u{a}b\n     ^"),
        (r"a[\n]", "column 2)\n    a[\\n]\n     ^"),
        (
            r"(?:x|[\r\x0a]+)",
            "column 6)\n    (?:x|[\\r\\x0a]+)\n         ^",
        ),
    ] {
        let error = Profile::from_pattern(pattern).unwrap_err();
        assert!(matches!(error, PatternError::Newline { .. }), "{pattern:?}");
        assert!(error.to_string().ends_with(shown), "{error}");
    }
    for fine in [
        r"[^x]",
        r"\s",
        r"[\n>]",
        r"[[:space:]]",
        r"[^\n]> ",
        r"\\n> ",
        "> ",
        r"\x3e",
        r"\u00e9",
        r"\\x0a",
    ] {
        assert!(Profile::from_pattern(fine).is_ok(), "{fine}");
    }
}

#[test]
fn a_pattern_that_does_not_compile_is_shown_with_its_place() {
    let error = Profile::from_pattern("a(b").unwrap_err().to_string();
    assert!(
        error.contains("a(b") && error.contains('^') && error.contains("unclosed group"),
        "{error}"
    );
    let mut known = presets();
    let error = known.add_toml("mine", "line = '['").unwrap_err();
    assert!(
        matches!(
            &error,
            PresetError::Profile(ProfileError::Pattern { field: "line", .. })
        ),
        "{error}"
    );
    let error = known
        .add_toml("mine", "lines = '>'")
        .unwrap_err()
        .to_string();
    assert!(error.contains("unknown field `lines`"), "{error}");
    let error = known.add_toml("mine", "content = 'screen'").unwrap_err();
    assert!(matches!(
        error,
        PresetError::Profile(ProfileError::NoSignal(_))
    ));
}

#[test]
fn a_match_anywhere_in_the_line_constitutes_a_prompt_detection() {
    let play = Play::new()
        .print("[12] you> go\r\n")
        .submit("x")
        .print("out\r\n[13] you> go\r\nmore\r\n");
    assert_eq!(with_pattern(&play, "you>"), ["out"]);
}

#[test]
fn the_pattern_is_tested_against_each_line() {
    let play = Play::new()
        .print("ready\r\n")
        .submit("x")
        .print("a\r\nready\r\n")
        .submit("y")
        .print("b\r\nready\r\n");
    assert_eq!(with_pattern(&play, "^ready$"), ["a", "b"]);
}

#[test]
fn consecutive_prompt_matches_without_intervening_agent_output_must_not_produce_empty_turns() {
    let play = Play::new()
        .print("> ")
        .rest()
        .submit("")
        .print("> ")
        .rest()
        .submit("")
        .print("\x1b[0m \r\n> ")
        .rest();
    assert_eq!(play.turns(GENERIC), []);
}

#[test]
fn the_first_prompt_match_is_a_session_ready_signal_not_a_turn_boundary() {
    let play = Play::new()
        .print("banner\r\n> ")
        .rest()
        .print("\r\nnews\r\n> ")
        .rest();
    let detections = play.detections(presets().get(GENERIC).unwrap(), Cut::Whole);
    assert_eq!(
        detections
            .iter()
            .filter(|detection| **detection == Detection::Ready)
            .count(),
        1
    );
    assert_eq!(play.turns(GENERIC), []);
}

#[test]
fn enter_before_the_first_prompt_belongs_to_no_turn() {
    let play = Play::new()
        .print("trust? ")
        .rest()
        .submit("y")
        .print("fine\r\n> ")
        .rest();
    assert_eq!(play.turns(GENERIC), []);
}

#[test]
fn if_no_pattern_is_specified_the_generic_preset_is_used_as_fallback() {
    let known = presets();
    for (command, preset) in [
        ("/usr/bin/claude", "claude"),
        ("codex", "codex"),
        ("python3.12", "python"),
        ("./bash", "bash"),
        ("psql", "psql"),
        ("mystery", GENERIC),
        ("bashful", GENERIC),
        ("", GENERIC),
    ] {
        assert_eq!(known.name_for(command), preset, "{command}");
    }
}

#[test]
fn every_shipped_preset_compiles_and_an_unknown_name_lists_them() {
    let known = presets();
    let names = [
        "aider", "bash", "claude", "cn", "codex", "copilot", "fish", "gdb", "gemini", GENERIC,
        "ipython", "kilo", "node", "opencode", "pi", "psql", "python", "qwen", "sqlite3", "vibe",
        "zsh",
    ];
    assert_eq!(known.names(), names);
    for name in names {
        assert_eq!(known.get(name).unwrap().name(), name);
    }
    let error = known.get("clod").unwrap_err().to_string();
    assert!(
        error.contains("\"clod\"") && error.contains("opencode"),
        "{error}"
    );
}

#[test]
fn a_profile_of_the_user_s_own_wins_over_a_shipped_one() {
    let mut known = presets();
    known
        .add_toml("mine", "programs = ['claude', 'my*']\nline = '^ok$'")
        .unwrap();
    known.claim("special", "python").unwrap();
    assert_eq!(known.name_for("claude"), "mine");
    assert_eq!(known.name_for("mytool"), "mine");
    assert_eq!(known.name_for("special"), "python");
    assert!(known.claim("special", "nobody").is_err());
}

#[test]
fn the_unfinished_last_line_counts_only_when_the_output_rests() {
    let stalled = Play::new()
        .print("> ")
        .rest()
        .submit("q")
        .print("a\r\n> ")
        .wait(90)
        .print("quote\r\nb\r\n> ")
        .rest();
    assert_eq!(stalled.turns(GENERIC)[0].text, "a\n> quote\nb");
    let rested = Play::new()
        .print("> ")
        .rest()
        .submit("q")
        .print("a\r\n> ")
        .wait(100)
        .print("quote\r\nb\r\n> ")
        .rest();
    assert_eq!(rested.turns(GENERIC)[0].text, "a");
}

#[test]
fn rows_of_the_alternate_screen_are_no_part_of_the_line_around_it() {
    let asked = || Play::new().print("> ").rest().submit("less");
    let pager = "\x1b[?1049hpage\r\n(END)";
    for (name, left, expect) in [
        ("an unfinished row", "\x1b[?1049l", 1),
        ("an erased row", "\r\x1b[K\x1b[?1049l", 1),
        ("a row that looks like a prompt", "\r\n> \x1b[?1049ltail", 0),
    ] {
        let play = asked().print(pager).rest().print(left);
        let play = if expect == 1 { play.print("> ") } else { play };
        assert_eq!(play.rest().turns(GENERIC).len(), expect, "{name}");
    }
}

#[test]
fn a_prompt_that_is_painted_over_something_is_the_one_that_is_seen() {
    for (name, painted) in [
        ("over a progress line", "10%\r\x1b[K"),
        (
            "after a mark that is wiped",
            "\x1b[7m%\x1b[m      \r \r\r\x1b[J",
        ),
        ("by a column", "wait\x1b[1G\x1b[2K"),
        ("by backspaces", "ab\x08\x08"),
    ] {
        let prompt = format!("{painted}db> ");
        let play = Play::new()
            .print(&prompt)
            .rest()
            .submit("hi")
            .print("hello\r\n")
            .print(&prompt)
            .rest();
        assert_eq!(with_pattern(&play, "^db> $"), ["hello"], "{name}");
    }
}

#[test]
fn a_newline_in_a_pattern_of_the_text_is_refused_too() {
    for field in [
        "end", "end_last", "pinned", "user", "drop", "chrome", "message", "gutter",
    ] {
        let profile =
            format!("content = 'screen'\nstatus = true\n[text]\n{field} = [{{ row = 'a\\nb' }}]");
        let error = presets()
            .add_toml("mine", &profile)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("text.{field}")) && error.contains('^'),
            "{error}"
        );
    }
}
