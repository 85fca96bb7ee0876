//! Bytes of the same moment, cut anywhere, yield the same turns.

use crate::play::{Cut, Play};
use turnkeep_session::detector::presets;

fn sessions() -> Vec<(&'static str, Play)> {
    let generic = Play::new()
        .print("\x1b[1mwelcome\x1b[0m\r\n> ")
        .rest()
        .keys("héllo\r");
    let generic = generic
        .print("héllo\r\nüber\x1b[31m rot\x1b[0m\r\n> \r\n\x1b]0;t\x07more")
        .wait(20);
    let generic = generic
        .print(" ^C\r\n")
        .keys("\x03\x1b[A")
        .print("^C end\r\n❯ ")
        .rest()
        .keys("2\r")
        .print("2\r\nb\r\n> ")
        .rest();
    let bash = Play::new()
        .raw()
        .print("\x1b[?2004hdemo$ ")
        .rest()
        .keys("ls\r");
    let bash = bash
        .print("ls\r\n\x1b[?2004l\rone\r\ntwo\x1b[?2004hdemo$ ")
        .rest();
    let marks = "\x1b]133;C\x07out\r\n\x1b]133;D\x07\x1b]133;A\x07$ \x1b]133;B\x07";
    let marks = Play::new()
        .print("\x1b]133;A\x07$ \x1b]133;B\x07")
        .rest()
        .keys("x\r")
        .print("x\r\n")
        .print(marks)
        .rest();
    let claude = Play::new()
        .print("❯ \r\n\x1b]0;✳ C\x07")
        .rest()
        .keys("q\r")
        .wait(9);
    let claude = claude
        .print("\x1b]0;◐ C\x1b\\\x1b[?2026h\x1b[H\x1b[2J❯ q\r\n\x1b[37m●\x1b[m Hi\r\n\x1b[?2026l")
        .wait(300);
    let claude = claude
        .keys("\x1b[200~\x1b\x03\x1b[201~")
        .print("\x1b]0;✳ C\x07\x1b[37m●\x1b[m more 漢字\r\n❯ ")
        .rest();
    vec![
        ("generic", generic),
        ("bash", bash),
        ("bash", marks),
        ("claude", claude),
    ]
}

#[test]
fn bytes_fed_one_by_one_or_all_at_once_or_cut_at_every_position_yield_the_same_turns() {
    for (preset, play) in sessions() {
        let profile = presets().get(preset).unwrap();
        let whole = play.detections(profile.clone(), Cut::Whole);
        assert!(
            !play.turns(preset).is_empty(),
            "{preset}: no turn to compare"
        );
        assert_eq!(
            play.detections(profile.clone(), Cut::Bytes),
            whole,
            "{preset}, byte by byte"
        );
        for at in 1..play.longest() {
            assert_eq!(
                play.detections(profile.clone(), Cut::At(at)),
                whole,
                "{preset}, cut at {at}"
            );
        }
    }
}

#[test]
fn input_between_two_halves_of_a_frame_does_not_make_two_frames_of_it() {
    let frame = |rows: &str| format!("\x1b[H\x1b[2J{rows}\r\n{}\r\n❯ ", "─".repeat(40));
    let said = |n: usize| format!("❯ q\r\n\x1b[32m●\x1b[m line {n}\r\n  more {n}");
    let begin = Play::new()
        .print("❯ \r\n\x1b]0;✳ C\x07")
        .rest()
        .keys("q\r")
        .wait(9)
        .print("\x1b]0;◐ C\x07")
        .rest();
    let play = |cut: Option<usize>| {
        let mut play = begin.clone();
        for n in 0..3 {
            let frame = frame(&said(n));
            let (head, tail) =
                frame.split_at(cut.map_or(frame.len(), |at| frame.floor_char_boundary(at)));
            play = play.print(head).keys("\x1b[<35;3;3M").print(tail).wait(50);
        }
        play.print("\x1b]0;✳ C\x07").rest().turns("claude")
    };
    let whole = play(None);
    assert_eq!(whole[0].text, "line 2\nmore 2");
    for at in 1..40 {
        assert_eq!(play(Some(at)), whole, "cut at {at}");
    }
}
