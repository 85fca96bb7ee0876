//! The text of a turn of a program without a profile: which rows are the prompt, and the answer as
//! read.
//!
//! The gatherer of screen profiles does the work. Its rules are made for each turn, because the
//! typed text is all that is known about the transcript: the rows that show it are the user's, and
//! every other new row is the answer.

use crate::screen::{Mark, TextRules};
use regex::escape;

/// How much of the prompt's first line identifies its row: the rest may be wrapped.
pub(super) const HEAD_CHARS: usize = 24;

/// The shortest line that is recognised by itself in a prompt of several lines.
const LINE_CHARS_MIN: usize = 4;

/// How many lines of a prompt are recognised.
const LINES_MAX: usize = 64;

/// The characters that may precede the prompt, or a line of it, in the transcript.
const LEAD: &str = r"^[^\p{L}\p{N}]{0,8}";

/// The word that may precede the prompt, such as `you: `.
const LABEL: &str = r"(?:\p{L}{1,12}: ?)?";

/// The signs that programs put in front of an answer.
const BULLETS: [char; 9] = ['●', '•', '◆', '✦', '⏺', '◇', '✧', '○', '▪'];

/// The characters of scroll bars.
const SCROLLBARS: &str = "┃█▐▓░▕";

/// The words by which programs report that they were stopped.
const STOPPED: [&str; 5] = ["interrupted", "cancelled", "canceled", "aborted", "stopped"];

/// Whether a text is only the notice that the program was stopped.
pub(super) fn is_stop_notice(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    let mut words = text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty());
    !text.contains('\n') && words.by_ref().take(3).any(|word| STOPPED.contains(&word))
}

/// The rules for a turn with this prompt, on a screen with this first row.
pub(super) fn rules_for_turn(asked: Option<&str>, first_row: &str) -> TextRules {
    let mut lines = asked
        .unwrap_or_default()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let labelled = |line: &str| row_mark(format!("{LEAD}{LABEL}{}", escape(&line_head(line))));
    let user = lines.next().map(labelled);
    // A short line of a prompt could also be a line of the answer.
    let rest = lines
        .filter(|line| line.chars().count() >= LINE_CHARS_MIN)
        .take(LINES_MAX);
    TextRules {
        user: user.into_iter().collect(),
        drop: rest.map(prompt_mark).collect(),
        // A header that stays while the transcript scrolls; where it scrolls away nothing is lost.
        pinned: vec![row_mark(format!("^{}$", escape(first_row)))],
        scrollbar: SCROLLBARS.to_owned(),
        ..TextRules::default()
    }
}

/// A mark for the row that shows a further line of the prompt.
fn prompt_mark(line: &str) -> Mark {
    row_mark(format!("{LEAD}{}", escape(&line_head(line))))
}

fn row_mark(row: String) -> Mark {
    Mark {
        row,
        ..Mark::default()
    }
}

/// The beginning of a line, without the blanks at which it may be wrapped.
fn line_head(line: &str) -> String {
    line.chars()
        .take(HEAD_CHARS)
        .collect::<String>()
        .trim_end()
        .to_owned()
}

/// The answer without the program's bullet and margin.
pub(super) fn clean_answer(text: &str) -> String {
    let bare: Vec<String> = text.lines().map(without_bullet).collect();
    // Edges of boxes around the prompt and the input are no part of the answer; those of a table
    // are.
    let is_word = |line: &String| !line.trim().is_empty() && !super::area::is_rule(line);
    let first = bare.iter().position(is_word).unwrap_or(bare.len());
    let last = bare
        .iter()
        .rposition(is_word)
        .map_or(first, |last| last + 1);
    let lines = bare.get(first..last).unwrap_or_default();
    let printed = lines.iter().filter(|line| !line.trim().is_empty());
    let margin = printed.map(|line| leading_blanks(line)).min().unwrap_or(0);
    let cut: Vec<&str> = lines
        .iter()
        .map(|line| line.get(margin..).unwrap_or_default().trim_end())
        .collect();
    cut.join("\n")
}

fn leading_blanks(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The row with its bullet replaced by blanks. A list's own bullet stays, since it is indented.
fn without_bullet(line: &str) -> String {
    let blanks = leading_blanks(line);
    let mut rest = line.get(blanks..).unwrap_or_default().chars();
    match (rest.next(), rest.next()) {
        (Some(bullet), Some(' ')) if blanks < 2 && BULLETS.contains(&bullet) => {
            format!("{}  {}", " ".repeat(blanks), rest.as_str())
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_and_the_bullet_are_the_programs() {
        assert_eq!(
            clean_answer(" ● Hello\n\n   • Red\n   • Blue\n"),
            "Hello\n\n• Red\n• Blue"
        );
        assert_eq!(clean_answer("  a\n    b"), "a\n  b");
        assert_eq!(clean_answer("────────────────\n  a"), "a");
    }

    #[test]
    fn a_notice_of_a_stop_is_no_answer() {
        assert!(is_stop_notice(
            "Interrupted by user - Press enter to continue"
        ));
        assert!(is_stop_notice("Operation aborted"));
        assert!(!is_stop_notice(
            "The clock stopped at noon, when\nthe mill did."
        ));
    }

    #[test]
    fn the_prompt_is_known_by_its_beginning() {
        let rules = rules_for_turn(Some("What is (this)?\nsecond line"), "");
        assert_eq!(rules.user.len(), 1);
        assert!(
            regex::Regex::new(&rules.user[0].row)
                .unwrap()
                .is_match("  > What is (this)?")
        );
        assert!(
            regex::Regex::new(&rules.drop[0].row)
                .unwrap()
                .is_match("second line")
        );
    }
}
