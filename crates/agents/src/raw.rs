//! Programs that know no protocol: the prompt goes in, the answer comes out.
//!
//! - The caller starts the program once per prompt. The machine writes the prompt to its standard
//!   input, ends it with a line break and closes the input.
//! - The standard output is the answer. The turn ends when the program exits; another exit status
//!   than zero is a failure.
//! - The agent calls tools by lines of its answer ([`crate::tool_line`]). When it exits after such
//!   calls, the turn goes on: the caller starts the program again and sends the results, which are
//!   then the prompt. Everything on the standard output counts as the agent's own text, so a program
//!   that prints the output of its shell commands there must not be given tools.
//! - An interrupt is a signal: there is nothing else that such a program understands.

use crate::event::{Action, AgentEvent, TurnEnd};
use crate::message_text::{MessageText, TextKind};
use crate::protocol::{AgentProtocol, Exit, Features};
use crate::request::{LineResult, Request, RequestError};
use crate::tool_line::{PendingCalls, ScannedLine, ToolLineScanner, render_results};
use crate::turn::TurnRecorder;

/// The state of a program that is started for every prompt.
#[derive(Debug)]
pub struct Raw {
    turn: TurnRecorder<()>,
    scanner: ToolLineScanner,
    answer: MessageText,
    /// Whether the answer has a line. The break behind the last line is no part of it.
    has_line: bool,
    pending: PendingCalls,
    /// The program has exited, and the turn waits for the results of its calls.
    awaits_results: bool,
}

impl Default for Raw {
    fn default() -> Self {
        Self::new()
    }
}

impl Raw {
    /// The machine of a program that is about to start.
    pub fn new() -> Self {
        Self {
            turn: TurnRecorder::new(),
            scanner: ToolLineScanner::default(),
            answer: MessageText::default(),
            has_line: false,
            pending: PendingCalls::default(),
            awaits_results: false,
        }
    }

    fn send(&mut self, prompt: &str) -> Result<(), RequestError> {
        self.turn.open()?;
        self.pending = PendingCalls::default();
        self.awaits_results = false;
        self.write_input(prompt);
        Ok(())
    }

    fn write_input(&mut self, text: &str) {
        // The last answer may have left a fence open.
        self.scanner = ToolLineScanner::default();
        self.answer.discard();
        self.has_line = false;
        self.turn.write_text(format!("{text}\n"));
        self.turn.close_input();
    }

    fn interrupt(&mut self) -> Result<(), RequestError> {
        self.turn.require_open()?;
        if self.awaits_results {
            self.turn.end(TurnEnd::Interrupted);
        } else {
            self.turn.mark_interrupting();
            self.turn.signal_interrupt();
        }
        Ok(())
    }

    fn send_results(&mut self, results: &[LineResult]) -> Result<(), RequestError> {
        if !self.turn.is_open() || !self.awaits_results {
            return Err(RequestError::NoTurn);
        }
        self.awaits_results = false;
        let notes = self.pending.take_notes();
        self.write_input(&render_results(results, &notes));
        Ok(())
    }

    fn receive_text(&mut self, line: &str) {
        match self.scanner.scan(line) {
            ScannedLine::Text => {
                // Each line brings the break before it, so the break behind the last line never
                // becomes part of the answer.
                let line_break = if self.has_line { "\n" } else { "" };
                let text = format!("{line_break}{line}");
                self.has_line = true;
                for event in self.answer.add(TextKind::Answer, None, &text) {
                    self.turn.emit(event);
                }
            }
            ScannedLine::Call(call) => {
                if let Some(event) = self.pending.take_call(call) {
                    self.turn.emit(event);
                }
            }
            ScannedLine::Malformed(line) => {
                if let Some(event) = self.pending.take_malformed(line) {
                    self.turn.emit(event);
                }
            }
        }
    }

    fn finish_answer(&mut self) {
        if let Some(event) = self.answer.finish() {
            self.turn.emit_in_turn(event);
        }
        if self.pending.is_empty() {
            self.turn.end(TurnEnd::Completed);
        } else {
            self.awaits_results = true;
            self.turn.emit_in_turn(AgentEvent::AwaitsToolResults);
        }
    }
}

impl AgentProtocol for Raw {
    fn features(&self) -> Features {
        Features {
            one_turn_per_process: true,
            ..Features::default()
        }
    }

    fn request(&mut self, request: Request) -> Result<Vec<Action>, RequestError> {
        match request {
            // Nothing to open: the program reads its prompt and nothing else.
            Request::Start(_) => {}
            Request::Send { prompt } => self.send(&prompt)?,
            Request::Interrupt => self.interrupt()?,
            Request::ToolResults(results) => self.send_results(&results)?,
            Request::Steer { .. } => return Err(RequestError::Unsupported("take input in a turn")),
            Request::Answer { request_id, .. } => {
                return Err(RequestError::UnknownPermission(request_id));
            }
            Request::Reset { .. } => {
                self.turn.end(TurnEnd::Interrupted);
                self.turn.close_input();
            }
            Request::Close => self.turn.close_input(),
        }
        Ok(self.turn.take_actions())
    }

    fn receive_line(&mut self, line: &[u8]) -> Vec<Action> {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        // Output of a process that has already answered is not part of the answer.
        if self.turn.is_open() && !self.awaits_results {
            self.receive_text(text);
        } else {
            self.turn.log(text);
        }
        self.turn.take_actions()
    }

    fn receive_end(&mut self, exit: &Exit) -> Vec<Action> {
        // An interrupted program may well exit with status 0: its answer is still not whole.
        if !exit.is_success() || self.turn.is_interrupting() {
            self.turn.end_with_exit(exit);
        } else if self.turn.is_open() && !self.awaits_results {
            self.finish_answer();
        }
        self.turn.take_actions()
    }
}
