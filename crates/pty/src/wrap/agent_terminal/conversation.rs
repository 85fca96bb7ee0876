//! The turns of an interactive program as JSON lines, without I/O.
//!
//! | line of the server | what the bridge does |
//! |---|---|
//! | `message.user`, `tool.results` | types it and presses Enter, once the program has shown a prompt |
//! | `interrupt` | presses Esc or Ctrl-C |
//! | `reset` with commands | types them one after the other; what the program says to them is no answer |
//!
//! When the detector finds the end of the turn, the bridge prints the text as
//! `message.assistant.final` and then `turn.completed`. Of an interrupted turn it prints what there
//! is as a delta, and `turn.interrupted`. While the program draws, `terminal.output` says once a second
//! that it is alive.
//!
//! A prompt is typed as a bracketed paste where the program takes one. Elsewhere each line break
//! would submit the lines before it, so the prompt is typed as one line.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use turnkeep_session::detector::{Detection, Detector, Event, State, Turn};

use super::queries::TerminalQueries;

const PASTE_BEGIN: &str = "\x1b[200~";
const PASTE_END: &str = "\x1b[201~";
const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
const CTRL_C: &str = "\x03";
/// Programs read a paste first and handle it then. An Enter that comes with it would be part of it.
const ENTER_AFTER: Duration = Duration::from_millis(150);
/// How long a program may talk about a command that begins a new session.
const RESET_WITHIN: Duration = Duration::from_secs(1);

/// How often the server hears that the program prints something.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// What to do now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reaction {
    /// Keys for the program.
    pub(super) keys: Vec<u8>,
    /// Lines for the server.
    pub(super) lines: Vec<Value>,
}

/// How far the conversation is.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// The program has not shown its first prompt.
    Starting,
    /// The program waits for a prompt.
    Idle,
    /// A prompt was typed, and the program works on it.
    Working,
    /// A command for a new session was typed.
    Resetting { until: Duration },
}

/// The conversation with one program.
pub(super) struct Conversation {
    detector: Detector,
    queries: TerminalQueries,
    escapes: Option<u8>,
    stage: Stage,
    /// A prompt that waits until the program takes one.
    waiting: Option<String>,
    /// Commands that begin a new session and are not typed yet.
    reset_commands: VecDeque<String>,
    enter_at: Option<Duration>,
    /// When the server last heard that the program prints something.
    shown_alive_at: Option<Duration>,
    reaction: Reaction,
}

impl Conversation {
    pub(super) fn new(detector: Detector, escapes: Option<u8>) -> Self {
        Self {
            detector,
            queries: TerminalQueries::default(),
            escapes,
            stage: Stage::Starting,
            waiting: None,
            reset_commands: VecDeque::new(),
            enter_at: None,
            shown_alive_at: None,
            reaction: Reaction::default(),
        }
    }

    /// The time at which [`Event::Tick`] must be observed.
    pub(super) fn deadline(&self) -> Option<Duration> {
        let reset_until = match self.stage {
            Stage::Resetting { until } => Some(until),
            _ => None,
        };
        let deadlines = [self.detector.deadline(), self.enter_at, reset_until];
        deadlines.into_iter().flatten().min()
    }

    /// Takes output of the program.
    pub(super) fn receive_output(&mut self, now: Duration, output: &[u8]) -> Reaction {
        let answers = self.queries.answer(output);
        self.reaction.keys.extend(answers);
        self.show_life(now);
        self.observe(now, Event::Output(output))
    }

    /// Takes what happens in the terminal, and the passing of time.
    pub(super) fn observe(&mut self, now: Duration, event: Event<'_>) -> Reaction {
        for detection in self.detector.feed(now, event) {
            match detection {
                Detection::Ready => self.note_first_prompt(),
                Detection::State(state) => self.note_state(state),
                Detection::Turn(turn) => self.finish_turn(&turn),
            }
        }
        self.pass_time(now);
        std::mem::take(&mut self.reaction)
    }

    /// Takes a line of the server. Lines of an unknown kind are ignored.
    pub(super) fn receive_line(&mut self, now: Duration, line: &[u8]) -> Reaction {
        let record: Value = serde_json::from_slice(line).unwrap_or_default();
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        match text("type").unwrap_or_default() {
            "message.user" => self.waiting = Some(text("content").unwrap_or_default().to_owned()),
            "tool.results" => self.waiting = Some(describe_results(&record)),
            "interrupt" => self.interrupt(),
            "reset" => self.reset(now, commands_of(&record)),
            _ => {}
        }
        self.pass_time(now);
        std::mem::take(&mut self.reaction)
    }

    /// Lets the server's watchdog see that a program that works is not silent.
    fn show_life(&mut self, now: Duration) {
        let is_due = self.shown_alive_at.is_none_or(|at| at + ALIVE_EVERY <= now);
        if self.stage == Stage::Working && is_due {
            self.shown_alive_at = Some(now);
            self.print(json!({"type": "terminal.output"}));
        }
    }

    fn note_first_prompt(&mut self) {
        if self.stage == Stage::Starting {
            self.stage = Stage::Idle;
        }
    }

    fn note_state(&mut self, state: State) {
        match state {
            // Some programs are ready without a first prompt of their own.
            State::Ready => self.note_first_prompt(),
            State::Blocked if self.stage == Stage::Working => {
                let summary = "waits for a decision in its terminal";
                self.print(json!({"type": "node.progress", "summary": summary}));
            }
            State::Starting | State::Working | State::Blocked => {}
        }
    }

    fn finish_turn(&mut self, turn: &Turn) {
        // Words that no prompt caused, such as a greeting, are no answer.
        if self.stage != Stage::Working || turn.unprompted {
            return;
        }
        self.stage = Stage::Idle;
        if turn.incomplete || turn.truncated {
            let text = "a part of the answer could not be read from the terminal";
            self.print(json!({"type": "node.log", "text": text}));
        }
        let status = if turn.interrupted {
            self.print(json!({"type": "message.assistant.delta", "delta": turn.text}));
            "turn.interrupted"
        } else {
            self.print(json!({"type": "message.assistant.final", "content": turn.text}));
            "turn.completed"
        };
        self.print(json!({"type": "turn.status", "status": status}));
    }

    fn interrupt(&mut self) {
        if self.stage == Stage::Working {
            let keys = match self.escapes {
                Some(presses) => ESCAPE.repeat(usize::from(presses)),
                None => CTRL_C.to_owned(),
            };
            self.enter_at = None;
            self.press(&keys);
        } else if self.waiting.take().is_some() {
            let ended =
                json!({"type": "turn.status", "status": "turn.interrupted", "begun": false});
            self.print(ended);
        }
    }

    fn reset(&mut self, now: Duration, commands: VecDeque<String>) {
        self.waiting = None;
        // A program that starts has no session yet.
        if self.stage != Stage::Starting && !commands.is_empty() {
            self.reset_commands = commands;
            self.type_reset_command(now);
        }
    }

    /// Types the next command that begins a new session. Without one the program is ready.
    fn type_reset_command(&mut self, now: Duration) {
        self.stage = match self.reset_commands.pop_front() {
            Some(command) => {
                self.press(&format!("{}{ENTER}", one_line(&command)));
                let until = now + RESET_WITHIN;
                Stage::Resetting { until }
            }
            None => Stage::Idle,
        };
    }

    /// Does what time alone makes due.
    fn pass_time(&mut self, now: Duration) {
        if self.enter_at.is_some_and(|at| at <= now) {
            self.enter_at = None;
            self.press(ENTER);
        }
        if matches!(self.stage, Stage::Resetting { until } if until <= now) {
            self.type_reset_command(now);
        }
        if self.stage == Stage::Idle
            && let Some(prompt) = self.waiting.take()
        {
            self.type_prompt(now, &prompt);
        }
    }

    fn type_prompt(&mut self, now: Duration, prompt: &str) {
        self.stage = Stage::Working;
        if self.queries.takes_paste_marks() {
            let text = printable(prompt);
            self.press(&format!("{PASTE_BEGIN}{text}{PASTE_END}"));
            self.enter_at = Some(now + ENTER_AFTER);
        } else {
            self.press(&format!("{}{ENTER}", one_line(prompt)));
        }
    }

    fn press(&mut self, keys: &str) {
        self.reaction.keys.extend_from_slice(keys.as_bytes());
    }

    fn print(&mut self, line: Value) {
        self.reaction.lines.push(line);
    }
}

fn commands_of(record: &Value) -> VecDeque<String> {
    let commands = record.get("commands").and_then(Value::as_array);
    let commands = commands.into_iter().flatten();
    commands
        .filter_map(|command| command.as_str().map(str::to_owned))
        .collect()
}

/// A text without keys that mean something else than a character: none of them may leave the paste.
fn printable(text: &str) -> String {
    let is_plain = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    text.trim_end().chars().filter(is_plain).collect()
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    printable(&words.join(" "))
}

/// The text that tells the program the results of its tool calls: one JSON object a line. The server
/// sends `raw` programs the same form.
fn describe_results(record: &Value) -> String {
    let items = |key: &str| record.get(key).and_then(Value::as_array);
    let results = items("results").into_iter().flatten();
    let notes = items("notes").into_iter().flatten();
    let mut lines = vec!["The results of your tool calls, in order:".to_owned()];
    lines.extend(results.map(|result| json!({"tool_result": result}).to_string()));
    lines.extend(notes.filter_map(Value::as_str).map(str::to_owned));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use turnkeep_session::detector::{Size, TtyMode, presets};

    use super::*;

    /// A conversation with a program whose prompt is `$ `, as bash shows it.
    struct Session {
        conversation: Conversation,
        now: Duration,
    }

    impl Session {
        fn new() -> Self {
            let profile = presets().get("bash").unwrap();
            let size = Size { cols: 80, rows: 24 };
            let mut session = Self {
                conversation: Conversation::new(Detector::new(profile, size), None),
                now: Duration::ZERO,
            };
            // A terminal collects lines until a program changes that.
            assert_eq!(session.output("", true), NOTHING);
            session
        }

        /// Lets time pass, with a tick whenever one is due.
        fn pass(&mut self) -> Vec<String> {
            let until = self.now + Duration::from_millis(200);
            let mut all = Vec::new();
            while let Some(at) = self.conversation.deadline().filter(|at| *at <= until) {
                self.now = self.now.max(at);
                let reaction = self.conversation.observe(self.now, Event::Tick);
                all.extend(self.describe(&reaction));
            }
            self.now = until;
            all
        }

        fn describe(&mut self, reaction: &Reaction) -> Vec<String> {
            let mut all = Vec::new();
            if !reaction.keys.is_empty() {
                let seen = Event::Input(&reaction.keys);
                assert_eq!(
                    self.conversation.observe(self.now, seen),
                    Reaction::default()
                );
                all.push(format!("keys {}", reaction.keys.escape_ascii()));
            }
            all.extend(reaction.lines.iter().map(Value::to_string));
            all
        }

        fn receive(&mut self, line: &Value) -> Vec<String> {
            let line = line.to_string();
            let reaction = self.conversation.receive_line(self.now, line.as_bytes());
            self.describe(&reaction)
        }

        /// Output in a mode of the terminal.
        fn output(&mut self, text: &str, canonical: bool) -> Vec<String> {
            self.now += Duration::from_millis(1);
            let mode = TtyMode {
                canonical,
                echo: canonical,
            };
            let reaction = self.conversation.observe(self.now, Event::TtyMode(mode));
            let mut all = self.describe(&reaction);
            let output = text.as_bytes();
            let reaction = self.conversation.receive_output(self.now, output);
            all.extend(self.describe(&reaction));
            all
        }

        fn at_prompt(&mut self) -> Vec<String> {
            let mut all = self.output("\x1b[?2004h$ ", false);
            all.extend(self.pass());
            all
        }
    }

    const NOTHING: [&str; 0] = [];

    fn prompt(text: &str) -> Value {
        json!({"type": "message.user", "content": text})
    }

    #[test]
    fn a_prompt_waits_for_the_program_and_its_answer_ends_the_turn() {
        let mut session = Session::new();
        assert_eq!(session.receive(&prompt("echo hi\nthere")), NOTHING);
        assert_eq!(
            session.at_prompt(),
            [r"keys \x1b[200~echo hi\nthere\x1b[201~", r"keys \r"]
        );
        session.output("echo hi\r\n\x1b[?2004l\rhi\r\n", true);
        assert_eq!(
            session.at_prompt(),
            [
                r#"{"type":"message.assistant.final","content":"hi"}"#,
                r#"{"type":"turn.status","status":"turn.completed"}"#,
            ]
        );
    }

    #[test]
    fn a_prompt_that_was_not_typed_has_not_begun() {
        let mut session = Session::new();
        session.receive(&prompt("never"));
        assert_eq!(
            session.receive(&json!({"type": "interrupt"})),
            [r#"{"type":"turn.status","status":"turn.interrupted","begun":false}"#]
        );
        assert_eq!(session.at_prompt(), NOTHING);
        assert_eq!(session.receive(&json!({"type": "interrupt"})), NOTHING);
    }

    #[test]
    fn a_program_without_paste_marks_gets_one_line() {
        let mut session = Session::new();
        session.output("$ ", false);
        session.pass();
        assert_eq!(
            session.receive(&prompt("one\n\ntwo\x1b[201~\x03")),
            [r"keys one two[201~\r"]
        );
        assert_eq!(
            session.receive(&json!({"type": "interrupt"})),
            [r"keys \x03"]
        );
    }

    #[test]
    fn what_a_program_says_to_a_reset_is_no_answer() {
        let mut session = Session::new();
        session.at_prompt();
        let reset = json!({"type": "reset", "commands": ["clear"]});
        assert_eq!(session.receive(&reset), [r"keys clear\r"]);
        session.receive(&prompt("next"));
        session.output("clear\r\n\x1b[?2004l\rcleared\r\n", true);
        let mut all = session.at_prompt();
        for _ in 0..6 {
            all.extend(session.pass());
        }
        assert_eq!(all, [r"keys \x1b[200~next\x1b[201~", r"keys \r"]);
    }

    #[test]
    fn the_commands_of_a_reset_are_typed_one_after_the_other() {
        let mut session = Session::new();
        session.at_prompt();
        let reset = json!({"type": "reset", "commands": ["/new", "/clear"]});
        assert_eq!(session.receive(&reset), [r"keys /new\r"]);
        session.receive(&prompt("next"));
        let mut all = Vec::new();
        for _ in 0..12 {
            all.extend(session.pass());
        }
        let expect = [r"keys /clear\r", r"keys \x1b[200~next\x1b[201~", r"keys \r"];
        assert_eq!(all, expect);
    }

    #[test]
    fn a_program_that_draws_while_it_works_shows_that_it_is_alive() {
        let mut session = Session::new();
        session.at_prompt();
        assert_eq!(session.output("a greeting", true), NOTHING);
        session.receive(&prompt("work"));
        let mut signs = 0;
        for _ in 0..15 {
            let printed = session.output("\r|", true);
            signs += usize::from(printed == [r#"{"type":"terminal.output"}"#]);
            session.pass();
        }
        // Three seconds have passed.
        assert_eq!(signs, 3);
    }

    #[test]
    fn unknown_lines_are_ignored() {
        let mut session = Session::new();
        session.at_prompt();
        for line in [json!({"type": "start"}), json!([1]), json!({"type": 5})] {
            assert_eq!(session.receive(&line), NOTHING);
        }
    }
}
