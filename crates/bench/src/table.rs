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
    latency: Option<(f64, f64)>,
    bare: Option<f64>,
    ratio: Option<f64>,
    goals: Vec<(String, bool)>,
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
        let latency = Some((measured.p50_ms, measured.p99_ms));
        Self {
            latency,
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
        let (text, met) = (
            format!(">= {}", self.unit.format_value(least)),
            self.value >= least,
        );
        self.goal(&text, met)
    }

    /// The figure must be at most this.
    pub(super) fn at_most(self, most: f64) -> Self {
        let (text, met) = (
            format!("<= {}", self.unit.format_value(most)),
            self.value <= most,
        );
        self.goal(&text, met)
    }

    /// The ratio must be at least this.
    pub(super) fn at_least_ratio(self, least: f64) -> Self {
        let met = self.ratio.is_some_and(|ratio| ratio >= least);
        self.goal(&format!(">= {:.0} % of bare", least * 100.0), met)
    }

    /// Another goal, already judged.
    pub(super) fn goal(mut self, text: &str, met: bool) -> Self {
        self.goals.push((text.to_owned(), met));
        self
    }

    fn verdict(&self, judged: bool) -> &'static str {
        match (
            judged && !self.goals.is_empty(),
            self.goals.iter().all(|(_, met)| *met),
        ) {
            (false, _) => "-",
            (true, true) => "yes",
            (true, false) => "NO",
        }
    }

    fn cells(&self, judged: bool) -> [String; 7] {
        let goals: Vec<&str> = self.goals.iter().map(|(text, _)| text.as_str()).collect();
        [
            self.name.clone(),
            self.unit.format_value(self.value),
            self.latency
                .map_or_else(String::new, |(p50, p99)| format!("{p50:.2} / {p99:.2} ms")),
            self.bare
                .map_or_else(String::new, |bare| self.unit.format_value(bare)),
            self.ratio
                .map_or_else(String::new, |ratio| format!("{:.0} %", ratio * 100.0)),
            goals.join(", "),
            self.verdict(judged).to_owned(),
        ]
    }

    fn shortfalls(&self) -> impl Iterator<Item = String> {
        let ratio = self.ratio.map_or_else(String::new, |ratio| {
            format!(", {:.0} % of bare", ratio * 100.0)
        });
        let reached = format!(
            "- {}: {}{ratio}",
            self.name,
            self.unit.format_value(self.value)
        );
        let missed = self.goals.iter().filter(|(_, met)| !met);
        missed.map(move |(text, _)| format!("{reached}; must reach {text}.\n"))
    }

    fn to_json(&self, judged: bool) -> serde_json::Value {
        json!({
            "name": self.name,
            "unit": format!("{:?}", self.unit),
            "measured": self.value,
            "p50_ms": self.latency.map(|(p50, _)| p50),
            "p99_ms": self.latency.map(|(_, p99)| p99),
            "bare": self.bare,
            "ratio": self.ratio,
            "goals": self.goals.iter().map(|(text, met)| json!({ "text": text, "met": judged.then_some(met) })).collect::<Vec<_>>(),
        })
    }
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
        let width = |column: usize| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
        let mut out = String::new();
        for line in &lines {
            let cells: Vec<String> = line
                .iter()
                .zip(&widths)
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
