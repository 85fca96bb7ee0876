//! Checks the scenes and notes that a writer offers for text that does not belong there.
//!
//! Only offered text is checked, never an entry or a quotation. If a check fires, the scene or note
//! is recorded with an empty text, and readers get the mechanical text or no note. The bundle that
//! contained it is not affected.

use crate::search::Mention;

/// What does not belong into a scene or note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lint {
    /// State as a key and a value, such as `mood: 7`, `trust=high` or `fear 3/10`.
    KeyValue,
    /// Markup, such as `<b>`, `**` or a heading.
    Markup,
    /// Words about how the writer works, such as "context window".
    Machinery,
}

/// Words about how a writer works, not about the world.
const MACHINERY: &[&str] = &[
    "as an ai",
    "capsule pack",
    "context limit",
    "context window",
    "language model",
    "large language",
    "llm",
    "prompt injection",
    "rehydrate",
    "rehydrated",
    "rehydration",
    "scene anchor",
    "system prompt",
    "token budget",
    "token limit",
    "tool call",
    "tool request",
];

/// Markup anywhere in a text.
const MARKS: &[&str] = &[
    "**", "__", "```", "</", "/>", "](", "{\"", "{{", "&nbsp;", "<!--",
];
/// Markup at the start of a line.
const LINE_MARKS: &[&str] = &["# ", "## ", "### ", "#### ", "- ", "* ", "> ", "| ", "---"];

/// A value of at most so many words may be a state; a longer one is a sentence.
const STATE_WORDS_MAX: usize = 3;

/// Returns the first check that fires.
pub fn find_lint(text: &str) -> Option<Lint> {
    if has_key_value(text) {
        Some(Lint::KeyValue)
    } else if has_markup(text) {
        Some(Lint::Markup)
    } else if has_machinery(text) {
        Some(Lint::Machinery)
    } else {
        None
    }
}

/// The text to record: the given one, or an empty one if a check fires.
pub fn text_to_record(text: String) -> String {
    if find_lint(&text).is_some() {
        String::new()
    } else {
        text
    }
}

fn is_key(char: char) -> bool {
    char.is_alphabetic() || char == '_'
}

fn has_key_value(text: &str) -> bool {
    let pairs = text.match_indices([':', '=']);
    let is_stat = |(at, sign): (usize, &str)| {
        let (before, after) = (&text[..at], &text[at + sign.len()..]);
        let key = before.trim_end_matches(' ').ends_with(is_key);
        let assigned = sign == "=" && after.trim_start().starts_with(char::is_alphanumeric);
        key && (assigned || is_figure(after.trim_start_matches(' ')))
    };
    pairs.into_iter().any(is_stat) || text.lines().any(is_state_line) || has_score(text)
}

/// Whether a text begins with a number on its own: `7`, `+0.5`, `80%`, `3/10`; not `3 people`.
fn is_figure(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    let rest = digits
        .trim_start_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '/' | '%'));
    let number = digits.starts_with(|char: char| char.is_ascii_digit());
    let followed = rest
        .trim_start_matches(' ')
        .starts_with(char::is_alphabetic)
        || rest.starts_with(':');
    number && !followed
}

/// Whether a line is only a key and a short value that does not end a sentence.
fn is_state_line(line: &str) -> bool {
    let Some((key, value)) = line.split_once(':') else {
        return false;
    };
    let key = key.trim();
    let words = value.split_whitespace().count();
    // `She said: yes.` is a sentence, `Mood: calm` is a state.
    let sentence = value
        .trim_end()
        .ends_with(['.', '!', '?', '"', '\u{201d}', '\u{2026}']);
    !key.is_empty()
        && key.chars().all(is_key)
        && (1..=STATE_WORDS_MAX).contains(&words)
        && !sentence
}

/// Whether the text has a number out of ten or a hundred.
fn has_score(text: &str) -> bool {
    text.match_indices('/').any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let digits = after.len()
            - after
                .trim_start_matches(|char: char| char.is_ascii_digit())
                .len();
        let whole = matches!(&after[..digits], "10" | "100") && !after[digits..].starts_with('/');
        // `3/10` is a score, but `2026/10/03` is a date.
        let number = before.trim_end_matches(|char: char| char.is_ascii_digit());
        whole && number.len() < before.len() && !number.ends_with('/')
    })
}

fn has_markup(text: &str) -> bool {
    let marked = |line: &str| {
        LINE_MARKS
            .iter()
            .any(|mark| line.trim_start().starts_with(mark))
    };
    MARKS.iter().any(|mark| text.contains(mark)) || text.lines().any(marked) || has_tag(text)
}

/// Whether the text has something like `<b>` or `<a href=x>`.
fn has_tag(text: &str) -> bool {
    text.match_indices('<').any(|(at, _)| {
        let after = &text[at + 1..];
        after.starts_with(|char: char| char.is_ascii_alphabetic() || char == '!')
            && after
                .find(['<', '>', '\n'])
                .is_some_and(|end| after[end..].starts_with('>'))
    })
}

fn has_machinery(text: &str) -> bool {
    MACHINERY
        .iter()
        .any(|words| Mention::new(words).find(text).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_markup_and_machinery_do_not_belong_into_prose() {
        for (text, wanted) in [
            ("mood: 7", Some(Lint::KeyValue)),
            ("trust: 7", Some(Lint::KeyValue)),
            ("She is calm. trust = 0.8, fear: 2", Some(Lint::KeyValue)),
            ("mood=angry", Some(Lint::KeyValue)),
            ("The room.\nmood: very angry", Some(Lint::KeyValue)),
            ("His trust is 7/10 now.", Some(Lint::KeyValue)),
            ("energy: 80%", Some(Lint::KeyValue)),
            ("A **bold** claim", Some(Lint::Markup)),
            ("# The kitchen", Some(Lint::Markup)),
            ("<scene>dark</scene>", Some(Lint::Markup)),
            ("<b> is it", Some(Lint::Markup)),
            ("{\"mood\": \"x\"}", Some(Lint::Markup)),
            ("- one\n- two", Some(Lint::Markup)),
            ("The context window is nearly full.", Some(Lint::Machinery)),
            ("An LLM would know.", Some(Lint::Machinery)),
            ("Evening. REVIEWER checks by 15:00, she said: come.", None),
            ("Remember: never again.", None),
            ("Note: 3 people came at 9:30.", None),
            ("1 < 2 and 3 > 2, on 11/15 or 1/100/2", None),
            ("He was filmed, e=mc2 or not", Some(Lint::KeyValue)),
            ("Rain on the roof; PLANNER waits.", None),
            ("", None),
            ("\u{fffd}=\u{301}:/<:=", None),
        ] {
            assert_eq!(find_lint(text), wanted, "{text}");
            assert_eq!(
                text_to_record(text.to_owned()).is_empty(),
                wanted.is_some() || text.is_empty(),
                "{text}"
            );
        }
    }

    /// Each of these would take minutes if a mark were looked for to the end of the text again and
    /// again.
    #[test]
    fn marks_that_never_end_take_no_longer_than_other_text() {
        for unit in [
            "<a", "a=", "1/", "a: ", "<a\n", "\u{301}a", "\u{2019}", "'s",
        ] {
            find_lint(&unit.repeat(1 << 20));
        }
    }
}
