//! The live view of a run: a pure function from the run and the controls to the cells of a screen.
//!
//! From top to bottom: the run, its nodes, the selected node's transcript, what waits for a person,
//! the typed line and the keys. A small screen keeps the last two, then the nodes. Every text goes
//! through [`printable`], so no escape sequence of an agent reaches the terminal.

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::run_text::{cost_text, one_line, tokens_text};
use super::{printable, shorten_to_columns, text_columns};
use crate::commands::run::watch::controls::{Controls, Purpose};
use crate::commands::run::watch::followed_run::{FollowedNode, FollowedRun, Speaker};

/// The most rows that the nodes and the approvals take.
const NODE_ROWS_MAX: usize = 10;
const APPROVAL_ROWS_MAX: usize = 5;
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const WARNING: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);

/// Draws the view. Returns where the cursor stands while a line is typed.
pub(crate) fn draw_run(
    run: &FollowedRun,
    controls: &Controls,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let node_rows = row_count(run.nodes.len(), NODE_ROWS_MAX);
    let approval_rows = match run.approvals.len() {
        0 => 0,
        // A rule stands above them.
        open => 1 + row_count(open, APPROVAL_ROWS_MAX),
    };
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(node_rows),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(approval_rows),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [head, nodes, rule, text, approvals, input, keys] = rows.areas(area);
    draw_head(run, head, buffer);
    draw_nodes(run, controls, nodes, buffer);
    draw_transcript(run, controls, rule, text, buffer);
    draw_approvals(run, controls, approvals, buffer);
    draw_keys(run, controls, keys, buffer);
    draw_input(run, controls, input, buffer)
}

fn row_count(items: usize, max: usize) -> u16 {
    u16::try_from(items.min(max)).unwrap_or(u16::MAX)
}

/// The title on the left, the state of the run on the right.
fn draw_head(run: &FollowedRun, area: Rect, buffer: &mut Buffer) {
    let status = match run.paused_reason.as_str() {
        _ if run.is_deleted => "deleted".to_owned(),
        reason if run.status == "paused" && !reason.is_empty() => format!("paused ({reason})"),
        _ => run.status.clone(),
    };
    let used = format!("{} {}", tokens_text(run.tokens), cost_text(run.cost_usd));
    let state = [
        status.as_str(),
        &run.phase,
        &run.mode,
        &run.global_mode,
        used.trim_end(),
    ];
    let state = one_line(&state.join(" "));
    let left = columns_of(area).saturating_sub(text_columns(&state) + 2);
    let title = shorten_to_columns(&one_line(&run.title), left);
    put(buffer, area, 0, &title, STRONG);
    let at = columns_of(area).saturating_sub(text_columns(&state));
    put(buffer, area, at, &state, status_style(&run.status));
}

fn draw_nodes(run: &FollowedRun, controls: &Controls, area: Rect, buffer: &mut Buffer) {
    let selected = controls.node_index(run);
    let widths = NodeWidths::of(&run.nodes);
    // With more nodes than rows, the selected one stays visible.
    let first = (selected + 1).saturating_sub(usize::from(area.height));
    for (row, (index, node)) in area.rows().zip(run.nodes.iter().enumerate().skip(first)) {
        let mark = if index == selected { "▸ " } else { "  " };
        put(buffer, row, 0, mark, STRONG);
        put(buffer, row, 2, &printable(node.name()), STRONG);
        let mut at = 2 + widths.name + 1;
        put(buffer, row, at, &node_kind(node), FAINT);
        at += widths.kind + 1;
        put(
            buffer,
            row,
            at,
            &printable(&node.status),
            status_style(&node.status),
        );
        at += widths.status + 1;
        let waiting = match node.inbox_count {
            0 => String::new(),
            count => format!("[{count} waiting] "),
        };
        let text = format!("{waiting}{}", one_line(&node.summary));
        let text = shorten_to_columns(&text, columns_of(row).saturating_sub(at));
        put(buffer, row, at, &text, Style::new());
    }
}

/// The widths of the columns of nodes.
struct NodeWidths {
    name: usize,
    kind: usize,
    status: usize,
}

impl NodeWidths {
    fn of(nodes: &[FollowedNode]) -> Self {
        let widest = |text: &dyn Fn(&FollowedNode) -> String| {
            let widths = nodes.iter().map(|node| text_columns(&text(node)));
            widths.max().unwrap_or_default()
        };
        Self {
            name: widest(&|node| printable(node.name())),
            kind: widest(&node_kind),
            status: widest(&|node| printable(&node.status)),
        }
    }
}

fn node_kind(node: &FollowedNode) -> String {
    printable(&format!("{} {}", node.role, node.provider))
}

/// The end of the selected node's transcript, under a rule with its name.
fn draw_transcript(
    run: &FollowedRun,
    controls: &Controls,
    rule: Rect,
    area: Rect,
    buffer: &mut Buffer,
) {
    let Some(node) = run.nodes.get(controls.node_index(run)) else {
        put(buffer, rule, 0, "The run has no node yet.", FAINT);
        return;
    };
    let scrolled = if controls.scrolled > 0 {
        ", scrolled: End shows the newest"
    } else {
        ""
    };
    draw_rule(
        &format!("{}{scrolled}", printable(node.name())),
        rule,
        buffer,
        FAINT,
    );
    let lines = transcript_lines(node, columns_of(area));
    let height = usize::from(area.height);
    // Scrolling ends where the first line is at the top.
    let scrolled = controls.scrolled.min(lines.len().saturating_sub(height));
    let end = lines.len() - scrolled;
    let shown = lines
        .get(end.saturating_sub(height)..end)
        .unwrap_or_default();
    for (row, line) in area.rows().zip(shown) {
        put(buffer, row, 0, &line.text, line.style);
    }
}

/// A line of a transcript.
struct ShownLine {
    text: String,
    style: Style,
}

fn transcript_lines(node: &FollowedNode, columns: usize) -> Vec<ShownLine> {
    let mut lines = Vec::new();
    for entry in &node.transcript {
        let (label, style) = match &entry.speaker {
            Speaker::Agent => (String::new(), Style::new()),
            Speaker::User => ("you: ".to_owned(), Style::new().fg(Color::Cyan)),
            Speaker::System => ("note: ".to_owned(), FAINT),
            Speaker::Tool => ("$ ".to_owned(), Style::new().fg(Color::Green)),
            Speaker::From(name) => (
                format!("from {}: ", printable(name)),
                Style::new().fg(Color::Cyan),
            ),
            Speaker::To(name) => (
                format!("to {}: ", printable(name)),
                Style::new().fg(Color::Magenta),
            ),
        };
        for line in format!("{label}{}", entry.text).lines() {
            // How far a tab moves the cursor depends on the terminal, but cells are counted here.
            let wrapped = wrap_to_columns(&printable(&line.replace('\t', "    ")), columns);
            lines.extend(wrapped.into_iter().map(|text| ShownLine { text, style }));
        }
    }
    lines
}

/// A line in pieces of at most so many columns, broken between words where possible.
fn wrap_to_columns(line: &str, columns: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        let width = text_columns(word.trim_end());
        if used > 0 && used + width > columns {
            rows.push(String::new());
            used = 0;
        }
        for c in word.chars() {
            let wide = text_columns(c.encode_utf8(&mut [0; 4]));
            // Only a word that is longer than a row is broken.
            if used + wide > columns && c != ' ' && used > 0 {
                rows.push(String::new());
                used = 0;
            }
            if let Some(row) = rows.last_mut() {
                row.push(c);
            }
            used += wide;
        }
    }
    rows
}

fn draw_rule(text: &str, area: Rect, buffer: &mut Buffer, style: Style) {
    put(buffer, area, 0, &"─".repeat(columns_of(area)), FAINT);
    let text = shorten_to_columns(&format!(" {text} "), columns_of(area).saturating_sub(2));
    put(buffer, area, 2, &text, style);
}

fn draw_approvals(run: &FollowedRun, controls: &Controls, area: Rect, buffer: &mut Buffer) {
    let mut rows = area.rows();
    let Some(rule) = rows.next() else { return };
    let waits = match run.approvals.len() {
        1 => "1 waits for you".to_owned(),
        count => format!("{count} wait for you"),
    };
    draw_rule(&waits, rule, buffer, WARNING);
    let selected = controls.approval_index(run);
    // One row is the rule. The list begins so late that the selected item is still on its last row.
    let first = (selected + 1).saturating_sub(usize::from(area.height).saturating_sub(1));
    for (row, (index, open)) in rows.zip(run.approvals.iter().enumerate().skip(first)) {
        let mark = if index == selected { "▸ " } else { "  " };
        let options = match open.options.join(" / ") {
            none if none.is_empty() => none,
            options => format!(" ({options})"),
        };
        let name = printable(run.node_name(&open.node));
        let text = format!(
            "{mark}{name}: {}{}",
            one_line(&open.context),
            one_line(&options)
        );
        put(
            buffer,
            row,
            0,
            &shorten_to_columns(&text, columns_of(row)),
            Style::new(),
        );
    }
}

/// The line that is being typed, or what the last wish led to.
fn draw_input(
    run: &FollowedRun,
    controls: &Controls,
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let Some(line) = &controls.input else {
        put(buffer, area, 0, &one_line(&controls.notice), WARNING);
        return None;
    };
    let prompt = match &line.purpose {
        Purpose::Chat { node } => format!("to {}> ", printable(run.node_name(node))),
        Purpose::DenyReason { .. } => "deny, because> ".to_owned(),
        Purpose::Answer { .. } => "answer> ".to_owned(),
    };
    let text = printable(&line.text.replace('\n', "⏎"));
    let left = columns_of(area).saturating_sub(text_columns(&prompt) + 1);
    // The end stays in view, because the cursor is there.
    let text = end_in_columns(&text, left);
    put(buffer, area, 0, &prompt, STRONG);
    let at = text_columns(&prompt);
    put(buffer, area, at, &text, Style::new());
    let x = u16::try_from(at + text_columns(&text)).unwrap_or(u16::MAX);
    Some(Position::new(area.x.saturating_add(x), area.y))
}

/// The end of a text that fits in so many columns: the cursor stands behind it.
fn end_in_columns(text: &str, columns: usize) -> String {
    let mut shown = text;
    while text_columns(shown) > columns {
        let mut rest = shown.chars();
        rest.next();
        shown = rest.as_str();
    }
    shown.to_owned()
}

fn draw_keys(run: &FollowedRun, controls: &Controls, area: Rect, buffer: &mut Buffer) {
    let keys = if controls.input.is_some() {
        "Enter send  Esc cancel"
    } else if run.approvals.is_empty() {
        "c chat  ↑↓ node  PgUp PgDn scroll  q leave (the run goes on)"
    } else {
        "a approve or answer  d deny  e edit  Tab next  c chat  ↑↓ node  q leave"
    };
    put(
        buffer,
        area,
        0,
        &shorten_to_columns(keys, columns_of(area)),
        FAINT,
    );
}

fn columns_of(area: Rect) -> usize {
    usize::from(area.width)
}

/// Writes a text into a row, from a column on.
fn put(buffer: &mut Buffer, area: Rect, column: usize, text: &str, style: Style) {
    let offset = u16::try_from(column).unwrap_or(u16::MAX);
    if area.height == 0 || offset >= area.width {
        return;
    }
    let left = usize::from(area.width - offset);
    buffer.set_stringn(area.x + offset, area.y, text, left, style);
}

fn status_style(status: &str) -> Style {
    match status {
        "running" => Style::new().fg(Color::Cyan),
        "blocked" | "paused" => WARNING,
        "failed" => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
        "completed" => Style::new().fg(Color::Green),
        _ => FAINT,
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent};
    use serde_json::json;

    use super::*;
    use crate::commands::run::events::RunEvent;
    use crate::commands::run::samples::{event, run, tool};

    fn followed(events: &[RunEvent]) -> FollowedRun {
        let mut followed = FollowedRun::new(&run(), &[]);
        for event in events {
            followed.apply(event);
        }
        followed
    }

    /// The text of the screen, without blanks at the ends of its lines.
    fn screen(run: &FollowedRun, controls: &Controls, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        draw_run(run, controls, area, &mut buffer);
        let mut lines = Vec::new();
        for row in area.rows() {
            let cells = row
                .columns()
                .map(|cell| buffer[(cell.x, cell.y)].symbol().to_owned());
            lines.push(cells.collect::<String>().trim_end().to_owned());
        }
        lines.join("\n")
    }

    fn busy_events() -> Vec<RunEvent> {
        let patch =
            json!({ "patch": { "status": "blocked", "summary": "wants to run", "inboxCount": 2 } });
        let approval = json!({
            "approvalId": "a1", "kind": "tool", "tool": tool("Bash", &json!({ "command": "rm x" })),
            "context": "run `rm x` in /repo", "createdAt": "2026-01-01T12:00:00Z", "options": [],
        });
        let message = json!({
            "id": "m1", "runId": "run1", "nodeId": "n1", "role": "user", "content": "go on",
            "interrupt": false, "createdAt": "2026-01-01T12:00:00Z",
        });
        let usage = json!({ "promptTokens": 1000, "completionTokens": 500, "totalTokens": 1500 });
        vec![
            event(11, "n2", "node.patch", &patch),
            event(12, "n2", "approval.requested", &approval),
            event(13, "n1", "message.user", &json!({ "message": message })),
            event(
                14,
                "n1",
                "message.assistant.delta",
                &json!({ "delta": "I read\u{1b}[31m\nthe files" }),
            ),
            event(
                15,
                "n1",
                "telemetry.usage",
                &json!({ "usage": usage, "costUsd": 0.42 }),
            ),
        ]
    }

    #[test]
    fn a_busy_run_fills_the_screen() {
        let shown = screen(&followed(&busy_events()), &Controls::default(), 72, 12);
        let expect = [
            "Fix the refund     running EXECUTE INTERACTIVE IMPLEMENTATION 1.5k $0.42",
            "▸ lead orchestrator claude idle",
            "  impl implementer claude  blocked [2 waiting] wants to run",
            "── lead ────────────────────────────────────────────────────────────────",
            "you: go on",
            "I read\\u{1b}[31m",
            "the files",
            "",
            "── 1 waits for you ─────────────────────────────────────────────────────",
            "▸ impl: run `rm x` in /repo",
            "",
            "a approve or answer  d deny  e edit  Tab next  c chat  ↑↓ node  q leave",
        ];
        assert_eq!(shown, expect.join("\n"));
    }

    #[test]
    fn a_typed_line_has_the_cursor() {
        let run = followed(&[]);
        let mut controls = Controls::default();
        for key in ['c', 'h', 'i'] {
            controls.press(KeyEvent::from(KeyCode::Char(key)), &run);
        }
        let area = Rect::new(0, 0, 40, 8);
        let mut buffer = Buffer::empty(area);
        let cursor = draw_run(&run, &controls, area, &mut buffer);
        assert_eq!(cursor, Some(Position::new(11, 6)));
        let shown = screen(&run, &controls, 40, 8);
        assert!(
            shown.ends_with("\nto lead> hi\nEnter send  Esc cancel"),
            "{shown}"
        );
    }

    #[test]
    fn a_screen_of_any_size_can_be_drawn() {
        let run = followed(&busy_events());
        for (width, height) in [(0, 0), (1, 1), (3, 2), (10, 4), (20, 40), (300, 3)] {
            screen(&run, &Controls::default(), width, height);
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        fn check(line: &str, columns: usize, expect: &[&str]) {
            let rows = wrap_to_columns(line, columns);
            let rows: Vec<&str> = rows.iter().map(|row| row.trim_end()).collect();
            assert_eq!(rows, expect, "{line:?} in {columns}");
        }
        check("one two three", 8, &["one two", "three"]);
        check("abcdefgh", 3, &["abc", "def", "gh"]);
        check("日本語", 4, &["日本", "語"]);
        check("", 4, &[""]);
        check("ab", 0, &["a", "b"]);
    }
}
