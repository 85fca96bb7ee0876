//! Shells that fill the row in front of their prompt, in the bytes that they print.

use crate::play::Play;
use turnkeep_session::detector::presets;

const ON: &str = "\x1b[?2004h";
const OFF: &str = "\x1b[?2004l";

/// What zsh prints in front of a prompt: a mark, blanks to the right edge, and back.
fn zsh_fill() -> String {
    format!(
        "\x1b[1m\x1b[7m%\x1b[27m\x1b[1m\x1b[0m{}\r \r\r\x1b[0m\x1b[27m\x1b[24m\x1b[J",
        " ".repeat(79)
    )
}

fn fish_fill() -> String {
    format!("\x1b[2m⏎\x1b(B\x1b[m{}\r⏎ \r\x1b[K{ON}", " ".repeat(79))
}

/// Zsh switches bracketed paste on behind its prompt, and off before the line feed of the Enter.
fn zsh(prompt: &str, commands: &[(&str, &str)]) -> Play {
    let ready = format!("{}{prompt}\x1b[K{ON}", zsh_fill());
    commands.iter().fold(
        Play::new().raw().print(&ready).rest(),
        |play, (typed, output)| {
            let play = play.keys(typed).print(typed).keys("\r").wait(3);
            play.print(&format!("{OFF}\r\r\n{output}{ready}")).rest()
        },
    )
}

/// Fish switches it on in front of its prompt, and off behind the line feed of the Enter.
fn fish(prompt: &str, commands: &[(&str, &str)]) -> Play {
    let ready = format!("{}{prompt}\x1b[K", fish_fill());
    commands.iter().fold(
        Play::new().raw().print(&ready).rest(),
        |play, (typed, output)| {
            let play = play.keys(typed).print(typed).keys("\r").wait(3);
            play.print(&format!("\r\n{OFF}{output}{ready}")).rest()
        },
    )
}

fn texts(play: &Play, preset: &str) -> Vec<String> {
    play.turns(preset)
        .into_iter()
        .map(|turn| turn.text)
        .collect()
}

#[test]
fn output_ends_where_the_fill_in_front_of_a_prompt_begins() {
    let commands = [
        ("echo one", "one\r\n"),
        ("", ""),
        ("true", ""),
        ("printf 'no line feed'", "no line feed"),
        ("printf '%s\\n' '% ' '> '", "% \r\n> \r\nend\r\n"),
    ];
    let expected = ["one", "no line feed", "%\n>\nend"];
    for prompt in [
        "demo% ",
        "\r\n~/demo on main\r\n❯ ",
        "\x1b[32m➜ \x1b[39m demo ",
    ] {
        assert_eq!(
            texts(&zsh(prompt, &commands), "zsh"),
            expected,
            "zsh {prompt:?}"
        );
    }
    for prompt in ["you@host ~/demo> ", "~/demo\r\n❯ "] {
        assert_eq!(
            texts(&fish(prompt, &commands), "fish"),
            expected,
            "fish {prompt:?}"
        );
    }
}

#[test]
fn a_line_typed_ahead_is_a_turn_of_its_own_where_paste_ends_with_the_line() {
    let ready = format!("{}demo% \x1b[K{ON}", zsh_fill());
    let play = Play::new()
        .raw()
        .print(&ready)
        .rest()
        .keys("echo 1\recho 2\r")
        .wait(3);
    let line = |word: &str| format!("e\x08echo {word}{OFF}\r\r\n{word}\r\n{ready}");
    assert_eq!(
        texts(&play.print(&(line("1") + &line("2"))).rest(), "zsh"),
        ["1", "2"]
    );
}

#[test]
fn the_rest_of_an_input_makes_no_turn() {
    let ready = format!("{}demo% \x1b[K{ON}", zsh_fill());
    let play = Play::new().raw().print(&ready).rest();
    let play = play.keys("echo 'a").print("echo 'a").keys("\r").wait(3);
    let play = play.print(&format!("{OFF}\r\r\nquote> \x1b[K{ON}")).rest();
    let play = play.keys("b'").print("b'").keys("\r").wait(3);
    assert_eq!(
        texts(
            &play.print(&format!("{OFF}\r\r\na\r\nb\r\n{ready}")).rest(),
            "zsh"
        ),
        ["a\nb"]
    );
}

#[test]
fn marks_that_never_tell_the_end_of_a_prompt_are_no_signal_of_their_own() {
    let ready = "\x1b]133;A\x07you@host ~> ";
    let play = Play::new()
        .raw()
        .print(&format!("{}{ready}", fish_fill()))
        .rest();
    let play = play.keys("echo 1").print("echo 1").keys("\r").wait(3);
    let play = play
        .print(&format!(
            "\r\n{OFF}\x1b]133;C\x071\r\n\x1b]133;D;0\x07{}{ready}",
            fish_fill()
        ))
        .rest();
    assert_eq!(texts(&play, "fish"), ["1"]);
}

#[test]
fn marks_that_are_stuck_at_busy_do_not_silence_the_prompt() {
    let marked = format!("{ON}\x1b]133;A\x07$ \x1b]133;B\x07");
    let play = Play::new().raw().print(&marked).rest();
    let play = play.keys("echo 1").print("echo 1").keys("\r").wait(3);
    let play = play
        .print(&format!("{OFF}\r\n\x1b]133;C\x07"))
        .canonical()
        .wait(50)
        .print("1\r\n")
        .raw()
        .print(&marked)
        .rest();
    // The user sets a prompt without marks, but every command still begins with one.
    let plain = format!("{ON}$ ");
    let mut play = play;
    for word in ["two", "three"] {
        play = play.keys("echo").print("echo").keys("\r").wait(3);
        play = play
            .print(&format!("{OFF}\r\n\x1b]133;C\x07"))
            .canonical()
            .wait(50)
            .print(&format!("{word}\r\n"))
            .raw()
            .print(&plain)
            .wait(2500);
    }
    assert_eq!(texts(&play, "bash"), ["1", "two", "three"]);
}

#[test]
fn a_prompt_behind_which_somebody_goes_on_typing_is_seen_at_the_enter() {
    let prompt = format!("{ON}ask> ");
    let play = Play::new()
        .raw()
        .print(&prompt)
        .rest()
        .keys("hi")
        .print("hi")
        .keys("\r")
        .wait(3);
    let play = play
        .print("\r\n")
        .canonical()
        .wait(200)
        .print("Hello.\r\n")
        .raw()
        .print(&prompt);
    let play = play
        .wait(9)
        .keys("again")
        .print("again")
        .wait(9)
        .keys("\r")
        .wait(3);
    let play = play
        .print("\r\n")
        .canonical()
        .wait(200)
        .print("Hello again.\r\n")
        .raw()
        .print(&prompt)
        .rest();
    assert_eq!(texts(&play, "aider"), ["Hello.", "Hello again."]);
}

#[test]
fn the_programs_of_the_new_shells_get_their_presets() {
    let known = presets();
    for (command, preset) in [
        ("/bin/zsh", "zsh"),
        ("fish", "fish"),
        ("gdb", "gdb"),
        ("ipython3", "ipython"),
        ("python3", "python"),
    ] {
        assert_eq!(known.name_for(command), preset, "{command}");
    }
}
