//! Reads the assistant's words from the rows of a turn.
//!
//! One pass over the rows: each row begins a block (the user's prompt, a message, chrome) or
//! continues the one above. Then each message is written: prefix and indent removed, gutters
//! removed, rows that the terminal wrapped joined. Every distinction is a rule of the profile. It
//! cannot fail.
//!
//! Worked example with `user = '^> '`, `message = { row = '^● ', indent = 2 }` and `chrome = '^
//! ⎿'`:
//!
//! ```text
//! > Name two colours.     begins the user's prompt: left out
//! ● Red and               begins a message; `● ` is its prefix and is removed
//!   blue.                 continues it; two blanks of indent are removed
//!   ⎿ Read 3 files        begins chrome: left out
//!     a.txt               continues the chrome: left out
//! ```

use super::row::{Colour, Row, letters};
use super::rules::{CompiledMark, CompiledRules, RowContext};

/// The longest run of lines that is recognised as a repeat: about what a tall window shows.
const REPEATED_LINES_MAX: usize = 256;

/// The longest word of the program's own in front of a prompt, in letters.
const LABEL_LETTERS_MAX: usize = 12;

/// How the turn ended, as far as its text is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The program finished its answer.
    Complete,
    /// The user interrupted it.
    Interrupted,
}

impl Ending {
    /// The ending of a turn that the user interrupted, or did not.
    pub(crate) fn new(interrupted: bool) -> Self {
        if interrupted {
            Self::Interrupted
        } else {
            Self::Complete
        }
    }
}

/// The block that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Message {
        indent: usize,
    },
    User {
        shade: Colour,
    },
    Chrome,
    /// Rows below a prompt that no mark claims, in a program whose messages have marks.
    Unclaimed,
}

/// What the rows of a turn say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extracted {
    /// The messages, separated by one blank line.
    pub(super) text: String,
    /// Whether printed rows stand below the prompt that no mark claims: they may be words that the
    /// rules do not know.
    pub(super) has_unclaimed_rows: bool,
}

/// One row of a message.
#[derive(Default)]
struct MessageLine {
    text: String,
    /// Whether the terminal wrapped the line at the end of this row.
    wrapped: bool,
    /// How many leading blanks the program added.
    indent: usize,
    number: Option<LineNumber>,
}

/// The number in a gutter of line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineNumber {
    number: usize,
    /// The byte at which the gutter ends.
    end: usize,
}

type Message = Vec<MessageLine>;

/// Reads the messages in `rows`. `submitted` is the text of the prompt, where it is known: a row of
/// it may stand below a blank one.
pub(super) fn extract_text(
    rules: &CompiledRules,
    rows: &[Row],
    context: RowContext,
    ending: Ending,
    submitted: &str,
) -> Extracted {
    let mut reader = BlockReader::new(rules, context);
    reader.submitted = letters(submitted).collect();
    for row in rows {
        reader.read_row(row);
    }
    let has_unclaimed_rows = reader.has_unclaimed_rows;
    let written = reader
        .messages
        .into_iter()
        .map(|lines| write_message(rules, lines, ending));
    let messages: Vec<String> = written.filter(|text| !text.is_empty()).collect();
    Extracted {
        text: messages.join("\n\n"),
        has_unclaimed_rows,
    }
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each says something else about the rows so far"
)]
struct BlockReader<'a> {
    rules: &'a CompiledRules,
    block: Block,
    context: RowContext,
    messages: Vec<Message>,
    /// Whether the next row of a message begins a new message.
    apart: bool,
    /// The mark that ends the hidden part, inside of one.
    hidden: Option<&'a CompiledMark>,
    /// Whether nothing has come yet behind the user's prompt.
    asked: bool,
    /// Whether the row above is blank.
    above_blank: bool,
    /// Whether the user's prompt was read.
    prompt_seen: bool,
    /// The letters of the submitted text …
    submitted: String,
    /// … and those that no row of the prompt has shown yet; `None` where the rows do not show it.
    prompt_rest: Option<String>,
    /// The sign in front of the prompt's first row.
    prompt_border: Option<char>,
    has_unclaimed_rows: bool,
}

impl<'a> BlockReader<'a> {
    fn new(rules: &'a CompiledRules, context: RowContext) -> Self {
        let block = default_block(rules);
        let (messages, above_blank) = (Vec::new(), true);
        Self {
            rules,
            block,
            context,
            messages,
            apart: true,
            hidden: None,
            asked: false,
            above_blank,
            prompt_seen: false,
            submitted: String::new(),
            prompt_rest: None,
            prompt_border: None,
            has_unclaimed_rows: false,
        }
    }

    /// Reads the next row: it begins a block, or continues the one above.
    fn read_row(&mut self, row: &Row) {
        let apart = std::mem::replace(&mut self.above_blank, row.is_blank());
        let context = RowContext {
            apart,
            ..self.context
        };
        let found =
            |marks: &'a [CompiledMark]| marks.iter().find(|mark| mark.matches(row, context));
        // The order decides between marks that match the same row: a dropped row begins nothing,
        // and chrome wins over messages because tool calls often carry the same bullet.
        if self.is_hidden(row) {
            self.apart = true;
        } else if row.gap {
            self.resume_after_gap(row);
        } else if row.is_blank() {
            self.read_blank_row();
        } else if self.asked && self.continues_prompt(row) {
            self.block = Block::User {
                shade: row.lead.background,
            };
        } else if found(&self.rules.drop).is_some() {
            self.apart |= self.rules.message.is_empty();
        } else if found(&self.rules.user).is_some() {
            self.begin_prompt(row);
        } else if found(&self.rules.chrome).is_some() {
            self.start_block(Block::Chrome);
            self.asked = false;
        } else if let Some(mark) = found(&self.rules.message) {
            self.begin_message(mark, row);
        } else {
            self.continue_block(row);
        }
    }

    fn begin_prompt(&mut self, row: &Row) {
        self.context.prompt_colour = row.distinct_lead_colour().or(self.context.prompt_colour);
        self.start_block(Block::User {
            shade: row.lead.background,
        });
        (self.asked, self.prompt_seen) = (true, true);
        self.prompt_rest = self.rest_below(row);
        self.prompt_border = border_of(row);
    }

    /// The letters of the submitted text below the first row of the prompt, which may begin with a
    /// word of the program's own. `None` where the row shows something else, such as a pasted text
    /// as one word.
    fn rest_below(&self, row: &Row) -> Option<String> {
        let shown: String = letters(row.left_column()).collect();
        let words = shown.char_indices().take(LABEL_LETTERS_MAX + 1);
        let rest = words.filter_map(|(at, _)| self.submitted.strip_prefix(shown.get(at..)?));
        rest.map(str::to_owned).next()
    }

    /// Whether a row shows the next letters of the submitted text.
    fn continues_prompt(&mut self, row: &Row) -> bool {
        let shown: String = letters(row.left_column()).collect();
        let rest = self.prompt_rest.as_deref();
        let Some(rest) = rest
            .filter(|_| !shown.is_empty())
            .and_then(|rest| rest.strip_prefix(&shown))
        else {
            return false;
        };
        self.prompt_rest = Some(rest.to_owned());
        true
    }

    /// Whether every letter of the submitted text was shown above this row, and the row does not
    /// have the border of the prompt.
    fn is_prompt_over(&self, row: &Row) -> bool {
        let is_bordered = self.prompt_border.is_some() && border_of(row) == self.prompt_border;
        self.prompt_rest.as_deref() == Some("") && !is_bordered
    }

    fn begin_message(&mut self, mark: &CompiledMark, row: &Row) {
        (self.apart, self.asked) = (true, false);
        self.block = Block::Message {
            indent: mark.indent,
        };
        let prefix = mark.pattern.find(&row.text).map_or(0, |found| found.end());
        let text = row.text.get(prefix..).unwrap_or_default().to_owned();
        self.push_line(MessageLine {
            text,
            wrapped: row.wrapped,
            ..MessageLine::default()
        });
    }

    /// Whether a row is hidden. Remembers where a hidden part begins and ends.
    fn is_hidden(&mut self, row: &Row) -> bool {
        let context = self.context;
        if let Some(last) = self.hidden {
            self.hidden = Some(last).filter(|last| !last.matches(row, context));
            return true;
        }
        let begins = self
            .rules
            .hidden
            .iter()
            .find(|part| part.from.matches(row, context));
        self.hidden = begins.map(|part| &part.to);
        begins.is_some()
    }

    /// Handles a row that stands for missing rows. The rows behind it continue the message above.
    /// Right behind the prompt they count as the middle of an answer, because no mark identifies
    /// them. The output of a tool call continues as such.
    fn resume_after_gap(&mut self, row: &Row) {
        let is_message = matches!(self.block, Block::Message { .. });
        if !is_message && (self.asked || self.messages.is_empty()) {
            let indent = self
                .rules
                .message
                .first()
                .map_or(self.rules.indent, |mark| mark.indent);
            self.start_block(Block::Message { indent });
            self.asked = false;
        }
        if matches!(self.block, Block::Message { .. }) {
            self.push_line(MessageLine {
                text: row.text.clone(),
                ..MessageLine::default()
            });
        }
    }

    fn read_blank_row(&mut self) {
        match self.block {
            Block::Message { .. } if !self.apart => self.push_line(MessageLine::default()),
            // Without message marks, only a blank row can end a block of chrome.
            Block::Chrome if self.rules.message.is_empty() => {
                self.block = default_block(self.rules);
            }
            Block::User {
                shade: Colour::Default,
            } => self.start_block(default_block(self.rules)),
            _ => {}
        }
    }

    fn continue_block(&mut self, row: &Row) {
        // A prompt keeps its background, so another background ends it. Where messages have no
        // mark, the answer may also stand right below the last word of the prompt.
        let is_over = self.rules.message.is_empty() && self.is_prompt_over(row);
        if matches!(self.block, Block::User { shade } if shade != row.lead.background || is_over) {
            self.start_block(default_block(self.rules));
        }
        let number = self.read_line_number(row);
        if self.begins_with_code(row, number) {
            let indent = self.rules.message.first().map_or(0, |mark| mark.indent);
            (self.apart, self.asked, self.block) = (true, false, Block::Message { indent });
        }
        if let Block::Message { indent } = self.block {
            // The answer has begun, so nothing of the prompt follows.
            self.prompt_rest = None;
            // A gutter is cut by its width on the row, so the row must not be rewritten before.
            let text = if number.is_some() {
                row.text.clone()
            } else {
                self.rewrite_row(row)
            };
            self.push_line(MessageLine {
                text,
                wrapped: row.wrapped,
                indent,
                number,
            });
        }
        self.has_unclaimed_rows |= self.prompt_seen && self.block == Block::Unclaimed;
    }

    /// Whether an answer begins with this row of code, which has no place for the mark of a message.
    fn begins_with_code(&self, row: &Row, number: Option<LineNumber>) -> bool {
        // Without a box there is no blank row below the prompt, and only the code of an answer is
        // coloured.
        let is_flat_prompt = self.block
            == Block::User {
                shade: Colour::Default,
            };
        let is_below_prompt = matches!(self.block, Block::Chrome | Block::Unclaimed)
            || (is_flat_prompt && row.second_word.foreground != Colour::Default);
        is_below_prompt && self.asked && matches!(number, Some(LineNumber { number: 1, .. }))
    }

    fn rewrite_row(&self, row: &Row) -> String {
        let context = self.context;
        let rule = self
            .rules
            .rewrite
            .iter()
            .find(|rule| rule.row.matches(row, context));
        rule.map_or_else(
            || row.text.clone(),
            |rule| {
                let replaced = rule.row.pattern.replace(&row.text, rule.with.as_str());
                replaced.into_owned()
            },
        )
    }

    fn start_block(&mut self, block: Block) {
        self.block = block;
        self.apart = true;
    }

    fn read_line_number(&self, row: &Row) -> Option<LineNumber> {
        let context = self.context;
        let mark = self
            .rules
            .gutter
            .iter()
            .find(|mark| mark.matches(row, context))?;
        let found = mark.pattern.captures(&row.text)?;
        Some(LineNumber {
            number: found.get(1)?.as_str().trim().parse().ok()?,
            end: found.get(0)?.end(),
        })
    }

    fn push_line(&mut self, line: MessageLine) {
        if std::mem::take(&mut self.apart) {
            self.messages.push(Message::new());
        }
        if let Some(message) = self.messages.last_mut() {
            message.push(line);
        }
    }
}

/// The block of rows that no mark claims.
fn default_block(rules: &CompiledRules) -> Block {
    if rules.message.is_empty() {
        Block::Message {
            indent: rules.indent,
        }
    } else {
        Block::Unclaimed
    }
}

/// The sign in front of a row, if it begins with one.
fn border_of(row: &Row) -> Option<char> {
    let first = row.text.trim_start().chars().next();
    first.filter(|c| !c.is_alphanumeric())
}

fn remove_indent(line: &str, indent: usize) -> &str {
    let blanks = line
        .bytes()
        .take(indent)
        .take_while(|byte| *byte == b' ')
        .count();
    line.get(blanks..).unwrap_or_default()
}

fn write_message(rules: &CompiledRules, mut lines: Message, ending: Ending) -> String {
    remove_gutters(&mut lines);
    let mut lines = join_wrapped(lines);
    if rules.repeats && ending == Ending::Interrupted {
        remove_repeats(&mut lines);
    }
    let printed = |line: &String| !line.trim().is_empty();
    let first = lines.iter().position(printed).unwrap_or(lines.len());
    let last = lines
        .iter()
        .rposition(printed)
        .map_or(first, |last| last + 1);
    lines.get(first..last).unwrap_or_default().join("\n")
}

/// Joins the rows that the terminal wrapped.
fn join_wrapped(lines: Message) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut wraps = false;
    for line in lines {
        match joined.last_mut() {
            Some(last) if wraps => last.push_str(&line.text),
            _ => joined.push(remove_indent(&line.text, line.indent).to_owned()),
        }
        wraps = line.wrapped;
    }
    joined
}

/// Removes gutters of line numbers: runs that count from 1, with rows without a number in between.
fn remove_gutters(lines: &mut [MessageLine]) {
    let (mut next, mut width) = (1, 0);
    let mut wraps = false;
    for line in lines {
        let is_continued = std::mem::replace(&mut wraps, line.wrapped);
        match line.number {
            // The rest of a wrapped line has no gutter.
            _ if is_continued => {}
            // A number that does not count on belongs to the text, except 1, which starts a new
            // block of code.
            Some(LineNumber { number, end }) if number == next || number == 1 => {
                (next, width) = (number + 1, end);
                cut_gutter(line, end);
            }
            // A row without a number inside the code is the rest of a line that the program broke
            // itself.
            _ if width > 0 && is_indented(&line.text, width) => cut_gutter(line, width),
            _ => (next, width) = (1, 0),
        }
    }
}

fn cut_gutter(line: &mut MessageLine, width: usize) {
    line.text.drain(..width);
    line.indent = 0;
}

fn is_indented(line: &str, width: usize) -> bool {
    line.len() > width && line.bytes().take(width).all(|byte| byte == b' ')
}

/// Removes runs of lines that repeat the run right before them.
fn remove_repeats(lines: &mut Vec<String>) {
    let all = std::mem::take(lines);
    let mut next = 0;
    while let Some(line) = all.get(next) {
        // The shortest repeat first: a run of equal lines is removed one by one.
        let repeat = (1..=lines.len().min(REPEATED_LINES_MAX)).find(|len| {
            let run = all.get(next..next + len);
            run.is_some() && run == lines.get(lines.len() - len..)
        });
        if let Some(len) = repeat {
            next += len;
        } else {
            lines.push(line.clone());
            next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_repeat_the_run_before_them_are_removed_up_to_a_screen_of_them() {
        let lines = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (given, kept) in [
            ("a b a b c", "a b c"),
            ("a a a b", "a b"),
            ("a b c a b", "a b c a b"),
            ("x a b b a b b y", "x a b y"),
        ] {
            let mut found = lines(given);
            remove_repeats(&mut found);
            assert_eq!(found, lines(kept), "{given}");
        }
        let run = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for (count, kept) in [(REPEATED_LINES_MAX, 1), (REPEATED_LINES_MAX + 1, 2)] {
            let mut found = [run(count), run(count)].concat();
            remove_repeats(&mut found);
            assert_eq!(found.len(), kept * count);
        }
    }
}
