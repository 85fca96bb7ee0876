//! Standard output: text for people, with colours only on a terminal, or JSON for programs.
//!
//! Commands write through [`Output`] only. So a closed pipe ends the command quietly instead of
//! with a panic.

use std::io::{self, IsTerminal, Write};

use anyhow::Result;
use serde_json::Value;

use crate::failure::{Failure, OutputError};
use crate::render::{shorten_to_columns, text_columns};

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A part of a text that may be coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// An id, as git shows a commit.
    Id,
    /// A name of something, such as a context at a head.
    Name,
    /// Less important than what stands around it.
    Faint,
    /// All is well.
    Good,
    /// Worth a look.
    Warning,
    /// Something is wrong.
    Bad,
}

impl Style {
    fn color_code(self) -> &'static str {
        match self {
            Self::Id => "33",
            Self::Name => "1;36",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Warning => "1;33",
            Self::Bad => "1;31",
        }
    }
}

/// Where a command writes its results.
pub(crate) struct Output {
    out: Box<dyn Write + Send>,
    json: bool,
    color: bool,
}

impl Output {
    /// Standard output.
    pub(crate) fn stdout(json: bool, color: ColorChoice, no_color: bool) -> Self {
        let color = match color {
            ColorChoice::Auto => !json && !no_color && io::stdout().is_terminal(),
            // JSON never has colours: escape sequences would make it invalid.
            ColorChoice::Always => !json,
            ColorChoice::Never => false,
        };
        Self {
            out: Box::new(io::BufWriter::new(io::stdout())),
            json,
            color,
        }
    }

    /// Discards everything, for a step whose output the caller does not want.
    pub(crate) fn silent() -> Self {
        Self {
            out: Box::new(io::sink()),
            json: false,
            color: false,
        }
    }

    /// Whether the command speaks JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// The text, coloured if colours are on.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.color {
            format!("\x1b[{}m{text}\x1b[0m", style.color_code())
        } else {
            text.to_owned()
        }
    }

    /// Writes one line of text.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<()> {
        writeln!(self.out, "{}", text.as_ref()).map_err(|error| OutputError(error).into())
    }

    /// Writes one JSON value on one line.
    pub(crate) fn json(&mut self, value: &Value) -> Result<()> {
        self.line(value.to_string())
    }

    /// Writes each JSON value on a line of its own, so that a program can read them one by one.
    pub(crate) fn json_lines(&mut self, values: &[Value]) -> Result<()> {
        values.iter().try_for_each(|value| self.json(value))
    }

    /// Writes bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(|error| OutputError(error).into())
    }

    /// Whether standard output is a terminal, which would interpret control sequences.
    #[expect(
        clippy::unused_self,
        reason = "the question is about where this writes"
    )]
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Whether the output is text on a terminal, which the command may repaint.
    pub(crate) fn is_screen(&self) -> bool {
        !self.json && self.is_terminal()
    }

    /// The terminal's width. `None`: the output is not a terminal, so lines may have any length.
    #[expect(
        clippy::unused_self,
        reason = "the question is about where this writes"
    )]
    pub(crate) fn columns(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    }

    /// Refuses to write arbitrary bytes to a terminal, which would interpret control sequences.
    #[expect(
        clippy::unused_self,
        reason = "the question is about where this writes"
    )]
    pub(crate) fn refuse_terminal(&self) -> Result<()> {
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        Failure::new("these bytes are not text, and standard output is a terminal")
            .hint("name a file, or send them on with > or |")
            .fail()
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(|error| OutputError(error).into())
    }

    /// Writes names and values in two columns.
    pub(crate) fn pairs(&mut self, pairs: &[(&str, String)]) -> Result<()> {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + 1;
        for (name, value) in pairs {
            let name = format!("{name}:");
            self.line(format!("{name:width$} {value}").trim_end())?;
        }
        Ok(())
    }

    /// Writes rows under a header, each column as wide as its widest cell.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let mut lines = align_columns(&owned_cells(header), rows).into_iter();
        let head = lines.next().unwrap_or_default();
        self.line(self.paint(Style::Faint, &head))?;
        lines.try_for_each(|line| self.line(line))
    }

    /// Writes a table whose last column is cut where the terminal's line ends.
    pub(crate) fn fitted_table(&mut self, header: &[&str], rows: &[Vec<String>]) -> Result<()> {
        let Some(columns) = self.columns() else {
            return self.table(header, rows);
        };
        let (last, before) = header.split_last().unwrap_or((&"", &[]));
        let widths = column_widths(&owned_cells(before), rows);
        let taken: usize = widths.iter().map(|width| width + COLUMN_GAP.len()).sum();
        // At least as wide as its header, even if the line then wraps.
        let left = columns.saturating_sub(taken).max(last.len());
        let mut rows = rows.to_vec();
        for cell in rows.iter_mut().filter_map(|row| row.last_mut()) {
            *cell = shorten_to_columns(cell, left);
        }
        self.table(header, &rows)
    }
}

const COLUMN_GAP: &str = "  ";

fn owned_cells(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

/// A head and rows as lines, each column as wide as its widest cell.
fn align_columns(head: &[String], rows: &[Vec<String>]) -> Vec<String> {
    let widths = column_widths(head, rows);
    let all = std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
    all.map(|row| align_row(row, &widths)).collect()
}

/// The width of the widest cell in each of the head's columns.
fn column_widths(head: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = head.iter().map(|cell| text_columns(cell)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = text_columns(cell).max(*width);
        }
    }
    widths
}

fn align_row(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        // `{:width$}` counts characters, but a terminal's columns are wanted.
        let padding = " ".repeat(width - text_columns(cell).min(*width));
        line.extend([cell, padding.as_str(), COLUMN_GAP]);
    }
    // Spaces at the end would wrap a line that just fits the terminal.
    line.trim_end().to_owned()
}

/// A number of bytes for people: `17 B`, `4.2 KiB`.
#[expect(
    clippy::cast_precision_loss,
    reason = "shown with one digit after the point"
)]
pub(crate) fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next().unwrap_or(&"KiB");
    for next in units {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_below_each_other_whatever_their_characters() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let lines = align_columns(&row(["A", "B"]), &[row(["日本", "x"]), row(["ä", ""])]);
        assert_eq!(lines, ["A     B", "日本  x", "ä"]);
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        for (bytes, expect) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(bytes_text(bytes), expect);
        }
    }
}
