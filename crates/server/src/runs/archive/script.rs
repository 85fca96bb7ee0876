//! Writes what the programs of a run did as a script for the scripted agent.
//!
//! The script is made from the events of the run, so it works for every program: what a program
//! printed is in them, in the words of the runtime. The kept lines of a turn (`provider.jsonl`) are not
//! read: each program has its own, and its tools would run again. Each turn becomes one `[[turn]]`:
//!
//! ```text
//! events of a turn                         steps of the script
//! message.assistant.final  "I look."       { say = "I look." }
//! tool.proposed   Bash {command: "ls"}     { tool = "Bash", args = "{\"command\":\"ls\"}",
//! approval.requested "run ls"                ask = "run ls",
//! tool.completed  ok "a.txt"                 result = "a.txt" }
//! tool.proposed   send_handoff (ours)      { call = "send_handoff", args = "…" }
//! artifact.created  diff.patch             { patch = "diff --git …" }
//! telemetry.usage                          { usage = { input = …, output = … } }
//! turn.failed     "out of luck"            { fail = "out of luck" }
//! ```
//!
//! Tools of a program are shown and not run again; the turn's diff brings its changes. Tools of the
//! server are called again, so handoffs, spawned nodes and completions happen again. Ids differ in
//! the new run, so nodes are named by their aliases.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use turnkeep_runtime::artifact::Artifact;
use turnkeep_runtime::fact::{NodeChange, TurnStep};
use turnkeep_runtime::ids::{AgentTurnId, NodeId, ToolId};
use turnkeep_runtime::input::{Input, InputId};
use turnkeep_runtime::tool::{ToolCall, ToolOutcome};
use turnkeep_runtime::usage::UsageReport;
use turnkeep_runtime::words::ArtifactKind;
use turnkeep_runtime::{Event, Fact};
use turnkeep_store::Store;

use super::ArchiveError;
use super::run_cut::RunCut;
use crate::runs::RunHandle;
use crate::runs::run_log;

/// How many events are read at once.
const PAGE: usize = 256;
/// The longest script, as the scripted agent reads it.
const SCRIPT_BYTES_MAX: usize = 64 << 20;
/// How much of an input tells a turn from the others of its node, in characters.
const WHEN_CHARACTERS_MAX: usize = 80;

/// Makes the script of a run.
pub(crate) async fn record_script(handle: &Arc<RunHandle>) -> Result<String, ArchiveError> {
    let cut = RunCut::take(handle).await?;
    let reader = Arc::clone(handle);
    let read = move || {
        let store = reader.services.store.store();
        let mut recorder = Recorder::default();
        let mut seq = 1;
        while seq <= cut.last_seq {
            let events = run_log::read_events(store, cut.events, seq, PAGE)?;
            let Some(last) = events.last() else {
                break;
            };
            seq = last.seq + 1;
            // A page may reach beyond the cut, because the run goes on meanwhile.
            for event in events.iter().filter(|event| event.seq <= cut.last_seq) {
                recorder.add(store, event)?;
            }
        }
        let title = reader.read_live(|run| run.settings.title.clone());
        let script = recorder.write(&title);
        if script.len() > SCRIPT_BYTES_MAX {
            let max = SCRIPT_BYTES_MAX as u64;
            return Err(ArchiveError::TooLarge { max });
        }
        Ok(script)
    };
    handle.services.run_blocking(read).await?
}

/// The turns of a run so far.
#[derive(Default)]
struct Recorder {
    /// In the order in which they started.
    turns: Vec<RecordedTurn>,
    places: BTreeMap<AgentTurnId, usize>,
    names: BTreeMap<NodeId, NodeName>,
    /// The first line of each input, by which a turn is recognized.
    inputs: BTreeMap<String, String>,
}

/// What a prompt and a call name a node.
struct NodeName {
    /// In a prompt: the alias, else the label.
    shown: String,
    alias: Option<String>,
}

/// One turn.
struct RecordedTurn {
    node: NodeId,
    /// The first line of the first input.
    input: Option<String>,
    steps: Vec<RecordedStep>,
    patch: Option<String>,
    end: RecordedEnd,
}

enum RecordedStep {
    Say(String),
    Think(String),
    Log(String),
    Tool(Box<RecordedTool>),
    Usage(UsageReport),
}

struct RecordedTool {
    call: ToolCall,
    /// What a person was asked.
    asked: Option<String>,
    outcome: Option<ToolOutcome>,
}

impl RecordedTool {
    /// The server's own tools have no id of a program.
    fn is_own(&self) -> bool {
        self.call.provider_id.is_none()
    }
}

enum RecordedEnd {
    /// The run was recorded in the middle of it, or it was stopped: the replay waits to be stopped.
    Open,
    Completed,
    RateLimited,
    Unavailable(String),
    Failed(String),
}

impl Recorder {
    fn add(&mut self, store: &Store, event: &Event) -> Result<(), ArchiveError> {
        match &event.fact {
            Fact::NodeAdded(new) => {
                let settings = &new.settings;
                let alias = settings.alias.clone();
                let shown = alias.clone().unwrap_or_else(|| settings.label.clone());
                self.names.insert(new.id, NodeName { shown, alias });
            }
            Fact::MessageSent(message) => self.add_input(&Input::Message(message.clone())),
            Fact::EnvelopeSent(envelope) => self.add_input(&Input::Envelope(envelope.clone())),
            Fact::ArtifactCreated(artifact) if artifact.kind == ArtifactKind::Diff => {
                self.add_patch(store, event, artifact)?;
            }
            Fact::TurnStepped(step) => self.add_step(event, step),
            // The node tries its turn again, so the script must report the provider as unavailable.
            Fact::NodeChanged {
                change: NodeChange::Parked { .. },
                ..
            } => self.try_again(event),
            Fact::ApprovalRequested(approval) => {
                if let Some(tool) = self.find_tool(event, approval.tool.id) {
                    tool.asked = Some(approval.context.clone());
                }
            }
            Fact::ToolCompleted { tool, outcome } => {
                if let Some(tool) = self.find_tool(event, *tool) {
                    tool.outcome = Some(outcome.clone());
                }
            }
            fact => {
                if let (Some(step), Some(turn)) = (plain_step(fact), self.find_turn(event)) {
                    turn.steps.push(step);
                }
            }
        }
        Ok(())
    }

    fn add_input(&mut self, input: &Input) {
        let text = match input {
            Input::Message(message) => &message.content,
            Input::Envelope(envelope) => &envelope.message,
        };
        let line: String = text.lines().next().unwrap_or_default().trim().to_owned();
        let line: String = line.chars().take(WHEN_CHARACTERS_MAX).collect();
        // A text with an id is another one in the next run.
        if !line.is_empty() && !line.contains("://") && !has_uuid(&line) {
            self.inputs.insert(key_of(&input.id()), line);
        }
    }

    fn add_step(&mut self, event: &Event, step: &TurnStep) {
        match step {
            TurnStep::Started { consumed, .. } => {
                let (Some(node), Some(turn)) = (event.node, event.turn) else {
                    return;
                };
                let first = consumed.first().map(key_of);
                let input = first.and_then(|first| self.inputs.get(&first).cloned());
                self.places.insert(turn, self.turns.len());
                self.turns.push(RecordedTurn {
                    node,
                    input,
                    steps: Vec::new(),
                    patch: None,
                    end: RecordedEnd::Open,
                });
            }
            TurnStep::WaitingForModel { .. }
            | TurnStep::ToolPending
            | TurnStep::AwaitingApproval => {}
            TurnStep::Completed { .. } => self.end(event, RecordedEnd::Completed),
            // The runtime's own words: nothing else in the event tells a rate limit from a person's
            // interrupt.
            TurnStep::Interrupted { detail, .. } if detail == "rate limited" => {
                self.end(event, RecordedEnd::RateLimited);
            }
            TurnStep::Interrupted { .. } => self.end(event, RecordedEnd::Open),
            TurnStep::Failed { detail, .. } => {
                self.end(event, RecordedEnd::Failed(detail.clone()));
            }
        }
    }

    /// A node that is parked after a failure tries its turn again: the provider was unavailable.
    fn try_again(&mut self, event: &Event) {
        let mut turns = self.turns.iter_mut().rev();
        if let Some(last) = turns.find(|turn| Some(turn.node) == event.node)
            && let RecordedEnd::Failed(detail) = &last.end
        {
            last.end = RecordedEnd::Unavailable(detail.clone());
        }
    }

    fn end(&mut self, event: &Event, end: RecordedEnd) {
        if let Some(turn) = self.find_turn(event) {
            turn.end = end;
        }
    }

    fn find_turn(&mut self, event: &Event) -> Option<&mut RecordedTurn> {
        let place = *self.places.get(&event.turn?)?;
        self.turns.get_mut(place)
    }

    fn find_tool(&mut self, event: &Event, id: ToolId) -> Option<&mut RecordedTool> {
        let steps = &mut self.find_turn(event)?.steps;
        steps.iter_mut().find_map(|step| match step {
            RecordedStep::Tool(tool) if tool.call.id == id => Some(&mut **tool),
            _ => None,
        })
    }

    fn add_patch(
        &mut self,
        store: &Store,
        event: &Event,
        artifact: &Artifact,
    ) -> Result<(), ArchiveError> {
        let Some(turn) = self.find_turn(event).filter(|_| artifact.bytes > 0) else {
            return Ok(());
        };
        let content = store.blob(artifact.content)?.into_raw_bytes()?;
        turn.patch = Some(String::from_utf8_lossy(&content).into_owned());
        Ok(())
    }

    fn write(&self, title: &str) -> String {
        let mut out = format!(
            "# Recorded from the run {}\n# Play it with: turnkeep-agent-script --script FILE\n\n\
             [agent]\nplaceholders = false\nchunk = 4096\n",
            quote(title)
        );
        for turn in &self.turns {
            self.write_turn(&mut out, turn);
        }
        out
    }

    fn write_turn(&self, out: &mut String, turn: &RecordedTurn) {
        let mut when = Vec::new();
        if let Some(name) = self.names.get(&turn.node) {
            // As the task block of every prompt has it.
            when.push(quote(&format!("({}) of run ", name.shown)));
        }
        when.extend(turn.input.as_deref().map(quote));
        put(
            out,
            format_args!("\n[[turn]]\nwhen = [{}]\nsteps = [\n", when.join(", ")),
        );
        let mut patch = turn.patch.as_deref();
        let mut has_text = false;
        for step in &turn.steps {
            // A tool ends a message by itself; two messages in a row need a mark between them.
            match step {
                RecordedStep::Say(_) if has_text => out.push_str("    \"end_message\",\n"),
                RecordedStep::Say(_) => has_text = true,
                RecordedStep::Tool(_) => has_text = false,
                RecordedStep::Think(_) | RecordedStep::Log(_) | RecordedStep::Usage(_) => {}
            }
            // A call may start a verification, which needs the changed files.
            if matches!(step, RecordedStep::Tool(tool) if tool.is_own()) {
                put_patch(out, patch.take());
            }
            self.write_step(out, step);
        }
        put_patch(out, patch);
        match &turn.end {
            RecordedEnd::Open => out.push_str("    \"silence\",\n"),
            RecordedEnd::Completed => {}
            RecordedEnd::RateLimited => out.push_str("    { rate_limit = {} },\n"),
            RecordedEnd::Unavailable(text) => put_text(out, "unavailable", text),
            RecordedEnd::Failed(text) => put_text(out, "fail", text),
        }
        out.push_str("]\n");
    }

    fn write_step(&self, out: &mut String, step: &RecordedStep) {
        match step {
            RecordedStep::Say(text) => put_text(out, "say", text),
            RecordedStep::Think(text) => put_text(out, "think", text),
            RecordedStep::Log(text) => put_text(out, "stderr", text),
            RecordedStep::Tool(tool) => self.write_tool(out, tool),
            RecordedStep::Usage(report) => put_usage(out, report),
        }
    }

    fn write_tool(&self, out: &mut String, tool: &RecordedTool) {
        let name = quote(&tool.call.name);
        if tool.is_own() {
            let args = quote(&self.with_aliases(&tool.call.args).to_string());
            put(
                out,
                format_args!("    {{ call = {name}, args = {args} }},\n"),
            );
            return;
        }
        let args = quote(&tool.call.args.to_string());
        put(out, format_args!("    {{ tool = {name}, args = {args}"));
        if let Some(asked) = &tool.asked {
            put(out, format_args!(", ask = {}", quote(asked)));
        }
        if let Some(outcome) = &tool.outcome {
            let text = outcome.output.as_ref().or(outcome.error.as_ref());
            let text = quote(text.map_or("", String::as_str));
            put(out, format_args!(", result = {text}"));
            if !outcome.ok {
                out.push_str(", error = true");
            }
        }
        out.push_str(" },\n");
    }

    /// Arguments in which nodes have their aliases instead of their ids.
    fn with_aliases(&self, args: &Value) -> Value {
        match args {
            Value::String(text) => {
                let node: Option<NodeId> = text.parse().ok();
                let name = node.and_then(|node| self.names.get(&node)?.alias.clone());
                Value::String(name.unwrap_or_else(|| text.clone()))
            }
            Value::Array(items) => items.iter().map(|item| self.with_aliases(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter();
                fields
                    .map(|(name, value)| (name.clone(), self.with_aliases(value)))
                    .collect()
            }
            other => other.clone(),
        }
    }
}

/// The step of a fact that is a step by itself.
fn plain_step(fact: &Fact) -> Option<RecordedStep> {
    match fact {
        Fact::AnswerFinal { content, .. } => Some(RecordedStep::Say(content.clone())),
        Fact::ThinkingFinal(text) => Some(RecordedStep::Think(text.clone())),
        Fact::NodeLogged(text) => Some(RecordedStep::Log(text.clone())),
        Fact::UsageReported(report) => Some(RecordedStep::Usage(report.clone())),
        Fact::ToolProposed(call) => Some(RecordedStep::Tool(Box::new(RecordedTool {
            call: call.clone(),
            asked: None,
            outcome: None,
        }))),
        _ => None,
    }
}

fn key_of(id: &InputId) -> String {
    match id {
        InputId::Message(id) => id.to_string(),
        InputId::Envelope(id) => id.to_string(),
    }
}

fn has_uuid(text: &str) -> bool {
    let is_id = |word: &str| word.parse::<NodeId>().is_ok();
    text.split(|letter: char| !letter.is_ascii_hexdigit() && letter != '-')
        .any(is_id)
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    out.write_fmt(text).ok();
}

fn put_text(out: &mut String, step: &str, text: &str) {
    put(out, format_args!("    {{ {step} = {} }},\n", quote(text)));
}

fn put_patch(out: &mut String, patch: Option<&str>) {
    if let Some(patch) = patch {
        put_text(out, "patch", patch);
    }
}

fn put_usage(out: &mut String, report: &UsageReport) {
    let usage = &report.usage;
    #[expect(
        clippy::cast_precision_loss,
        reason = "far below 2^53 millionths of a dollar"
    )]
    let cost = usage.cost_micro_usd as f64 / 1e6;
    put(
        out,
        format_args!(
            "    {{ usage = {{ input = {}, output = {}, cached = {}, cost = {cost:?} }} }},\n",
            usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens
        ),
    );
}

/// A text as a basic string of TOML. It has the escapes of JSON, and one more forbidden character.
fn quote(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    json.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_become_strings_of_toml() {
        let check = |text: &str, expect: &str| assert_eq!(quote(text), expect);
        check("a\"b\n\u{7f}\u{1}é", r#""a\"b\n\u007f\u0001é""#);
        let args = json!({"b": null, "a": [1, "x"]});
        check(&args.to_string(), r#""{\"b\":null,\"a\":[1,\"x\"]}""#);
    }

    #[test]
    fn a_line_with_an_id_does_not_tell_turns_apart() {
        assert!(has_uuid("to 0b5f1c9e-8a3d-4c55-9a67-0123456789ab."));
        assert!(!has_uuid("Write the parser - now"));
    }
}
