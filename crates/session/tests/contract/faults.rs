//! Unexpected bytes: no panic and no growth.

use crate::play::{Cut, Play};
use proptest::prelude::*;
use std::time::Duration;
use turnkeep_session::detector::{Detection, Detector, Event, Size, TtyMode, presets};

/// What may be kept for a session: the content, the line twice over, the typed line, what waits for
/// the screen.
const HELD_BYTES_MAX: usize = 8 * 1024 * 1024 + 2 * 64 * 1024 + 64 * 1024 + 64 * 1024 + 4096;

const SIZE: Size = Size { cols: 80, rows: 24 };

fn detector(preset: &str) -> Detector {
    Detector::new(presets().get(preset).unwrap(), SIZE)
}

/// Feeds `count` copies of a piece in mid-turn and gives the most that was held.
fn flood(preset: &str, head: &[u8], piece: &[u8], count: usize) -> usize {
    let mut detector = detector(preset);
    let mut now = Duration::ZERO;
    for event in [
        Event::Output(b"demo$ > "),
        Event::Tick,
        Event::Input(b"x\r"),
        Event::Output(b"x\r\n"),
    ] {
        now += Duration::from_secs(1);
        detector.feed(now, event);
    }
    detector.feed(now, Event::Output(head));
    let mut most = 0;
    for _ in 0..count {
        detector.feed(now, Event::Output(piece));
        most = most.max(detector.held_bytes());
    }
    most
}

#[test]
fn memory_is_bounded_whatever_the_program_prints() {
    let piece = vec![b'x'; 1024 * 1024];
    let jumps = b"\x1b[65000Cx\n".repeat(4096);
    for (name, head, piece, count) in [
        ("no newline", &b""[..], &piece, 64),
        ("an OSC without end", b"\x1b]0;", &piece, 64),
        ("a DCS without end", b"\x1bPq", &piece, 64),
        (
            "numbers without end",
            b"\x1b[",
            &vec![b'1'; 1024 * 1024],
            16,
        ),
        ("far jumps", b"", &jumps, 16),
    ] {
        for preset in ["generic", "bash"] {
            let most = flood(preset, head, piece, count);
            assert!(
                most <= HELD_BYTES_MAX,
                "{name}: {most} bytes are held by {preset}"
            );
        }
    }
    let most = flood("codex", b"\x1b]0;", &piece, 8);
    assert!(most <= HELD_BYTES_MAX, "{most} bytes are held by codex");
}

#[test]
fn memory_is_bounded_whatever_is_typed() {
    let mut detector = detector("generic");
    for head in [&b"\x1b[200~"[..], b"\x1b]", b"\x1b[", b""] {
        detector.feed(Duration::ZERO, Event::Input(head));
        detector.feed(Duration::ZERO, Event::Input(&vec![b'7'; 4 * 1024 * 1024]));
        assert!(detector.held_bytes() <= HELD_BYTES_MAX);
        detector.feed(Duration::ZERO, Event::Input(b"\x1b[201~\x07"));
    }
}

#[test]
fn a_gap_in_the_output_marks_the_turn_incomplete() {
    let mut detector = detector("generic");
    let mut turns = Vec::new();
    let script = [
        Event::Output(b"> "),
        Event::Input(b"x\r"),
        Event::Output(b"x\r\npart\r\n"),
        Event::Gap,
        Event::Output(b"rest\r\n> "),
        Event::Tick,
    ];
    for (second, event) in (0..).zip(script) {
        turns.extend(detector.feed(Duration::from_secs(second), event));
    }
    let incomplete = turns
        .iter()
        .any(|detection| matches!(detection, Detection::Turn(turn) if turn.incomplete));
    assert!(incomplete, "{turns:?}");
}

#[test]
fn half_an_escape_sequence_at_the_end_is_no_fault() {
    for tail in ["\x1b", "\x1b[", "\x1b[3", "\x1b]0;ti", "\x1bP", "\u{e9}"] {
        let mut detector = detector("claude");
        let bytes = tail.as_bytes();
        detector.feed(
            Duration::ZERO,
            Event::Output(bytes.get(..bytes.len().max(2) - 1).unwrap()),
        );
        while let Some(due) = detector.deadline() {
            detector.feed(due, Event::Tick);
        }
    }
}

/// Bytes that are often parts of sequences.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        prop::sample::select(vec![
            "\x1b",
            "\x1b[",
            "\x1b]",
            "\x1b[?2004h",
            "\x1b[?2026h",
            "\x1b[?1049h",
            "\x1b[?1049l",
            "> ",
            "$ ",
            "\r\n",
            "\r",
            "\x03",
            "\x1b]0;✳\x07",
            "\x1b]0;◐\x07",
            "\x1b]7501;state=done\x07",
            "\x1b]7501;state=working\x07",
            "\x1b]133;B\x07",
            "\x1b]133;C\x07",
            "\x1b[200~",
            "\x1b[201~",
            "\x1b[9999;9999H",
            "\x1b[2J",
            "\x1b[3J",
            ">>> ",
            "^C",
            "漢",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

#[derive(Debug, Clone)]
enum Act {
    Output(Vec<u8>),
    Input(Vec<u8>),
    Tty(bool),
    Resize(u16, u16),
    Interrupt,
    Gap,
    Wait(Duration),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => bytes().prop_map(Act::Output),
        4 => bytes().prop_map(Act::Input),
        1 => any::<bool>().prop_map(Act::Tty),
        1 => (0_u16..200, 0_u16..100).prop_map(|(cols, rows)| Act::Resize(cols, rows)),
        1 => Just(Act::Interrupt),
        1 => Just(Act::Gap),
        2 => (0_u64..400).prop_map(|ms| Act::Wait(Duration::from_millis(ms))),
        // Inspections are due at whole milliseconds after an event, so output may come just before.
        2 => (0_u64..400_000).prop_map(|us| Act::Wait(Duration::from_micros(us))),
        1 => prop::sample::select(vec![500, 49_500, 99_500, 249_500])
            .prop_map(|us| Act::Wait(Duration::from_micros(us))),
    ]
}

fn play(preset: &str, acts: &[Act], one_by_one: bool) -> Vec<Detection> {
    let mut detector = detector(preset);
    let mut now = Duration::ZERO;
    let mut out = Vec::new();
    for act in acts {
        let size = if one_by_one { 1 } else { usize::MAX };
        match act {
            Act::Output(bytes) => {
                bytes
                    .chunks(size)
                    .for_each(|piece| out.extend(detector.feed(now, Event::Output(piece))));
            }
            Act::Input(bytes) => {
                bytes
                    .chunks(size)
                    .for_each(|piece| out.extend(detector.feed(now, Event::Input(piece))));
            }
            Act::Tty(canonical) => {
                let mode = TtyMode {
                    canonical: *canonical,
                    echo: *canonical,
                };
                out.extend(detector.feed(now, Event::TtyMode(mode)));
            }
            Act::Resize(cols, rows) => {
                out.extend(detector.feed(
                    now,
                    Event::Resize(Size {
                        cols: *cols,
                        rows: *rows,
                    }),
                ));
            }
            Act::Interrupt => out.extend(detector.feed(now, Event::Interrupt)),
            Act::Gap => out.extend(detector.feed(now, Event::Gap)),
            Act::Wait(time) => now += *time,
        }
        assert!(detector.held_bytes() <= HELD_BYTES_MAX);
    }
    for _ in 0..16 {
        let Some(due) = detector.deadline() else {
            break;
        };
        out.extend(detector.feed(due, Event::Tick));
    }
    assert_eq!(
        detector.deadline(),
        None,
        "the detector wants to be woken for ever"
    );
    out
}

#[test]
fn a_prompt_that_rested_counts_however_the_next_output_is_cut() {
    let acts = [
        Act::Output(b"> ".to_vec()),
        Act::Wait(Duration::from_millis(100)),
        Act::Output(b"\x1b[?1049h".to_vec()),
    ];
    assert_eq!(play("generic", &acts, false), play("generic", &acts, true));
    let acts = [Act::Output(b">>> \r\n\x1b[?1049h".to_vec())];
    assert_eq!(play("generic", &acts, false), play("generic", &acts, true));
}

/// A source gains its authority in the middle of a moment, half a millisecond before an inspection
/// is due.
#[test]
fn an_inspection_that_is_nearly_due_stays_however_the_output_before_it_is_cut() {
    let done = "\x1b]7501;state=done\x07";
    let mut acts = vec![
        Act::Output(format!("{done}\r\n> ").into_bytes()),
        Act::Wait(Duration::from_millis(800)),
        Act::Input(b"x\r".to_vec()),
        Act::Wait(Duration::from_secs(1)),
        Act::Output(b"x\r\nans\r\n".to_vec()),
        Act::Wait(Duration::from_micros(99_500)),
        Act::Output(format!("q\x1b]7501;state=working\x07{done}").into_bytes()),
    ];
    for _ in 0..11 {
        acts.push(Act::Wait(Duration::from_millis(40)));
        acts.push(Act::Output(b"y".to_vec()));
    }
    let whole = play("generic", &acts, false);
    let is_turn = |detection: &Detection| matches!(detection, Detection::Turn(_));
    assert!(whole.iter().any(is_turn), "no turn to compare");
    assert_eq!(whole, play("generic", &acts, true));
}

#[test]
fn without_a_settle_time_a_line_still_waits_for_the_end_of_its_moment() {
    let mut known = presets();
    known
        .add_toml("eager", "line = '^> $'\nsettle_ms = 0")
        .unwrap();
    let session = Play::new().print("> ").rest().keys("x\r").wait(20);
    let session = session.print("x\r\nans\r\n> more\r\n> ").rest();
    for cut in [Cut::Whole, Cut::Bytes] {
        let turns = session.turns_of(known.get("eager").unwrap(), cut);
        let texts: Vec<&str> = turns.iter().map(|turn| turn.text.as_str()).collect();
        assert_eq!(texts, ["ans\n> more"], "{cut:?}");
    }
}

#[test]
fn a_long_first_frame_is_the_same_however_it_is_cut() {
    let mut bytes = b"\x1b[H\x1b[2J".to_vec();
    for row in 0..12_000_u32 {
        bytes.extend_from_slice(format!("\x1b[{};1Hrow {row}", row % 20 + 1).as_bytes());
    }
    assert!(bytes.len() > 2 * 64 * 1024);
    bytes.extend_from_slice("\x1b[22;1H────────\r\n❯ \r\n────────\x1b[23;3H".as_bytes());
    for canonical in [false, true] {
        let acts = [
            Act::Tty(canonical),
            Act::Output(bytes.clone()),
            Act::Wait(Duration::from_millis(50)),
            Act::Tty(false),
            Act::Output(b"\x1b[H\x1b[Hx\x1b[H\x1b[23;3H".to_vec()),
            Act::Wait(Duration::from_secs(2)),
            Act::Input(b"hello\r".to_vec()),
            Act::Wait(Duration::from_secs(2)),
        ];
        assert_eq!(play("generic", &acts, false), play("generic", &acts, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_never_panic_and_cutting_their_bytes_changes_nothing(
        preset in prop::sample::select(vec!["generic", "bash", "python", "claude", "codex", "opencode", "aider", "vibe", "qwen", "zsh"]),
        acts in prop::collection::vec(act(), 0..32),
    ) {
        prop_assert_eq!(play(preset, &acts, false), play(preset, &acts, true));
    }
}
