//! Finds the input area of a full-screen program: where typed text appears and where the cursor
//! rests.
//!
//! The area is learned, not configured. When the user types the first letter of a draft, the cursor
//! is in the empty area; the text left of it (`❯ `, `│ > `, or nothing below a rule) identifies the
//! area from then on. A text editor and a shell have no such place, because the row above their
//! cursor is text: [`InputArea::learn`] returns `None` for them.

use crate::screen::{Row, Screen};

/// The longest text left of the cursor in an empty input area, in characters.
const LEFT_CHARS_MAX: usize = 8;

/// How many rows a draft may take before the search for its first row stops.
const DRAFT_ROWS_MAX: usize = 24;

/// The shortest row that counts as a horizontal rule, in characters.
const RULE_CHARS_MIN: usize = 10;

/// How far from the cursor the edges of the area are searched, in rows.
const EDGE_ROWS_MAX: usize = 6;

/// The shortest draft by which an area is found without a cursor, in characters.
const DRAFT_CHARS_MIN: usize = 3;

/// The shortest draft that may take several rows, in characters.
const LONG_DRAFT_CHARS: usize = 20;

/// How the empty input area looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InputArea {
    /// The text in front of the draft, without the margin.
    left: String,
    /// Whether a horizontal rule is right above.
    ruled: bool,
    /// Whether the cursor is in the area. Some programs draw their own and leave the terminal's
    /// elsewhere.
    has_cursor: bool,
}

/// The input area as a frame shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundArea {
    /// The row above which the transcript ends.
    pub(super) top: usize,
    /// The last row of the draft.
    pub(super) row: usize,
    /// The text between the beginning of the area and the cursor.
    pub(super) draft: String,
}

impl InputArea {
    /// The area that the cursor is in now, if it is in one.
    pub(super) fn learn(screen: &Screen, rows: &[Row]) -> Option<Self> {
        let row = usize::from(screen.cursor().row);
        let left = screen.left_of_cursor().trim_start().to_owned();
        Self::at_row(rows, row, left, true)
    }

    /// The lowest area that shows this draft, where the cursor does not mark it.
    pub(super) fn learn_from_draft(rows: &[Row], draft: &str) -> Option<Self> {
        if draft.chars().count() < DRAFT_CHARS_MIN {
            return None;
        }
        let in_row = |(at, row): (usize, &Row)| {
            let left = row
                .text
                .get(..row.text.find(draft)?)?
                .trim_start()
                .to_owned();
            Self::at_row(rows, at, left, false).filter(|area| area.ruled && !area.left.is_empty())
        };
        rows.iter().enumerate().rev().find_map(in_row)
    }

    fn at_row(rows: &[Row], row: usize, left: String, has_cursor: bool) -> Option<Self> {
        let above = rows.get(row.checked_sub(1)?)?;
        let ruled = is_rule(&above.text);
        let marked = left.contains(|c: char| !c.is_whitespace());
        // A prompt sign is short and has no letters: `user@host:~$` is a shell's.
        let short = left.chars().count() <= LEFT_CHARS_MAX && !left.contains(char::is_alphanumeric);
        // Without a rule above, the sign must be visible and the row above must hold no words.
        let boxed = ruled || (marked && is_bare(&above.text));
        (short && boxed).then_some(Self {
            left,
            ruled,
            has_cursor,
        })
    }

    /// Whether the cursor is in an area with something painted below it. A line editor leaves no
    /// such screen.
    pub(super) fn is_framed(screen: &Screen, rows: &[Row]) -> bool {
        let row = usize::from(screen.cursor().row);
        let near = rows
            .get(row.saturating_sub(EDGE_ROWS_MAX)..)
            .unwrap_or_default();
        let ruled = near
            .iter()
            .take(2 * EDGE_ROWS_MAX)
            .any(|row| is_rule(&row.text));
        is_painted_below(screen, rows) && (ruled || Self::learn(screen, rows).is_some())
    }

    /// Finds the area in a frame; `None` while a dialog or half a frame replaces it. `typed` is the
    /// text that may be in it.
    pub(super) fn find(&self, screen: &Screen, rows: &[Row], typed: &str) -> Option<FoundArea> {
        let cursor = usize::from(screen.cursor().row);
        let from = if self.has_cursor {
            cursor
        } else {
            rows.len().checked_sub(1)?
        };
        let first = self.first_row(rows, from)?;
        // Half a frame leaves the cursor anywhere, so only a long draft may begin above the
        // cursor's row.
        let is_long = typed.contains('\n') || typed.chars().count() >= LONG_DRAFT_CHARS;
        if self.has_cursor && first != from && !is_long {
            return None;
        }
        let left = if self.has_cursor {
            screen.left_of_cursor()
        } else {
            rows.get(first)?.text.clone()
        };
        let draft = match left.trim_start().strip_prefix(&self.left) {
            Some(draft) if first == from || !self.has_cursor => draft,
            _ if first == from => return None,
            _ => left.as_str(),
        };
        let draft = if self.has_cursor {
            draft
        } else {
            known_part(draft, typed)
        };
        let top = if self.ruled { first - 1 } else { first };
        let row = if self.has_cursor { cursor } else { first };
        Some(FoundArea {
            top,
            row,
            draft: draft.trim().to_owned(),
        })
    }

    /// The first row of the area: this one, or one above it where the draft has several.
    fn first_row(&self, rows: &[Row], from: usize) -> Option<usize> {
        let begins = |at: usize| {
            let text = rows.get(at)?.text.trim_start();
            let is_first = text.starts_with(self.left.trim_end());
            let above = rows.get(at.checked_sub(1)?)?;
            (is_first && is_bare(&above.text) && (!self.ruled || is_rule(&above.text)))
                .then_some(at)
        };
        let lowest = from.saturating_sub(DRAFT_ROWS_MAX);
        (lowest..=from).rev().find_map(begins)
    }
}

/// The part of a text that was typed; the rest is a placeholder, a drawn cursor or the edge of a
/// box.
fn known_part<'a>(shown: &'a str, typed: &str) -> &'a str {
    let same = shown
        .chars()
        .zip(typed.chars())
        .take_while(|(shown, typed)| shown == typed);
    let bytes: usize = same.map(|(c, _)| c.len_utf8()).sum();
    shown.get(..bytes).unwrap_or_default()
}

/// Whether something is painted below the cursor.
pub(super) fn is_painted_below(screen: &Screen, rows: &[Row]) -> bool {
    let row = usize::from(screen.cursor().row);
    rows.get(row + 1..)
        .unwrap_or_default()
        .iter()
        .any(|row| !row.is_blank())
}

/// Whether a row is a horizontal rule or the edge of a box, perhaps with a word in it.
pub(super) fn is_rule(text: &str) -> bool {
    let text = text.trim();
    let all = text.chars().count();
    let lines = text.chars().filter(|c| is_line(*c)).count();
    all >= RULE_CHARS_MIN && lines * 10 >= all * 6
}

/// Whether a row holds no words: it is blank or an edge.
fn is_bare(text: &str) -> bool {
    !text.contains(char::is_alphanumeric) || is_rule(text)
}

fn is_line(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{257f}' | '\u{2580}'..='\u{259f}' | '\u{23af}' | '-' | '=' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::Size;

    fn painted(bytes: &str) -> Screen {
        let mut screen = Screen::new(Size { cols: 40, rows: 8 });
        screen.feed(bytes.as_bytes(), |_| {});
        screen
    }

    const BOX: &str =
        "words\r\n────────────────────\r\n❯ \r\n────────────────────\r\n footer\x1b[3;3H";

    #[test]
    fn the_area_is_where_the_cursor_rests_in_a_box() {
        let screen = painted(BOX);
        let area = InputArea::learn(&screen, &screen.rows()).unwrap();
        assert_eq!(
            area,
            InputArea {
                left: "❯ ".to_owned(),
                ruled: true,
                has_cursor: true
            }
        );
        assert_eq!(
            area.find(&screen, &screen.rows(), ""),
            Some(FoundArea {
                top: 1,
                row: 2,
                draft: String::new()
            })
        );
        assert!(InputArea::is_framed(&screen, &screen.rows()));
        let typed = painted(&format!("{BOX}hello"));
        assert_eq!(area.find(&typed, &typed.rows(), "").unwrap().draft, "hello");
    }

    #[test]
    fn a_program_that_draws_its_own_cursor_shows_the_area_by_the_draft() {
        let edge = "─".repeat(20);
        let paint = |inside: &str| {
            painted(&format!(
                "words\r\n╭{edge}╮\r\n│ ● {inside}\r\n╰{edge}╯\r\n\x1b[?25l"
            ))
        };
        let screen = paint("Name a▋");
        let area = InputArea::learn_from_draft(&screen.rows(), "Name a").unwrap();
        assert_eq!(
            area.find(&screen, &screen.rows(), "Name a colour")
                .unwrap()
                .draft,
            "Name a"
        );
        let empty = paint("▋Ask anything");
        let found = FoundArea {
            top: 1,
            row: 2,
            draft: String::new(),
        };
        assert_eq!(
            area.find(&empty, &empty.rows(), "Name a colour"),
            Some(found)
        );
    }

    #[test]
    fn a_dialog_in_its_place_is_not_the_area() {
        let area = InputArea::learn(&painted(BOX), &painted(BOX).rows()).unwrap();
        for dialog in [
            "words\r\n────────────────────\r\nAllow this?\r\n❯ 1. Yes\r\n  2. No\x1b[?25l\x1b[4;1H",
            "words\r\n❯ 1. Yes\r\n  2. No\x1b[2;3H",
        ] {
            let screen = painted(dialog);
            assert_eq!(area.find(&screen, &screen.rows(), ""), None, "{dialog}");
        }
    }

    #[test]
    fn editors_and_shells_have_no_area() {
        for screen in [
            "first line\r\nsecond line\r\n~\r\n~\x1b[2;1H",
            "output\r\nuser@host:~/work$ ",
            "output\r\n$ ",
            "  1 first\r\n  2 \x1b[2;5H",
        ] {
            let screen = painted(screen);
            assert_eq!(InputArea::learn(&screen, &screen.rows()), None);
        }
    }
}
