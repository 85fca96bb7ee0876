//! `turnkeep log`: a context's history, newest first, like `git log`.

mod follow;
mod tree;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_types::TurnId;

use super::App;
use crate::failure::Unsound;
use crate::http::{Call, Http, Refused};
use crate::names::ContextName;
use crate::output::{Output, Style};
use crate::render::graph::Margin;
use crate::render::turn::{ShownTurn, text_of};
use crate::session::{Need, Session};

/// Show a context's history, newest turn first
///
/// Fields are shown by name when the registry knows a turn's type, else as compact msgpack.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep log 1
  turnkeep log ctx:1 --oneline -n 20
  turnkeep log 1 --graph                  with all contexts that share its history
  turnkeep log 1 --follow                 the newest turns, then whatever is appended
  turnkeep log 1 --json | jq .data.text")]
pub(crate) struct Args {
    /// The context
    context: ContextName,
    /// One line per turn, cut where the terminal's line ends
    #[arg(short, long)]
    oneline: bool,
    /// Draw the branches of all contexts that share history with this one
    #[arg(long, conflicts_with = "follow")]
    graph: bool,
    /// Show the newest turns, oldest first, then wait for more
    #[arg(short, long)]
    follow: bool,
    /// At most so many turns [default: all; with --follow 10]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut session = match args {
        Args { follow: true, .. } => Session::served(&config).await?,
        _ => Session::open(&config, Need::Read).await?,
    };
    let done = match args {
        Args { graph: true, .. } => tree::show(&mut session, args, app).await,
        Args { follow: true, .. } => follow::show(&mut session.http, args, app).await,
        _ => list(&mut session.http, args, app).await,
    };
    session.close().await;
    done
}

async fn list(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut before = None;
    let mut printer = Printer::new(args.oneline);
    let context = args.context.0.to_string();
    let head = [format!("ctx:{context}")];
    while left > 0 {
        let page = page(http, View::of(&app.out), &context, before.as_deref(), left.min(PAGE_TURNS)).await;
        let page = match page {
            Ok(page) => page,
            Err(error) => return Err(printer.breaks_off(error, &mut app.out)),
        };
        for turn in page.turns.iter().rev() {
            let heads: &[String] = if text_of(turn, "turn_id") == page.head { &head } else { &[] };
            printer.turn(&ShownTurn { turn, heads }, None, &mut app.out)?;
        }
        left = left.saturating_sub(page.turns.len() as u64);
        before = page.next;
        if before.is_none() || page.turns.is_empty() {
            break;
        }
    }
    Ok(())
}

/// How many turns are asked for at a time.
const PAGE_TURNS: u64 = 64;

/// A page of turns, oldest first.
struct Page {
    turns: Vec<Value>,
    /// The context's head when the page was read.
    head: String,
    /// Where the next older page goes on.
    next: Option<String>,
}

/// What a page holds of each turn besides its content.
#[derive(Debug, Clone, Copy)]
enum View {
    /// For programs: the bytes only where there is no typed content.
    Json,
    /// For people: the payload's hash and length too.
    Text,
}

impl View {
    fn of(out: &Output) -> Self {
        if out.is_json() { Self::Json } else { Self::Text }
    }
}

async fn page(http: &mut Http, view: View, context: &str, before: Option<&str>, limit: u64) -> Result<Page> {
    let view = match view {
        View::Json => "typed",
        View::Text => "both",
    };
    let mut call = Call::get(format!("/v1/contexts/{context}/turns"))
        .query("view", view)
        .query("include_unknown", 1)
        .query("limit", limit);
    if let Some(before) = before {
        call = call.query("before_turn_id", before);
    }
    let mut page = http.json(call).await?;
    let turns = match page.get_mut("turns").map(Value::take) {
        Some(Value::Array(turns)) => turns,
        _ => Vec::new(),
    };
    let head = page.get("meta").map(|meta| text_of(meta, "head_turn_id").to_owned()).unwrap_or_default();
    let next = page.get("next_before_turn_id").and_then(Value::as_str).map(str::to_owned);
    Ok(Page { turns, head, next })
}

/// Prints turns one after another: as JSON, as lines, or as blocks with an empty line between.
struct Printer {
    oneline: bool,
    is_first: bool,
}

impl Printer {
    fn new(oneline: bool) -> Self {
        Self { oneline, is_first: true }
    }

    /// Where history breaks off because of damage, says so: then that was all that is wrong.
    fn breaks_off(&mut self, error: anyhow::Error, out: &mut Output) -> anyhow::Error {
        let Some(lost) = Refused::lost_turn(&error) else { return error };
        self.lost(lost, None, out).err().unwrap_or_else(|| Unsound.into())
    }

    /// What stands in the place of turns that are gone.
    fn lost(&mut self, turn: TurnId, margin: Option<&Margin>, out: &mut Output) -> Result<()> {
        if out.is_json() {
            return out.json(&json!({ "lost_turn_id": turn.to_string() }));
        }
        let text = format!("(turn:{turn} and what came before it in this context was lost to damage)");
        self.lines(vec![out.paint(Style::Bad, &text)], margin, out)
    }

    fn turn(&mut self, shown: &ShownTurn<'_>, margin: Option<&Margin>, out: &mut Output) -> Result<()> {
        if out.is_json() {
            return out.json(shown.turn);
        }
        let margin_columns = margin.map_or(0, |margin| margin.first.chars().count() + 1);
        let columns = out.columns().map(|columns| columns.saturating_sub(margin_columns));
        let lines = if self.oneline { vec![shown.line(columns, out)] } else { shown.block(out) };
        self.lines(lines, margin, out)
    }

    fn lines(&mut self, mut lines: Vec<String>, margin: Option<&Margin>, out: &mut Output) -> Result<()> {
        let Some(margin) = margin else {
            if !self.oneline && !std::mem::take(&mut self.is_first) {
                out.line("")?;
            }
            return lines.iter().try_for_each(|line| out.line(line));
        };
        if !self.oneline {
            lines.push(String::new());
        }
        for (index, line) in lines.iter().enumerate() {
            let width = margin.first.len();
            let margin = if index == 0 { &margin.first } else { &margin.rest };
            out.line(format!("{margin:width$} {line}").trim_end())?;
        }
        margin.joins.iter().try_for_each(|line| out.line(line))
    }
}
