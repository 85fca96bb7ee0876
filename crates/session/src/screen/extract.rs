//! From the rows of a turn to the assistant's words.
//!
//! One pass over the rows, in which each row either begins a block or goes on with the one above;
//! then the blocks that are messages are written: prefix and indent removed, gutters removed, rows
//! that the terminal wrapped joined. It decides nothing by itself: every distinction is a rule.

use super::row::{Colour, Row};
use super::rules::{Compiled, Marker, Scene};

/// The longest run of lines that is recognised as a repeat: what a tall window shows.
const REPEATED_LINES_MAX: usize = 256;

/// How the turn ended, as far as the text is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The program finished its answer.
    Complete,
    /// The user interrupted it.
    Interrupted,
}

/// What a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Message { indent: usize },
    User { shade: Colour },
    Chrome,
}

/// One row of a message.
#[derive(Default)]
struct Line {
    text: String,
    /// Whether the terminal wrapped it.
    wrapped: bool,
    /// How many leading blanks are the program's.
    indent: usize,
    /// The line number in front, and where it ends.
    number: Option<(usize, usize)>,
}

type Message = Vec<Line>;

/// The messages in `rows`, separated by one blank line; `eye` is how rows are looked at.
pub(super) fn text(rules: &Compiled, rows: &[Row], eye: Scene, ending: Ending) -> String {
    let mut reader = Reader::new(rules, eye);
    for row in rows {
        reader.row(row);
    }
    let written = reader
        .messages
        .into_iter()
        .map(|lines| write(rules, lines, ending));
    let messages: Vec<String> = written.filter(|text| !text.is_empty()).collect();
    messages.join("\n\n")
}

struct Reader<'a> {
    rules: &'a Compiled,
    block: Block,
    eye: Scene,
    messages: Vec<Message>,
    /// Whether the next row of a message begins a new one.
    apart: bool,
    /// The row that ends what is hidden.
    hidden: Option<&'a Marker>,
    /// Whether nothing came yet behind the user's prompt.
    asked: bool,
    /// Whether the row above is blank.
    above_blank: bool,
}

impl<'a> Reader<'a> {
    fn new(rules: &'a Compiled, eye: Scene) -> Self {
        let block = outside(rules);
        let (messages, above_blank) = (Vec::new(), true);
        Self {
            rules,
            block,
            eye,
            messages,
            apart: true,
            hidden: None,
            asked: false,
            above_blank,
        }
    }

    fn row(&mut self, row: &Row) {
        let apart = std::mem::replace(&mut self.above_blank, row.is_blank());
        let scene = Scene { apart, ..self.eye };
        let found = |marks: &'a [Marker]| marks.iter().find(|mark| mark.matches(row, scene));
        if self.hides(row) {
            self.apart = true;
        } else if row.gap {
            self.resume(row);
        } else if row.is_blank() {
            self.blank();
        } else if found(&self.rules.drop).is_some() {
            self.apart |= self.rules.message.is_empty();
        } else if found(&self.rules.user).is_some() {
            self.eye.quiet = row.quiet().or(self.eye.quiet);
            self.leave(Block::User {
                shade: row.lead.background,
            });
            self.asked = true;
        } else if found(&self.rules.chrome).is_some() {
            self.leave(Block::Chrome);
            self.asked = false;
        } else if let Some(mark) = found(&self.rules.message) {
            (self.apart, self.asked) = (true, false);
            self.block = Block::Message {
                indent: mark.indent,
            };
            let prefix = mark.pattern.find(&row.text).map_or(0, |found| found.end());
            let text = row.text.get(prefix..).unwrap_or_default().to_owned();
            self.line(Line {
                text,
                wrapped: row.wrapped,
                ..Line::default()
            });
        } else {
            self.go_on(row);
        }
    }

    /// Whether a row is hidden, and takes note of where that begins and ends.
    fn hides(&mut self, row: &Row) -> bool {
        let scene = self.eye;
        if let Some(last) = self.hidden {
            self.hidden = Some(last).filter(|last| !last.matches(row, scene));
            return true;
        }
        let begins = self
            .rules
            .hidden
            .iter()
            .find(|(first, _)| first.matches(row, scene));
        self.hidden = begins.map(|(_, last)| last);
        begins.is_some()
    }

    /// Rows are missing here. What follows goes on with the message above; right behind the prompt
    /// it is taken for the middle of an answer, because no mark says what it is. The output of a
    /// tool call goes on as such.
    fn resume(&mut self, row: &Row) {
        let is_message = matches!(self.block, Block::Message { .. });
        if !is_message && (self.asked || self.messages.is_empty()) {
            let indent = self
                .rules
                .message
                .first()
                .map_or(self.rules.indent, |mark| mark.indent);
            self.leave(Block::Message { indent });
            self.asked = false;
        }
        if matches!(self.block, Block::Message { .. }) {
            self.line(Line {
                text: row.text.clone(),
                ..Line::default()
            });
        }
    }

    fn blank(&mut self) {
        match self.block {
            Block::Message { .. } if !self.apart => self.line(Line::default()),
            Block::Chrome if self.rules.message.is_empty() => self.block = outside(self.rules),
            Block::User {
                shade: Colour::Default,
            } => self.leave(outside(self.rules)),
            _ => {}
        }
    }

    fn go_on(&mut self, row: &Row) {
        if matches!(self.block, Block::User { shade } if shade != row.lead.background) {
            self.leave(outside(self.rules));
        }
        let number = self.number(row);
        // Flat rows have no blank one below the prompt; the code of an answer is coloured.
        let is_flat = self.block
            == Block::User {
                shade: Colour::Default,
            };
        let is_below =
            self.block == Block::Chrome || (is_flat && row.word.foreground != Colour::Default);
        if is_below && self.asked && matches!(number, Some((1, _))) {
            // An answer that begins with code has no room for its mark.
            let indent = self.rules.message.first().map_or(0, |mark| mark.indent);
            (self.apart, self.asked, self.block) = (true, false, Block::Message { indent });
        }
        if let Block::Message { indent } = self.block {
            // A gutter is cut by the width that it has on the row.
            let text = if number.is_some() {
                row.text.clone()
            } else {
                self.rewritten(row)
            };
            self.line(Line {
                text,
                wrapped: row.wrapped,
                indent,
                number,
            });
        }
    }

    fn rewritten(&self, row: &Row) -> String {
        let scene = self.eye;
        let rule = self
            .rules
            .rewrite
            .iter()
            .find(|(mark, _)| mark.matches(row, scene));
        rule.map_or_else(
            || row.text.clone(),
            |(mark, with)| mark.pattern.replace(&row.text, with.as_str()).into_owned(),
        )
    }

    fn leave(&mut self, block: Block) {
        self.block = block;
        self.apart = true;
    }

    fn number(&self, row: &Row) -> Option<(usize, usize)> {
        let scene = self.eye;
        let mark = self
            .rules
            .gutter
            .iter()
            .find(|mark| mark.matches(row, scene))?;
        let found = mark.pattern.captures(&row.text)?;
        Some((
            found.get(1)?.as_str().trim().parse().ok()?,
            found.get(0)?.end(),
        ))
    }

    fn line(&mut self, line: Line) {
        if std::mem::take(&mut self.apart) {
            self.messages.push(Message::new());
        }
        if let Some(message) = self.messages.last_mut() {
            message.push(line);
        }
    }
}

/// What rows belong to that nothing claims.
fn outside(rules: &Compiled) -> Block {
    if rules.message.is_empty() {
        Block::Message {
            indent: rules.indent,
        }
    } else {
        Block::Chrome
    }
}

fn unindented(line: &str, indent: usize) -> &str {
    let blanks = line
        .bytes()
        .take(indent)
        .take_while(|byte| *byte == b' ')
        .count();
    line.get(blanks..).unwrap_or_default()
}

fn write(rules: &Compiled, mut lines: Message, ending: Ending) -> String {
    remove_gutters(&mut lines);
    let mut lines = joined(lines);
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
fn joined(lines: Message) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        match joined.last_mut() {
            Some(last) if goes_on => last.push_str(&line.text),
            _ => joined.push(unindented(&line.text, line.indent).to_owned()),
        }
        goes_on = line.wrapped;
    }
    joined
}

/// Removes gutters of line numbers: runs that count from 1, rows without a number in between.
fn remove_gutters(lines: &mut [Line]) {
    let (mut next, mut width) = (1, 0);
    let mut goes_on = false;
    for line in lines {
        let goes_on_here = std::mem::replace(&mut goes_on, line.wrapped);
        match line.number {
            _ if goes_on_here => {}
            Some((number, end)) if number == next || number == 1 => {
                (next, width) = (number + 1, end);
                cut(line, end);
            }
            _ if width > 0 && is_indented(&line.text, width) => cut(line, width),
            _ => (next, width) = (1, 0),
        }
    }
}

fn cut(line: &mut Line, width: usize) {
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
