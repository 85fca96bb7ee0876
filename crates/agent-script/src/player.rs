//! Turns a script into actions, one at a time.
//!
//! [`Player`] chooses the turn for a prompt. [`Play`] walks through that turn: the caller takes an
//! [`Action`], carries it out, and reports back where the action asks for it. Both are pure: no
//! I/O, no clock, no protocol.
//!
//! One use of a tool is up to four actions. For a step `run = "make"` with `ask`:
//!
//! ```text
//! Show(ToolStarted)   the call appears
//! Ask                 → decide(Allowed | Denied)
//! Perform             → finish_tool(outcome)
//! Show(ToolEnded)     its result appears
//! ```
//!
//! Without an MCP server, a `call` becomes a line of JSON in the text and the turn ends. The next
//! prompt then brings the answer, so the player keeps such a play and goes on with it.

mod progress;

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use crate::placeholder::{fill_placeholders, find_value, show_value};
use crate::script::{
    ChildStep, LimitReset, Pieces, Script, Settings, Speech, Step, ToolStep, Turn, Usage, map_texts,
};
use crate::tool::{ToolAction, ToolOutcome, ToolUse};
pub use progress::{Answer, Progress, SuspendedTurn};

/// What the agent does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sends something to the other side.
    Show(Show),
    /// Asks for permission; the answer goes to [`Play::decide`].
    Ask {
        tool: ToolUse,
        reason: String,
    },
    /// Uses a tool; the outcome goes to [`Play::finish_tool`].
    Perform(ToolUse),
    /// Applies a patch to the working directory.
    ApplyPatch {
        text: String,
    },
    Pause {
        ms: u64,
    },
    WaitForFile {
        path: String,
    },
    Touch {
        path: String,
    },
    WriteError {
        text: String,
    },
    Garbage {
        bytes: Vec<u8>,
    },
    /// Writes bytes to a file beside the conversation.
    SaveBytes {
        path: String,
        bytes: Vec<u8>,
    },
    SpawnChild(ChildStep),
    /// Writes half a line, then closes standard output.
    CloseOutput,
    /// Says nothing until an interrupt or the end of the input.
    StaySilent,
    Crash {
        code: u8,
        message: String,
    },
    KillSelf,
    End(Ending),
}

/// What the other side sees while a turn runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    Text(String),
    Thought(String),
    /// The message is complete; more text begins another one.
    MessageEnd,
    ToolStarted(ToolUse),
    ToolEnded {
        tool: ToolUse,
        outcome: ToolOutcome,
    },
    Usage(Usage),
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    Completed,
    Interrupted,
    Failed { text: String },
    RateLimited(LimitReset),
    Unavailable { text: String },
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Go on. `changed` replaces what the tool would have done.
    Allowed { changed: Option<ToolAction> },
    /// Do not. `stop` also ends the turn.
    Denied { message: String, stop: bool },
}

/// Chooses turns.
pub struct Player {
    script: Script,
    played: Vec<bool>,
    /// A play that waits for the answer to a call which it wrote as text.
    suspended: Option<Play>,
    next_tool: u64,
}

/// A prompt, and whether a `call` has to be written as text.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub text: String,
    pub calls_as_text: bool,
}

impl Player {
    /// A player that goes on where another one stopped.
    pub fn new(script: Script, progress: &Progress) -> Player {
        let mut played = vec![false; script.turns.len()];
        for index in &progress.played {
            if let Some(flag) = played.get_mut(*index) {
                *flag = true;
            }
        }
        let mut player = Player {
            script,
            played,
            suspended: None,
            next_tool: 1,
        };
        player.suspended = progress
            .suspended
            .as_ref()
            .and_then(|turn| player.redo_turn(turn));
        player
    }

    /// How far the script has been played.
    pub fn progress(&self) -> Progress {
        let indexes = self.played.iter().enumerate();
        let played = indexes
            .filter(|(_, played)| **played)
            .map(|(index, _)| index)
            .collect();
        let suspended = self.suspended.as_ref().map(|play| SuspendedTurn {
            turn: play.turn,
            prompt: play.prompt.text.clone(),
            answers: play.answers.clone(),
        });
        Progress { played, suspended }
    }

    /// Does a suspended turn again up to the call that waits for its answer. Returns `None` if the
    /// script has changed so much that there is no such call.
    fn redo_turn(&self, suspended: &SuspendedTurn) -> Option<Play> {
        let turn = self.script.turns.get(suspended.turn)?;
        let prompt = Prompt {
            text: suspended.prompt.clone(),
            calls_as_text: true,
        };
        let mut play = Play::new(suspended.turn, turn, prompt, &self.script.settings);
        // Nothing is carried out again: the kept answers stand for the tools and calls that the last
        // process has done.
        let mut answers = suspended.answers.iter();
        loop {
            match play.next_action() {
                Action::Ask { .. } | Action::Perform(_) => {
                    play.finish_tool(answers.next()?.to_outcome());
                }
                // A call as text ends the process's part of the turn. The first one without a kept
                // answer is the one that waits.
                Action::End(_) => {
                    let step = play.open_call.take()?;
                    let Some(answer) = answers.next() else {
                        play.open_call = Some(step);
                        return Some(play);
                    };
                    play.keep_answer(&step, &answer.to_outcome());
                }
                _ => {}
            }
        }
    }

    /// Chooses the turn for a prompt: the first unplayed one whose `when` fits, else the next one
    /// without `when`.
    pub fn begin(&mut self, prompt: Prompt) -> Play {
        // The prompt answers a call, whatever turns would fit it.
        if let Some(mut play) = self.suspended.take() {
            play.go_on_with(&prompt.text);
            return play;
        }
        let play = match self.find_turn(&prompt.text) {
            Some(index) => self.start_turn(index, prompt),
            None => Play::without_turn(),
        };
        Play {
            next_tool: self.next_tool,
            ..play
        }
    }

    /// Takes a play back when its turn has ended.
    pub fn end(&mut self, play: Play) {
        self.next_tool = play.next_tool;
        if play.open_call.is_some() {
            self.suspended = Some(play);
        }
    }

    fn find_turn(&self, prompt: &str) -> Option<usize> {
        let turns = self.script.turns.iter().zip(&self.played).enumerate();
        let unplayed: Vec<(usize, &Turn)> = turns
            .filter(|(_, (_, played))| !**played)
            .map(|(index, (turn, _))| (index, turn))
            .collect();
        let fits = |turn: &Turn| turn.when.iter().all(|part| prompt.contains(part.as_str()));
        let by_text = unplayed
            .iter()
            .find(|(_, turn)| !turn.when.is_empty() && fits(turn));
        // Only after the others: a turn without `when` fits every prompt.
        let next = unplayed.iter().find(|(_, turn)| turn.when.is_empty());
        by_text.or(next).map(|(index, _)| *index)
    }

    fn start_turn(&mut self, index: usize, prompt: Prompt) -> Play {
        let Some(turn) = self.script.turns.get(index) else {
            return Play::without_turn();
        };
        if let Some(flag) = self.played.get_mut(index) {
            *flag = !turn.repeat;
        }
        Play::new(index, turn, prompt, &self.script.settings)
    }
}

/// One turn in progress.
pub struct Play {
    /// The index of the turn.
    turn: usize,
    prompt: Prompt,
    ignores_interrupt: bool,
    placeholders: bool,
    /// Steps still to do. The last list is the innermost `else`.
    steps: Vec<VecDeque<Step>>,
    final_message: Option<String>,
    usage_at_end: Usage,
    /// Actions of the step at hand.
    ready: VecDeque<Action>,
    open_tool: Option<OpenTool>,
    open_call: Option<ToolStep>,
    /// What the tools answered so far, to do the turn again.
    answers: Vec<Answer>,
    values: BTreeMap<String, Value>,
    next_tool: u64,
    /// The text of the message at hand does not end with a line break.
    in_line: bool,
}

/// A use of a tool that has started and not ended.
struct OpenTool {
    tool: ToolUse,
    step: ToolStep,
}

impl Play {
    fn new(index: usize, turn: &Turn, prompt: Prompt, settings: &Settings) -> Play {
        let text = Value::String(prompt.text.clone());
        Play {
            turn: index,
            prompt,
            ignores_interrupt: turn.ignore_interrupt,
            placeholders: settings.placeholders,
            steps: vec![turn.steps.iter().cloned().collect()],
            final_message: turn.final_message.clone(),
            usage_at_end: settings.usage,
            ready: VecDeque::new(),
            open_tool: None,
            open_call: None,
            answers: Vec::new(),
            values: BTreeMap::from([("prompt".to_owned(), text)]),
            next_tool: 1,
            in_line: false,
        }
    }

    /// The answer to a prompt for which the script has no turn.
    fn without_turn() -> Play {
        let text = "the script has no turn for this prompt".to_owned();
        Play {
            turn: usize::MAX,
            prompt: Prompt {
                text: String::new(),
                calls_as_text: false,
            },
            ignores_interrupt: false,
            placeholders: false,
            steps: Vec::new(),
            final_message: None,
            usage_at_end: Usage::default(),
            ready: VecDeque::from([Action::End(Ending::Failed { text })]),
            open_tool: None,
            open_call: None,
            answers: Vec::new(),
            values: BTreeMap::new(),
            next_tool: 1,
            in_line: false,
        }
    }

    pub fn ignores_interrupt(&self) -> bool {
        self.ignores_interrupt
    }

    /// The next action. After `End` there is no other.
    pub fn next_action(&mut self) -> Action {
        loop {
            if let Some(action) = self.ready.pop_front() {
                return action;
            }
            let Some(step) = self.next_step() else {
                return self.complete();
            };
            if let Err(problem) = self.prepare(step) {
                return Action::End(Ending::Failed { text: problem });
            }
        }
    }

    /// Takes the answer to an `Ask`.
    pub fn decide(&mut self, decision: Decision) {
        match decision {
            Decision::Allowed { changed } => {
                let Some(open) = &mut self.open_tool else {
                    return;
                };
                if let Some(action) = changed {
                    open.tool.action = action;
                }
                self.ready.push_back(Action::Perform(open.tool.clone()));
            }
            Decision::Denied { message, stop } => {
                // The denied result is shown before the turn ends.
                self.finish_tool(ToolOutcome::denied(message));
                if stop {
                    self.ready.push_back(Action::End(Ending::Interrupted));
                }
            }
        }
    }

    /// Takes the outcome of a `Perform`.
    pub fn finish_tool(&mut self, outcome: ToolOutcome) {
        // After an interrupt there is no open tool, and a late outcome has no effect.
        let Some(OpenTool { tool, step }) = self.open_tool.take() else {
            return;
        };
        self.keep_answer(&step, &outcome);
        self.ready
            .push_back(Action::Show(Show::ToolEnded { tool, outcome }));
    }

    /// Takes a text that the other side sent while the turn runs.
    pub fn steer(&mut self, text: String) {
        self.values.insert("steer".to_owned(), Value::String(text));
    }

    /// Stops the turn wherever it is. Returns what the other side still has to see.
    pub fn interrupt(&mut self) -> Option<Show> {
        self.ready.clear();
        self.steps.clear();
        let OpenTool { tool, .. } = self.open_tool.take()?;
        Some(Show::ToolEnded {
            tool,
            outcome: ToolOutcome::interrupted(),
        })
    }

    fn next_step(&mut self) -> Option<Step> {
        while let Some(list) = self.steps.last_mut() {
            if let Some(step) = list.pop_front() {
                return Some(step);
            }
            self.steps.pop();
        }
        None
    }

    /// What follows the last step: the final message, the default usage, the end.
    fn complete(&mut self) -> Action {
        if let Some(text) = self.final_message.take() {
            match self.fill(&text) {
                Ok(text) => self.ready.extend([
                    Action::Show(Show::Text(text)),
                    Action::Show(Show::MessageEnd),
                ]),
                Err(problem) => return Action::End(Ending::Failed { text: problem }),
            }
            return Action::Show(Show::MessageEnd);
        }
        // Taken, so that the next call finds nothing left and ends the turn.
        let usage = std::mem::take(&mut self.usage_at_end);
        if usage.is_zero() {
            Action::End(Ending::Completed)
        } else {
            Action::Show(Show::Usage(usage))
        }
    }

    /// Puts the actions of one step into `ready`.
    fn prepare(&mut self, step: Step) -> Result<(), String> {
        let action = match step {
            Step::Say(speech) => return self.prepare_speech(&speech, Show::Text),
            Step::Think(speech) => return self.prepare_speech(&speech, Show::Thought),
            Step::Tool(step) => return self.prepare_tool(*step),
            Step::EndMessage => Action::Show(Show::MessageEnd),
            Step::Patch { text } => Action::ApplyPatch { text },
            Step::Wait { ms } => Action::Pause { ms },
            Step::WaitForFile { path } => Action::WaitForFile {
                path: self.fill(&path)?,
            },
            Step::Touch { path } => Action::Touch {
                path: self.fill(&path)?,
            },
            Step::WriteError { text } => Action::WriteError {
                text: self.fill(&text)?,
            },
            Step::Garbage { bytes } => Action::Garbage { bytes },
            Step::ReportUsage(usage) => Action::Show(Show::Usage(usage)),
            Step::HashPrompt { path } => self.save_prompt_hash(&path)?,
            Step::CopyPrompt { path } => self.save_prompt(&path)?,
            Step::SpawnChild(child) => Action::SpawnChild(child),
            Step::RateLimit(reset) => Action::End(Ending::RateLimited(reset)),
            Step::Unavailable { text } => Action::End(Ending::Unavailable {
                text: self.fill(&text)?,
            }),
            Step::Fail { text } => Action::End(Ending::Failed {
                text: self.fill(&text)?,
            }),
            Step::Crash { code, message } => Action::Crash { code, message },
            Step::KillSelf => Action::KillSelf,
            Step::CloseOutput => Action::CloseOutput,
            Step::Silence => Action::StaySilent,
        };
        self.ready.push_back(action);
        Ok(())
    }

    fn prepare_speech(
        &mut self,
        speech: &Speech,
        wrap: impl Fn(String) -> Show,
    ) -> Result<(), String> {
        let text = self.fill(&speech.text)?;
        let mut first = true;
        for piece in split_pieces(&text, speech.pieces) {
            if !first && speech.pieces.pause_ms > 0 {
                self.ready.push_back(Action::Pause {
                    ms: speech.pieces.pause_ms,
                });
            }
            first = false;
            self.ready.push_back(Action::Show(wrap(piece)));
        }
        self.in_line = !text.is_empty() && !text.ends_with('\n');
        Ok(())
    }

    fn prepare_tool(&mut self, step: ToolStep) -> Result<(), String> {
        let action = self.fill_action(&step.action)?;
        if let (ToolAction::Call { name, args }, true) = (&action, self.prompt.calls_as_text) {
            self.write_call(name, args);
            self.open_call = Some(step);
            return Ok(());
        }
        let tool = ToolUse {
            number: self.next_tool,
            action,
        };
        self.next_tool += 1;
        self.in_line = false;
        self.ready
            .push_back(Action::Show(Show::ToolStarted(tool.clone())));
        self.ready.push_back(match &step.ask {
            Some(reason) => Action::Ask {
                tool: tool.clone(),
                reason: reason.clone(),
            },
            None => Action::Perform(tool.clone()),
        });
        self.open_tool = Some(OpenTool { tool, step });
        Ok(())
    }

    /// Writes a call as a line of its own and ends the turn: the next prompt brings the answer.
    fn write_call(&mut self, name: &str, args: &Value) {
        let call = json!({"tool_call": {"name": name, "args": args}});
        // A call counts only if it is alone on its line.
        let line_break = if self.in_line { "\n" } else { "" };
        let text = format!("{line_break}{call}\n");
        self.in_line = false;
        self.ready.push_back(Action::Show(Show::Text(text)));
        self.ready.push_back(Action::End(Ending::Completed));
    }

    fn go_on_with(&mut self, prompt: &str) {
        let Some(step) = self.open_call.take() else {
            return;
        };
        self.keep_answer(&step, &read_text_answer(prompt).to_outcome());
    }

    /// Makes the answer known to later steps, and enters `else` if the tool did not work.
    fn keep_answer(&mut self, step: &ToolStep, outcome: &ToolOutcome) {
        self.answers.push(Answer {
            ok: outcome.is_ok(),
            value: outcome.value.clone(),
        });
        self.values
            .insert("result".to_owned(), outcome.value.clone());
        if let Some(name) = &step.save {
            self.values.insert(name.clone(), outcome.value.clone());
        }
        if !outcome.is_ok() && !step.otherwise.is_empty() {
            self.steps.push(step.otherwise.iter().cloned().collect());
        }
    }

    fn save_prompt_hash(&self, path: &str) -> Result<Action, String> {
        let hash = blake3::hash(self.prompt.text.as_bytes());
        let bytes = hash.to_hex().as_bytes().to_vec();
        Ok(Action::SaveBytes {
            path: self.fill(path)?,
            bytes,
        })
    }

    fn save_prompt(&self, path: &str) -> Result<Action, String> {
        let bytes = self.prompt.text.as_bytes().to_vec();
        Ok(Action::SaveBytes {
            path: self.fill(path)?,
            bytes,
        })
    }

    fn fill_action(&self, action: &ToolAction) -> Result<ToolAction, String> {
        Ok(match action {
            ToolAction::Run { command } => ToolAction::Run {
                command: self.fill(command)?,
            },
            ToolAction::Write { path, content } => ToolAction::Write {
                path: self.fill(path)?,
                content: self.fill(content)?,
            },
            ToolAction::Append { path, content } => ToolAction::Append {
                path: self.fill(path)?,
                content: self.fill(content)?,
            },
            ToolAction::Delete { path } => ToolAction::Delete {
                path: self.fill(path)?,
            },
            ToolAction::Call { name, args } => ToolAction::Call {
                name: self.fill(name)?,
                args: self.fill_json(args)?,
            },
            ToolAction::Show {
                name,
                args,
                result,
                ok,
            } => ToolAction::Show {
                name: self.fill(name)?,
                args: self.fill_json(args)?,
                result: self.fill(result)?,
                ok: *ok,
            },
        })
    }

    fn fill_json(&self, value: &Value) -> Result<Value, String> {
        map_texts(value, &mut |text| self.fill(text))
    }

    fn fill(&self, text: &str) -> Result<String, String> {
        if !self.placeholders {
            return Ok(text.to_owned());
        }
        fill_placeholders(text, |name| {
            let (root, path) = name.split_once('.').unwrap_or((name, ""));
            let Some(value) = self.values.get(root) else {
                return Err(format!("{{{{{name}}}}} has no value yet"));
            };
            let missing = || format!("{{{{{name}}}}} is not in {value}");
            find_value(value, path).map(show_value).ok_or_else(missing)
        })
    }
}

/// Finds the answer to a call in the prompt that follows it: the first line that is a JSON object
/// with `tool_result`, else the whole prompt.
fn read_text_answer(prompt: &str) -> Answer {
    let answers = prompt.lines().filter_map(|line| {
        let mut line: Value = serde_json::from_str(line.trim()).ok()?;
        Some(line.get_mut("tool_result")?.take())
    });
    let Some(mut answer) = answers.into_iter().next() else {
        return Answer {
            ok: true,
            value: Value::String(prompt.to_owned()),
        };
    };
    if let Some(error) = answer.get_mut("error").filter(|error| !error.is_null()) {
        return Answer {
            ok: false,
            value: error.take(),
        };
    }
    let result = answer.get_mut("result").map(Value::take);
    Answer {
        ok: true,
        value: result.unwrap_or(answer),
    }
}

fn split_pieces(text: &str, pieces: Pieces) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(pieces.chars.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests;
