//! Stalls: how a run notices that an agent goes in circles.
//!
//! Each completed turn leaves a [`TurnSignature`]. Streaks count how often in a row the same thing
//! happened; a streak of `stall_after` turns is a stall. Output is compared after
//! [`mask_output`] has removed what differs by itself. Worked example: "Built in 1.2 s at 10:31"
//! and "built in  3.4 s at 10:32" are both `built in #.# s at #:#`.

mod envelope;

use std::collections::BTreeMap;

use turnkeep_types::BlobHash;

use self::envelope::sign_envelope;
use crate::ids::{AgentTurnId, NodeId};
use crate::input::Envelope;
use crate::tool::ToolCall;
use crate::words::StallReason;

/// How many turn ids the evidence of a stall names.
const TURNS_NAMED_MAX: usize = 16;
/// How many of the last turns the evidence of a stall quotes.
const SUMMARIES_MAX: usize = 3;
/// Shorter runs of hex letters may be words, such as `deed`.
const HEX_DIGITS_MIN: usize = 7;
/// How much of a call's arguments is compared. It is enough for every command. The rest of a longer
/// argument is usually the content of a file, which the comparison of diffs covers.
const COMPARED_ARGS_BYTES: usize = 4 << 10;

/// What a completed turn did, reduced to what is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSignature {
    /// The hash of the masked output.
    pub output: BlobHash,
    /// The hash of its calls of tools in their order; `None` if it called none.
    pub tools: Option<BlobHash>,
    /// The hash of the diff, if the turn changed files.
    pub diff: Option<BlobHash>,
    /// Whether the turn only waited for a command that still runs, or was started by chat: such
    /// turns may repeat themselves.
    pub may_repeat: bool,
    /// Whether it made an artifact of its own.
    pub made_artifact: bool,
    /// Whether it was an automatic turn that did nothing.
    pub was_idle_auto_turn: bool,
}

impl TurnSignature {
    /// What it said and what it called. An agent that says "Done." after other calls each time does
    /// not go in circles.
    fn output_and_tools(&self) -> BlobHash {
        match self.tools {
            Some(tools) => hash_both(self.output, tools),
            None => self.output,
        }
    }
}

fn hash_both(first: BlobHash, second: BlobHash) -> BlobHash {
    BlobHash::of(&[first.0, second.0].concat())
}

/// The hash of a turn's calls with one more. Arguments are masked as output is: agents repeat a call
/// with other times and counts.
pub fn sign_call(before: Option<BlobHash>, call: &ToolCall) -> BlobHash {
    let args = call.args.to_string();
    let end = args.floor_char_boundary(COMPARED_ARGS_BYTES);
    let args = mask_output(args.get(..end).unwrap_or_default());
    let this = BlobHash::of(format!("{} {args}", call.name).as_bytes());
    before.map_or(this, |before| hash_both(before, this))
}

/// How often in a row the same hash was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Streak {
    pub hash: Option<BlobHash>,
    pub count: u32,
    /// The last turns of the streak.
    pub turns: Vec<AgentTurnId>,
}

impl Streak {
    /// Adds one more. `None` ends the streak.
    pub fn add(&mut self, hash: Option<BlobHash>, turn: Option<AgentTurnId>) {
        if self.hash != hash || hash.is_none() {
            *self = Self {
                hash,
                ..Self::default()
            };
        }
        if hash.is_none() {
            return;
        }
        self.count += 1;
        if let Some(turn) = turn {
            push_bounded(&mut self.turns, turn, TURNS_NAMED_MAX);
        }
    }
}

/// Adds an item and drops the oldest one if there are too many.
fn push_bounded<T>(items: &mut Vec<T>, item: T, max: usize) {
    if items.len() >= max {
        items.remove(0);
    }
    items.push(item);
}

/// What is counted for one node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StallHistory {
    pub outputs: Streak,
    pub diffs: Streak,
    pub verification_failures: Streak,
    /// Turns that sent the same to a receiver.
    pub envelopes: BTreeMap<NodeId, Streak>,
    /// For each receiver, the hash of the messages that the open turn has sent so far.
    pub sent: BTreeMap<NodeId, BlobHash>,
    /// Automatic turns in a row that did nothing.
    pub idle_auto_turns: Vec<AgentTurnId>,
    /// What the last turns did, whether it was the same or not. A person reads it as evidence.
    pub last_turns: LastTurns,
}

/// What the last turns of a node did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastTurns {
    /// What they said, the last one at the end.
    pub summaries: Vec<String>,
    /// The hash of the last masked output.
    pub output: Option<BlobHash>,
    /// The hash of the last changes, if there were some.
    pub diff: Option<BlobHash>,
    /// The last verification that refused a claim, as a person reads it.
    pub verification_failure: Option<String>,
}

/// How many automatic turns in a row may do nothing.
const IDLE_AUTO_TURNS_MAX: usize = 2;

impl StallHistory {
    /// Begins a turn. What an interrupted one before it sent does not count.
    pub fn begin_turn(&mut self) {
        self.sent.clear();
    }

    /// Adds a completed turn and what it said.
    pub fn add_turn(&mut self, turn: AgentTurnId, signature: &TurnSignature, summary: String) {
        if signature.was_idle_auto_turn {
            self.add_idle_auto_turn(turn);
        } else {
            self.idle_auto_turns.clear();
        }
        self.last_turns.output = Some(signature.output);
        self.last_turns.diff = signature.diff;
        push_bounded(&mut self.last_turns.summaries, summary, SUMMARIES_MAX);
        let sent = std::mem::take(&mut self.sent);
        // Neither counted nor the end of a streak: the turn says nothing about the others.
        if signature.may_repeat {
            return;
        }
        self.add_sent(turn, &sent);
        let changed_nothing = signature.diff.is_none() && !signature.made_artifact;
        let said = changed_nothing.then(|| signature.output_and_tools());
        self.outputs.add(said, Some(turn));
        self.diffs.add(signature.diff, Some(turn));
    }

    /// Adds an automatic turn that did nothing.
    pub fn add_idle_auto_turn(&mut self, turn: AgentTurnId) {
        push_bounded(&mut self.idle_auto_turns, turn, TURNS_NAMED_MAX);
    }

    /// Adds an envelope that the node sends in its open turn. `diff` is the hash of the changes that
    /// the server has attached to a reply in the node's place: equal words about other changes are
    /// another reply.
    pub fn add_envelope(&mut self, envelope: &Envelope, diff: Option<BlobHash>) {
        let hash = sign_envelope(envelope, diff);
        let before = self.sent.get(&envelope.to);
        let all = before.map_or(hash, |before| hash_both(*before, hash));
        self.sent.insert(envelope.to, all);
    }

    /// Counts what a turn sent: all of it once for each receiver, because turns in a row are compared.
    fn add_sent(&mut self, turn: AgentTurnId, sent: &BTreeMap<NodeId, BlobHash>) {
        self.envelopes
            .retain(|receiver, _| sent.contains_key(receiver));
        for (receiver, hash) in sent {
            let streak = self.envelopes.entry(*receiver).or_default();
            streak.add(Some(*hash), Some(turn));
        }
    }

    /// Adds a refused completion. `signature` names the command, its exit code and its output.
    pub fn add_verification_failure(&mut self, signature: &str, turn: Option<AgentTurnId>) {
        let hash = BlobHash::of(signature.as_bytes());
        self.verification_failures.add(Some(hash), turn);
        self.last_turns.verification_failure = Some(signature.to_owned());
    }

    /// The first streak that is a stall. A limit of zero turns the detection off.
    pub fn find_stall(&self, stall_after: u32) -> Option<Stall> {
        if self.idle_auto_turns.len() >= IDLE_AUTO_TURNS_MAX {
            return Some(self.idle_stall());
        }
        let is_stall = |streak: &Streak| stall_after > 0 && streak.count >= stall_after;
        let mut streaks = self.named_streaks();
        let (reason, streak) = streaks.find(|(_, streak)| is_stall(streak))?;
        Some(Stall {
            reason,
            hash: streak.hash,
            count: streak.count,
            turns: streak.turns.clone(),
        })
    }

    fn idle_stall(&self) -> Stall {
        Stall {
            reason: StallReason::NoProgress,
            hash: None,
            count: u32::try_from(self.idle_auto_turns.len()).unwrap_or(u32::MAX),
            turns: self.idle_auto_turns.clone(),
        }
    }

    /// Every streak with what it means.
    fn named_streaks(&self) -> impl Iterator<Item = (StallReason, &Streak)> {
        let failures = &self.verification_failures;
        let own = [
            (StallReason::SameOutput, &self.outputs),
            (StallReason::SameDiff, &self.diffs),
            (StallReason::SameVerificationFailure, failures),
        ];
        let envelopes = self.envelopes.values();
        let sent = envelopes.map(|streak| (StallReason::SameEnvelope, streak));
        own.into_iter().chain(sent)
    }
}

/// A stall and its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    pub reason: StallReason,
    /// What was the same each time.
    pub hash: Option<BlobHash>,
    pub count: u32,
    pub turns: Vec<AgentTurnId>,
}

/// Removes from a text what differs between equal outputs: case, white space, numbers, hex, UUIDs
/// and temporary paths.
pub fn mask_output(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !masked.is_empty() {
            masked.push(' ');
        }
        if word.contains("/tmp/") || word.contains("/var/folders/") {
            masked.push_str("<path>");
        } else {
            mask_word(&word.to_lowercase(), &mut masked);
        }
    }
    masked
}

/// Masks the numbers of a word. A hex number may have dashes, as a UUID or a date has.
fn mask_word(word: &str, masked: &mut String) {
    let is_part = |c: char| c.is_alphanumeric() || c == '-';
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c: char| is_part(c) != is_part(first));
        let (part, behind) = rest.split_at(length.unwrap_or(rest.len()));
        if is_hex_number(part) {
            push_mask(masked);
        } else {
            mask_digits(part, masked);
        }
        rest = behind;
    }
}

fn is_hex_number(part: &str) -> bool {
    let digits = part.bytes().filter(|byte| *byte != b'-');
    digits.clone().count() >= HEX_DIGITS_MIN
        && digits.clone().all(|byte| byte.is_ascii_hexdigit())
        && part.bytes().any(|byte| byte.is_ascii_digit())
}

/// Replaces each run of digits by one `#`.
fn mask_digits(part: &str, masked: &mut String) {
    for character in part.chars() {
        if character.is_numeric() {
            push_mask(masked);
        } else {
            masked.push(character);
        }
    }
}

fn push_mask(masked: &mut String) {
    if !masked.ends_with('#') {
        masked.push('#');
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use turnkeep_types::Timestamp;

    use super::*;
    use crate::ids::{EnvelopeId, IdSource, ToolId, Uuid as _};
    use crate::words::Expectation;

    #[test]
    fn what_differs_by_itself_is_masked() {
        for (text, expect) in [
            ("Built in 1.2 s at 10:31", "built in #.# s at #:#"),
            ("built  in\n3.45 s at 9:02", "built in #.# s at #:#"),
            (
                "run 0b5f1c9e-8a3d-4c55-9a67-0123456789ab failed",
                "run # failed",
            ),
            ("commit 4fc59184 on 2026-11-18", "commit # on #"),
            ("wrote /tmp/x.Ab12/out.txt", "wrote <path>"),
            ("a deed indeed", "a deed indeed"),
            ("", ""),
        ] {
            assert_eq!(mask_output(text), expect);
        }
    }

    fn turn(number: u128) -> AgentTurnId {
        AgentTurnId::from_bits(number)
    }

    fn signature(output: &str) -> TurnSignature {
        TurnSignature {
            output: BlobHash::of(mask_output(output).as_bytes()),
            tools: None,
            diff: None,
            may_repeat: false,
            made_artifact: false,
            was_idle_auto_turn: false,
        }
    }

    #[test]
    fn five_equal_turns_with_other_times_are_a_stall() {
        let mut history = StallHistory::default();
        for number in 1..=4 {
            let output = format!("still failing at 10:0{number}");
            history.add_turn(turn(number), &signature(&output), output);
            assert_eq!(history.find_stall(5), None);
        }
        let last = "still failing at 11:17".to_owned();
        history.add_turn(turn(5), &signature(&last), last);
        let stall = history.find_stall(5).unwrap();
        assert_eq!(stall.reason, StallReason::SameOutput);
        assert_eq!((stall.count, stall.turns.len()), (5, 5));
        assert_eq!(history.find_stall(0), None);
    }

    #[test]
    fn a_change_an_artifact_or_another_output_ends_the_streak() {
        let changed = |how: fn(&mut TurnSignature)| {
            let mut history = StallHistory::default();
            for number in 1..=4 {
                history.add_turn(turn(number), &signature("same"), String::new());
            }
            let mut last = signature("same");
            how(&mut last);
            history.add_turn(turn(5), &last, String::new());
            history.find_stall(5)
        };
        assert_eq!(
            changed(|last| last.diff = Some(BlobHash::of(b"diff"))),
            None
        );
        assert_eq!(changed(|last| last.made_artifact = true), None);
        assert_eq!(changed(|last| last.output = BlobHash::of(b"other")), None);
        assert_eq!(
            changed(|last| last.tools = Some(BlobHash::of(b"tools"))),
            None
        );
        assert_eq!(changed(|last| last.may_repeat = true), None);
        assert!(changed(|_| ()).is_some());
    }

    #[test]
    fn calls_count_in_their_order_and_without_what_differs_by_itself() {
        let sign = |calls: &[(&str, Value)]| {
            let mut signature = None;
            for (name, args) in calls {
                let call = ToolCall {
                    id: ToolId::from_bits(1),
                    name: (*name).to_owned(),
                    args: args.clone(),
                    provider_id: None,
                };
                signature = Some(sign_call(signature, &call));
            }
            signature
        };
        let first = sign(&[("Bash", json!({"command": "sleep 10"}))]);
        assert_eq!(first, sign(&[("Bash", json!({"command": "sleep 25"}))]));
        assert_ne!(first, sign(&[("Bash", json!({"command": "make"}))]));
        assert_ne!(first, sign(&[("Shell", json!({"command": "sleep 10"}))]));
        let (read, list) = (("Read", json!({})), ("List", json!({})));
        let both = sign(&[read.clone(), list.clone()]);
        assert_ne!(both, sign(&[list, read.clone()]));
        assert_ne!(both, sign(&[read.clone(), read]));
    }

    fn envelope(to: NodeId, message: &str) -> Envelope {
        Envelope {
            id: EnvelopeId::from_bits(1),
            from: NodeId::from_bits(1),
            to,
            created_at: Timestamp(0),
            message: message.to_owned(),
            structured: None,
            artifacts: Vec::new(),
            status: None,
            expectation: Expectation::None,
            reply_to: None,
            context_pack: None,
            synthesized: false,
        }
    }

    #[test]
    fn envelopes_count_for_each_receiver() {
        let mut ids = IdSource::from_seed(&[1; 32]);
        let (first, second): (NodeId, NodeId) = (ids.draw(), ids.draw());
        let mut history = StallHistory::default();
        let send = |history: &mut StallHistory, number: u128, receivers: &[NodeId]| {
            for receiver in receivers {
                history.add_envelope(&envelope(*receiver, "Please look"), None);
            }
            end_changed_turn(history, number);
        };
        for number in 1..=4 {
            send(&mut history, number, &[first, second]);
        }
        assert_eq!(history.find_stall(5), None);
        send(&mut history, 5, &[first]);
        let stall = history.find_stall(5).unwrap();
        assert_eq!(stall.reason, StallReason::SameEnvelope);
        assert_eq!(stall.turns, [1, 2, 3, 4, 5].map(turn));
        // The turn ended the row of the other one.
        for number in 6..=9 {
            send(&mut history, number, &[second]);
        }
        assert_eq!(history.find_stall(5), None);
    }

    /// Ends a turn whose words and changes are like no other's.
    fn end_changed_turn(history: &mut StallHistory, number: u128) {
        let ended = TurnSignature {
            diff: Some(BlobHash::of(&number.to_le_bytes())),
            ..signature("Done.")
        };
        history.add_turn(turn(number), &ended, String::new());
    }

    /// Whether five turns, each of which sends these envelopes, are a stall.
    fn is_stall_after_five(envelopes: impl Fn(u128) -> Vec<Envelope>) -> bool {
        let mut history = StallHistory::default();
        for number in 1..=5 {
            history.begin_turn();
            for sent in envelopes(number) {
                history.add_envelope(&sent, None);
            }
            end_changed_turn(&mut history, number);
        }
        history.find_stall(5).is_some()
    }

    #[test]
    fn envelopes_are_the_same_only_if_everything_in_them_is() {
        use crate::ids::ArtifactId;
        use crate::input::EnvelopeStatus;

        let same = || envelope(NodeId::from_bits(9), "Look again");
        assert!(is_stall_after_five(|_| vec![same()]));
        let at = |number: u128| envelope(NodeId::from_bits(9), &format!("Look at 10:0{number}"));
        assert!(is_stall_after_five(|number| vec![at(number)]));
        let file = |number: u128| envelope(NodeId::from_bits(9), &format!("Fix file {number}"));
        assert!(!is_stall_after_five(|number| vec![file(number)]));
        assert!(!is_stall_after_five(|number| {
            let structured = Some(json!({"file": u64::try_from(number).unwrap()}));
            vec![Envelope {
                structured,
                ..same()
            }]
        }));
        assert!(!is_stall_after_five(|number| {
            let artifacts = vec![ArtifactId::from_bits(number)];
            vec![Envelope {
                artifacts,
                ..same()
            }]
        }));
        assert!(!is_stall_after_five(|number| {
            let status = Some(EnvelopeStatus {
                ok: number % 2 == 0,
                reason: None,
            });
            vec![Envelope { status, ..same() }]
        }));
    }

    #[test]
    fn equal_envelopes_of_one_turn_count_once() {
        let receiver = NodeId::from_bits(9);
        let mut history = StallHistory::default();
        for _ in 0..5 {
            history.add_envelope(&envelope(receiver, "Look again"), None);
        }
        end_changed_turn(&mut history, 1);
        assert_eq!(history.find_stall(5), None);
        // A turn that was interrupted is not in the row.
        history.add_envelope(&envelope(receiver, "Something else"), None);
        history.begin_turn();
        end_changed_turn(&mut history, 2);
        assert_eq!(history.envelopes, BTreeMap::new());
    }

    #[test]
    fn envelopes_of_a_turn_that_may_repeat_itself_do_not_count() {
        let receiver = NodeId::from_bits(9);
        let send = |history: &mut StallHistory, number: u128, may_repeat: bool| {
            let sent = envelope(receiver, "still running");
            history.add_envelope(&sent, None);
            let ended = TurnSignature {
                may_repeat,
                diff: Some(BlobHash::of(&number.to_le_bytes())),
                ..signature("Reported.")
            };
            history.add_turn(turn(number), &ended, String::new());
        };
        let mut history = StallHistory::default();
        for number in 1..=10 {
            send(&mut history, number, true);
        }
        for number in 11..=14 {
            send(&mut history, number, false);
            send(&mut history, number + 100, true);
        }
        assert_eq!(history.find_stall(5), None);
        send(&mut history, 15, false);
        let stall = history.find_stall(5).unwrap();
        assert_eq!(stall.reason, StallReason::SameEnvelope);
        assert_eq!(stall.turns, [11, 12, 13, 14, 15].map(turn));
    }

    #[test]
    fn two_idle_automatic_turns_are_a_stall() {
        let mut history = StallHistory::default();
        let idle = TurnSignature {
            was_idle_auto_turn: true,
            may_repeat: true,
            ..signature("hm")
        };
        history.add_turn(turn(1), &idle, String::new());
        assert_eq!(history.find_stall(0), None);
        history.add_turn(turn(2), &idle, String::new());
        assert_eq!(
            history.find_stall(0).unwrap().reason,
            StallReason::NoProgress
        );
        history.add_turn(turn(3), &signature("work"), String::new());
        assert_eq!(history.find_stall(0), None);
    }
}
