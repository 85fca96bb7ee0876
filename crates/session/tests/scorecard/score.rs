//! How turns are scored.

use crate::truth::{TrueTurn, Truth};
use std::fmt;
use turnkeep_session::detector::Turn;

/// How early a boundary may be: the clocks of the recorder and the model differ by so much.
const EARLY: f64 = 0.02;

/// The score of a recording.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) turns: usize,
    pub(crate) found: usize,
    missed: usize,
    pub(crate) invented: usize,
    pub(crate) early: usize,
    flags: usize,
    /// Texts that are right, of those that are compared.
    texts: usize,
    /// Texts that are not compared, because the program itself leaves less on the screen.
    uncompared: usize,
    pub(crate) delays: Vec<f64>,
    pub(crate) faults: Vec<String>,
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let worst = self
            .delays
            .iter()
            .fold(0.0, |worst: f64, delay| worst.max(*delay));
        write!(
            f,
            "{:5} {:5} {:6} {:8} {:5} {:5} {:4} {:3} {:8.0} ms",
            self.turns,
            self.found,
            self.missed,
            self.invented,
            self.early,
            self.flags,
            self.texts,
            self.uncompared,
            worst * 1000.0
        )
    }
}

/// Scores turns against the truth.
pub(crate) fn score(truth: &Truth, turns: &[Turn]) -> Score {
    let mut score = Score {
        turns: truth.turns.len(),
        ..Score::default()
    };
    let mut rest: Vec<&Turn> = turns.iter().collect();
    for expected in &truth.turns {
        let begin = if expected.model_requests.is_empty() {
            expected.ready_t
        } else {
            expected.model_done_t
        } - EARLY;
        let until = expected.next_t.unwrap_or(f64::INFINITY);
        let within = |turn: &&Turn| {
            turn.unprompted == expected.unprompted
                && (begin..until).contains(&turn.end.as_secs_f64())
        };
        match rest.iter().position(within) {
            Some(at) => score.found(expected, rest.remove(at)),
            None => score.missed(expected),
        }
    }
    for turn in rest {
        score.invented(truth, turn);
    }
    score
}

impl Score {
    fn found(&mut self, expected: &TrueTurn, turn: &Turn) {
        self.found += 1;
        self.delays
            .push((turn.end.as_secs_f64() - expected.ready_t).max(0.0));
        if turn.interrupted == expected.interrupted {
            self.flags += 1;
        } else {
            self.faults.push(format!(
                "{}: interrupted is {}",
                expected.turn, turn.interrupted
            ));
        }
        if expected.is_unreadable() {
            self.uncompared += 1;
            return;
        }
        match check_text(expected, turn) {
            Ok(()) => self.texts += 1,
            Err(fault) => {
                // A text with a fault that is known must at least say that it is not whole.
                let silently = if turn.incomplete {
                    ""
                } else {
                    ", not marked incomplete"
                };
                self.faults
                    .push(format!("{}: {fault}{silently}", expected.turn));
            }
        }
    }

    fn missed(&mut self, expected: &TrueTurn) {
        self.missed += 1;
        self.faults.push(format!("{}: missed", expected.turn));
    }

    /// A turn that ends where none does: early when it ends while another is running.
    fn invented(&mut self, truth: &Truth, turn: &Turn) {
        let end = turn.end.as_secs_f64();
        let early = truth.turns.iter().find(|t| {
            turn.start.as_secs_f64() < t.ready_t && end < t.ready_t && end > t.ready_t - 60.0
        });
        let input = truth
            .no_turn
            .iter()
            .find(|input| (input.t..input.until).contains(&end));
        let what = input.map_or("", |input| input.what.as_str());
        if early.is_some() && input.is_none() {
            self.early += 1;
        } else {
            self.invented += 1;
        }
        self.faults.push(format!(
            "no turn ends at {end:.3} (start {:.3}, by {}{}) {what} {:?}",
            turn.start.as_secs_f64(),
            turn.signal,
            if turn.unprompted { ", unprompted" } else { "" },
            turn.text.chars().take(60).collect::<String>()
        ));
        assert!(truth.unfinished.is_empty() || end > 0.0);
    }
}

fn check_text(expected: &TrueTurn, turn: &Turn) -> Result<(), String> {
    let Some(source) = &expected.expected else {
        return Ok(());
    };
    if expected.unpainted {
        return check_fragments(source, turn);
    }
    if expected.wraps && expected.interrupted {
        let (want, got) = (letters(source), letters(&turn.text));
        let head: String = want.chars().take(got.chars().count()).collect();
        return same("letters", &head, &got);
    }
    if expected.wraps {
        return same("letters", &letters(source), &letters(&turn.text));
    }
    let (want, got) = (key(source), key(&turn.text));
    if expected.interrupted {
        let least = expected.shown.unwrap_or(0).min(want.len());
        let prefix = want.get(..got.len()).is_some_and(|head| head == got);
        if prefix && got.len() >= least {
            return Ok(());
        }
        let at = got.iter().zip(&want).position(|(got, want)| got != want);
        return Err(format!(
            "{} of {least} lines shown, first other line {:?}",
            got.len(),
            at.map(|at| &got[at])
        ));
    }
    if let Some(stays) = expected.stays.as_ref().and_then(serde_json::Value::as_u64) {
        let lines = usize::try_from(stays).unwrap();
        return same(
            "lines",
            &want[..lines.min(want.len())].join("\n"),
            &got[..lines.min(got.len())].join("\n"),
        );
    }
    same("lines", &want.join("\n"), &got.join("\n"))
}

/// Whether a text of which rows are missing says so, and holds nothing but pieces of the source, in
/// order.
fn check_fragments(source: &str, turn: &Turn) -> Result<(), String> {
    if !turn.incomplete {
        return Err("rows are missing and the turn is not incomplete".to_owned());
    }
    let source = letters(source);
    let mut rest = source.as_str();
    for line in turn.text.lines().map(letters) {
        let Some(at) = rest.find(&line) else {
            return Err(format!("{line:?} was not said there"));
        };
        rest = &rest[at + line.len()..];
    }
    if letters(&turn.text).is_empty() {
        Err("no row was read".to_owned())
    } else {
        Ok(())
    }
}

fn same(what: &str, want: &str, got: &str) -> Result<(), String> {
    if want == got {
        return Ok(());
    }
    let at = want
        .chars()
        .zip(got.chars())
        .position(|(want, got)| want != got);
    let at = at.unwrap_or(want.chars().count().min(got.chars().count()));
    let show = |text: &str| {
        text.chars()
            .skip(at.saturating_sub(10))
            .take(50)
            .collect::<String>()
    };
    Err(format!(
        "{what} differ at {at}: want {:?} got {:?}",
        show(want),
        show(got)
    ))
}

/// The lines of a text without marks that rendering drops.
fn key(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("```"));
    let bare = lines.map(|line| {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || ">▎│▌•*+-".contains(c));
        line.replace("**", "")
            .replace('`', "")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    bare.filter(|line| !line.is_empty()).collect()
}

fn letters(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("```"));
    lines
        .flat_map(str::chars)
        .filter(|c| c.is_alphanumeric())
        .collect()
}
