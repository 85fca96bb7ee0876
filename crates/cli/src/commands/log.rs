//! `turnkeep log`: shows a context's history, newest turn first, like `git log`.

mod follow;
mod tree;

use anyhow::Result;
use serde_json::{Value, json};
use turnkeep_types::TurnId;

use super::App;
use super::show::fetch_turn;
use crate::answer::{text_at, text_of};
use crate::failure::ProblemsReported;
use crate::http::{Call, Gap, Http, HttpRefusal, NO_TURN};
use crate::names::ContextName;
use crate::output::{Output, Style};
use crate::render::graph::Margin;
use crate::render::turn::ShownTurn;
use crate::session::{Need, StoreSession};

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
pub(crate) struct LogArgs {
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
    /// At most this many turns [default: all; with --follow 10]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

pub(crate) async fn run_log(args: &LogArgs, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let mut session = if args.follow {
        StoreSession::open_served(&config).await?
    } else {
        StoreSession::open(&config, Need::Read).await?
    };
    let done = if args.graph {
        tree::show_graph(&mut session, args, app).await
    } else if args.follow {
        follow::follow_context(&mut session.http, args, app).await
    } else {
        list_history(&mut session.http, args, app).await
    };
    // Also after an error: a server that this command has started must release the directory.
    session.close().await;
    done
}

async fn list_history(http: &mut Http, args: &LogArgs, app: &mut App) -> Result<()> {
    let mut history = History::new(args);
    while !history.is_at_end {
        let limit = history.left.min(PAGE_TURNS);
        let view = PageView::for_output(&app.out);
        let before = history.before.as_deref();
        match fetch_page(http, view, &history.context, before, limit).await {
            Ok(page) => history.print_page(page, &mut app.out)?,
            Err(error) => {
                let gap = HttpRefusal::lost_turn(&error).ok_or(error)?;
                let earlier = earlier_turn(http, &gap).await?;
                history.print_gap(&gap, earlier, &mut app.out)?;
            }
        }
    }
    // The remaining turns were printed. The exit code reports that others are missing.
    if history.has_gaps {
        return Err(ProblemsReported.into());
    }
    Ok(())
}

/// The state of walking a context's history from its head towards its first turn.
struct History {
    context: String,
    printer: TurnPrinter,
    /// Turns that may still be printed.
    left: u64,
    /// The walk goes on below this turn; `None` at its start.
    before: Option<String>,
    has_gaps: bool,
    is_at_end: bool,
}

impl History {
    fn new(args: &LogArgs) -> Self {
        let left = args.limit.unwrap_or(u64::MAX);
        Self {
            context: args.context.0.to_string(),
            printer: TurnPrinter::new(args.oneline),
            left,
            before: None,
            has_gaps: false,
            is_at_end: left == 0,
        }
    }

    /// Prints a page and moves below it. Pages have their oldest turn first; a log has it last.
    fn print_page(&mut self, page: Page, out: &mut Output) -> Result<()> {
        let head_name = [format!("ctx:{}", self.context)];
        for turn in page.turns.iter().rev() {
            let is_head = text_of(turn, "turn_id") == page.head;
            let heads: &[String] = if is_head { &head_name } else { &[] };
            self.printer
                .print_turn(&ShownTurn { turn, heads }, None, out)?;
        }
        self.move_below(page.next, page.turns.len());
        if page.turns.is_empty() {
            self.is_at_end = true;
        }
        Ok(())
    }

    /// Prints that turns are lost, and the first turn that is left before them.
    fn print_gap(&mut self, gap: &Gap, earlier: Option<Value>, out: &mut Output) -> Result<()> {
        self.has_gaps = true;
        self.printer.print_gap(gap, earlier.as_ref(), None, out)?;
        let Some(turn) = earlier else {
            self.is_at_end = true;
            return Ok(());
        };
        let shown = ShownTurn {
            turn: &turn,
            heads: &[],
        };
        self.printer.print_turn(&shown, None, out)?;
        let is_first = text_of(&turn, "parent_turn_id") == NO_TURN;
        let id = text_of(&turn, "turn_id").to_owned();
        self.move_below(Some(id).filter(|_| !is_first), 1);
        Ok(())
    }

    fn move_below(&mut self, before: Option<String>, printed: usize) {
        self.left = self.left.saturating_sub(printed as u64);
        self.is_at_end = before.is_none() || self.left == 0;
        self.before = before;
    }
}

/// Fetches the turn with which a history goes on after a gap, if one is left.
async fn earlier_turn(http: &mut Http, gap: &Gap) -> Result<Option<Value>> {
    match gap.earlier {
        Some(earlier) => Ok(Some(fetch_turn(http, &earlier.to_string()).await?)),
        None => Ok(None),
    }
}

/// How many turns are asked for at a time.
const PAGE_TURNS: u64 = 64;

/// A page of turns, oldest first.
struct Page {
    turns: Vec<Value>,
    /// The context's head when the page was read.
    head: String,
    /// The next older page ends before this turn.
    next: Option<String>,
}

/// Which parts of each turn a page holds.
#[derive(Debug, Clone, Copy)]
enum PageView {
    /// For programs: the payload's bytes only where there is no typed content.
    Json,
    /// For people: the payload's hash and length too.
    Text,
}

impl PageView {
    fn for_output(out: &Output) -> Self {
        if out.is_json() {
            Self::Json
        } else {
            Self::Text
        }
    }
}

async fn fetch_page(
    http: &mut Http,
    view: PageView,
    context: &str,
    before: Option<&str>,
    limit: u64,
) -> Result<Page> {
    let view = match view {
        PageView::Json => "typed",
        // The raw view has the payload of a turn whose type is unknown; it is then shown by its tags.
        PageView::Text => "both",
    };
    let call = Call::get(format!("/v1/contexts/{context}/turns"))
        .query("view", view)
        .query("include_unknown", 1)
        .query("limit", limit)
        .query_if("before_turn_id", before);
    let mut page = http.json(call).await?;
    let turns = match page.get_mut("turns").map(Value::take) {
        Some(Value::Array(turns)) => turns,
        _ => Vec::new(),
    };
    Ok(Page {
        turns,
        head: text_at(&page, "/meta/head_turn_id").unwrap_or_default(),
        next: text_at(&page, "/next_before_turn_id"),
    })
}

/// How many turns are lost between a lost turn and the earlier turn that is left. Unknown if the
/// path to that turn is lost too.
///
/// Example: turn 9 at depth 8 is lost and the earlier turn has depth 5. Then the turns at depths 6
/// and 7 are lost with it: 8 - (5 + 1) = 2.
fn lost_before(gap: &Gap, earlier: Option<&Value>) -> Option<u64> {
    let first = earlier?.get("depth")?.as_u64()? + 1;
    gap.depth?.checked_sub(first)
}

fn gap_text(turn: TurnId, more: Option<u64>) -> String {
    match more {
        Some(0) => format!("(turn:{turn} was lost to damage)"),
        Some(1) => format!("(turn:{turn} and the turn before it were lost to damage)"),
        Some(more) => format!("(turn:{turn} and the {more} turns before it were lost to damage)"),
        None => format!("(turn:{turn} was lost to damage; what came before it is not known)"),
    }
}

/// Prints turns one after another: as JSON, as lines, or as blocks with an empty line between.
struct TurnPrinter {
    oneline: bool,
    is_first: bool,
}

impl TurnPrinter {
    fn new(oneline: bool) -> Self {
        Self {
            oneline,
            is_first: true,
        }
    }

    /// Prints a line in the place of lost turns. `earlier` is the turn that is left before them.
    fn print_gap(
        &mut self,
        gap: &Gap,
        earlier: Option<&Value>,
        margin: Option<&Margin>,
        out: &mut Output,
    ) -> Result<()> {
        let (turn, more) = (gap.turn, lost_before(gap, earlier));
        if out.is_json() {
            return out.json(&json!({ "lost_turn_id": turn.to_string(), "lost_before": more }));
        }
        let text = gap_text(turn, more);
        self.print_lines(vec![out.paint(Style::Bad, &text)], margin, out)
    }

    fn print_turn(
        &mut self,
        shown: &ShownTurn<'_>,
        margin: Option<&Margin>,
        out: &mut Output,
    ) -> Result<()> {
        if out.is_json() {
            return out.json(shown.turn);
        }
        // The graph takes columns of the same line.
        let taken = margin.map_or(0, |margin| margin.first.chars().count() + 1);
        let columns = out.columns().map(|columns| columns.saturating_sub(taken));
        let lines = if self.oneline {
            vec![shown.one_line(columns, out)]
        } else {
            shown.block_lines(out)
        };
        self.print_lines(lines, margin, out)
    }

    fn print_lines(
        &mut self,
        mut lines: Vec<String>,
        margin: Option<&Margin>,
        out: &mut Output,
    ) -> Result<()> {
        let Some(margin) = margin else {
            // Blocks are separated by an empty line, and none stands before the first.
            if !self.oneline && !std::mem::take(&mut self.is_first) {
                out.line("")?;
            }
            return lines.iter().try_for_each(|line| out.line(line));
        };
        if !self.oneline {
            lines.push(String::new());
        }
        print_beside(&lines, margin, out)
    }
}

/// Prints lines to the right of the graph.
fn print_beside(lines: &[String], margin: &Margin, out: &mut Output) -> Result<()> {
    // A turn's first line stands beside its mark, the others beside the lanes that go on.
    let margins = std::iter::once(&margin.first).chain(std::iter::repeat(&margin.rest));
    let width = margin.first.len();
    for (line, beside) in lines.iter().zip(margins) {
        out.line(format!("{beside:width$} {line}").trim_end())?;
    }
    margin.joins.iter().try_for_each(|line| out.line(line))
}
