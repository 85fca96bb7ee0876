//! Explains a visible state: searches for an order of commands in which the model gives every reply
//! and ends in that state.
//!
//! Concurrent commands may take effect in any order, except that appends to one context keep their
//! order. A command without a reply took effect completely or not at all. Worked example: two
//! creations ran concurrently, and their replies name contexts 2 and 1. The search tries the first
//! creation first; the model would name it context 1, which contradicts the reply. So it tries the
//! other order, which fits. Ids have no gaps, so the replies leave few orders to try.

use turnkeep_store::{Command, Outcome, Refusal};
use turnkeep_types::Timestamp;

use crate::model::Model;
use crate::snapshot::Snapshot;

/// What the submitter knows about the result of its command.
#[derive(Debug, Clone)]
pub enum KnownResult {
    /// The store sent a reply.
    Answered(Result<Outcome, Refusal>),
    /// There was no reply, or the reply does not tell whether the command took effect.
    Unknown,
}

/// A submitted command and its known result.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The command.
    pub command: Command,
    /// Its known result.
    pub known: KnownResult,
}

impl Sent {
    /// A command with its reply. After a failed sync the command may or may not be in the log, so
    /// `Poisoned` counts as unknown.
    pub fn new(command: Command, answer: Result<Outcome, Refusal>) -> Self {
        let known = match answer {
            Err(Refusal::Poisoned(_)) => KnownResult::Unknown,
            answer => KnownResult::Answered(answer),
        };
        Self { command, known }
    }

    /// The reply to a command that succeeded.
    pub fn acked(&self) -> Option<&Outcome> {
        match &self.known {
            KnownResult::Answered(Ok(outcome)) => Some(outcome),
            _ => None,
        }
    }

    /// Whether it certainly changed nothing, whatever the state was.
    fn has_no_effect(&self) -> bool {
        matches!(
            self.known,
            KnownResult::Answered(Err(Refusal::NoSpace { .. } | Refusal::Closed))
        )
    }

    /// Whether `later` must take effect after this one: both are answered appends to one context.
    fn keeps_order_with(&self, later: &Self) -> bool {
        let (KnownResult::Answered(_), KnownResult::Answered(_)) = (&self.known, &later.known)
        else {
            return false;
        };
        let (Command::Append(a), Command::Append(b)) = (&self.command, &later.command) else {
            return false;
        };
        a.parts
            .iter()
            .any(|part| b.parts.iter().any(|other| part.context == other.context))
    }
}

/// Returns the model after `sent`, in an order that explains all replies and ends in the state
/// `seen`; `None` if there is no such order.
pub fn linearize(model: &Model, sent: &[Sent], seen: &Snapshot) -> Option<Model> {
    let open = sent.iter().filter(|sent| !sent.has_no_effect()).collect();
    search(model, open, seen)
}

fn search(model: &Model, mut open: Vec<&Sent>, seen: &Snapshot) -> Option<Model> {
    // The model already shows more than the store, so no continuation can fit.
    let too_much = model.visible.blobs.len() > seen.blobs.len();
    if too_much || !seen.events.starts_with(&model.visible.events) {
        return None;
    }
    // Commands that change nothing are placed as soon as their reply fits. That is always safe and
    // keeps the search small.
    while let Some(at) = (0..open.len()).find(|&at| fits_without_change(model, &open, at)) {
        open.remove(at);
    }
    let answered = open
        .iter()
        .any(|sent| matches!(sent.known, KnownResult::Answered(_)));
    if !answered && model.visible == *seen {
        return Some(model.clone());
    }
    for at in (0..open.len()).filter(|&at| may_be_next(&open, at)) {
        let Some(next) = apply_as_next(model, open[at], seen) else {
            continue;
        };
        let mut rest = open.clone();
        rest.remove(at);
        if let Some(found) = search(&next, rest, seen) {
            return Some(found);
        }
    }
    None
}

/// The model after a command; `None` if the reply does not fit or the command changes nothing.
fn apply_as_next(model: &Model, sent: &Sent, seen: &Snapshot) -> Option<Model> {
    let mut next = model.clone();
    let answer = next.apply(visible_stamp(model, &sent.command, seen), &sent.command);
    let fits = match &sent.known {
        KnownResult::Answered(given) => answer.agrees_with(given),
        KnownResult::Unknown => true,
    };
    (fits && answer.changed()).then_some(next)
}

/// The time of the row that the command would add, taken from the visible state.
fn visible_stamp(model: &Model, command: &Command, seen: &Snapshot) -> Timestamp {
    let facts = &model.visible;
    let made = match command {
        Command::CreateContext(_) => seen
            .contexts
            .get(facts.contexts.len())
            .map(|made| made.created_at),
        Command::Append(_) => seen
            .turns
            .get(facts.turns.len())
            .map(|made| made.created_at),
        _ => None,
    };
    made.unwrap_or_default()
}

/// Whether a command changes nothing in this state and its reply fits, so that it may come next.
fn fits_without_change(model: &Model, open: &[&Sent], at: usize) -> bool {
    let KnownResult::Answered(given) = &open[at].known else {
        return false;
    };
    let answer = model.clone().apply(Timestamp(0), &open[at].command);
    may_be_next(open, at) && !answer.changed() && answer.agrees_with(given)
}

fn may_be_next(open: &[&Sent], at: usize) -> bool {
    !open[..at]
        .iter()
        .any(|earlier| earlier.keeps_order_with(open[at]))
}

#[cfg(test)]
mod tests {
    use turnkeep_store::{CreateContext, Labels};
    use turnkeep_types::ContextId;

    use super::*;
    use crate::model::Answer;

    fn create() -> Command {
        Command::CreateContext(CreateContext::default())
    }

    fn label(value: &str) -> Command {
        let labels = Labels::from([("label".to_owned(), value.to_owned())]);
        Command::SetLabels {
            context: ContextId::new(1).unwrap(),
            labels,
        }
    }

    /// A model after these commands, and the answers that it gave.
    fn run(commands: &[Command]) -> (Model, Vec<Sent>) {
        let mut model = Model::new();
        let sent = commands
            .iter()
            .map(|command| match model.apply(Timestamp(5), command) {
                Answer::Done(outcome, _) => Sent::new(command.clone(), Ok(outcome)),
                Answer::Refused(reasons) => Sent::new(command.clone(), Err(reasons[0].clone())),
                Answer::BundleRefused => panic!("no bundle was put"),
            });
        let sent = sent.collect();
        (model, sent)
    }

    fn unknown(command: Command) -> Sent {
        Sent {
            command,
            known: KnownResult::Unknown,
        }
    }

    #[test]
    fn answers_are_explained_in_any_order_but_not_by_any_state() {
        let (model, mut sent) = run(&[label("too early"), create(), label("a"), create()]);
        sent.reverse();
        let explained = linearize(&Model::new(), &sent, &model.visible).unwrap();
        assert_eq!(explained.visible, model.visible);
        let (other, _) = run(&[create(), create(), label("b")]);
        assert!(
            linearize(&Model::new(), &sent, &other.visible).is_none(),
            "a label that nobody set"
        );
        let (fewer, _) = run(&[create(), label("a")]);
        assert!(
            linearize(&Model::new(), &sent, &fewer.visible).is_none(),
            "an acked context is lost"
        );
        assert!(
            linearize(&Model::new(), &sent[1..], &model.visible).is_none(),
            "a context that nobody made"
        );
    }

    #[test]
    fn a_command_of_unknown_outcome_may_be_there_or_not() {
        let (before, sent) = run(&[create()]);
        let (after, _) = run(&[create(), label("a")]);
        for seen in [&before, &after] {
            let mut sent = sent.clone();
            sent.push(unknown(label("a")));
            assert!(linearize(&Model::new(), &sent, &seen.visible).is_some());
        }
        assert!(linearize(&Model::new(), &[unknown(label("a"))], &after.visible).is_none());
    }
}
