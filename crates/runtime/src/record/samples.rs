//! Events of every kind, for tests here and in other crates.

use serde_json::{Value, json};
use turnkeep_types::record::INLINE_BYTES_MAX;
use turnkeep_types::record::describe::{BundleText, DescribeShape, FieldTexts};
pub use turnkeep_types::record::sample::{Choices, Sample, SampleKinds, SampleShape};

use super::Json;
use crate::artifact::WriteConflict;
use crate::fact::{Event, Fact};
use crate::ids::{
    AgentTurnId, ApprovalId, ArtifactId, EdgeId, EnvelopeId, EventId, MessageId, NodeId, RuleId,
    ToolId, Uuid as _, VerificationId,
};
use crate::input::InputId;
use crate::request::MadeId;
use crate::words::{
    ArtifactKind, CliPermissions, EdgeKind, Expectation, GlobalMode, MessageRole, Mode, NodeStatus,
    PausedReason, Phase, PromptKind, Provider, ResolvedBy, RunStatus, Scope, StallReason,
    TurnCause, Verdict, WakeOn, WorkspaceKind,
};

/// The words of all kinds of events.
pub fn event_kinds() -> &'static [&'static str] {
    Fact::KINDS
}

/// Makes an event of this kind; `None` for an unknown word.
pub fn sample_event(kind: &str, from: &mut Choices) -> Option<Event> {
    let fact = Fact::sample_kind(kind, from)?;
    Some(Event {
        fact,
        ..Event::sample(from)
    })
}

macro_rules! sample_ids {
    ($($id:ident),+ $(,)?) => {
        $(impl Sample for $id {
            fn sample(from: &mut Choices) -> Self {
                Self::from_bits((u128::from(from.draw()) << 64) | u128::from(from.draw()))
            }
        })+
    };
}

sample_ids!(
    AgentTurnId,
    ApprovalId,
    ArtifactId,
    EdgeId,
    EnvelopeId,
    EventId,
    MessageId,
    NodeId,
    RuleId,
    ToolId,
    VerificationId,
);

macro_rules! sample_words {
    ($($word:ident),+ $(,)?) => {
        $(impl Sample for $word {
            fn sample(from: &mut Choices) -> Self {
                from.pick(Self::ALL)
            }
        })+
    };
}

sample_words!(
    ArtifactKind,
    CliPermissions,
    EdgeKind,
    Expectation,
    GlobalMode,
    MessageRole,
    Mode,
    NodeStatus,
    PausedReason,
    Phase,
    PromptKind,
    Provider,
    ResolvedBy,
    RunStatus,
    Scope,
    StallReason,
    TurnCause,
    Verdict,
    WakeOn,
    WorkspaceKind,
);

impl Sample for InputId {
    fn sample(from: &mut Choices) -> Self {
        if from.below(2) == 0 {
            Self::Message(Sample::sample(from))
        } else {
            Self::Envelope(Sample::sample(from))
        }
    }
}

impl Sample for WriteConflict {
    fn sample(from: &mut Choices) -> Self {
        Self {
            path: Sample::sample(from),
            node: Sample::sample(from),
            turn: Sample::sample(from),
        }
    }
}

impl Sample for MadeId {
    fn sample(from: &mut Choices) -> Self {
        match from.below(7) {
            0 => Self::Node(Sample::sample(from)),
            1 => Self::Edge(Sample::sample(from)),
            2 => Self::Message(Sample::sample(from)),
            3 => Self::Envelope(Sample::sample(from)),
            4 => Self::Verification(Sample::sample(from)),
            5 => Self::Artifact(Sample::sample(from)),
            _ => Self::Run,
        }
    }
}

impl SampleShape<Value> for Json {
    fn sample(from: &mut Choices) -> Value {
        match from.below(8) {
            0 => json!({}),
            1 => json!({"z": u64::sample(from), "a": [-1, 0.1, 1e300, null]}),
            2 => json!({"command": String::sample(from), "deep": {"list": [{}, [], true]}}),
            3 => Value::Null,
            4 => Value::String("x".repeat(INLINE_BYTES_MAX)),
            5 => json!(0.300_000_000_000_000_04),
            6 => json!(u64::MAX),
            _ => json!(i64::MIN),
        }
    }
}

impl DescribeShape for Json {
    fn describe(tag: u64, name: &str, _bundle: &mut BundleText) -> FieldTexts {
        FieldTexts::long_text(tag, name)
    }
}
