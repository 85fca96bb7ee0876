//! `turnkeep log`: a context's history, newest first, like `git log`.

mod follow;
mod tree;

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use super::show::fetch_turn;
use crate::failure::Unsound;
use crate::http::{Call, Gap, Http, Refused};
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
    let mut is_whole = true;
    while left > 0 {
        let page = page(
            http,
            View::of(&app.out),
            &context,
            before.as_deref(),
            left.min(PAGE_TURNS),
        )
        .await;
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                is_whole = false;
                let gap = Refused::lost_turn(&error).ok_or(error)?;
                let earlier = earlier_turn(http, &gap).await?;
                printer.lost(&gap, earlier.as_ref(), None, &mut app.out)?;
                let Some(turn) = earlier else { break };
                printer.turn(
                    &ShownTurn {
                        turn: &turn,
                        heads: &[],
                    },
                    None,
                    &mut app.out,
                )?;
                left = left.saturating_sub(1);
                before = Some(text_of(&turn, "turn_id").to_owned());
                if text_of(&turn, "parent_turn_id") == NO_TURN {
                    break;
                }
                continue;
            }
        };
        for turn in page.turns.iter().rev() {
            let heads: &[String] = if text_of(turn, "turn_id") == page.head {
                &head
            } else {
                &[]
            };
            printer.turn(&ShownTurn { turn, heads }, None, &mut app.out)?;
        }
        left = left.saturating_sub(page.turns.len() as u64);
        before = page.next;
        if before.is_none() || page.turns.is_empty() {
            break;
        }
    }
    if is_whole {
        Ok(())
    } else {
        Err(Unsound.into())
    }
}

/// The turn with which a history goes on behind a gap, if one is left.
async fn earlier_turn(http: &mut Http, gap: &Gap) -> Result<Option<Value>> {
    match gap.earlier {
        Some(earlier) => Ok(Some(fetch_turn(http, &earlier.to_string()).await?)),
        None => Ok(None),
    }
}

/// The parent of a turn that has none.
const NO_TURN: &str = "0";

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
        if out.is_json() {
            Self::Json
        } else {
            Self::Text
        }
    }
}

async fn page(
    http: &mut Http,
    view: View,
    context: &str,
    before: Option<&str>,
    limit: u64,
) -> Result<Page> {
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
    let head = page
        .get("meta")
        .map(|meta| text_of(meta, "head_turn_id").to_owned())
        .unwrap_or_default();
    let next = page
        .get("next_before_turn_id")
        .and_then(Value::as_str)
        .map(str::to_owned);
    Ok(Page { turns, head, next })
}

/// How many turns are gone between a lost turn and the turn that is left before it. Not known where
/// the way to that turn is lost too.
fn lost_before(gap: &Gap, earlier: Option<&Value>) -> Option<u64> {
    let first = earlier?.get("depth")?.as_u64()? + 1;
    gap.depth?.checked_sub(first)
}

/// Prints turns one after another: as JSON, as lines, or as blocks with an empty line between.
struct Printer {
    oneline: bool,
    is_first: bool,
}

impl Printer {
    fn new(oneline: bool) -> Self {
        Self {
            oneline,
            is_first: true,
        }
    }

    /// What stands in the place of turns that are gone; `earlier` is what is left before them.
    fn lost(
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
        let text = match more {
            Some(0) => format!("(turn:{turn} was lost to damage)"),
            Some(1) => format!("(turn:{turn} and the turn before it were lost to damage)"),
            Some(more) => {
                format!("(turn:{turn} and the {more} turns before it were lost to damage)")
            }
            None => format!("(turn:{turn} was lost to damage; what came before it is not known)"),
        };
        self.lines(vec![out.paint(Style::Bad, &text)], margin, out)
    }

    fn turn(
        &mut self,
        shown: &ShownTurn<'_>,
        margin: Option<&Margin>,
        out: &mut Output,
    ) -> Result<()> {
        if out.is_json() {
            return out.json(shown.turn);
        }
        let margin_columns = margin.map_or(0, |margin| margin.first.chars().count() + 1);
        let columns = out
            .columns()
            .map(|columns| columns.saturating_sub(margin_columns));
        let lines = if self.oneline {
            vec![shown.line(columns, out)]
        } else {
            shown.block(out)
        };
        self.lines(lines, margin, out)
    }

    fn lines(
        &mut self,
        mut lines: Vec<String>,
        margin: Option<&Margin>,
        out: &mut Output,
    ) -> Result<()> {
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
            let margin = if index == 0 {
                &margin.first
            } else {
                &margin.rest
            };
            out.line(format!("{margin:width$} {line}").trim_end())?;
        }
        margin.joins.iter().try_for_each(|line| out.line(line))
    }
}
