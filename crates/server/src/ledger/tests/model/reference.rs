//! A reference ledger in one page: lines with their readers, a calendar, a clock. It follows the
//! rules without the ledger's code, and gets the plan of a request, not the request.

use serde_json::{Value, json};

use super::plan::{Item, Line, OPERATOR, Plan};

/// Those who read.
pub(super) const READERS: [&str; 5] = ["GEORGE", "PLANNER", "CODER", "REVIEWER", "PUBLIC"];

/// A line that stands.
#[derive(Debug, Clone)]
struct Written {
    line: Line,
    time: i64,
    given: Option<String>,
}

/// A planned or told thing that stands.
#[derive(Debug, Clone)]
struct Kept {
    item: Item,
    source: usize,
}

/// The whole of a world.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) steps: bool,
    pub(super) time: i64,
    pub(super) zone: String,
    pub(super) paused: bool,
    lines: Vec<Written>,
    items: Vec<Kept>,
}

/// What a request is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Told {
    /// Why its bundle was rejected, if it was.
    pub(super) rejected: Option<&'static str>,
    /// The projection, in the form of [`Reference::shown`].
    pub(super) shown: Value,
    /// Whether the caller sees any line of the bundle.
    pub(super) wrote: bool,
    /// The numbers of the lines that it wrote.
    pub(super) lines: std::ops::Range<usize>,
}

fn label(author: &str) -> &str {
    if author == "CODER" {
        "Carla the coder"
    } else {
        author
    }
}

impl Reference {
    pub(super) fn new(steps: bool, start: i64) -> Self {
        let zone = "UTC".to_owned();
        Self {
            steps,
            time: start,
            zone,
            paused: false,
            lines: Vec::new(),
            items: Vec::new(),
        }
    }

    fn sees(&self, who: &str, number: usize) -> bool {
        let line = &self.lines[number].line;
        line.readers
            .as_ref()
            .is_none_or(|readers| readers.contains(&who) || line.author == who)
    }

    fn visible<'a>(&'a self, who: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.lines.len()).filter(move |&number| self.sees(who, number))
    }

    /// How many lines somebody sees.
    pub(super) fn count(&self, who: &str) -> u64 {
        self.visible(who).count() as u64
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// How many items there are.
    pub(super) fn items(&self) -> usize {
        self.items.len()
    }

    /// The text of every line.
    pub(super) fn texts(&self) -> Vec<&str> {
        self.lines
            .iter()
            .map(|written| written.line.text.as_str())
            .collect()
    }

    /// The time at which a beat commits now.
    pub(super) fn commit(&self, wall: i64, declared: Option<i64>) -> i64 {
        match declared {
            Some(time) => time,
            None if self.paused => self.time,
            None if self.steps => self.time + 1000,
            None => self.time.max(wall),
        }
    }

    /// Why the bundle of a plan is rejected, if it is.
    fn rejection(&self, plan: &Plan) -> Option<&'static str> {
        let offer = plan.offer.as_ref()?;
        let hidden = |item: &Item| {
            let old = item.supersedes.map(|old| self.items.get(old));
            old.is_some_and(|old| old.is_none_or(|kept| !self.sees(plan.who, kept.source)))
        };
        match &offer.flaw {
            Some(flaw) => Some(flaw.code),
            None => offer.items.iter().any(hidden).then_some("POCKET_INVALID"),
        }
    }

    /// Takes a beat, or refuses it and stays as it was.
    pub(super) fn take(&mut self, plan: &Plan, wall: i64) -> Result<Told, &'static str> {
        let before = self.count(plan.who);
        if plan.expected.is_some_and(|expected| expected < before) {
            return Err("HEAD_MOVED");
        }
        if plan.declared.is_some_and(|declared| declared < self.time) {
            return Err("TIME_REGRESSION");
        }
        let rejected = self.rejection(plan);
        let commit = self.commit(wall, plan.declared);
        let first = self.lines.len();
        if !plan.words.is_empty() {
            let line = Line {
                author: OPERATOR,
                readers: None,
                time: None,
                text: plan.words.clone(),
            };
            self.write(line, commit);
        }
        let declares = plan.declared.is_some() || plan.zone.is_some() || plan.pause.is_some();
        if let Some(offer) = plan.offer.as_ref().filter(|_| rejected.is_none()) {
            let base = self.lines.len();
            offer
                .lines
                .iter()
                .for_each(|line| self.write(line.clone(), commit));
            let kept = offer.items.iter().map(|item| Kept {
                item: item.clone(),
                source: base + item.line,
            });
            self.items.extend(kept);
        }
        if rejected.is_none() || declares || !plan.words.is_empty() {
            let public = self.lines[first..]
                .iter()
                .filter(|line| line.line.readers.is_none());
            self.time = public.map(|line| line.time).fold(commit, i64::max);
            self.zone = plan.zone.map_or(self.zone.clone(), str::to_owned);
            self.paused = plan.pause.unwrap_or(self.paused);
        }
        let lines = first..self.lines.len();
        let wrote = lines.clone().any(|number| self.sees(plan.who, number));
        let shown = self.shown(plan.who, plan.from.unwrap_or(before));
        Ok(Told {
            rejected,
            shown,
            wrote,
            lines,
        })
    }

    fn write(&mut self, line: Line, commit: i64) {
        let (time, given) = line
            .time
            .clone()
            .map_or((commit, None), |(time, text)| (time, Some(text)));
        self.lines.push(Written { line, time, given });
    }

    /// What somebody is shown from a place on: lines by number, the pocket, and the place behind
    /// them.
    pub(super) fn shown(&self, who: &str, from: u64) -> Value {
        let skip = usize::try_from(from).unwrap();
        let lines: Vec<_> = self
            .visible(who)
            .skip(skip)
            .map(|number| self.line(number))
            .collect();
        let seen: Vec<_> = self
            .items
            .iter()
            .filter(|kept| self.sees(who, kept.source))
            .collect();
        let replaced: Vec<_> = seen
            .iter()
            .filter_map(|kept| kept.item.supersedes)
            .collect();
        let live = (0..self.items.len()).filter(|number| {
            self.sees(who, self.items[*number].source) && !replaced.contains(number)
        });
        let (mut calendar, mut messages) = (Vec::new(), Vec::new());
        for number in live {
            let Kept { item, source } = &self.items[number];
            let line = &self.lines[*source];
            let title = item.title.map(|(start, end)| &line.line.text[start..end]);
            match (item.calendar, title) {
                (true, None) => {}
                (true, Some(title)) => calendar.push(json!([title, item.time, source])),
                (false, title) => messages.push(json!([
                    label(line.line.author),
                    title.unwrap_or(&line.line.text),
                    line.time,
                    source
                ])),
            }
        }
        json!({
            "lines": lines, "after": from + lines.len() as u64, "calendar": calendar, "messages": messages,
            "time": self.time, "zone": self.zone,
        })
    }

    fn line(&self, number: usize) -> Value {
        let Written { line, time, given } = &self.lines[number];
        let (channel, shown) = match line.author {
            OPERATOR => ("USER", None),
            "WORLD" => ("VOICE", None),
            person => ("PEOPLE", Some(label(person))),
        };
        json!([number, time, given, channel, shown, line.text])
    }

    /// The time that was given for a line, if any.
    pub(super) fn given(&self, number: usize) -> Option<&str> {
        self.lines[number].given.as_deref()
    }
}
