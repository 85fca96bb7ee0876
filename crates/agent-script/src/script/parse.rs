//! From TOML text to a [`Script`].

use std::ops::Range;
use std::path::PathBuf;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::table::{Source, TableReader, read_text, wrong_kind};
use super::{
    ChildStep, LimitReset, Pieces, Script, ScriptError, Settings, Speech, Step, ToolStep, Turn,
    Usage, map_texts,
};
use crate::placeholder::fill_placeholders;
use crate::tool::ToolAction;

const DEFAULT_CHUNK_CHARS: usize = 16;
const DEFAULT_MODEL: &str = "scripted-model";

/// A step is a table with exactly one of these keys …
const STEP_KEYS: [&str; 22] = [
    "say",
    "think",
    "run",
    "write",
    "append",
    "delete",
    "call",
    "tool",
    "patch",
    "wait",
    "wait_for_file",
    "touch",
    "usage",
    "stderr",
    "garbage",
    "prompt_hash",
    "prompt_copy",
    "spawn_child",
    "rate_limit",
    "unavailable",
    "fail",
    "crash",
];
/// … or one of these words.
const STEP_WORDS: [&str; 4] = ["end_message", "silence", "kill_self", "close_stdout"];

/// The names of all steps, for help texts.
pub fn step_names() -> impl Iterator<Item = &'static str> {
    STEP_KEYS.into_iter().chain(STEP_WORDS)
}

/// Parses the text of a script file.
pub fn parse_script(text: &str) -> Result<Script, ScriptError> {
    let source = Source { text };
    let document = DeTable::parse(text).map_err(|error| {
        let span = error.span().unwrap_or_default();
        source.error(&span, error.message())
    })?;
    let span = document.span();
    let mut reader = TableReader::new(source, "the script", span, document.into_inner());
    let mut parser = Parser::new(source);
    let settings = parser.read_settings(reader.take_table("agent")?)?;
    let turns = reader.take_list("turn")?;
    if turns.is_empty() {
        return Err(reader.error("a script needs at least one [[turn]]"));
    }
    reader.finish()?;
    // After the settings, which say how texts are cut and whether they have placeholders.
    let turns = parser.read_turns(turns)?;
    parser.check_placeholders()?;
    Ok(Script { settings, turns })
}

struct Parser<'s> {
    source: Source<'s>,
    pieces: Pieces,
    placeholders: bool,
    /// The names that `save` gives to answers.
    saved: Vec<String>,
    /// Every placeholder's first part, checked when all names are known.
    used: Vec<UsedName>,
}

struct UsedName {
    name: String,
    span: Range<usize>,
}

impl<'s> Parser<'s> {
    fn new(source: Source<'s>) -> Self {
        Parser {
            source,
            pieces: Pieces {
                chars: DEFAULT_CHUNK_CHARS,
                pause_ms: 0,
            },
            placeholders: true,
            saved: Vec::new(),
            used: Vec::new(),
        }
    }

    fn read_settings(&mut self, table: Option<TableReader<'s>>) -> Result<Settings, ScriptError> {
        let mut settings = Settings {
            session: None,
            model: DEFAULT_MODEL.to_owned(),
            pieces: self.pieces,
            placeholders: true,
            usage: Usage::default(),
            log: None,
            state: None,
        };
        let Some(mut table) = table else {
            return Ok(settings);
        };
        settings.session = table.take_text("session")?;
        if let Some(model) = table.take_text("model")? {
            settings.model = model;
        }
        // The steps are read later and take these values where they have none of their own.
        self.pieces = self.read_pieces(&mut table)?;
        settings.pieces = self.pieces;
        if let Some(usage) = table.take_table("usage")? {
            settings.usage = read_usage(usage)?;
        }
        settings.log = table.take_text("log")?.map(PathBuf::from);
        settings.state = table.take_text("state")?.map(PathBuf::from);
        if table.has("placeholders") {
            self.placeholders = table.take_flag("placeholders")?;
        }
        settings.placeholders = self.placeholders;
        table.finish()?;
        Ok(settings)
    }

    fn read_pieces(&self, table: &mut TableReader<'s>) -> Result<Pieces, ScriptError> {
        let mut pieces = self.pieces;
        if let Some(chars) = table.take_number("chunk")? {
            pieces.chars = usize::try_from(chars).unwrap_or(usize::MAX);
            if pieces.chars == 0 {
                return Err(table.error("`chunk` must be at least 1 character"));
            }
        }
        if let Some(pause_ms) = table.take_number("pause")? {
            pieces.pause_ms = pause_ms;
        }
        Ok(pieces)
    }

    fn read_turns(&mut self, values: Vec<Spanned<DeValue<'s>>>) -> Result<Vec<Turn>, ScriptError> {
        let mut turns: Vec<Turn> = Vec::with_capacity(values.len());
        let mut repeats_for_ever = false;
        for value in values {
            let span = value.span();
            let turn = self.read_turn(value)?;
            if turn.when.is_empty() {
                if repeats_for_ever {
                    let message = "this turn is never played: an earlier turn without `when` \
                                   has `repeat = true`";
                    return Err(self.source.error(&span, message));
                }
                repeats_for_ever = turn.repeat;
            }
            turns.push(turn);
        }
        Ok(turns)
    }

    fn read_turn(&mut self, value: Spanned<DeValue<'s>>) -> Result<Turn, ScriptError> {
        let mut table = TableReader::open(self.source, "a turn", value)?;
        let turn = Turn {
            when: table.take_texts("when")?,
            repeat: table.take_flag("repeat")?,
            ignore_interrupt: table.take_flag("ignore_interrupt")?,
            final_message: self.take_template(&mut table, "final")?,
            steps: self.read_steps(table.take_list("steps")?)?,
        };
        // Every prompt contains the empty text, so such a turn would fit all of them.
        if turn.when.iter().any(String::is_empty) {
            return Err(table.error("`when` must not be empty: leave it out instead"));
        }
        table.finish()?;
        Ok(turn)
    }

    fn read_steps(&mut self, values: Vec<Spanned<DeValue<'s>>>) -> Result<Vec<Step>, ScriptError> {
        values
            .into_iter()
            .map(|value| self.read_step(value))
            .collect()
    }

    fn read_step(&mut self, value: Spanned<DeValue<'s>>) -> Result<Step, ScriptError> {
        let span = value.span();
        if let DeValue::String(word) = value.get_ref() {
            return read_word(word).ok_or_else(|| {
                let words = STEP_WORDS.join(", ");
                let message =
                    format!("unknown step \"{word}\"; a step in quotes is one of: {words}");
                self.source.error(&span, message)
            });
        }
        let mut table = TableReader::open(self.source, "a step", value)?;
        let step = self.read_step_table(&mut table)?;
        table.finish()?;
        Ok(step)
    }

    /// Finds out what a step does, and reads the keys that belong to it.
    fn read_step_table(&mut self, table: &mut TableReader<'s>) -> Result<Step, ScriptError> {
        let found: Vec<&str> = STEP_KEYS.into_iter().filter(|key| table.has(key)).collect();
        let [key] = found.as_slice() else {
            return Err(wrong_step_keys(table, &found));
        };
        match *key {
            "say" => Ok(Step::Say(self.read_speech(table, "say")?)),
            "think" => Ok(Step::Think(self.read_speech(table, "think")?)),
            "run" | "write" | "append" | "delete" | "call" | "tool" => self.read_tool(table, key),
            // As it is: a patch may contain any text, also what looks like a placeholder.
            "patch" => Ok(Step::Patch {
                text: table.take_text("patch")?.unwrap_or_default(),
            }),
            "wait" => Ok(Step::Wait {
                ms: table.take_number("wait")?.unwrap_or(0),
            }),
            "wait_for_file" => Ok(Step::WaitForFile {
                path: self.need_template(table, "wait_for_file")?,
            }),
            "touch" => Ok(Step::Touch {
                path: self.need_template(table, "touch")?,
            }),
            "usage" => read_usage_step(table),
            "stderr" => Ok(Step::WriteError {
                text: self.need_template(table, "stderr")?,
            }),
            "garbage" => self.read_garbage(table),
            "prompt_hash" => Ok(Step::HashPrompt {
                path: self.need_template(table, "prompt_hash")?,
            }),
            "prompt_copy" => Ok(Step::CopyPrompt {
                path: self.need_template(table, "prompt_copy")?,
            }),
            "spawn_child" => Ok(Step::SpawnChild(ChildStep {
                pid_file: self.need_template(table, "spawn_child")?,
                holds_output: table.take_flag("holds_stdout")?,
            })),
            "rate_limit" => read_rate_limit(table),
            "unavailable" => Ok(Step::Unavailable {
                text: self.need_template(table, "unavailable")?,
            }),
            "fail" => Ok(Step::Fail {
                text: self.need_template(table, "fail")?,
            }),
            _ => read_crash(table),
        }
    }

    fn read_speech(
        &mut self,
        table: &mut TableReader<'s>,
        key: &'static str,
    ) -> Result<Speech, ScriptError> {
        Ok(Speech {
            text: self.need_template(table, key)?,
            pieces: self.read_pieces(table)?,
        })
    }

    fn read_tool(&mut self, table: &mut TableReader<'s>, key: &str) -> Result<Step, ScriptError> {
        let action = self.read_action(table, key)?;
        let step = ToolStep {
            action,
            ask: self.read_ask(table)?,
            otherwise: self.read_steps(table.take_list("else")?)?,
            save: table.take_text("save")?,
        };
        // Any step may use the name, also an earlier one in a turn that is played later.
        if let Some(name) = &step.save {
            self.saved.push(name.clone());
        }
        Ok(Step::Tool(Box::new(step)))
    }

    fn read_action(
        &mut self,
        table: &mut TableReader<'s>,
        key: &str,
    ) -> Result<ToolAction, ScriptError> {
        Ok(match key {
            "run" => ToolAction::Run {
                command: self.need_template(table, "run")?,
            },
            "write" => ToolAction::Write {
                path: self.need_template(table, "write")?,
                content: self.need_template(table, "content")?,
            },
            "append" => ToolAction::Append {
                path: self.need_template(table, "append")?,
                content: self.need_template(table, "content")?,
            },
            "delete" => ToolAction::Delete {
                path: self.need_template(table, "delete")?,
            },
            "call" => ToolAction::Call {
                name: self.need_template(table, "call")?,
                args: self.take_args(table)?,
            },
            _ => ToolAction::Show {
                name: self.need_template(table, "tool")?,
                args: self.take_args(table)?,
                result: self.take_template(table, "result")?.unwrap_or_default(),
                ok: !table.take_flag("error")?,
            },
        })
    }

    fn take_args(&mut self, table: &mut TableReader<'s>) -> Result<Value, ScriptError> {
        let args = table.take_json("args")?.unwrap_or_else(|| json!({}));
        map_texts(&args, &mut |text| {
            self.note_placeholders(table, text)?;
            Ok(text.to_owned())
        })
    }

    /// `ask = true`, or the reason that the other side shows.
    fn read_ask(&mut self, table: &mut TableReader<'s>) -> Result<Option<String>, ScriptError> {
        let Some(value) = table.take("ask") else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(ask) => Ok(ask.then(String::new)),
            DeValue::String(reason) => Ok(Some(reason.to_string())),
            other => {
                let wanted = "true or a reason in quotes";
                Err(wrong_kind(self.source, &value.span(), "ask", wanted, other))
            }
        }
    }

    /// Text, or `{ hex = "ff00" }` for bytes that are no text.
    fn read_garbage(&mut self, table: &mut TableReader<'s>) -> Result<Step, ScriptError> {
        let not_hex = table.error("`hex` must be pairs of the digits 0-9 and a-f");
        let Some(value) = table.take("garbage") else {
            return Err(not_hex);
        };
        if !value.get_ref().is_table() {
            let text = read_text(self.source, "garbage", value)?;
            return Ok(Step::Garbage {
                bytes: text.into_bytes(),
            });
        }
        let mut table = TableReader::open(self.source, "garbage", value)?;
        let digits = table.need_text("hex")?;
        table.finish()?;
        let bytes = decode_hex(&digits).ok_or(not_hex)?;
        Ok(Step::Garbage { bytes })
    }

    fn take_template(
        &mut self,
        table: &mut TableReader<'s>,
        key: &'static str,
    ) -> Result<Option<String>, ScriptError> {
        let text = table.take_text(key)?;
        if let Some(text) = &text {
            self.note_placeholders(table, text)?;
        }
        Ok(text)
    }

    fn need_template(
        &mut self,
        table: &mut TableReader<'s>,
        key: &'static str,
    ) -> Result<String, ScriptError> {
        let text = table.need_text(key)?;
        self.note_placeholders(table, &text)?;
        Ok(text)
    }

    fn note_placeholders(
        &mut self,
        table: &TableReader<'s>,
        text: &str,
    ) -> Result<(), ScriptError> {
        if !self.placeholders {
            return Ok(());
        }
        // `fill_placeholders` alone knows the syntax; the filled text is not needed here.
        fill_placeholders(text, |name| {
            let name = name.split('.').next().unwrap_or_default().to_owned();
            self.used.push(UsedName {
                name,
                span: table.span(),
            });
            Ok(String::new())
        })
        .map(|_| ())
    }

    fn check_placeholders(&self) -> Result<(), ScriptError> {
        let built_in = ["result", "prompt", "steer"];
        for UsedName { name, span } in &self.used {
            if built_in.contains(&name.as_str()) || self.saved.contains(name) {
                continue;
            }
            let message = format!(
                "nothing saves `{name}`; a placeholder starts with {} or the name of a `save`",
                built_in.join(", ")
            );
            return Err(self.source.error(span, message));
        }
        Ok(())
    }
}

fn wrong_step_keys(table: &TableReader<'_>, found: &[&str]) -> ScriptError {
    let allowed = STEP_KEYS.join(", ");
    if found.is_empty() {
        let keys: Vec<&str> = table.keys().collect();
        let keys = keys.join(", ");
        return table.error(format!(
            "unknown step ({keys}); a step has one of: {allowed}"
        ));
    }
    let found = found.join(" and ");
    table.error(format!(
        "a step does one thing, not {found}; write two steps"
    ))
}

fn read_word(word: &str) -> Option<Step> {
    match word {
        "end_message" => Some(Step::EndMessage),
        "silence" => Some(Step::Silence),
        "kill_self" => Some(Step::KillSelf),
        "close_stdout" => Some(Step::CloseOutput),
        _ => None,
    }
}

fn read_usage_step(table: &mut TableReader<'_>) -> Result<Step, ScriptError> {
    match table.take_table("usage")? {
        Some(usage) => Ok(Step::ReportUsage(read_usage(usage)?)),
        None => Ok(Step::ReportUsage(Usage::default())),
    }
}

fn read_usage(mut table: TableReader<'_>) -> Result<Usage, ScriptError> {
    let usage = Usage {
        input: table.take_number("input")?.unwrap_or(0),
        output: table.take_number("output")?.unwrap_or(0),
        cached: table.take_number("cached")?.unwrap_or(0),
        cost: table.take_amount("cost")?.unwrap_or(0.0),
    };
    if usage.cached > usage.input {
        return Err(table.error("`cached` is a part of `input` and cannot be larger"));
    }
    table.finish()?;
    Ok(usage)
}

fn read_rate_limit(table: &mut TableReader<'_>) -> Result<Step, ScriptError> {
    let Some(mut limit) = table.take_table("rate_limit")? else {
        return Ok(Step::RateLimit(LimitReset::Unknown));
    };
    let seconds = limit.take_number("resets_in")?;
    let at = limit.take_number("at")?;
    let reset = match (seconds, at) {
        (None, None) => LimitReset::Unknown,
        (Some(seconds), None) => LimitReset::InSeconds(seconds),
        (None, Some(at)) => LimitReset::At(at),
        (Some(_), Some(_)) => {
            return Err(limit.error("a rate limit has `resets_in` or `at`, not both"));
        }
    };
    limit.finish()?;
    Ok(Step::RateLimit(reset))
}

fn read_crash(table: &mut TableReader<'_>) -> Result<Step, ScriptError> {
    let out_of_range = table.error("`code` must be a number from 0 to 255");
    let Some(mut crash) = table.take_table("crash")? else {
        return Err(out_of_range);
    };
    let code = crash.take_number("code")?.unwrap_or(1);
    let message = crash.take_text("stderr")?.unwrap_or_default();
    crash.finish()?;
    let code = u8::try_from(code).map_err(|_| out_of_range)?;
    Ok(Step::Crash { code, message })
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = digits
        .chars()
        .map(|digit| u8::try_from(digit.to_digit(16)?).ok())
        .collect();
    let digits = digits?;
    if digits.len() % 2 != 0 {
        return None;
    }
    Some(
        digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect(),
    )
}

#[cfg(test)]
mod tests;
