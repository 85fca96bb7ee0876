//! The screen and its gatherer on hand-made bytes: one claim per test, rows in and lines out.

use super::{Begin, Ending, Gathered, Gatherer, Mark, Screen, Size, Submitted, TextRules};
use super::{SCROLLED_ROWS_MAX, STRING_BYTES_MAX};
use proptest::prelude::*;

const SIZE: Size = Size { cols: 20, rows: 6 };

fn screen_after(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE);
    screen.feed(bytes, |_| {});
    screen
}

fn shown(screen: &Screen) -> Vec<String> {
    let mut rows: Vec<String> = screen.rows().into_iter().map(|row| row.text).collect();
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

fn scrolled(screen: &Screen) -> Vec<String> {
    screen
        .scrolled_since(0)
        .0
        .map(|row| row.text.clone())
        .collect()
}

#[test]
fn what_is_printed_stands_on_the_rows() {
    let cases: [(&str, &[&str]); 9] = [
        ("plain", &["plain"]),
        ("a\r\nb", &["a", "b"]),
        ("\x1b[31mred\x1b[0m", &["red"]),
        ("漢字\x1b[5Gx", &["漢字x"]),
        ("e\u{301}x", &["e\u{301}x"]),
        ("👩\u{200d}💻\x1b[3Gx", &["👩\u{200d}💻x"]),
        ("👍🏽\x1b[3Gx", &["👍🏽x"]),
        ("葛\u{e0100}\x1b[3Gx", &["葛\u{e0100}x"]),
        ("\x1b]0;title\x07after", &["after"]),
    ];
    for (bytes, rows) in cases {
        assert_eq!(shown(&screen_after(bytes.as_bytes())), rows, "{bytes:?}");
    }
}

#[test]
fn the_blank_half_of_an_emoji_is_no_blank_where_cells_are_painted_by_place() {
    let painted = "⚠\u{fe0f}\x1b[1;3H, x";
    let alternate = format!("\x1b[?1049h\x1b[H{painted}");
    assert_eq!(shown(&screen_after(alternate.as_bytes())), ["⚠\u{fe0f}, x"]);
    assert_eq!(
        shown(&screen_after("⚠\u{fe0f} x".as_bytes())),
        ["⚠\u{fe0f} x"]
    );
    let over_blanks = "\x1b[?1049h\x1b[H          \x1b[1;1H⚠\u{fe0f}\x1b[1;4Hx";
    assert_eq!(
        shown(&screen_after(over_blanks.as_bytes())),
        ["⚠\u{fe0f} x"]
    );
}

#[test]
fn cells_that_a_program_counts_to_a_joined_emoji_are_blank() {
    let family = "👨\u{200d}👩\u{200d}👧";
    let check = |painted: &str, row: &str| {
        let bytes = format!("x어abcdefg\x1b[1;2H{painted}");
        for cut in 0..=bytes.len() {
            let mut screen = Screen::new(SIZE);
            screen.feed(&bytes.as_bytes()[..cut], |_| {});
            screen.feed(&bytes.as_bytes()[cut..], |_| {});
            assert_eq!(shown(&screen), [row], "{painted:?} cut at {cut}");
        }
    };
    // The program moves to the end of the glyph as it counts, and on from there.
    let ended = format!("{family}\x1b[1;8H\x1b[m\x1b[1;8Hx");
    check(&ended, &format!("x{family}    xfg"));
    // A single move may skip cells that are unchanged.
    check(&format!("{family}\x1b[1;8Hx"), &format!("x{family}abcdxfg"));
    // Further than all parts together, elsewhere, or behind a glyph without parts.
    check(
        &format!("{family}\x1b[1;9H\x1b[1;9Hx"),
        &format!("x{family}abcdexg"),
    );
    check(
        &format!("{family}\x1b[1;4H\x1b[1;8Hx"),
        &format!("x{family}abcdxfg"),
    );
    check("👨\x1b[1;6H\x1b[1;6Hx", "x👨abxdefg");
}

#[test]
fn only_rows_that_the_terminal_broke_are_wrapped() {
    let screen = screen_after(b"12345678901234567890abc\r\n12345678901234567890\r\nx");
    let wrapped: Vec<bool> = screen.rows().iter().map(|row| row.wrapped).collect();
    assert_eq!(wrapped, [true, false, false, false, false, false]);
}

#[test]
fn a_row_broken_before_a_character_of_two_cells_is_wrapped_too() {
    let screen = screen_after("1234567890123456789漢字".as_bytes());
    let rows: Vec<(String, bool)> = screen
        .rows()
        .into_iter()
        .take(2)
        .map(|row| (row.text, row.wrapped))
        .collect();
    assert_eq!(
        rows,
        [
            ("1234567890123456789".to_owned(), true),
            ("漢字".to_owned(), false)
        ]
    );
}

#[test]
fn a_string_without_an_end_is_cut_and_ends_all_the_same() {
    for opening in ["\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\x1bX"] {
        let mut screen = Screen::new(SIZE);
        screen.feed(opening.as_bytes(), |_| {});
        screen.feed(&vec![b'x'; 3 * STRING_BYTES_MAX], |_| {});
        screen.feed(b"\x1b\\after", |_| {});
        assert_eq!(shown(&screen), ["after"], "{opening:?}");
    }
}

#[test]
fn rows_that_scroll_off_the_main_screen_are_numbered_without_a_gap() {
    let lines: Vec<String> = (0..100).map(|n| format!("line {n}\r\n")).collect();
    let screen = screen_after(lines.concat().as_bytes());
    assert_eq!(screen.scrolled_total(), 95);
    assert_eq!(
        scrolled(&screen),
        (0..95).map(|n| format!("line {n}")).collect::<Vec<_>>()
    );
    let (since, lost) = screen.scrolled_since(93);
    assert_eq!(
        (since.map(|row| row.text.as_str()).collect::<Vec<_>>(), lost),
        (vec!["line 93", "line 94"], false)
    );
}

#[test]
fn rows_that_nobody_collected_are_dropped_and_said_to_be_lost() {
    let mut screen = Screen::new(SIZE);
    let mut frames = 0;
    screen.feed(&b"x\r\n".repeat(3 * SCROLLED_ROWS_MAX), |_| frames += 1);
    let (kept, lost) = screen.scrolled_since(0);
    assert_eq!((kept.count(), lost), (SCROLLED_ROWS_MAX, true));
    assert!(
        frames > 3,
        "frames in between let a reader collect: {frames}"
    );
}

#[test]
fn rows_that_a_few_bytes_scrolled_by_the_thousand_are_said_to_be_lost() {
    let screen = screen_after(b"x\x1b[65535bx\x1b[65535b");
    let (kept, lost) = screen.scrolled_since(0);
    assert!(kept.count() <= SCROLLED_ROWS_MAX && lost);
}

#[test]
fn a_repaint_from_above_the_window_takes_rows_back() {
    let screen = screen_after(b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\x1b[6A");
    assert_eq!(
        scrolled(&screen),
        ["1"],
        "eight rows, six visible, six up: row 2 is painted again"
    );
    let screen = screen_after(b"1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n7\r\n8\x1b[999A");
    assert_eq!(scrolled(&screen), ["1", "2"], "999 means the top");
}

#[test]
fn an_erased_scrollback_and_a_reset_begin_an_epoch_of_the_screen_that_is_shown() {
    for (bytes, epoch) in [
        (&b"x\x1b[2J"[..], 0),
        (b"x\x1b[3J", 1),
        (b"x\x1bc", 1),
        (b"\x1b[?1049h", 0),
        (b"\x1b[?1049h\x1b[3J", 1),
        (b"\x1b[?1049h\x1b[3J\x1b[?1049l", 0),
        (b"\x1b[3J\x1b[?1049h\x1b[?1049l", 1),
    ] {
        let mut screen = Screen::new(SIZE);
        for byte in bytes {
            screen.feed(&[*byte], |_| {});
        }
        assert_eq!(screen.epoch(), epoch, "{bytes:?}");
    }
}

#[test]
fn a_frame_is_shown_at_the_end_of_each_synchronized_update_and_never_inside_one() {
    let mut screen = Screen::new(SIZE);
    let mut frames = Vec::new();
    screen.feed(
        b"\x1b[?2026ha\x1b[?2026l\x1b[?2026hb\x1b[?2026l\x1b[?2026hc",
        |screen| {
            frames.push(shown(screen).concat());
        },
    );
    assert_eq!(frames, ["a", "ab"]);
    assert!(screen.sync_open());
    screen.feed(b"d\x1b[?2026l", |screen| {
        frames.push(shown(screen).concat());
    });
    assert_eq!(frames, ["a", "ab", "abcd", "abcd"]);
}

#[test]
fn a_reset_forgets_the_rows_but_not_which_screen_is_shown() {
    let mut screen = screen_after(b"\x1b[?1049hx\x1b]0;half a title");
    screen.reset();
    assert_eq!(
        (shown(&screen), screen.is_alternate()),
        (Vec::<String>::new(), true)
    );
    screen.feed(b"y", |_| {});
    assert_eq!(shown(&screen), ["y"]);
}

#[test]
fn the_text_left_of_the_cursor_keeps_its_blanks() {
    assert_eq!(screen_after(b"> ").left_of_cursor(), "> ");
    assert_eq!(screen_after(b"> abc\x1b[3D").left_of_cursor(), "> ");
}

/// Rules of an imaginary program: `>` prompts, `*` messages, `!` tools, `==` above the input.
fn rules() -> TextRules {
    let rows = |patterns: &[&str]| {
        patterns
            .iter()
            .map(|row| Mark {
                row: (*row).to_owned(),
                ..Mark::default()
            })
            .collect()
    };
    TextRules {
        end: rows(&["^==$"]),
        pinned: rows(&["^> "]),
        user: rows(&["^> "]),
        drop: rows(&["^~"]),
        chrome: rows(&["^!"]),
        message: vec![Mark {
            row: r"^\* ".to_owned(),
            indent: 2,
            ..Mark::default()
        }],
        gutter: rows(&[r"^ {3,}(\d+)( |$)"]),
        ..TextRules::default()
    }
}

/// A program on the alternate screen: each frame repaints the whole window.
struct Program {
    screen: Screen,
    gatherer: Gatherer,
}

impl Program {
    fn new(rules: &TextRules) -> Self {
        let mut screen = Screen::new(SIZE);
        screen.feed(b"\x1b[?1049h", |_| {});
        Self {
            screen,
            gatherer: Gatherer::new(rules).unwrap(),
        }
    }

    fn paint(&mut self, rows: &[&str]) {
        let mut bytes = b"\x1b[?2026h\x1b[2J".to_vec();
        for (at, row) in rows.iter().enumerate() {
            bytes.extend(format!("\x1b[{};1H{row}", at + 1).bytes());
        }
        bytes.extend(b"\x1b[?2026l");
        self.write(&bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.screen
            .feed(bytes, |screen| self.gatherer.apply_frame(screen));
    }

    fn begin(&mut self) {
        self.gatherer.begin_turn(&self.screen);
    }

    fn text(&self) -> Gathered {
        self.gatherer.text(Ending::Complete)
    }
}

fn check(program: &Program, text: &str, incomplete: bool) {
    let found = program.text();
    assert_eq!((found.text.as_str(), found.incomplete), (text, incomplete));
}

#[test]
fn messages_are_kept_and_everything_else_is_left_out() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 20, rows: 30 });
    program.paint(&["> old", "* old answer", "=="]);
    program.begin();
    program.paint(&[
        "> old",
        "* old answer",
        "> ask",
        "",
        "* one",
        "  two",
        "",
        "     1 code",
        "     2",
        "~ tip",
        "",
        "!tool",
        "  output",
        "",
        "  more output",
        "",
        "* last",
        "  3 of them",
        "~ 1s",
        "==",
        "in",
    ]);
    check(&program, "one\ntwo\n\ncode\n\nlast\n3 of them", false);
}

#[test]
fn rows_that_scroll_by_repainting_are_kept_once_and_in_order() {
    let mut program = Program::new(&rules());
    program.paint(&["==", ">"]);
    program.begin();
    program.paint(&["> ask", "* 1", "=="]);
    program.paint(&["> ask", "* 1", "  2", "  3", "=="]);
    program.paint(&["> ask", "  2", "  3", "  4", "=="]);
    program.paint(&["> ask", "  3", "  4", "  5 and", "=="]);
    program.paint(&["> ask", "  4", "  5 and so on", "  6", "=="]);
    check(&program, "1\n2\n3\n4\n5 and so on\n6", false);
}

#[test]
fn frames_that_share_no_row_leave_a_gap_and_say_so() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "=="]);
    program.paint(&["  7", "  8", "  9", "=="]);
    check(&program, "1\n2\n3\n\n[…]\n\n7\n8\n9", true);
}

#[test]
fn a_page_of_repetitions_is_not_taken_for_the_page_before_it() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&[
        "* def a", "    same", "    same", "  def b", "    same", "==",
    ]);
    program.paint(&[
        "    same", "  def b", "    same", "    same", "  def c", "==",
    ]);
    check(
        &program,
        "def a\n  same\n  same\ndef b\n  same\n  same\ndef c",
        false,
    );
    program.paint(&[
        "  def h", "    same", "    same", "  def i", "    same", "==",
    ]);
    assert!(program.text().incomplete, "{:?}", program.text());
}

#[test]
fn a_view_over_the_transcript_that_closes_again_leaves_no_gap() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "=="]);
    program.paint(&["help", "about", "this"]);
    program.paint(&["* 1", "  2", "  3", "  4", "=="]);
    check(&program, "1\n2\n3\n4", false);
}

#[test]
fn looking_back_with_the_wheel_loses_nothing() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "  4", "=="]);
    program.paint(&["  3", "  4", "  5", "  6", "=="]);
    program.paint(&["* 1", "  2", "  3", "  4", "=="]);
    check(&program, "1\n2\n3\n4\n5\n6", false);
    program.paint(&["  4", "  5", "  6", "  7", "=="]);
    check(&program, "1\n2\n3\n4\n5\n6\n7", false);
}

#[test]
fn a_message_that_is_laid_out_anew_stands_once() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 20, rows: 12 });
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* a", "  b", "  c", "  d", "  e", "  f", "  g", "=="]);
    program.paint(&[
        "  b", "", "  c", "", "  d", "", "  e", "", "  f", "", "  g", "==",
    ]);
    check(&program, "a\nb\n\nc\n\nd\n\ne\n\nf\n\ng", false);
}

#[test]
fn a_screen_that_has_nothing_of_the_old_one_begins_at_the_last_prompt() {
    let mut program = Program::new(&rules());
    program.paint(&["welcome", "=="]);
    program.begin();
    program.paint(&["", "> ask", "", "* answer", "=="]);
    check(&program, "answer", false);
}

#[test]
fn lost_bytes_make_the_turn_incomplete() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "=="]);
    program.screen.reset();
    program.gatherer.note_gap();
    program.paint(&["  8", "  9", "=="]);
    assert!(program.text().incomplete);
    program.begin();
    assert!(!program.text().incomplete);
}

#[test]
fn after_a_resize_rows_that_left_stay_and_the_rest_is_the_new_frame() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  a b c", "  d e f", "=="]);
    program.paint(&["  2", "  a b c", "  d e f", "  g h", "=="]);
    program.screen.resize(Size { cols: 10, rows: 8 });
    program.paint(&["  2 ", "  a b", "  c d", "  e f", "  g h", "=="]);
    check(&program, "1\n2\na b\nc d\ne f\ng h", false);
}

#[test]
fn a_window_that_shrinks_below_half_pushes_every_row_up() {
    let mut program = Program {
        screen: Screen::new(Size { cols: 20, rows: 40 }),
        ..main_screen(&rules())
    };
    program.write(b"==\r\n");
    program.begin();
    let rows: Vec<String> = (1..=30)
        .map(|n| format!("{} {n}\r\n", if n == 1 { "*" } else { " " }))
        .collect();
    program.write(rows.concat().as_bytes());
    program.screen.resize(Size { cols: 10, rows: 10 });
    program.write(b"==");
    let expect: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
    check(&program, &expect.join("\n"), false);
}

/// A program on the main screen: rows go by, nothing is repainted.
fn main_screen(rules: &TextRules) -> Program {
    Program {
        screen: Screen::new(SIZE),
        gatherer: Gatherer::new(rules).unwrap(),
    }
}

fn numbered(from: usize, to: usize) -> String {
    let row = |n: usize| format!("{} {n}\r\n", if n == 1 { "*" } else { " " });
    (from..=to).map(row).collect::<Vec<_>>().concat()
}

fn lines(to: usize) -> String {
    (1..=to)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_window_that_becomes_much_lower_loses_no_row() {
    for (before, after) in [(50, 24), (40, 10), (40, 1), (6, 5)] {
        let mut program = main_screen(&rules());
        program.screen.resize(Size {
            cols: 20,
            rows: before,
        });
        program.begin();
        program.write(numbered(1, 60).as_bytes());
        program.screen.resize(Size {
            cols: 20,
            rows: after,
        });
        program.write(numbered(61, 70).as_bytes());
        check(&program, &lines(70), false);
    }
}

#[test]
fn a_visit_to_the_other_screen_in_mid_turn_costs_no_row() {
    for pager in [
        "\x1b[?1049h\x1b[2Jpage\x1b[?1049l",
        "\x1b[?1049hpage\x1b[3J\x1b[?1049l",
        "\x1b[?2026h\x1b[?1049h\x1b[?1049l\x1b[?2026l",
    ] {
        for cut in [1, 7, 4096] {
            let mut program = main_screen(&rules());
            program.begin();
            let output = format!("{}{pager}{}{pager}==", numbered(1, 100), numbered(101, 120));
            for piece in output.as_bytes().chunks(cut) {
                program.write(piece);
            }
            check(&program, &lines(120), false);
        }
    }
}

#[test]
fn a_program_on_the_alternate_screen_that_runs_an_editor_keeps_what_it_said() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "  4", "=="]);
    program.paint(&["  2", "  3", "  4", "  5", "=="]);
    program.write(b"\x1b[?1049leditor\r\n");
    program.write(b"\x1b[?1049h");
    program.paint(&["  3", "  4", "  5", "  6", "=="]);
    check(&program, &lines(6), false);
}

#[test]
fn a_repaint_after_a_visit_to_the_other_screen_counts_once() {
    let mut program = main_screen(&rules());
    program.write(b"a\r\nb\r\nc\r\n");
    program.begin();
    program.write(numbered(1, 20).as_bytes());
    program.write(b"\x1b[?1049hpage");
    program.write(
        format!(
            "\x1b[?1049l\x1b[2J\x1b[3J\x1b[Ha\r\nb\r\nc\r\n{}",
            numbered(1, 21)
        )
        .as_bytes(),
    );
    check(&program, &lines(21), false);
}

#[test]
fn an_erased_scrollback_takes_the_rows_anew_from_where_the_past_ends() {
    let mut program = main_screen(&rules());
    program.write(b"a\r\nb\r\nc\r\n* old\r\n==\r\n");
    program.begin();
    program.write(b"\x1b[1A\x1b[J> ask\r\n* new 1\r\n  2\r\n  3\r\n==\r\n");
    let all = b"\x1b[2J\x1b[3J\x1b[Ha\r\nb\r\nc\r\n* old\r\n> ask\r\n* new 1\r\n  2\r\n  3\r\n  4\r\n==\r\n";
    program.write(all);
    program.write(all);
    check(&program, "new 1\n2\n3\n4", false);
}

#[test]
fn a_repaint_taller_than_the_window_counts_once() {
    let mut program = main_screen(&rules());
    program.write(b"==\r\n");
    program.begin();
    let painted = |count: usize| {
        let row = |n: usize| format!("{} {n}\r\n", if n == 1 { "*" } else { " " });
        (1..=count).map(row).collect::<Vec<_>>().concat() + "=="
    };
    program.write(b"\x1b[1A\x1b[J");
    program.write(painted(8).as_bytes());
    program.write(("\x1b[2K\x1b[1A".repeat(8) + "\x1b[2K\x1b[G").as_bytes());
    program.write(painted(10).as_bytes());
    check(&program, "1\n2\n3\n4\n5\n6\n7\n8\n9\n10", false);
}

#[test]
fn a_line_program_is_read_below_its_input_line_and_above_the_next() {
    let rules = TextRules {
        begin: Begin::Screen,
        end_last: vec![Mark {
            row: "^>".to_owned(),
            ..Mark::default()
        }],
        repeats: true,
        ..TextRules::default()
    };
    let mut program = main_screen(&rules);
    program.write(b"> ask");
    program.begin();
    program.write(b"\r\n1\r\n2\r\n1\r\n2\r\n3\r\n3\r\n12345678901234567890abc\r\n> ");
    check(&program, "1\n2\n1\n2\n3\n3\n12345678901234567890abc", false);
    let interrupted = program.gatherer.text(Ending::Interrupted).text;
    assert_eq!(
        interrupted, "1\n2\n3\n12345678901234567890abc",
        "repeats of an interrupted turn"
    );
}

#[test]
fn a_pattern_that_does_not_compile_is_refused_with_its_field() {
    let rules: TextRules = toml::from_str("chrome = ['^ok', '^(']").unwrap();
    let error = Gatherer::new(&rules).unwrap_err().to_string();
    assert!(
        error.starts_with("text.chrome: ") && error.contains("unclosed group"),
        "{error}"
    );
}

#[test]
fn rules_are_written_as_patterns_or_as_tables() {
    let rules: TextRules = toml::from_str(
        "message = [{ row = '^\\* ', indent = 2 }]\nuser = ['^> ']\nbegin = 'screen'\n\
         chrome = [{ row = '^\\* ', look = { dim = false } }]",
    )
    .unwrap();
    assert_eq!(rules.message[0].indent, 2);
    assert_eq!(rules.chrome[0].look.dim, Some(false));
    assert_eq!(rules.begin, Begin::Screen);
    assert!(
        toml::from_str::<TextRules>("mesage = []").is_err(),
        "a misspelt field is refused"
    );
    assert!(toml::from_str::<TextRules>("user = [{ row = '', look = { dimm = true } }]").is_err());
}

#[test]
fn the_shipped_rules_compile() {
    for name in TextRules::preset_names() {
        let rules = TextRules::preset(name);
        assert!(
            rules.is_some_and(|rules| Gatherer::new(&rules).is_ok()),
            "{name}"
        );
    }
    assert_eq!(TextRules::preset("nobody"), None);
}

/// Bytes that a terminal program might write, and some that none would.
fn output() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        "[a-z 漢é👩\u{200d}\u{fe0f}🏽]{0,12}".prop_map(String::into_bytes),
        "\x1b\\[[0-9;?]{0,6}[@-~]".prop_map(String::into_bytes),
        "\x1b[PX^_\\]][a-z]{0,4}(\x07|\x1b\\\\)?".prop_map(String::into_bytes),
        Just(b"\r\n".to_vec()),
        Just(b"\x1b[?2026h".to_vec()),
        Just(b"\x1b[?2026l".to_vec()),
        Just(b"\x1b[?1049h".to_vec()),
        Just(b"\x1b[?1049l".to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn how_the_bytes_are_cut_changes_nothing_on_the_screen(bytes in output(), cols in 1u16..30, rows in 1u16..10) {
        let size = Size { cols, rows };
        let (mut whole, mut pieces) = (Screen::new(size), Screen::new(size));
        whole.feed(&bytes, |_| {});
        for byte in &bytes {
            pieces.feed(&[*byte], |_| {});
        }
        prop_assert_eq!(shown(&whole), shown(&pieces));
        prop_assert_eq!(scrolled(&whole), scrolled(&pieces));
        prop_assert_eq!((whole.epoch(), whole.sync_open()), (pieces.epoch(), pieces.sync_open()));
    }

    #[test]
    fn no_bytes_and_no_sizes_stop_the_gatherer(
        steps in prop::collection::vec((output(), 0u16..40, 0u16..12), 1..8),
        name in prop::sample::select(TextRules::preset_names().collect::<Vec<_>>()),
    ) {
        let mut screen = Screen::new(SIZE);
        let mut gatherer = Gatherer::new(&TextRules::preset(name).unwrap()).unwrap();
        gatherer.begin_turn(&screen);
        for (bytes, cols, rows) in steps {
            screen.feed(&bytes, |screen| gatherer.apply_frame(screen));
            screen.resize(Size { cols, rows });
            gatherer.apply_frame(&screen);
        }
        prop_assert!(!gatherer.text(Ending::Interrupted).text.ends_with('\n'));
    }
}

/// What is gathered on the alternate screen, each frame painted from the top.
fn gathered(rules: &TextRules, frames: &[&str]) -> Gathered {
    let mut screen = Screen::new(SIZE);
    let mut gatherer = Gatherer::new(rules).unwrap();
    screen.feed(b"\x1b[?1049h", |_| {});
    gatherer.begin_turn(&screen);
    for frame in frames {
        let frame = format!("\x1b[H\x1b[2J{frame}");
        screen.feed(frame.as_bytes(), |screen| gatherer.apply_frame(screen));
    }
    gatherer.text(Ending::Complete)
}

fn mark(row: &str) -> Mark {
    Mark {
        row: row.to_owned(),
        ..Mark::default()
    }
}

#[test]
fn a_column_beside_the_transcript_and_a_scroll_bar_are_no_text() {
    let edge = TextRules {
        end_last: vec![mark("^▀+")],
        edge: Some("^▀+".to_owned()),
        ..TextRules::default()
    };
    let beside = [
        "said      12 tokens\r\n▀▀▀▀▀▀▀   idle",
        "said      99 tokens\r\n更多      █\r\n▀▀▀▀▀▀▀   idle",
    ];
    let found = gathered(&edge, &beside);
    assert_eq!(
        (found.text.as_str(), found.incomplete),
        ("said\n更多", false)
    );
    let dialog = [
        beside[0],
        "said      12 tokens\r\n          0 % used\r\n Allow?   idle",
        beside[1],
    ];
    let found = gathered(&edge, &dialog[..2]);
    assert_eq!(
        found.text, "said\n\n Allow?",
        "a dialog stands where the edge was"
    );
    assert_eq!(gathered(&edge, &dialog).text, "said\n更多");
    let bar = TextRules {
        scrollbar: "█".to_owned(),
        ..TextRules::default()
    };
    let frames = ["one\x1b[1;20H█", "one\r\ntwo\x1b[2;20H█"];
    assert_eq!(gathered(&bar, &frames).text, "one\ntwo");
}

#[test]
fn rows_that_were_filled_with_blanks_for_a_wider_window_are_no_wrapped_line() {
    let filled = format!(
        "one{}\r\x1b[2;1Htwo",
        " ".repeat(usize::from(SIZE.cols) + 4)
    );
    assert_eq!(gathered(&TextRules::default(), &[&filled]).text, "one\ntwo");
    for blanks in [0, 1, 2] {
        let long = "x".repeat(usize::from(SIZE.cols) - blanks) + &" ".repeat(blanks) + "y";
        assert_eq!(gathered(&TextRules::default(), &[&long]).text, long);
    }
}

#[test]
fn the_third_of_three_equal_turns_has_its_answer_though_the_page_looks_as_before() {
    let message = vec![Mark {
        indent: 2,
        ..mark("^● ")
    }];
    let rules = TextRules {
        user: vec![mark("^> ")],
        message,
        ..TextRules::default()
    };
    let page = "\x1b[H\x1b[2J> again\r\n\r\n● Done.\r\n> again\r\n\r\n● Done.";
    let mut screen = Screen::new(SIZE);
    let mut gatherer = Gatherer::new(&rules).unwrap();
    screen.feed(format!("\x1b[?1049h{page}").as_bytes(), |_| {});
    gatherer.begin_turn(&screen);
    screen.feed(page.as_bytes(), |screen| gatherer.apply_frame(screen));
    assert_eq!(gatherer.text(Ending::Complete).text, "");
    for (asked, answer) in [("again", "Done."), ("other", ""), ("", "")] {
        assert_eq!(gatherer.answer_again(asked), answer, "{asked:?}");
    }
}

#[test]
fn a_list_that_moves_to_the_right_and_a_bullet_that_blinks_are_the_same_rows() {
    let frames = ["8. a\r\n9. b\r\n● c", " 8. a\r\n 9. b\r\n  c\r\n10. d"];
    let found = gathered(&TextRules::default(), &frames);
    assert_eq!(
        (found.text.as_str(), found.incomplete),
        (" 8. a\n 9. b\n  c\n10. d", false)
    );
}

#[test]
fn what_is_hidden_and_what_floats_above_the_end_is_left_out() {
    let hidden = vec![super::Hidden {
        from: mark("^> THINK$"),
        to: mark("^> SAY$"),
    }];
    let rules = TextRules {
        hidden,
        floats: vec![mark("^f\\.rs$")],
        end: vec![mark("^---$")],
        ..TextRules::default()
    };
    let frame = "> THINK\r\nhm\r\n> SAY\r\nf.rs said\r\nf.rs\r\n---";
    assert_eq!(gathered(&rules, &[frame]).text, "f.rs said");
}

#[test]
fn a_turn_is_handed_over_at_the_prompt_of_the_next() {
    let rules = TextRules {
        user: vec![mark("^> ")],
        message: vec![mark("^\\* ")],
        ..TextRules::default()
    };
    let mut screen = screen_after(b"\x1b[?1049h");
    let mut gatherer = Gatherer::new(&rules).unwrap();
    gatherer.begin_turn(&screen);
    screen.feed(b"> one\r\n* first\r\n", |screen| {
        gatherer.apply_frame(screen);
    });
    assert_eq!(
        gatherer.hand_over(Ending::Complete),
        None,
        "the next prompt is not there"
    );
    screen.feed(b"> two\r\n* sec", |screen| gatherer.apply_frame(screen));
    let handed = gatherer.hand_over(Ending::Complete);
    assert_eq!(
        handed,
        Some(Gathered {
            text: "first".to_owned(),
            incomplete: false,
            followed: true
        })
    );
    screen.feed(b"ond", |screen| gatherer.apply_frame(screen));
    assert_eq!(gatherer.text(Ending::Complete).text, "second");
}

#[test]
fn rows_that_are_erased_one_by_one_and_painted_anew_count_once() {
    let mut program = main_screen(&rules());
    program.write(b"> old\r\n* before\r\n==");
    program.begin();
    program.write(b"\x1b[2K\r> ask\r\n* 1\r\n  2\r\n==\r\n?\r\n?\r\n?\r\n?");
    let erase = "\x1b[2K\x1b[1B".repeat(usize::from(SIZE.rows));
    let page = "> ask\r\n* 1\r\n  2\r\n  3\r\n==";
    program.write(format!("\x1b[?2026h\x1b[H{erase}\x1b[H{page}\x1b[?2026l").as_bytes());
    check(&program, "1\n2\n3", false);
}

#[test]
fn a_frame_that_was_laid_out_for_the_old_size_is_forgotten_at_the_repaint() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "  4", "=="]);
    program.screen.resize(Size { cols: 20, rows: 5 });
    program.write(b"\x1b[2;3H9");
    program.write(b"\x1b[?2026h\x1b[1;1H\x1b[J  2\r\n  3\r\n  4\r\n  5\r\n==\x1b[?2026l");
    check(&program, "1\n2\n3\n4\n5", false);
}

#[test]
fn blank_rows_at_the_top_of_a_frame_hide_what_was_there_and_do_not_replace_it() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* 1", "! ran", "* 2", "! ran", "* 3", "=="]);
    program.paint(&["", "! ran", "* 2", "! ran", "* 3", "=="]);
    check(&program, "1\n\n2\n\n3", false);
}

#[test]
fn a_view_that_shows_less_than_the_transcript_takes_nothing_from_it() {
    let rules = TextRules {
        input: vec![mark("^>$")],
        ..rules()
    };
    let mut program = Program::new(&rules);
    program.paint(&["==", ">"]);
    program.begin();
    program.paint(&["* 1", "  2", "  3", "==", ">"]);
    program.paint(&["* 1", "==", "a view"]);
    program.paint(&["  2", "  3", "  4", "==", ">"]);
    check(&program, "1\n2\n3\n4", false);
}

#[test]
fn a_colour_is_asked_for_only_where_there_are_colours() {
    let look = super::Look {
        coloured: Some(true),
        ..super::Look::default()
    };
    let message = vec![Mark {
        row: r"^\* ".to_owned(),
        indent: 2,
        look,
    }];
    for (glyph, text) in [
        ("*", "said"),
        ("\x1b[31m*\x1b[m", "said"),
        ("\x1b[31m!\x1b[m x\r\n*", ""),
    ] {
        let rules = TextRules {
            message: message.clone(),
            ..rules()
        };
        assert_eq!(
            gathered(&rules, &[&format!("{glyph} said")]).text,
            text,
            "{glyph:?}"
        );
    }
}

#[test]
fn a_row_that_ends_a_page_without_boxes_leaves_the_rules_above_it_to_the_answer() {
    let rules = TextRules {
        end_alone: vec![mark(r"^\$")],
        ..rules()
    };
    assert_eq!(
        gathered(&rules, &["* a\r\n==\r\n  b\r\n$ "]).text,
        "a\n==\nb"
    );
    assert_eq!(
        gathered(&rules, &["* a\r\n$ x\r\n==\r\n  b"]).text,
        "a\n$ x"
    );
}

#[test]
fn an_answer_that_comes_in_one_piece_is_kept_and_marked_incomplete() {
    let mut program = Program::new(&rules());
    program.paint(&["> old", "* old answer", "=="]);
    program.begin();
    program.paint(&["  line 95", "  line 96", "=="]);
    check(&program, "[…]\n\nline 95\nline 96", true);
    program.paint(&["  line 99", "  line 100", "=="]);
    check(
        &program,
        "[…]\n\nline 95\nline 96\n\n[…]\n\nline 99\nline 100",
        true,
    );
}

#[test]
fn a_page_of_a_long_prompt_is_no_answer() {
    let mut program = Program::new(&rules());
    program.paint(&["> old", "* old answer", "=="]);
    program.begin();
    let text = "first row\nrow 58\nrow 59".to_owned();
    program.gatherer.set_submitted(Submitted {
        text,
        is_command: false,
    });
    program.paint(&["  row 58", "  row 59", "=="]);
    check(&program, "", false);
    program.paint(&["  row 59", "", "* Done.", "=="]);
    check(&program, "Done.", false);
}

#[test]
fn a_row_that_was_half_written_when_it_moved_is_known_again() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["> ask", "", "* On tides and", "=="]);
    program.paint(&["* On tides and men", "", "  Tides were", "=="]);
    check(&program, "On tides and men\n\nTides were", false);
}

#[test]
fn a_table_that_is_drawn_wider_is_the_same_table() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["> ask", "* So:", "  │heron│e│", "  └─────┴─┘", "=="]);
    program.paint(&[
        "* So:",
        "  │heron  │every│",
        "  ├───────┼─────┤",
        "  │kestrel│     │",
        "==",
    ]);
    check(
        &program,
        "So:\n│heron  │every│\n├───────┼─────┤\n│kestrel│     │",
        false,
    );
}

#[test]
fn rows_that_left_while_others_were_inserted_below_them_are_kept() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 20, rows: 8 });
    program.paint(&["=="]);
    program.begin();
    program.paint(&[
        "* morning",
        "  high water",
        "  low water",
        "  evening",
        "  noon",
        "  remarks",
        "==",
    ]);
    program.paint(&[
        "  low water",
        "",
        "  evening",
        "  noon",
        "  remarks",
        "",
        "  the end",
        "==",
    ]);
    check(
        &program,
        "morning\nhigh water\nlow water\n\nevening\nnoon\nremarks\n\nthe end",
        false,
    );
}

#[test]
fn the_same_rows_painted_again_were_said_again() {
    let page = ["  of the prompt", "", "* Done.", "=="];
    for (is_command, said) in [(false, "Done."), (true, "")] {
        let mut program = Program::new(&rules());
        program.paint(&page);
        program.begin();
        program.gatherer.set_submitted(Submitted {
            is_command,
            ..Submitted::default()
        });
        program.paint(&["  of the prompt", "", "~ 1s", "=="]);
        check(&program, "", false);
        program.paint(&page);
        check(&program, said, false);
    }
}

#[test]
fn another_answer_in_the_place_of_the_last_one_is_all_new() {
    let mut program = Program::new(&rules());
    program.paint(&["  row 58", "  row 59", "* Old.", "  Two rows.", "=="]);
    program.begin();
    program.paint(&["  row 58", "  row 59", "~ 1s", "=="]);
    program.paint(&["  row 58", "  row 59", "* New.", "  Two rows.", "=="]);
    check(&program, "New.\nTwo rows.", false);
}

#[test]
fn rows_that_scrolled_away_while_the_window_was_narrowed_are_kept() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&[
        "* There is a gap of",
        "  ten weeks. Later",
        "  people blamed it.",
        "==",
    ]);
    program.screen.resize(Size { cols: 12, rows: 6 });
    program.paint(&["  Later", "  people", "  blamed it.", "  All.", "=="]);
    check(
        &program,
        "There is a gap of\nten weeks.\nLater\npeople\nblamed it.\nAll.",
        false,
    );
}

#[test]
fn rows_that_cannot_be_found_after_a_resize_are_said_to_be_missing() {
    let mut program = Program::new(&rules());
    program.paint(&["=="]);
    program.begin();
    program.paint(&["* one and two", "  three", "=="]);
    program.screen.resize(Size { cols: 12, rows: 6 });
    program.paint(&["  nine", "  ten and more", "=="]);
    assert!(program.text().incomplete);
}

#[test]
fn an_empty_text_is_told_from_one_that_could_not_be_followed() {
    let mut program = Program::new(&rules());
    program.paint(&["> old", "* old answer", "=="]);
    program.begin();
    program.paint(&["> old", "* old answer", "> ask", "!error", "=="]);
    assert_eq!(
        (program.text().text.as_str(), program.text().followed),
        ("", true)
    );
    program.begin();
    program.paint(&["> old", "* old answer", "> ask", "!error", "=="]);
    assert_eq!(
        (program.text().text.as_str(), program.text().followed),
        ("", false)
    );
}

/// Rules of a program whose messages have no mark.
fn rules_without_messages() -> TextRules {
    TextRules {
        message: Vec::new(),
        indent: 2,
        ..rules()
    }
}

#[test]
fn a_page_of_the_middle_of_an_answer_is_marked_incomplete() {
    // Neither the prompt nor a row from before it is on the page, and no mark begins it.
    let mut program = Program::new(&rules_without_messages());
    program.paint(&["> old", "  old answer", "=="]);
    program.begin();
    program.paint(&["!tool", "", "  row 58", "  row 59", "=="]);
    assert!(program.text().incomplete, "{:?}", program.text());
    // The program erases everything and paints only the end of its answer.
    let mut program = Program::new(&rules_without_messages());
    program.paint(&["> old", "  old answer", "=="]);
    program.begin();
    program.paint(&["> old", "  old answer", "> ask", "  row 1", "=="]);
    program.write(b"\x1b[3J");
    program.paint(&["  row 58", "  row 59", "=="]);
    assert!(program.text().incomplete, "{:?}", program.text());
}

#[test]
fn a_repaint_after_a_resize_that_holds_other_rows_is_marked_incomplete() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 40, rows: 12 });
    program.paint(&["=="]);
    program.begin();
    let line = |word: &str| format!("  {word} the harbour master wrote it down.");
    program.paint(&[
        "* Tides were written down long ago.",
        &line("First"),
        &line("Second"),
        &line("Third"),
        "==",
    ]);
    program.screen.resize(Size { cols: 30, rows: 12 });
    let page = [
        "* Tides were written down long",
        "  ago.",
        "  And now for something else,",
        "  which nobody had asked for,",
        "  and which says nothing.",
        "==",
    ];
    program.paint(&page);
    assert!(program.text().incomplete, "{:?}", program.text());
}

/// The text of a turn of a shipped profile, whose rows are painted below an empty transcript.
fn text_of_preset(preset: &str, rows: &[&str]) -> String {
    let mut screen = Screen::new(Size { cols: 60, rows: 20 });
    let mut gatherer = Gatherer::new(&TextRules::preset(preset).unwrap()).unwrap();
    gatherer.begin_turn(&screen);
    screen.feed(rows.join("\r\n").as_bytes(), |screen| {
        gatherer.apply_frame(screen);
    });
    gatherer.text(Ending::Complete).text
}

#[test]
fn notices_of_the_programs_are_no_text() {
    let rule = "─".repeat(60);
    let prompt = "\x1b[48;5;237m❯ hi\x1b[m";
    let compaction = format!("{} Compaction {}", "─".repeat(8), "─".repeat(8));
    let said = "\x1b[37m●\x1b[m Hello.";
    let claude = [
        prompt,
        "",
        said,
        &compaction,
        "  And more.",
        "",
        &rule,
        "❯ ",
    ];
    assert_eq!(text_of_preset("claude", &claude), "Hello.\nAnd more.");
    let floats = "  tmux detected · scroll with PgUp";
    let claude = [prompt, "", said, "", floats, &rule, "❯ "];
    assert_eq!(text_of_preset("claude", &claude), "Hello.");
    let hint = "   Press Ctrl+O to show more lines of the last response";
    let gemini = [
        " > hi",
        "",
        "✦ Hello.",
        hint,
        "  And more.",
        "",
        &rule,
        " >",
    ];
    assert_eq!(text_of_preset("gemini", &gemini), "Hello.\nAnd more.");
    let opencode = [
        "  ┃  hi",
        "",
        "     Hello.",
        &compaction,
        "",
        "  ┃",
        &format!("  ╹{}", "▀".repeat(50)),
    ];
    assert_eq!(text_of_preset("opencode", &opencode), "Hello.");
}

#[test]
fn tasks_that_a_program_draws_are_written_as_a_list() {
    let rule = "─".repeat(30);
    let qwen = [
        "  > What is left?",
        "",
        "  ◆\u{fe0e} Three tasks:",
        "",
        "     ✓ measured",
        "     ○\u{fe0e} plotted",
        "       ○\u{fe0e} in colour",
        "",
        "    ✓ is a sign of the answer.",
        &rule,
    ];
    assert_eq!(
        text_of_preset("qwen", &qwen),
        "Three tasks:\n\n - [x] measured\n - [ ] plotted\n   - [ ] in colour\n\n✓ is a sign of the answer."
    );
    let begins = ["  > What is left?", "", "  ◆\u{fe0e}  ✓ measured", &rule];
    assert_eq!(text_of_preset("qwen", &begins), " - [x] measured");
}

#[test]
fn a_blank_row_inside_a_prompt_does_not_end_it() {
    let mut program = Program::new(&rules_without_messages());
    program.screen.resize(Size { cols: 20, rows: 12 });
    program.paint(&["  old", "=="]);
    program.begin();
    program.gatherer.set_submitted(Submitted {
        text: "alpha\n\ngamma and a long line".to_owned(),
        is_command: false,
    });
    let asked = ["  old", "> alpha", "", "  gamma and a", "  long line", ""];
    program.paint(&[&asked[..], &["  You pasted", "  alpha", "=="]].concat());
    check(&program, "You pasted\nalpha", false);
    // The answer may stand right below, and begin like the prompt.
    program.paint(&[&asked[..5], &["  alpha", "  it is.", "=="]].concat());
    check(&program, "alpha\nit is.", false);
}

#[test]
fn an_erased_scrollback_takes_no_row_from_the_alternate_screen() {
    let mut program = Program::new(&rules_without_messages());
    program.paint(&["  old", "=="]);
    program.begin();
    program.paint(&["  old", "> ask", "", "  1", "  2", "=="]);
    program.paint(&["  1", "  2", "  3", "  4", "=="]);
    program.write(b"\x1b[3J");
    program.paint(&["  3", "  4", "  5", "  6", "=="]);
    check(&program, "1\n2\n3\n4\n5\n6", false);
}

#[test]
fn rows_that_come_back_when_a_tall_draft_is_submitted_are_older() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 20, rows: 12 });
    program.paint(&["* old answer", "  of two rows", "==", "one", "two", "three"]);
    program.begin();
    program.gatherer.set_submitted(Submitted {
        text: "one\ntwo\nthree".to_owned(),
        is_command: false,
    });
    let older = [
        "x",
        "> old",
        "* older answer",
        "> old",
        "* old answer",
        "  of two rows",
    ];
    program.paint(&[&older[..], &["=="]].concat());
    // The program shows the time of the prompt beside it.
    let said = ["> one      12:30", "  two", "  three", "", "* All of them."];
    program.paint(&[&older[..], &said, &["=="]].concat());
    check(&program, "All of them.", false);
}

#[test]
fn rows_that_left_and_are_shown_again_by_a_wider_window_are_kept_once() {
    let mut program = Program::new(&rules());
    program.screen.resize(Size { cols: 20, rows: 5 });
    program.paint(&["=="]);
    program.begin();
    program.paint(&[
        "* The master kept a",
        "  slate by the door",
        "  and noted",
        "  the hour.",
        "==",
    ]);
    program.paint(&[
        "  and noted",
        "  the hour.",
        "  - high water",
        "  - low water",
        "==",
    ]);
    program.screen.resize(Size { cols: 40, rows: 5 });
    let page = [
        "  by the door and noted the hour.",
        "  - high water",
        "  - low water",
        "  - wind",
        "==",
    ];
    program.paint(&page);
    let letters: String = program
        .text()
        .text
        .chars()
        .filter(|c| c.is_alphabetic())
        .collect();
    assert_eq!(
        letters,
        "Themasterkeptaslatebythedoorandnotedthehourhighwaterlowwaterwind"
    );
}

#[test]
fn a_line_that_stands_twice_after_a_resize_is_marked_incomplete() {
    let line = "* The harbour master wrote it down.";
    for (resizes, incomplete) in [(false, false), (true, true)] {
        let mut program = Program::new(&rules());
        program.screen.resize(Size { cols: 40, rows: 12 });
        program.paint(&["=="]);
        program.begin();
        program.paint(&[line, "=="]);
        if resizes {
            program.screen.resize(Size { cols: 50, rows: 12 });
        }
        program.paint(&[line, line, "=="]);
        assert_eq!(program.text().incomplete, incomplete);
    }
}
