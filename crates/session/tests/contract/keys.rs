//! Input is parsed into keys, never searched for bytes.

use crate::play::Play;
use turnkeep_session::detector::GENERIC;

fn asked() -> Play {
    Play::new().print("> ").rest()
}

/// Whether these keys, pressed in mid-answer, interrupt.
fn interrupts(keys: &str) -> bool {
    let play = asked()
        .submit("run")
        .print("part\r\n")
        .keys(keys)
        .rest()
        .print("end\r\n> ")
        .rest();
    play.turns(GENERIC)[0].interrupted
}

/// Whether these keys submit.
fn submits(keys: &str) -> bool {
    let play = asked()
        .keys("x")
        .print("x")
        .keys(keys)
        .rest()
        .print("\r\nanswer\r\n> ")
        .rest();
    !play.turns(GENERIC).is_empty()
}

#[test]
fn ctrl_c_interrupts_in_each_of_its_forms() {
    for keys in [
        "\x03",
        "\x1b[99;5u",
        "\x1b[27;5;99~",
        "\x1b[99;5:1u",
        "\x1b[99;69u",
        "\x1b[99:67;5u",
        "\x1b[I\x03",
    ] {
        assert!(interrupts(keys), "{keys:?}");
    }
}

#[test]
fn what_is_no_key_press_of_ctrl_c_does_not_interrupt() {
    let harmless = [
        ("an arrow", "\x1b[A"),
        ("an arrow in application mode", "\x1bOA"),
        ("a mouse report", "\x1b[<35;3;3M"),
        ("an old mouse report", "\x1b[M\x03\x03\x03"),
        ("focus", "\x1b[I\x1b[O"),
        ("a paste", "\x1b[200~a\x03b\x1b[201~"),
        ("a release", "\x1b[99;5:3u"),
        ("the cursor's place", "\x1b[3;99R"),
        ("an answer", "\x1b]11;rgb:0303/0303/0303\x1b\\"),
        ("a device's name", "\x1bP>|term\x03\x1b\\"),
        ("alt-c", "\x1bc"),
        ("letters", "ccc"),
        ("ctrl-shift-c", "\x1b[99;6u"),
        ("Esc where the profile does not say so", "\x1b"),
    ];
    for (name, keys) in harmless {
        assert!(!interrupts(keys), "{name}");
    }
}

#[test]
fn enter_submits_in_each_of_its_forms() {
    for keys in [
        "\r",
        "\x1b[13u",
        "\x1b[13;1u",
        "\x1b[27;1;13~",
        "\x1b[13;129u",
        "\x1b[57414u",
        "\n",
    ] {
        assert!(submits(keys), "{keys:?}");
    }
}

#[test]
fn what_is_no_plain_enter_does_not_submit() {
    let others = [
        ("shift-enter", "\x1b[13;2u"),
        ("alt-enter", "\x1b\r"),
        ("a release", "\x1b[13;1:3u"),
        ("a paste", "\x1b[200~a\r\nb\x1b[201~"),
        ("a paste that is not over", "\x1b[200~a\r\nb"),
    ];
    for (name, keys) in others {
        assert!(!submits(keys), "{name}");
    }
}

#[test]
fn a_paste_followed_at_once_by_enter_submits() {
    assert!(submits("\x1b[200~a\nb\x1b[201~\r"));
}

#[test]
fn alt_and_a_key_that_could_begin_a_string_swallow_nothing() {
    for alt in ["\x1b_", "\x1b]", "\x1bP", "\x1bX", "\x1b^"] {
        let later = asked()
            .keys("x")
            .print("x")
            .keys(alt)
            .rest()
            .keys("\r")
            .print("\r\nanswer\r\n> ")
            .rest();
        assert_eq!(later.turns(GENERIC).len(), 1, "{alt:?}, then Enter");
        let at_once = asked()
            .keys("x")
            .print("x")
            .keys(&format!("{alt}\r"))
            .print("\r\nanswer\r\n> ")
            .rest();
        assert_eq!(at_once.turns(GENERIC).len(), 1, "{alt:?} and Enter at once");
        let half = asked()
            .keys("x")
            .print("x")
            .keys(&format!("{alt}half"))
            .rest()
            .rest()
            .keys("\r");
        assert_eq!(
            half.print("\r\nanswer\r\n> ").rest().turns(GENERIC).len(),
            1,
            "{alt:?} and half a string"
        );
    }
    assert!(submits("\x1bOM"), "Enter of the keypad");
}

#[test]
fn keys_after_an_unfinished_sequence_are_keys_again() {
    let unfinished = [
        ("alt-underscore", "\x1b_", 60),
        ("alt-bracket", "\x1b]", 60),
        ("alt-caret", "\x1b^", 60),
        ("alt-shift-p", "\x1bP", 60),
        ("alt-shift-x", "\x1bX", 60),
        ("alt-underscore and a letter at once", "\x1b_l", 1100),
        ("an answer without end", "\x1b]11;rgb:0303", 1100),
        ("half an arrow", "\x1b[1;", 60),
        ("a paste without end", "\x1b[200~text", 10_100),
    ];
    for (name, keys, pause) in unfinished {
        let play = asked()
            .keys(keys)
            .wait(pause)
            .keys("\r")
            .print("\r\nanswer\r\n")
            .wait(50);
        assert_eq!(
            play.clone().print("> ").rest().turns(GENERIC).len(),
            1,
            "{name}: Enter submits"
        );
        let stopped = play
            .keys(keys)
            .wait(pause)
            .keys("\x03")
            .print("^C\r\n> ")
            .rest();
        assert!(
            stopped.turns(GENERIC)[0].interrupted,
            "{name}: Ctrl-C interrupts"
        );
    }
    assert!(submits("\x1b_\r"), "Enter in the same moment");
}

#[test]
fn a_string_that_pauses_is_still_one_and_so_is_a_paste() {
    let string = asked().keys("\x1bP>|te").wait(900).keys("rm\x03\x1b\\");
    let paste = asked().keys("\x1b[200~a").wait(9000).keys("\rb\x1b[201~");
    for (name, play) in [("string", string), ("paste", paste)] {
        let play = play.rest().print("\r\nanswer\r\n> ").rest();
        assert_eq!(play.turns(GENERIC), [], "{name}");
    }
}
