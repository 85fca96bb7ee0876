//! Sessions with unknown programs, painted by hand.

use super::super::{Detection, Detector, Event, Size, State, TtyMode, Turn, presets};
use std::time::Duration;

const RULE: &str = "────────────────────────────────────────";

/// A session under `generic`, with a clock that the test moves.
struct Play {
    detector: Detector,
    now: u64,
    turns: Vec<Turn>,
}

impl Play {
    fn new() -> Self {
        let detector = Detector::new(
            presets().get("generic").unwrap(),
            Size { cols: 40, rows: 12 },
        );
        let mut play = Self {
            detector,
            now: 0,
            turns: Vec::new(),
        };
        play.feed(Event::TtyMode(TtyMode {
            canonical: false,
            echo: false,
        }));
        play
    }

    fn feed(&mut self, event: Event<'_>) {
        let detections = self.detector.feed(Duration::from_millis(self.now), event);
        self.turns.extend(
            detections
                .into_iter()
                .filter_map(|detection| match detection {
                    Detection::Turn(turn) => Some(*turn),
                    Detection::Ready | Detection::State(_) => None,
                }),
        );
    }

    fn wait(&mut self, ms: u64) -> &mut Self {
        self.now += ms;
        self.feed(Event::Tick);
        self
    }

    fn print(&mut self, bytes: &str) -> &mut Self {
        self.feed(Event::Output(bytes.as_bytes()));
        self.wait(20)
    }

    fn handle_input(&mut self, bytes: &str) -> &mut Self {
        self.feed(Event::Input(bytes.as_bytes()));
        self.wait(20)
    }

    /// Paints a transcript, a status row and the input box with a draft.
    fn frame(&mut self, transcript: &[&str], status: &str, draft: &str) -> &mut Self {
        let words = transcript.join("\r\n");
        let rows =
            format!("{words}\x1b[7;1H{status}\x1b[8;1H{RULE}\r\n❯ {draft}\r\n{RULE}\r\n model");
        let column = draft.chars().count() + 3;
        self.print(&format!(
            "\x1b[?2026h\x1b[H\x1b[2J{rows}\x1b[9;{column}H\x1b[?2026l"
        ))
    }

    /// Types a prompt and submits it.
    fn ask(&mut self, transcript: &[&str], prompt: &str) -> &mut Self {
        self.handle_input(prompt)
            .frame(transcript, "", prompt)
            .handle_input("\r")
    }

    fn texts(&self) -> Vec<&str> {
        self.turns.iter().map(|turn| turn.text.as_str()).collect()
    }
}

const SPINNER: [&str; 4] = [
    "⠋ Working 1s",
    "⠙ Working 1s",
    "⠹ Working 2s",
    "⠸ Working 2s",
];

fn started() -> Play {
    let mut play = Play::new();
    play.print("\x1b[?1049h")
        .frame(&["Welcome"], "", "")
        .wait(1000);
    play
}

#[test]
fn a_turn_ends_when_the_spinner_is_gone_and_the_screen_rests() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.");
    for status in SPINNER {
        play.frame(&["Welcome", "> Name a colour.", "", "● Re"], status, "")
            .wait(80);
    }
    assert_eq!(play.detector.state(), State::Working);
    play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
        .wait(550);
    assert!(play.turns.is_empty(), "it may go on");
    play.wait(100);
    assert_eq!(play.texts(), ["Red."]);
    assert_eq!(play.detector.state(), State::Ready);
    assert_eq!(play.detector.unanswered(), 0);
}

#[test]
fn a_spinner_that_turns_keeps_a_stalled_turn_open() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.");
    for tick in 0..100 {
        play.frame(
            &["Welcome", "> Name a colour.", "", "● Re"],
            SPINNER[tick % 4],
            "",
        )
        .wait(80);
    }
    assert!(play.turns.is_empty());
}

#[test]
fn a_dialog_in_the_place_of_the_input_area_ends_nothing() {
    let mut play = started();
    play.ask(&["Welcome"], "Make a file.").frame(
        &["Welcome", "> Make a file.", "", "● I will."],
        "",
        "",
    );
    play.print(&format!(
        "\x1b[8;1H{RULE}\x1b[9;1H\x1b[KRun touch x?\x1b[10;1H\x1b[K❯ 1. Yes\x1b[11;1H\x1b[K"
    ));
    play.wait(10_000);
    assert!(play.turns.is_empty());
    assert_eq!(play.detector.state(), State::Blocked);
    play.handle_input("\r")
        .frame(
            &["Welcome", "> Make a file.", "", "● I will.", "● Done."],
            "",
            "",
        )
        .wait(2000);
    assert_eq!(play.texts().len(), 1);
}

#[test]
fn a_program_that_reports_its_state_is_believed() {
    let mut play = started();
    play.print("\x1b]7501;state=idle\x1b\\");
    play.ask(&["Welcome"], "Name a colour.")
        .print("\x1b]7501;state=working\x1b\\");
    play.frame(&["Welcome", "> Name a colour.", "", "● Re"], "", "")
        .wait(10_000);
    assert!(play.turns.is_empty(), "it rests, but says that it works");
    play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
        .print("\x1b]7501;state=done\x1b\\");
    play.wait(300);
    assert_eq!(play.texts(), ["Red."]);
}

#[test]
fn a_report_of_a_background_task_does_not_count() {
    let mut play = started();
    play.print("\x1b]7501;state=idle\x1b\\");
    play.ask(&["Welcome"], "Name a colour.")
        .print("\x1b]7501;state=working\x1b\\")
        .print("\x1b]7501;state=done:id=a1\x1b\\");
    play.frame(&["Welcome", "> Name a colour.", "", "● Re"], "", "")
        .wait(10_000);
    assert!(play.turns.is_empty(), "the background task is done");
    play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
        .print("\x1b]7501;state=done\x1b\\");
    play.wait(300);
    assert_eq!(play.texts(), ["Red."]);
}

#[test]
fn after_a_report_of_an_error_the_screen_counts() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.")
        .print("\x1b]7501;state=working\x1b\\");
    play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
        .print("\x1b]7501;state=error\x1b\\")
        .wait(2000);
    assert_eq!(play.texts(), ["Red."]);
}

#[test]
fn a_report_that_is_stuck_at_busy_does_not_silence_the_screen() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.")
        .print("\x1b]7501;state=working\x1b\\");
    for second in 1..6 {
        let status = format!("⠋ Working {second}s");
        play.frame(&["Welcome", "> Name a colour."], &status, "")
            .wait(1000);
    }
    play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
        .wait(2000);
    assert_eq!(play.texts(), ["Red."]);
}

#[test]
fn enter_without_a_prompt_is_counted_and_makes_no_turn() {
    let mut play = started();
    play.handle_input("\r")
        .wait(2000)
        .handle_input("\r")
        .wait(2000);
    assert!(play.turns.is_empty());
    assert_eq!(play.detector.unanswered(), 2);
}

/// An editor: typed text stays where it was typed, and the cursor goes on to the next row.
#[test]
fn an_editor_on_the_alternate_screen_makes_no_turn() {
    let mut play = Play::new();
    play.print(
        "\x1b[?1049h\x1b[H\x1b[2Jfirst line\r\nsecond line\r\n~\r\n~\x1b[12;1H\"file\" 2L\x1b[2;1H",
    )
    .wait(1000);
    for (row, line) in ["one", "two", "three"].iter().enumerate() {
        let row = row + 2;
        play.handle_input("o")
            .handle_input(line)
            .print(&format!("\x1b[{row};1H{line}"))
            .handle_input("\r");
        play.print(&format!(
            "\x1b[{};1H\x1b[L\x1b[12;1H-- INSERT --\x1b[{};1H",
            row + 1,
            row + 1
        ))
        .wait(3000);
    }
    play.handle_input(":w")
        .print("\x1b[12;1H\x1b[K:w")
        .handle_input("\r")
        .print("\x1b[12;1H\"file\" 5L written\x1b[5;1H");
    play.wait(5000);
    assert_eq!(play.texts(), Vec::<&str>::new());
}

/// A shell stays a line program, whatever paints the screen inside of it.
#[test]
fn full_screen_programs_in_a_shell_make_no_turn_of_their_own() {
    for prompt in ["$ ", "no prompt of the rule λ "] {
        let mut play = Play::new();
        play.print(prompt)
            .wait(500)
            .handle_input("vim x\r")
            .print("vim x\r\n\x1b[?1049h");
        play.frame(&["Welcome"], "", "").wait(1000);
        play.ask(&["Welcome"], "Name a colour.");
        play.frame(&["Welcome", "> Name a colour.", "", "● Red."], "", "")
            .wait(5000);
        assert!(play.turns.is_empty(), "inside of {prompt:?}");
        play.print("\x1b[?1049l").print(prompt).wait(500);
        play.handle_input("echo hi\r")
            .print("echo hi\r\nhi\r\n")
            .print(prompt)
            .wait(500);
        let expected: &[&str] = if prompt == "$ " { &["hi"] } else { &[] };
        assert_eq!(
            play.texts().last().copied().into_iter().collect::<Vec<_>>(),
            expected,
            "{prompt:?}"
        );
    }
}

#[test]
fn marks_of_a_shell_tell_the_turns_of_a_generic_session() {
    let mut play = Play::new();
    let prompt = "\x1b]133;A\x07any λ \x1b]133;B\x07";
    play.print(prompt).wait(500).handle_input("echo hi\r");
    play.print("echo hi\r\n\x1b]133;C\x07hi\r\n\x1b]133;D;0\x07")
        .print(prompt)
        .wait(500);
    assert_eq!(play.texts(), ["hi"]);
}

#[test]
fn a_turn_whose_words_were_lost_is_kept_and_incomplete() {
    let lost = || {
        let mut play = started();
        play.ask(&["Welcome"], "Name a colour.");
        for status in SPINNER.iter().chain(&SPINNER) {
            play.frame(&["Welcome", "> Name a colour."], status, "")
                .wait(80);
        }
        play.feed(Event::Gap);
        play.frame(&[], "", "");
        play
    };
    let mut play = lost();
    play.wait(6000);
    assert_eq!(play.texts(), [""]);
    assert!(play.turns[0].incomplete);
    // The next prompt ends the wait for the words.
    let mut play = lost();
    play.wait(2000).ask(&[], "And another?");
    assert_eq!(play.texts(), [""]);
}

/// Paints rows from the top; the cursor stays behind the last one.
fn rows(rows: &[&str]) -> String {
    format!("\x1b[H\x1b[2J{}", rows.join("\r\n"))
}

#[test]
fn a_program_that_reports_its_state_needs_no_input_area_that_can_be_learned() {
    let (working, done) = ("\x1b]7501;state=working\x07", "\x1b]7501;state=done\x07");
    let mut play = Play::new();
    play.print(&format!("\x1b[?1049h{done}{}", rows(&["Welcome", "ask: "])))
        .wait(1000);
    assert_eq!(play.detector.state(), State::Ready);
    play.handle_input("hello").print("hello").handle_input("\r");
    play.print(&format!(
        "{working}{}",
        rows(&["you: hello", "working", "ask: "])
    ))
    .wait(5000);
    assert!(play.turns.is_empty(), "it says that it works");
    let said = ["you: hello", "tool: the answer", "ask: "];
    play.print(&format!("{}{done}", rows(&said))).wait(1000);
    assert_eq!(play.texts(), ["tool: the answer"]);
    play.handle_input("again").print("again").handle_input("\r");
    let said = [&said[..2], &["you: again", "tool: second", "ask: "]].concat();
    play.print(working).wait(500);
    play.print(&format!("{}{done}", rows(&said))).wait(1000);
    assert_eq!(play.texts(), ["tool: the answer", "tool: second"]);
}

#[test]
fn marks_tell_the_turns_of_a_program_on_the_alternate_screen() {
    let prompt = "\x1b]133;A\x07ask: \x1b]133;B\x07";
    let mut play = Play::new();
    play.print(&format!("\x1b[?1049h{}", rows(&["Welcome", prompt])))
        .wait(1000);
    play.handle_input("hello").print("hello").handle_input("\r");
    play.print("\r\n\x1b]133;C\x07the answer\r\n").wait(5000);
    assert!(play.turns.is_empty(), "the command is not done");
    play.print(&format!("\x1b]133;D;0\x07{prompt}")).wait(1000);
    assert_eq!(play.texts(), ["the answer"]);
    assert_eq!(play.turns[0].signal, super::Signal::Marks);
    // Enter that submits nothing, in a menu say, makes no turn.
    play.handle_input("x").handle_input("\r").wait(9000);
    assert_eq!(play.turns.len(), 1);
}

#[test]
fn a_shell_command_and_a_shortened_conversation_make_no_turn_although_a_spinner_turned() {
    for (command, turns) in [
        ("!ls", 0),
        ("/compact now", 0),
        ("/compress", 0),
        ("/init", 1),
    ] {
        let mut play = started();
        play.ask(&["Welcome"], command);
        let shown = format!("> {command}");
        for status in SPINNER {
            play.frame(&["Welcome", &shown], status, "").wait(80);
        }
        play.frame(&["Welcome", &shown, "", "● Some words."], "", "")
            .wait(6000);
        assert_eq!(play.turns.len(), turns, "{command}");
    }
}

#[test]
fn marks_in_front_of_the_rows_of_a_transcript_do_not_tell_a_state() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.");
    let rows = [
        "> Name a colour.",
        "\x1b]133;A\x07",
        "\x1b]133;B\x07\x1b]133;C\x07● Red.",
    ];
    play.frame(&[&["Welcome"][..], &rows].concat(), "", "")
        .wait(3000);
    assert_eq!(play.texts(), ["Red."]);
}

#[test]
fn a_report_that_never_said_ready_does_not_silence_the_screen() {
    let mut play = started();
    play.ask(&["Welcome"], "Name a colour.")
        .print("\x1b]7501;state=working\x1b\\");
    let said = ["Welcome", "> Name a colour.", "", "● Red."];
    play.frame(&said, "", "").wait(3000);
    assert_eq!(play.texts(), ["Red."]);
    // Once it has said ready, it is believed.
    play.print("\x1b]7501;state=done\x1b\\")
        .ask(&said, "And another?")
        .print("\x1b]7501;state=working\x1b\\");
    let more = [&said[..], &["> And another?", "● Blue."]].concat();
    play.frame(&more, "", "").wait(3000);
    assert_eq!(play.texts(), ["Red."]);
    play.print("\x1b]7501;state=done\x1b\\").wait(300);
    assert_eq!(play.turns.len(), 2);
}
