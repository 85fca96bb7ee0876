//! An interactive program on a terminal: a prompt `> `, an answer, a prompt.
//!
//! The terminal's own line editing is off, so that Ctrl-C arrives as a byte and interrupts a turn
//! instead of killing the program. Enter submits the line; a bracketed paste may hold line breaks.
//! Ctrl-D, or Ctrl-C on an empty line, leaves.

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::{Asked, Framing, Incoming, Outbox, Protocol, describe};
use crate::player::{Decision, Ending, Show};
use crate::tool::{ToolOutcome, ToolUse};

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
const ENABLE_PASTE_MARKS: &str = "\x1b[?2004h";
/// More keys have no effect.
const LINE_BYTES_MAX: usize = 1 << 20;
/// No key sends a longer sequence.
const SEQUENCE_BYTES_MAX: usize = 32;
const PROMPT: &str = "> ";

#[derive(Default)]
pub(super) struct Terminal {
    /// What the terminal was like before, to restore it.
    before: Option<Termios>,
    line: Vec<u8>,
    /// An escape sequence that has not ended.
    sequence: Vec<u8>,
    in_paste: bool,
    in_turn: bool,
    is_asking: bool,
}

impl Terminal {
    fn take_byte(&mut self, byte: u8, out: &mut Outbox) -> Option<Incoming> {
        if !self.sequence.is_empty() || byte == ESCAPE {
            self.take_sequence_byte(byte);
            return None;
        }
        // While a question is open, a single key answers it.
        if self.is_asking {
            return self.take_decision(byte, out);
        }
        match byte {
            b'\r' | b'\n' if self.in_paste => self.add_byte(b'\n', out),
            b'\r' | b'\n' => return self.submit(out),
            CTRL_C if self.in_turn => return Some(Incoming::Interrupt),
            CTRL_C | CTRL_D if self.line.is_empty() => return Some(Incoming::Exit),
            CTRL_C => self.discard_line(out),
            BACKSPACE | DELETE => self.delete_char(out),
            byte if byte < b' ' && byte != b'\t' => {}
            byte => self.add_byte(byte, out),
        }
        None
    }

    /// Collects an escape sequence. Only the marks of a paste mean something here.
    fn take_sequence_byte(&mut self, byte: u8) {
        self.sequence.push(byte);
        let is_control_sequence = self.sequence.get(1).is_none_or(|second| *second == b'[');
        // `ESC x` has two bytes. `ESC [ 200 ~`, the begin of a paste, ends at its first letter or
        // sign, `~`. The limit ends a sequence that never ends by itself.
        let ends = match self.sequence.len() {
            1 => false,
            2 => !is_control_sequence,
            SEQUENCE_BYTES_MAX.. => true,
            _ => (0x40..=0x7e).contains(&byte),
        };
        if !ends {
            return;
        }
        match self.sequence.as_slice() {
            PASTE_BEGIN => self.in_paste = true,
            PASTE_END => self.in_paste = false,
            _ => {}
        }
        self.sequence.clear();
    }

    fn take_decision(&mut self, byte: u8, out: &mut Outbox) -> Option<Incoming> {
        let decision = match byte {
            b'y' | b'Y' => Decision::Allowed { changed: None },
            b'n' | b'N' => Decision::Denied {
                message: "the user said no".to_owned(),
                stop: false,
            },
            CTRL_C => return Some(Incoming::Interrupt),
            _ => return None,
        };
        self.is_asking = false;
        out.push_text(if matches!(decision, Decision::Allowed { .. }) {
            "yes\n"
        } else {
            "no\n"
        });
        Some(Incoming::Decision(decision))
    }

    fn add_byte(&mut self, byte: u8, out: &mut Outbox) {
        if self.line.len() == LINE_BYTES_MAX {
            return;
        }
        self.line.push(byte);
        out.push_bytes(&[byte]);
    }

    fn delete_char(&mut self, out: &mut Outbox) {
        // A character of several bytes ends with continuation bytes.
        while let Some(byte) = self.line.pop() {
            if byte & 0b1100_0000 != 0b1000_0000 {
                out.push_text("\x08 \x08");
                break;
            }
        }
    }

    fn discard_line(&mut self, out: &mut Outbox) {
        self.line.clear();
        out.push_text("\n");
        out.push_text(PROMPT);
    }

    fn submit(&mut self, out: &mut Outbox) -> Option<Incoming> {
        let line = std::mem::take(&mut self.line);
        out.push_text("\n");
        let text = String::from_utf8_lossy(&line).into_owned();
        if text.trim().is_empty() {
            out.push_text(PROMPT);
            return None;
        }
        Some(Incoming::Prompt(text))
    }

    /// Turns the terminal's own line editing off.
    fn take_over(&mut self) {
        let input = std::io::stdin();
        let Ok(before) = tcgetattr(&input) else {
            return;
        };
        // Output processing stays on, so that a line feed also returns the carriage.
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        if tcsetattr(&input, OptionalActions::Now, &modes).is_ok() {
            self.before = Some(before);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(error) = tcsetattr(std::io::stdin(), OptionalActions::Now, before)
        {
            eprintln!("cannot restore the terminal: {error}");
        }
    }
}

impl Protocol for Terminal {
    fn framing(&self) -> Framing {
        Framing::Bytes
    }

    fn start(&mut self, out: &mut Outbox) {
        self.take_over();
        // On a pipe the marks would only be noise.
        if self.before.is_some() {
            out.push_text(ENABLE_PASTE_MARKS);
        }
        out.push_text(PROMPT);
    }

    fn receive(&mut self, input: &[u8], out: &mut Outbox) -> Vec<Incoming> {
        input
            .iter()
            .filter_map(|byte| self.take_byte(*byte, out))
            .collect()
    }

    fn begin_turn(&mut self, _prompt: &str, _out: &mut Outbox) {
        self.in_turn = true;
    }

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        match show {
            Show::Text(text) | Show::Thought(text) => out.push_text(text),
            Show::MessageEnd => out.push_text("\n"),
            Show::ToolStarted(tool) => out.push_text(&format!("\n* {}\n", describe(&tool.action))),
            Show::ToolEnded { outcome, .. } => out.push_text(&show_outcome(outcome)),
            Show::Usage(usage) => {
                out.push_text(&format!(
                    "\nTokens: {} in, {} out.\n",
                    usage.input, usage.output
                ));
            }
        }
    }

    fn ask(&mut self, _tool: &ToolUse, reason: &str, out: &mut Outbox) -> Asked {
        self.is_asking = true;
        out.push_text(&format!("Allow? {reason} [y/n] "));
        Asked::Sent
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        self.in_turn = false;
        self.is_asking = false;
        match ending {
            Ending::Completed => {}
            Ending::Interrupted => out.push_text("\nInterrupted."),
            Ending::Failed { text } | Ending::Unavailable { text } => {
                out.push_text(&format!("\nError: {text}"));
            }
            Ending::RateLimited(_) => out.push_text("\nError: rate limit reached"),
        }
        out.push_text("\n\n");
        out.push_text(PROMPT);
    }
}

fn show_outcome(outcome: &ToolOutcome) -> String {
    let lines: Vec<String> = outcome
        .output
        .lines()
        .map(|line| format!("  {line}\n"))
        .collect();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(typed: &[u8]) -> Vec<Incoming> {
        let mut out = Outbox::new(1);
        // Byte by byte: a sequence may be split between two reads.
        let mut terminal = Terminal::default();
        typed
            .iter()
            .flat_map(|byte| terminal.receive(&[*byte], &mut out))
            .collect()
    }

    fn prompt(text: &str) -> Incoming {
        Incoming::Prompt(text.to_owned())
    }

    #[test]
    fn keys_make_prompts() {
        assert_eq!(prompts(b"hello\r"), [prompt("hello")]);
        assert_eq!(prompts(b"  \r\rab\x7fc\r"), [prompt("ac")]);
        assert_eq!(prompts("aé\x7f\n".as_bytes()), [prompt("a")]);
        assert_eq!(prompts(b"\x1b[200~a\rb\nc\x1b[201~\r"), [prompt("a\nb\nc")]);
        assert_eq!(prompts(b"x\x1b[A\x1b[1;5Cy\r"), [prompt("xy")]);
        assert_eq!(prompts(b"x\x03y\r"), [prompt("y")]);
        assert_eq!(prompts(b"\x04"), [Incoming::Exit]);
        assert_eq!(prompts(b"\x1b"), []);
    }
}
