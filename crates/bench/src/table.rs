//! The table of results: what was measured, what the bare thing reached, what must be reached.

use serde_json::json;

use super::figures::Measured;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    PerSecond,
    Millis,
    Megabytes,
    Bytes,
    Seconds,
    Times,
    Cores,
}

impl Unit {
    fn format_value(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{}/s", with_thousands(value)),
            Self::Millis => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.0} MB"),
            Self::Bytes => format!("{value:.0} B"),
            Self::Seconds => format!("{value:.2} s"),
            Self::Times => format!("{value:.2} x"),
            Self::Cores => format!("{value:.2} cores"),
        }
    }
}

fn with_thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        // Groups of three digits, counted from the right: 12 346.
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// One line of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    name: String,
    unit: Unit,
    value: f64,
    /// Also the latencies, if the row is a rate of answers.
    latency: Option<Measured>,
    bare: Option<f64>,
    ratio: Option<f64>,
    goals: Vec<Goal>,
}

/// What a figure must reach, and whether it did.
#[derive(Debug, Clone)]
struct Goal {
    text: String,
    met: bool,
}

impl Row {
    fn new(name: &str, unit: Unit, value: f64) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            value,
            latency: None,
            bare: None,
            ratio: None,
            goals: Vec::new(),
        }
    }

    /// A rate with its latencies.
    pub(super) fn rate(name: &str, measured: Measured) -> Self {
        Self {
            latency: Some(measured),
            ..Self::new(name, Unit::PerSecond, measured.rate)
        }
    }

    /// A rate alone.
    pub(super) fn plain_rate(name: &str, rate: f64) -> Self {
        Self::new(name, Unit::PerSecond, rate)
    }

    /// A time in milliseconds.
    pub(super) fn millis(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Millis, value)
    }

    /// An amount of memory.
    pub(super) fn megabytes(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Megabytes, value)
    }

    /// A number of bytes.
    pub(super) fn bytes(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Bytes, value)
    }

    /// A time in seconds.
    pub(super) fn seconds(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Seconds, value)
    }

    /// How many times as much as something else.
    pub(super) fn times(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Times, value)
    }

    /// How many processor cores were busy on average.
    pub(super) fn cores(name: &str, value: f64) -> Self {
        Self::new(name, Unit::Cores, value)
    }

    /// Puts the bare thing's figure beside it, with the ratio of the two.
    pub(super) fn with_bare_and_ratio(self, bare: f64, ratio: f64) -> Self {
        Self {
            bare: Some(bare),
            ratio: Some(ratio),
            ..self
        }
    }

    /// Puts the bare thing's figure beside it, for information.
    pub(super) fn with_bare(self, bare: f64) -> Self {
        Self {
            bare: Some(bare),
            ..self
        }
    }

    /// The figure must be at least this.
    pub(super) fn at_least(self, least: f64) -> Self {
        let text = format!(">= {}", self.unit.format_value(least));
        let met = self.value >= least;
        self.goal(&text, met)
    }

    /// The figure must be at most this.
    pub(super) fn at_most(self, most: f64) -> Self {
        let text = format!("<= {}", self.unit.format_value(most));
        let met = self.value <= most;
        self.goal(&text, met)
    }

    /// The ratio must be at least this.
    pub(super) fn at_least_ratio(self, least: f64) -> Self {
        let met = self.ratio.is_some_and(|ratio| ratio >= least);
        self.goal(&format!(">= {:.0} % of bare", least * 100.0), met)
    }

    /// Another goal, already judged.
    pub(super) fn goal(mut self, text: &str, met: bool) -> Self {
        let text = text.to_owned();
        self.goals.push(Goal { text, met });
        self
    }

    fn verdict(&self, judged: bool) -> &'static str {
        if !judged || self.goals.is_empty() {
            "-"
        } else if self.goals.iter().all(|goal| goal.met) {
            "yes"
        } else {
            "NO"
        }
    }

    fn cells(&self, judged: bool) -> [String; 7] {
        let goals: Vec<&str> = self.goals.iter().map(|goal| goal.text.as_str()).collect();
        let latency = self.latency.map(latency_text);
        let bare = self.bare.map(|bare| self.unit.format_value(bare));
        [
            self.name.clone(),
            self.unit.format_value(self.value),
            latency.unwrap_or_default(),
            bare.unwrap_or_default(),
            self.ratio.map(percent_text).unwrap_or_default(),
            goals.join(", "),
            self.verdict(judged).to_owned(),
        ]
    }

    fn shortfalls(&self) -> impl Iterator<Item = String> {
        let ratio = self.ratio.map(percent_text);
        let ratio = ratio.map(|percent| format!(", {percent} of bare"));
        let reached = format!(
            "- {}: {}{}",
            self.name,
            self.unit.format_value(self.value),
            ratio.unwrap_or_default()
        );
        let missed = self.goals.iter().filter(|goal| !goal.met);
        missed.map(move |goal| format!("{reached}; must reach {}.\n", goal.text))
    }

    fn to_json(&self, judged: bool) -> serde_json::Value {
        let goals = self.goals.iter().map(|goal| goal.to_json(judged));
        json!({
            "name": self.name,
            "unit": format!("{:?}", self.unit),
            "measured": self.value,
            "p50_ms": self.latency.map(|latency| latency.p50_ms),
            "p99_ms": self.latency.map(|latency| latency.p99_ms),
            "bare": self.bare,
            "ratio": self.ratio,
            "goals": goals.collect::<Vec<_>>(),
        })
    }
}

impl Goal {
    fn to_json(&self, judged: bool) -> serde_json::Value {
        json!({ "text": self.text, "met": judged.then_some(self.met) })
    }
}

fn latency_text(measured: Measured) -> String {
    format!("{:.2} / {:.2} ms", measured.p50_ms, measured.p99_ms)
}

fn percent_text(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

const HEAD: [&str; 7] = [
    "what",
    "measured",
    "p50 / p99",
    "bare",
    "ratio",
    "must reach",
    "ok",
];

/// All rows. A quick run is not judged: its figures mean nothing.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
    judged: bool,
}

impl Table {
    /// An empty table.
    pub(super) fn new(judged: bool) -> Self {
        Self {
            rows: Vec::new(),
            judged,
        }
    }

    /// Adds rows at the end.
    pub(super) fn add_rows(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    fn cell_lines(&self) -> Vec<[String; 7]> {
        let rows = self.rows.iter().map(|row| row.cells(self.judged));
        std::iter::once(HEAD.map(str::to_owned))
            .chain(rows)
            .collect()
    }

    /// For the terminal: aligned columns.
    pub(super) fn to_text(&self) -> String {
        let lines = self.cell_lines();
        let mut widths = [0; HEAD.len()];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut out = String::new();
        for line in &lines {
            let cells = line.iter().zip(widths);
            let cells: Vec<String> = cells
                .map(|(cell, width)| format!("{cell:width$}"))
                .collect();
            out.push_str(cells.join("  ").trim_end());
            out.push('\n');
        }
        out
    }

    /// For documents.
    pub(super) fn to_markdown(&self) -> String {
        let mut out = String::new();
        for (index, line) in self.cell_lines().iter().enumerate() {
            out.push_str(
                &format!("| {} |\n", line.join(" | "))
                    .replace(">=", "≥")
                    .replace("<=", "≤"),
            );
            if index == 0 {
                out.push_str(&"|---".repeat(HEAD.len()));
                out.push_str("|\n");
            }
        }
        out
    }

    /// For programs.
    pub(super) fn to_json_text(&self) -> String {
        self.to_json().to_string()
    }

    /// The same, to be put into something else.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| row.to_json(self.judged))
            .collect();
        json!({ "rows": rows })
    }

    /// What was not reached, in words.
    pub(super) fn shortfalls(&self) -> String {
        self.rows.iter().flat_map(Row::shortfalls).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(judged: bool) -> Table {
        let mut table = Table::new(judged);
        let measured = Measured {
            rate: 12_345.6,
            p50_ms: 0.5,
            p99_ms: 2.0,
        };
        table.add_rows(vec![
            Row::rate("a", measured)
                .with_bare_and_ratio(20_000.0, 0.617)
                .at_least_ratio(0.6)
                .at_least(10_000.0),
            Row::millis("b", 1.5).at_most(1.0),
        ]);
        table
    }

    #[test]
    fn rows_show_what_was_reached() {
        let expect = "\
what  measured  p50 / p99       bare      ratio  must reach                 ok
a     12 346/s  0.50 / 2.00 ms  20 000/s  62 %   >= 60 % of bare, >= 10 000/s  yes
b     1.50 ms                                    <= 1.00 ms                 NO
";
        let squeeze = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(squeeze(&table(true).to_text()), squeeze(expect));
        assert_eq!(
            table(true).shortfalls(),
            "- b: 1.50 ms; must reach <= 1.00 ms.\n"
        );
    }

    #[test]
    fn a_quick_run_is_not_judged() {
        assert!(!table(false).to_text().contains("NO"));
        assert!(table(false).to_json_text().contains("\"met\":null"));
    }
}
