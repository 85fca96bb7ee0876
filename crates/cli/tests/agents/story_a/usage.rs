//! What the story used: tokens and money by node, by run, and by what caused them.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;

use serde_json::Value;

use super::{Story, StoryProgram};
use crate::team::Team;

/// What each turn of the script costs.
const TURN_TOKENS: u64 = 110;
const TURN_COST_MICRO_USD: u64 = 10_000;

/// What the nodes used is what the agents reported, and it adds up by what caused it.
pub(super) fn check_usage(team: &Team, story: &Story) {
    let events = team.events(&story.run);
    let run = team.show(&story.run);
    let nodes = run["nodes"].as_object().unwrap();
    let of_nodes: Used = nodes.values().map(|node| Used::of(&node["usage"])).sum();
    let turns = completed_turns(&events);
    let expected: Used = turns.iter().map(|_| Used::of_turn(story.program)).sum();
    assert_eq!(Used::of(&run["usage"]), expected);
    assert_eq!(of_nodes, expected);

    // A turn counts for the input that came first: it is why the turn was started.
    let mut by_cause: BTreeMap<Option<&str>, Used> = BTreeMap::new();
    for turn in turns {
        let cause = turn["consumed"][0].as_str();
        *by_cause.entry(cause).or_default() += Used::of_turn(story.program);
    }
    let mut reported: BTreeMap<Option<&str>, Used> = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| event["type"] == "telemetry.usage")
    {
        *reported.entry(event["cause"].as_str()).or_default() += Used::of_report(event);
    }
    if story.program.reports_tokens {
        assert_eq!(reported, by_cause);
        check_causes(&events, &reported);
    } else {
        assert_eq!(reported, BTreeMap::new());
    }
}

/// Every cause is an input of the run: each handoff that started a turn has its cost, and only the
/// automatic turn has no cause.
fn check_causes(events: &[Value], reported: &BTreeMap<Option<&str>, Used>) {
    let inputs = |kind: &str, field: &str| -> Vec<String> {
        let of_kind = events.iter().filter(|event| event["type"] == kind);
        of_kind
            .map(|event| event[field]["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (messages, envelopes) = (
        inputs("message.user", "message"),
        inputs("handoff.sent", "envelope"),
    );
    let is_one_of = |ids: &[String], cause: &str| ids.iter().any(|id| id == cause);
    let causes: Vec<&str> = reported.keys().copied().flatten().collect();
    assert_eq!(reported.len(), causes.len() + 1, "{reported:?}");
    let by_message = causes.iter().filter(|cause| is_one_of(&messages, cause));
    let by_handoff = causes.iter().filter(|cause| is_one_of(&envelopes, cause));
    // Two messages of the person; the plan, both parts, the helper, two repairs, and five replies.
    assert_eq!((by_message.count(), by_handoff.count()), (2, 11));
}

/// The beginnings of the turns that completed.
fn completed_turns(events: &[Value]) -> Vec<&Value> {
    let ends = events
        .iter()
        .filter(|event| event["status"] == "turn.completed");
    let begin_of = |end: &Value| {
        let mut begins = events
            .iter()
            .filter(|event| event["status"] == "turn.started");
        begins.find(|begin| begin["turnId"] == end["turnId"])
    };
    ends.map(|end| begin_of(end).unwrap()).collect()
}

/// Tokens and money. Money is counted in millionths of a dollar, so that sums are exact.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Used {
    tokens: u64,
    micro_usd: u64,
}

impl Used {
    fn of(usage: &Value) -> Self {
        Self {
            tokens: usage["totalTokens"].as_u64().unwrap(),
            micro_usd: micro_usd(&usage["costUsd"]),
        }
    }

    /// What each turn of this program uses, as far as it says so.
    fn of_turn(program: &StoryProgram) -> Self {
        Self {
            tokens: if program.reports_tokens {
                TURN_TOKENS
            } else {
                0
            },
            micro_usd: if program.reports_cost {
                TURN_COST_MICRO_USD
            } else {
                0
            },
        }
    }

    fn of_report(event: &Value) -> Self {
        Self {
            micro_usd: micro_usd(&event["costUsd"]),
            tokens: event["usage"]["totalTokens"].as_u64().unwrap(),
        }
    }
}

impl AddAssign for Used {
    fn add_assign(&mut self, more: Self) {
        self.tokens += more.tokens;
        self.micro_usd += more.micro_usd;
    }
}

impl Sum for Used {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sum = Self::default();
        all.for_each(|used| sum += used);
        sum
    }
}

/// A report without costs costs nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few cents"
)]
fn micro_usd(dollars: &Value) -> u64 {
    (dollars.as_f64().unwrap_or_default() * 1e6).round() as u64
}
