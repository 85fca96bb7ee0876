//! A program that knows no protocol: the prompt goes in, the answer comes out.
//!
//! The whole standard input is one prompt, less the line break that ends it. Standard output is the
//! answer and nothing else, so tools leave no trace there. The process ends with the turn: with code
//! 0, or with code 1 and a line on standard error. There is no way to ask for permission, so every
//! tool is allowed. An interrupt is a signal, which simply ends the process.

use super::{Asked, Framing, Incoming, Outbox, Protocol, reset_time};
use crate::player::{Decision, Ending, Show};
use crate::tool::ToolUse;

#[derive(Default)]
pub(super) struct Raw {
    has_failed: bool,
    /// The answer does not end with a line break.
    in_line: bool,
}

impl Raw {
    fn fail(&mut self, message: &str) {
        eprintln!("{message}");
        self.has_failed = true;
    }
}

impl Protocol for Raw {
    fn framing(&self) -> Framing {
        Framing::Whole
    }

    fn receive(&mut self, input: &[u8], _out: &mut Outbox) -> Vec<Incoming> {
        let text = String::from_utf8_lossy(input);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        vec![Incoming::Prompt(text.to_owned())]
    }

    fn begin_turn(&mut self, _prompt: &str, _out: &mut Outbox) {}

    fn show(&mut self, show: &Show, out: &mut Outbox) {
        match show {
            Show::Text(text) => {
                out.push_text(text);
                self.in_line = !text.ends_with('\n');
            }
            // Nothing else shows where one message ends and the next begins.
            Show::MessageEnd | Show::ToolStarted(_) if self.in_line => {
                out.push_text("\n");
                self.in_line = false;
            }
            _ => {}
        }
    }

    fn ask(&mut self, _tool: &ToolUse, _reason: &str, _out: &mut Outbox) -> Asked {
        Asked::Decided(Decision::Allowed { changed: None })
    }

    fn end_turn(&mut self, ending: &Ending, out: &mut Outbox) {
        if self.in_line {
            out.push_text("\n");
        }
        match ending {
            Ending::Completed => {}
            Ending::Interrupted => self.fail("interrupted"),
            Ending::Failed { text } => self.fail(text),
            Ending::Unavailable { text } => self.fail(&format!("503: {text}")),
            Ending::RateLimited(reset) => match reset_time(*reset, out) {
                Some(at) => {
                    let seconds = at.saturating_sub(out.now_seconds());
                    self.fail(&format!(
                        "429: rate limit reached; try again in {seconds} seconds"
                    ));
                }
                None => self.fail("429: rate limit reached"),
            },
        }
    }

    fn exit_code(&self) -> u8 {
        u8::from(self.has_failed)
    }
}
