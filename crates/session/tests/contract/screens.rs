//! Screen programs: signals in order of trust, dialogs, interruption by Esc.

use crate::play::Play;
use turnkeep_session::detector::{
    ContentKind, Detection, Detector, Event, Signal, Size, State, presets,
};

const BUSY: &str = "\x1b]0;◐ Claude Code\x07";
const IDLE: &str = "\x1b]0;✳ Claude Code\x07";
const HOME: &str = "\x1b[H\x1b[2J";

/// A screen: rows of the transcript, then the box and its footer.
fn screen(transcript: &[&str], footer: &str) -> String {
    let rows = [transcript, &[""]].concat().join("\r\n");
    let rule = "─".repeat(40);
    format!("\x1b[?2026h{HOME}{rows}{rule}\r\n❯ \r\n{rule}\r\n  {footer}\x1b[?2026l")
}

const WORKS: &str = "⏵⏵ auto mode on · esc to interrupt";
const RESTS: &str = "⏵⏵ auto mode on";

fn claude() -> Play {
    Play::new().print(&screen(&[], RESTS)).print(IDLE).rest()
}

/// A turn that has begun.
fn working() -> Play {
    claude()
        .keys("hi\r")
        .wait(20)
        .print(&screen(&["❯ hi"], WORKS))
        .print(BUSY)
        .rest()
}

/// A message of the assistant, whose bullet has a colour.
const HELLO: &str = "\x1b[37m●\x1b[m Hello.";

fn answer() -> String {
    screen(&["❯ hi", "", HELLO], RESTS)
}

#[test]
fn a_turn_in_which_nothing_was_said_is_not_produced() {
    let silent = working()
        .print(&screen(&["❯ hi"], RESTS))
        .print(IDLE)
        .rest();
    assert_eq!(silent.turns("claude"), []);
    assert_eq!(silent.states("claude").last(), Some(&State::Ready));
}

#[test]
fn a_title_that_says_ready_ends_the_turn() {
    let turns = working()
        .print(&answer())
        .print(IDLE)
        .rest()
        .turns("claude");
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (turns[0].signal, turns[0].text.as_str()),
        (Signal::Title, "Hello.")
    );
}

#[test]
fn busy_then_ready_without_a_submit_makes_no_turn() {
    let play = claude().print(BUSY).rest().print(IDLE).rest();
    assert_eq!(play.turns("claude"), []);
}

#[test]
fn a_submit_that_never_shows_busy_makes_none() {
    let play = claude()
        .keys("/help\r")
        .print(&screen(&["help"], RESTS))
        .rest()
        .keys("\x1b")
        .rest();
    assert_eq!(play.turns("claude"), []);
    let play = play
        .keys("hi\r")
        .wait(20)
        .print(BUSY)
        .rest()
        .print(&answer())
        .print(IDLE)
        .rest();
    assert_eq!(play.turns("claude").len(), 1);
}

#[test]
fn a_submit_that_was_none_does_not_hide_the_next() {
    let play = claude()
        .keys("/help\r")
        .print(&screen(&["help"], RESTS))
        .rest()
        .keys("hi\r")
        .wait(20);
    let turns = play
        .print(BUSY)
        .rest()
        .print(&answer())
        .print(IDLE)
        .rest()
        .turns("claude");
    assert_eq!(turns.len(), 1);
    assert_eq!(
        turns[0].start,
        std::time::Duration::from_secs(2),
        "the second Enter was the submit"
    );
}

#[test]
fn a_ready_signal_waits_for_the_busy_sign_to_leave_the_screen_but_not_for_ever() {
    let lagging = working()
        .print(IDLE)
        .wait(200)
        .print(&answer())
        .rest()
        .turns("claude");
    let until_the_sign_left = std::time::Duration::from_millis(1220);
    assert!(
        lagging[0].end >= lagging[0].start + until_the_sign_left,
        "the busy sign was still there"
    );
    assert_eq!(lagging[0].text, "Hello.");
    let said = screen(&["❯ hi", "", HELLO], WORKS);
    let waited = working().print(&said).print(IDLE).rest().turns("claude");
    assert_eq!(waited.len(), 1, "at most 500 ms after the signal");
}

#[test]
fn an_open_synchronized_update_delays_the_boundary() {
    let half = working().print("\x1b[?2026h").print(IDLE).wait(300);
    assert_eq!(half.turns("claude"), []);
    assert_eq!(half.print(&answer()).rest().turns("claude").len(), 1);
}

#[test]
fn a_permission_dialog_is_blocked_inside_its_turn_however_it_is_answered() {
    let dialog = format!(
        "{HOME}❯ hi\r\n\r\n{HELLO}\r\n\r\n{}\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n\r\n Esc to cancel",
        "─".repeat(40)
    );
    let asked = working().print(&dialog).print(IDLE).rest();
    assert_eq!(asked.turns("claude"), []);
    assert_eq!(asked.states("claude").last(), Some(&State::Blocked));
    let yes = asked
        .clone()
        .keys("\r")
        .print(&screen(&["❯ hi"], WORKS))
        .print(BUSY)
        .rest();
    assert_eq!(yes.turns("claude"), []);
    assert_eq!(
        yes.print(&answer())
            .print(IDLE)
            .rest()
            .turns("claude")
            .len(),
        1
    );
    let interrupted = screen(
        &[
            "❯ hi",
            "",
            HELLO,
            "  ⎿  Interrupted · What should Claude do instead?",
        ],
        RESTS,
    );
    let no = asked
        .clone()
        .keys("\x1b[B\r")
        .wait(30)
        .print(&interrupted)
        .rest()
        .turns("claude");
    assert_eq!(
        (no.len(), no[0].interrupted),
        (1, false),
        "the choice No is no interruption"
    );
    let esc = asked
        .keys("\x1b")
        .wait(30)
        .print(&interrupted)
        .rest()
        .turns("claude");
    assert_eq!(
        (esc.len(), esc[0].interrupted),
        (1, true),
        "Esc that rejects the dialog is one"
    );
}

#[test]
fn esc_interrupts_only_where_the_program_confirms_it() {
    let unconfirmed = working()
        .keys("\x1b")
        .rest()
        .print(&answer())
        .print(IDLE)
        .rest()
        .turns("claude");
    assert!(!unconfirmed[0].interrupted);
    let rows = [
        "❯ hi",
        HELLO,
        "  ⎿  Interrupted · What should Claude do instead?",
    ];
    let confirmed = working()
        .keys("\x1b")
        .wait(10)
        .print(&screen(&rows, RESTS))
        .print(IDLE)
        .rest()
        .turns("claude");
    assert!(confirmed[0].interrupted);
    let arrow = working()
        .keys("\x1b[A")
        .wait(10)
        .print(&screen(&rows, RESTS))
        .print(IDLE)
        .rest()
        .turns("claude");
    assert!(!arrow[0].interrupted, "an arrow key is no Esc");
}

#[test]
fn status_is_trusted_over_the_title_and_idle_confirms_an_interruption() {
    let codex = || {
        Play::new()
            .print("\x1b]7501;state=idle:app=codex\x1b\\\x1b]0;demo\x07")
            .rest()
            .keys("hi\r")
    };
    let working = || {
        codex()
            .print("\x1b]7501;state=working:app=codex\x1b\\\x1b[2m•\x1b[m Hello.\r\n")
            .rest()
    };
    let titled = working().print("\x1b]0;demo\x07").rest();
    assert_eq!(titled.turns("codex"), [], "the title alone ends nothing");
    let done = working()
        .print("\x1b]7501;state=done:app=codex\x1b\\")
        .rest()
        .turns("codex");
    assert_eq!(
        (done.len(), done[0].interrupted, done[0].signal),
        (1, false, Signal::Status)
    );
    let stopped = working()
        .keys("\x1b")
        .rest()
        .print("\x1b]7501;state=idle:app=codex\x1b\\")
        .rest()
        .turns("codex");
    assert!(stopped[0].interrupted);
    let ignored = working()
        .keys("\x1b")
        .rest()
        .print("\x1b]7501;state=done:app=codex\x1b\\")
        .rest()
        .turns("codex");
    assert!(!ignored[0].interrupted);
}

#[test]
fn a_queued_prompt_after_a_short_ready_state_is_a_turn_of_its_own() {
    let status =
        |state: &str| format!("\x1b[2m•\x1b[m {state}.\r\n\x1b]7501;state={state}:app=x\x1b\\");
    let play = Play::new()
        .print(&status("idle"))
        .rest()
        .keys("one\r")
        .print(&status("working"))
        .rest();
    let play = play
        .keys("two\r")
        .rest()
        .print(&status("done"))
        .wait(3)
        .print(&status("working"))
        .rest();
    assert_eq!(play.turns("codex").len(), 1);
    assert_eq!(play.print(&status("done")).rest().turns("codex").len(), 2);
}

#[test]
fn a_prompt_that_the_program_took_into_the_running_turn_makes_no_second_one() {
    let status =
        |state: &str| format!("\x1b[2m•\x1b[m {state}.\r\n\x1b]7501;state={state}:app=x\x1b\\");
    let play = Play::new()
        .print(&status("idle"))
        .rest()
        .keys("one\r")
        .print(&status("working"))
        .rest();
    let play = play.keys("two\r").rest().print(&status("done")).rest();
    assert_eq!(play.turns("codex").len(), 1);
    let play = play
        .keys("three\r")
        .print(&status("working"))
        .rest()
        .print(&status("done"))
        .rest();
    assert_eq!(play.turns("codex").len(), 2);
}

#[test]
fn a_draft_that_hides_the_busy_row_is_no_proof_of_rest() {
    let rows_only = "[rows]\nbusy = 'esc to interrupt'\nready = '^❯'\ndraft_hides_busy = true";
    let mut known = turnkeep_session::detector::presets();
    known
        .add_toml("rows", &format!("content = 'screen'\n{rows_only}"))
        .unwrap();
    let turns = |play: &Play| {
        play.turns_of(known.get("rows").unwrap(), crate::play::Cut::Whole)
            .len()
    };
    let play = Play::new()
        .print(&screen(&[], RESTS))
        .rest()
        .keys("hi\r")
        .wait(20)
        .print(&screen(&["❯ hi"], WORKS))
        .rest();
    let hidden = play
        .clone()
        .keys("draft")
        .print(&screen(&["❯ hi"], RESTS))
        .rest();
    assert_eq!(turns(&hidden), 0);
    assert_eq!(
        turns(&hidden.keys("\x15").print(&screen(&["❯ hi"], RESTS)).rest()),
        1
    );
    assert_eq!(turns(&play.print(&answer()).rest()), 1);
}

#[test]
fn after_a_gap_a_turn_holds_what_the_last_page_shows() {
    let profile = "content = 'screen'\n[title]\nbusy = '^b'\nready = '^r'\n[text]\nmessage = [{ row = '^● ' }]";
    let mut known = turnkeep_session::detector::presets();
    known.add_toml("mycli", profile).unwrap();
    let size = Size { cols: 40, rows: 6 };
    let mut detector = Detector::new(known.get("mycli").unwrap(), size);
    let mut turns = Vec::new();
    let flood = "● line\r\n".repeat(100);
    for (second, event) in (0..).zip([
        Event::Output(b"\x1b]0;r\x07> "),
        Event::Input(b"x\r"),
        Event::Output(b"\x1b]0;b\x07\r\n"),
        Event::Output(flood.as_bytes()),
        Event::Gap,
        Event::Output("● line\r\n● the end\r\n> \x1b]0;r\x07".as_bytes()),
        Event::Tick,
    ]) {
        turns.extend(detector.feed(std::time::Duration::from_secs(second), event));
    }
    let turn = turns.into_iter().find_map(|detection| match detection {
        Detection::Turn(turn) => Some(turn),
        Detection::Ready | Detection::State(_) => None,
    });
    let turn = turn.unwrap();
    assert!(turn.incomplete);
    assert!(turn.text.contains("line\n\nthe end"), "{}", turn.text);
}

/// Claude in mid-answer, with a notice right above the box.
fn noticed(transcript: &[&str], notice: &str) -> String {
    screen(&[transcript, &[&format!("{notice:>78}")]].concat(), RESTS)
}

#[test]
fn a_notice_that_floats_above_the_box_is_neither_text_nor_the_end_of_the_past() {
    let draft = claude()
        .print(&noticed(&[""; 8], "ctrl+g to edit in Vim"))
        .rest();
    let asked = draft.keys("one\\\r").rest().keys("two\r").wait(20);
    let working = asked
        .print(&screen(&["❯ one", "  two"], WORKS))
        .print(BUSY)
        .rest();
    let answered = working.print(&noticed(
        &["❯ one", "  two", "", HELLO],
        "Ctrl+Y to paste deleted text",
    ));
    let turns = answered.print(IDLE).rest().turns("claude");
    assert_eq!(
        turns
            .iter()
            .map(|turn| turn.text.as_str())
            .collect::<Vec<_>>(),
        ["Hello."]
    );
}

#[test]
fn words_that_are_painted_after_the_ready_signal_are_waited_for() {
    let late = working()
        .print(&screen(&["❯ hi"], RESTS))
        .print(IDLE)
        .wait(300)
        .print(&answer())
        .rest();
    let turns = late.turns("claude");
    assert_eq!(
        turns.len(),
        1,
        "an empty turn is mostly one that is not painted yet"
    );
    assert_eq!(turns[0].text, "Hello.");
}

#[test]
fn a_footer_that_a_narrow_window_cuts_is_a_busy_sign() {
    for footer in [
        "⏵⏵ auto mode on · esc to interrupt…",
        "⏵⏵ auto mode on · esc to int…",
    ] {
        let said = screen(&["❯ hi", "", HELLO], footer);
        let busy = working().print(&said).print(IDLE).wait(400);
        assert_eq!(busy.turns("claude"), [], "{footer}");
        assert_eq!(busy.print(&answer()).rest().turns("claude").len(), 1);
    }
}

#[test]
fn esc_in_a_dialog_that_ends_the_turn_is_an_interruption_without_a_row_that_says_so() {
    let rows = |rows: &[&str]| format!("{HOME}\x1b[?1049h{}", rows.join("\r\n"));
    let shell = Play::new()
        .print(&rows(&["  ╹▀▀▀▀", " ctrl+p commands"]))
        .rest()
        .keys("go\r")
        .wait(20);
    let shell = shell
        .print(&rows(&[
            "     Hello.",
            "  ╹▀▀▀▀",
            " esc interrupt  ctrl+p commands",
        ]))
        .rest();
    let asks = shell
        .print(&rows(&[
            "     Hello.",
            "  ┃  △ Permission required",
            "  ╹▀▀▀▀",
        ]))
        .rest();
    let ends = rows(&["     Hello.", "  ╹▀▀▀▀", " ctrl+p commands"]);
    let flag = |play: Play| {
        play.print(&ends)
            .rest()
            .turns("opencode")
            .iter()
            .map(|turn| turn.interrupted)
            .collect::<Vec<_>>()
    };
    assert_eq!(flag(asks.clone().keys("\x1b").wait(80)), [true]);
    assert_eq!(flag(asks.clone().keys("\r").wait(80)), [false]);
    let on = asks
        .keys("\x1b")
        .wait(80)
        .print(&rows(&[
            "     Hello.",
            "  ╹▀▀▀▀",
            " esc interrupt  ctrl+p commands",
        ]))
        .rest();
    assert_eq!(flag(on), [false], "it went on");
}

/// A rule from side to side of the window.
fn edge() -> String {
    "─".repeat(80)
}

#[test]
fn whatever_stands_in_the_place_of_the_prompt_in_mid_turn_is_a_dialog() {
    let page = |above: &str, below: &str| {
        format!(
            "\x1b[?2026h{HOME}{above}\r\n\r\n{}\r\n{below}\x1b[?2026l",
            edge()
        )
    };
    let prompt = format!("❯ \r\n{}\r\n  footer", edge());
    let said = format!("❯ hi\r\n\r\n{HELLO}");
    let asked = Play::new()
        .print(&page("", &prompt))
        .print(IDLE)
        .rest()
        .keys("hi\r")
        .wait(20);
    let asked = asked
        .print(BUSY)
        .rest()
        .print(&page(&said, "  Words that nobody knows"))
        .print(IDLE)
        .rest();
    assert_eq!(asked.turns("claude"), []);
    assert_eq!(asked.states("claude").last(), Some(&State::Blocked));
    let done = asked
        .keys("\r")
        .print(BUSY)
        .rest()
        .print(&page(&said, &prompt))
        .print(IDLE)
        .rest();
    assert_eq!(done.turns("claude").len(), 1);
}

/// A page of opencode: its rows and the footer below the input box.
fn opencode(rows: &[&str], footer: &str) -> String {
    format!(
        "{HOME}\x1b[?1049h\x1b[J{}\r\n\r\n  ┃\r\n  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀\r\n{footer}",
        rows.join("\r\n")
    )
}

const OPENCODE_WORKS: &str = " esc interrupt  ctrl+p commands";
const OPENCODE_RESTS: &str = " ctrl+p commands";

fn opencode_working() -> Play {
    let play = Play::new()
        .print(&opencode(&[""], OPENCODE_RESTS))
        .rest()
        .keys("go\r")
        .wait(20);
    play.print(&opencode(&["  ┃  go"], OPENCODE_WORKS)).rest()
}

#[test]
fn words_are_waited_for_longer_where_there_are_none_and_the_next_enter_is_not_lost() {
    let ready = opencode_working().print(&opencode(&["  ┃  go"], OPENCODE_RESTS));
    let late = ready
        .clone()
        .wait(1200)
        .print(&opencode(&["  ┃  go", "", "     Hello."], OPENCODE_RESTS))
        .rest();
    assert_eq!(late.turns("opencode").len(), 1);
    assert_eq!(
        ready.clone().wait(600).states("opencode").last(),
        Some(&State::Ready)
    );
    let next = ready
        .wait(600)
        .keys("on\r")
        .wait(20)
        .print(&opencode(&["  ┃  on"], OPENCODE_WORKS))
        .rest();
    let next = next
        .print(&opencode(&["  ┃  on", "", "     Hello."], OPENCODE_RESTS))
        .rest();
    let starts: Vec<_> = next
        .turns("opencode")
        .iter()
        .map(|turn| turn.start.as_secs())
        .collect();
    assert_eq!(starts, [2], "the turn begins with the second Enter");
}

#[test]
fn grey_rows_with_a_sign_are_tool_calls_and_a_bare_mark_of_a_list_awaits_its_words() {
    let said = |rows: &[&str]| {
        let play = opencode_working()
            .print(&opencode(rows, OPENCODE_RESTS))
            .rest();
        play.turns("opencode")
            .into_iter()
            .map(|turn| (turn.text, turn.incomplete))
            .collect::<Vec<_>>()
    };
    let tool = [
        "  ┃  go",
        "",
        "     Look.",
        "",
        "     \x1b[90m→ Asked 1 question\x1b[m",
    ];
    assert_eq!(said(&tool), [("Look.".to_owned(), false)]);
    let arrow = ["  ┃  go", "", "     \x1b[38;5;255m→ go on\x1b[m"];
    assert_eq!(said(&arrow), [("→ go on".to_owned(), false)]);
    let quoted = ["  ┃  go", "", "     ■■■■⬝⬝⬝⬝  esc interrupt"];
    assert_eq!(
        said(&quoted),
        [("■■■■⬝⬝⬝⬝  esc interrupt".to_owned(), false)],
        "the assistant says so"
    );
    assert_eq!(
        said(&["  ┃  go", "", "     1. one", "     2."]),
        [("1. one\n2.".to_owned(), true)]
    );
}

#[test]
fn a_program_may_be_seen_working_for_a_moment_to_end_a_turn_whose_dialog_was_rejected() {
    let dialog = format!(
        "{HOME}\x1b[J  ┃  go\r\n\r\n     Hello.\r\n\r\n  ┃  Which?\r\n  ┃  ↑↓ select  enter submit  esc dismiss"
    );
    let said = |footer: &str| opencode(&["  ┃  go", "", "     Hello."], footer);
    let flag = |wait: u64| {
        let play = opencode_working()
            .print(&said(OPENCODE_WORKS))
            .rest()
            .print(&dialog)
            .rest()
            .keys("\x1b")
            .wait(80);
        let play = play
            .print(&said(OPENCODE_WORKS))
            .wait(wait)
            .print(&said(OPENCODE_RESTS))
            .rest();
        play.turns("opencode")
            .iter()
            .map(|turn| turn.interrupted)
            .collect::<Vec<_>>()
    };
    assert_eq!(flag(200), [true]);
    assert_eq!(flag(900), [false]);
}

#[test]
fn a_panel_above_the_input_area_that_goes_at_the_submit_hides_nothing() {
    let rule = "─".repeat(40);
    let page = |rows: &[&str]| {
        format!(
            "{HOME}\x1b[J{}\r\n{rule}\r\n >   Type your message",
            rows.join("\r\n")
        )
    };
    let title = |sign: &str| format!("\x1b]0;{sign}  demo\x07");
    let panel = page(&[
        "Tips",
        &rule,
        " Shortcuts",
        " ! shell mode",
        " @ select",
        " Tab focus",
    ]);
    let play = Play::new()
        .print(&title("◇"))
        .print(&panel)
        .rest()
        .keys("hi\r")
        .wait(20);
    let play = play
        .print(&page(&["Tips", "", " > hi"]))
        .print(&title("✦"))
        .rest();
    let play = play
        .print(&page(&["Tips", "", " > hi", "", "✦ 4"]))
        .print(&title("◇"))
        .rest();
    let texts: Vec<_> = play
        .turns("gemini")
        .into_iter()
        .map(|turn| turn.text)
        .collect();
    assert_eq!(texts, ["4"]);
}

/// The screen after the answer and another message.
fn announced() -> String {
    screen(
        &["❯ hi", "", HELLO, "", "\x1b[37m●\x1b[m The build is done."],
        RESTS,
    )
}

fn answered() -> Play {
    working().print(&answer()).print(IDLE).rest()
}

#[test]
fn what_is_said_without_a_submit_is_kept_and_marked() {
    let turns = answered()
        .print(BUSY)
        .rest()
        .print(&announced())
        .print(IDLE)
        .rest()
        .turns("claude");
    let said: Vec<(&str, bool)> = turns
        .iter()
        .map(|turn| (turn.text.as_str(), turn.unprompted))
        .collect();
    assert_eq!(said, [("Hello.", false), ("The build is done.", true)]);
}

#[test]
fn an_enter_while_the_program_speaks_unprompted_submits_the_next_turn() {
    let speaking = answered().print(BUSY).rest().keys("and?\r").wait(20);
    let done = "\x1b[37m●\x1b[m The build is done.";
    let next = [
        "❯ hi",
        "",
        HELLO,
        "",
        done,
        "",
        "❯ and?",
        "",
        "\x1b[37m●\x1b[m Nothing.",
    ];
    let next = screen(&next, RESTS);
    let play = speaking
        .print(&announced())
        .print(IDLE)
        .rest()
        .print(BUSY)
        .rest();
    let play = play.print(&next).print(IDLE).rest();
    let turns = play.turns("claude");
    let said: Vec<(&str, bool)> = turns
        .iter()
        .map(|turn| (turn.text.as_str(), turn.unprompted))
        .collect();
    let expect = [
        ("Hello.", false),
        ("The build is done.", true),
        ("Nothing.", false),
    ];
    assert_eq!(said, expect, "{:?}", play.states("claude"));
}

#[test]
fn a_command_makes_a_turn_only_where_the_assistant_answers() {
    let compacted = screen(&["❯ /compact", "  ⎿  Compacted"], RESTS);
    for (line, page, turns) in [
        ("/compact\r", &compacted, 0),
        ("!ls\r", &compacted, 0),
        ("/review\r", &answer(), 1),
    ] {
        let play = claude()
            .keys(line)
            .wait(20)
            .print(BUSY)
            .rest()
            .print(page)
            .print(IDLE)
            .rest()
            .rest();
        assert_eq!(play.turns("claude").len(), turns, "{line}");
    }
}

/// The commands by which each program shortens its conversation.
const SHORTENS: [(&str, &str); 10] = [
    ("claude", "/compact"),
    ("cn", "/compact"),
    ("codex", "/compact"),
    ("copilot", "/compact"),
    ("gemini", "/compress"),
    ("kilo", "/compact"),
    ("opencode", "/compact"),
    ("pi", "/compact"),
    ("qwen", "/compress"),
    ("vibe", "/compact"),
];

#[test]
fn every_screen_program_has_commands_that_make_no_turn() {
    let known = presets();
    let is_chat = |name: &&str| {
        let spec = known.spec(name).unwrap();
        spec.content == ContentKind::Screen && spec.prompt.is_none()
    };
    let chats: Vec<&str> = known.names().into_iter().filter(is_chat).collect();
    assert_eq!(chats, SHORTENS.map(|(name, _)| name));
    for (name, shortens) in SHORTENS {
        let spec = known.spec(name).unwrap();
        let pattern = |text: &Option<String>| regex::Regex::new(text.as_deref().unwrap()).unwrap();
        let (command, no_turn) = (pattern(&spec.command), pattern(&spec.no_turn));
        for line in ["!ls", shortens] {
            assert!(
                command.is_match(line) && no_turn.is_match(line),
                "{name}: {line}"
            );
        }
        assert!(
            command.is_match("/init") && !no_turn.is_match("/init"),
            "{name}"
        );
        assert!(!command.is_match("Say !ls and /compact"), "{name}");
    }
}

#[test]
fn a_shell_command_and_a_shortened_conversation_make_no_turn_of_qwen() {
    let rule = "─".repeat(80);
    let page = |said: &str, below: &str| {
        format!("\x1b[?2026h{HOME}{said}\r\n\r\n{below}\r\n{rule}\r\n> \r\n{rule}\x1b[?2026l")
    };
    for (line, turns) in [("!ls", 0), ("/compress", 0), ("hi", 1)] {
        let works = page(&format!("  > {line}"), "  ⠋ Thinking (3s · esc to cancel)");
        let rests = page(&format!("  > {line}\r\n\r\n  ✦ Some words."), "");
        let play = Play::new()
            .print(&page("", ""))
            .rest()
            .keys(line)
            .keys("\r");
        let play = play
            .wait(20)
            .print(&works)
            .rest()
            .print(&rests)
            .rest()
            .rest();
        assert_eq!(play.turns("qwen").len(), turns, "{line}");
    }
}

#[test]
fn a_turn_whose_text_could_not_be_followed_is_kept_and_incomplete() {
    // The page looks as before: the end of a long prompt, and the same answer again.
    let page = screen(&["  the end of a long prompt", "", HELLO], RESTS);
    let play = claude()
        .print(&page)
        .rest()
        .keys("again\r")
        .wait(20)
        .print(BUSY)
        .rest();
    let turns = play.print(&page).print(IDLE).rest().rest().turns("claude");
    assert_eq!(turns.len(), 1);
    assert!(turns[0].incomplete, "{:?}", turns[0]);
}

#[test]
fn a_turn_whose_words_no_rule_knows_is_kept_and_incomplete() {
    // A new version of the program puts another sign in front of its messages.
    let prompt = "\x1b[48;5;237m❯ hi\x1b[m";
    let unknown = screen(&[prompt, "", "▶ Hello."], RESTS);
    let turns = working()
        .print(&unknown)
        .print(IDLE)
        .rest()
        .rest()
        .turns("claude");
    assert_eq!(turns.len(), 1);
    assert!(turns[0].incomplete, "{:?}", turns[0]);
    // A tool call alone says nothing, and is no turn.
    let tool = screen(
        &[prompt, "", "\x1b[32m●\x1b[m Bash(ls)", "  ⎿  a.txt"],
        RESTS,
    );
    let turns = working()
        .print(&tool)
        .print(IDLE)
        .rest()
        .rest()
        .turns("claude");
    assert_eq!(turns, []);
}

/// A hundred lines come in one piece, and the program says busy only afterwards.
#[test]
fn an_answer_that_comes_in_one_piece_before_the_program_says_busy_is_kept() {
    let lines: Vec<String> = (90..=100).map(|line| format!("  line {line}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let prompt = "\x1b[48;5;237m❯ old\x1b[m";
    let claude = Play::new()
        .print("\x1b[?1049h")
        .print(&screen(&[prompt, "", HELLO], RESTS))
        .print(IDLE)
        .rest()
        .keys("hi\r")
        .wait(20);
    let claude = claude.print(&screen(&lines, RESTS)).print(BUSY).wait(300);
    let status = |state: &str| format!("\x1b]7501;state={state}:app=codex\x1b\\");
    let page = |rows: &str| format!("{HOME}{rows}\r\n\r\n› \r\n");
    let codex = Play::new()
        .print("\x1b[?1049h")
        .print(&page("› old\r\n\r\n\x1b[2m•\x1b[m Hello."))
        .print(&status("idle"))
        .rest()
        .keys("hi\r")
        .wait(20);
    let codex = codex
        .print(&page(&lines.join("\r\n")))
        .print(&status("working"))
        .wait(300);
    for (preset, play) in [
        ("claude", claude.print(IDLE)),
        ("codex", codex.print(&status("done"))),
    ] {
        let turns = play.rest().rest().turns(preset);
        assert_eq!(turns.len(), 1, "{preset}");
        assert!(turns[0].incomplete, "{preset}: {:?}", turns[0]);
        assert!(
            turns[0].text.ends_with("line 100"),
            "{preset}: {:?}",
            turns[0].text
        );
    }
}

#[test]
fn a_title_that_never_shows_busy_decides_nothing() {
    let works = claude()
        .keys("hi\r")
        .wait(20)
        .print(&screen(&["❯ hi"], WORKS))
        .rest();
    let turns = works.print(&answer()).rest().turns("claude");
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (turns[0].signal, turns[0].text.as_str()),
        (Signal::Rows, "Hello.")
    );
}

#[test]
fn a_title_that_is_stuck_at_busy_does_not_silence_the_rows() {
    let stuck = working().print(&answer()).rest().rest();
    let turns = stuck.clone().turns("claude");
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (turns[0].signal, turns[0].text.as_str()),
        (Signal::Rows, "Hello.")
    );
    // As long as something is painted, the program works.
    let paints = working()
        .print(&answer())
        .rest()
        .print("\x1b[1;1H")
        .rest()
        .print("\x1b[1;1H")
        .rest();
    assert_eq!(paints.turns("claude"), []);
}

#[test]
fn a_report_about_a_task_in_the_background_is_no_status_of_the_program() {
    let status = |state: &str| format!("\x1b]7501;state={state}\x1b\\");
    let idle = Play::new()
        .print(&screen(&[], RESTS))
        .print(&status("idle:app=claude-code"))
        .rest();
    let works = idle
        .keys("hi\r")
        .wait(20)
        .print(&status("working:app=claude-code"))
        .rest();
    let task = works
        .print(&status("done:id=a5343"))
        .rest()
        .print(&status("clear:id=a5343"))
        .rest();
    assert_eq!(task.turns("claude"), []);
    let turns = task
        .print(&answer())
        .print(&status("done:app=claude-code"))
        .rest()
        .turns("claude");
    assert_eq!(turns.len(), 1);
    assert_eq!(
        (turns[0].signal, turns[0].text.as_str()),
        (Signal::Status, "Hello.")
    );
}
