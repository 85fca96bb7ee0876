//! Explaining what was seen: an order of steps of the model that gives every answer and ends in
//! what can be read.
//!
//! Commands that were in flight together may take effect in any order, except that appends to one
//! context keep theirs. A command without an answer took effect wholly or not at all. Ids are
//! dense, so an answer's ids leave few orders to try.

use turnkeep_store::{Command, Outcome, Refusal};
use turnkeep_types::Timestamp;

use crate::model::Model;
use crate::snapshot::Snapshot;

/// What a submitter knows of its command.
#[derive(Debug, Clone)]
pub enum Known {
    /// It was answered.
    Answered(Result<Outcome, Refusal>),
    /// Nobody knows what came of it: no answer, or one that says so.
    Unknown,
}

/// A command and what is known of it.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The command.
    pub command: Command,
    /// What is known of it.
    pub known: Known,
}

impl Sent {
    /// A command with its answer. A poisoned writer cannot tell whether what it wrote will be
    /// found.
    pub fn new(command: Command, answer: Result<Outcome, Refusal>) -> Self {
        let known = match answer {
            Err(Refusal::Poisoned(_)) => Known::Unknown,
            answer => Known::Answered(answer),
        };
        Self { command, known }
    }

    /// The answer of a command that succeeded.
    pub fn acked(&self) -> Option<&Outcome> {
        match &self.known {
            Known::Answered(Ok(outcome)) => Some(outcome),
            _ => None,
        }
    }

    /// Whether it certainly left nothing behind, whatever the state was.
    fn certainly_nothing(&self) -> bool {
        matches!(
            self.known,
            Known::Answered(Err(Refusal::NoSpace { .. } | Refusal::Closed))
        )
    }

    /// The contexts whose appends keep their order; only where both are known to have been decided.
    fn keeps_order_with(&self, later: &Self) -> bool {
        let (Known::Answered(_), Known::Answered(_)) = (&self.known, &later.known) else {
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

/// The model after `sent`, in an order that explains all answers and gives what was `seen`; none if
/// there is no such order.
pub fn linearize(model: &Model, sent: &[Sent], seen: &Snapshot) -> Option<Model> {
    let open = sent
        .iter()
        .filter(|sent| !sent.certainly_nothing())
        .collect();
    search(model, open, seen)
}

fn search(model: &Model, mut open: Vec<&Sent>, seen: &Snapshot) -> Option<Model> {
    let too_much = model.facts.blobs.len() > seen.blobs.len();
    if too_much || !seen.events.starts_with(&model.facts.events) {
        return None;
    }
    while let Some(at) = (0..open.len()).find(|&at| explains_nothing(model, &open, at)) {
        open.remove(at);
    }
    let answered = open
        .iter()
        .any(|sent| matches!(sent.known, Known::Answered(_)));
    if !answered && model.facts == *seen {
        return Some(model.clone());
    }
    (0..open.len())
        .filter(|&at| may_be_next(&open, at))
        .find_map(|at| {
            let mut next = model.clone();
            let answer = next.apply(stamp(model, &open[at].command, seen), &open[at].command);
            let fits = match &open[at].known {
                Known::Answered(given) => answer.agrees(given),
                Known::Unknown => true,
            };
            let mut rest = open.clone();
            rest.remove(at);
            if fits && answer.changed() {
                search(&next, rest, seen)
            } else {
                None
            }
        })
}

/// The stamp of what the command would make, as it can be read.
fn stamp(model: &Model, command: &Command, seen: &Snapshot) -> Timestamp {
    let facts = &model.facts;
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

/// Whether the answer is right as things are and the command changes nothing: then it may stand
/// here.
fn explains_nothing(model: &Model, open: &[&Sent], at: usize) -> bool {
    let Known::Answered(given) = &open[at].known else {
        return false;
    };
    let answer = model.clone().apply(Timestamp(0), &open[at].command);
    may_be_next(open, at) && !answer.changed() && answer.agrees(given)
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
            known: Known::Unknown,
        }
    }

    #[test]
    fn answers_are_explained_in_any_order_but_not_by_any_state() {
        let (model, mut sent) = run(&[label("too early"), create(), label("a"), create()]);
        sent.reverse();
        let explained = linearize(&Model::new(), &sent, &model.facts).unwrap();
        assert_eq!(explained.facts, model.facts);
        let (other, _) = run(&[create(), create(), label("b")]);
        assert!(
            linearize(&Model::new(), &sent, &other.facts).is_none(),
            "a label that nobody set"
        );
        let (fewer, _) = run(&[create(), label("a")]);
        assert!(
            linearize(&Model::new(), &sent, &fewer.facts).is_none(),
            "an acked context is lost"
        );
        assert!(
            linearize(&Model::new(), &sent[1..], &model.facts).is_none(),
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
            assert!(linearize(&Model::new(), &sent, &seen.facts).is_some());
        }
        assert!(linearize(&Model::new(), &[unknown(label("a"))], &after.facts).is_none());
    }
}
