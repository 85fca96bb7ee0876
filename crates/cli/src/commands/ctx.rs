//! `turnkeep ctx`: makes, lists, shows and forks contexts. A context is the head of a branch.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::App;
use crate::answer::{is_true, number_of, text_at, text_of};
use crate::failure::Failure;
use crate::http::{Call, Http, NO_TURN, Written};
use crate::names::{ContextName, TurnName, parse_label};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::date_text;
use crate::session::{Need, StoreSession, with_store};

/// Make, list, show and fork contexts
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep ctx new --label agent=demo
  turnkeep ctx fork turn:7                a new branch that starts from turn 7
  turnkeep ctx list --label agent=demo
  turnkeep ctx show 1")]
pub(crate) enum CtxCommand {
    New(CtxNewArgs),
    List(CtxListArgs),
    Show(CtxShowArgs),
    Fork(CtxForkArgs),
}

/// Make a context, empty or on top of a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx new
  turnkeep ctx new --base turn:7 --label task=review")]
pub(crate) struct CtxNewArgs {
    /// The turn to start from
    #[arg(long, value_name = "TURN")]
    base: Option<TurnName>,
    #[command(flatten)]
    with: NewContextArgs,
}

/// Make a context that starts from a turn; nothing is copied
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx fork turn:7
  turnkeep ctx fork 7 --key retry-safe-1")]
pub(crate) struct CtxForkArgs {
    /// The turn to start from
    #[arg(value_name = "TURN")]
    base: TurnName,
    #[command(flatten)]
    with: NewContextArgs,
}

#[derive(Debug, clap::Args)]
struct NewContextArgs {
    /// A label; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Idempotency key: the same key again gives the same context
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

/// List contexts, newest first
///
/// The contexts in which worlds keep their records are left out, unless --all is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx list
  turnkeep ctx list --all                 with the contexts of worlds
  turnkeep ctx list --label agent=demo -n 100
  turnkeep ctx list --json | jq -r .context_id")]
pub(crate) struct CtxListArgs {
    /// Only contexts with this label: KEY or KEY=VALUE
    #[arg(long, value_name = "KEY[=VALUE]")]
    label: Option<String>,
    /// At most this many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: usize,
    /// Also list the contexts of worlds
    #[arg(long)]
    all: bool,
}

/// Show a context
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx show 1
  turnkeep ctx show ctx:1 --json")]
pub(crate) struct CtxShowArgs {
    /// The context
    context: ContextName,
}

pub(crate) async fn run_ctx(command: &CtxCommand, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let work = async |session: &mut StoreSession| {
        let http = &mut session.http;
        match command {
            CtxCommand::New(args) => create_context(http, args.base, &args.with, app).await,
            CtxCommand::Fork(args) => create_context(http, Some(args.base), &args.with, app).await,
            CtxCommand::List(args) => list_contexts(http, args, app).await,
            CtxCommand::Show(args) => show_context(http, args.context, app).await,
        }
    };
    with_store(&config, command.need(), work).await
}

impl CtxCommand {
    fn need(&self) -> Need {
        match self {
            Self::New(_) => Need::Write,
            // The turn to start from is in a store already.
            Self::Fork(_) => Need::Change,
            Self::List(_) | Self::Show(_) => Need::Read,
        }
    }
}

async fn create_context(
    http: &mut Http,
    base: Option<TurnName>,
    with: &NewContextArgs,
    app: &mut App,
) -> Result<()> {
    let mut body = json!({ "base_turn_id": base.map(|base| base.0.to_string()) });
    if !with.labels.is_empty() {
        body["labels"] = Value::Object(labels_object(&with.labels)?);
    }
    if let Some(key) = &with.key {
        body["idempotency_key"] = key.as_str().into();
    }
    let written = http.write(Call::post("/v1/contexts", &body)).await?;
    if app.out.is_json() {
        return app.out.json(&written.answer);
    }
    print_created(&written, app)
}

fn print_created(written: &Written, app: &mut App) -> Result<()> {
    let context = &written.answer;
    let id = format!("ctx:{}", text_of(context, "context_id"));
    let id = app.out.paint(Style::Name, &id);
    // A repeated key returns the context as it is now: its head may have moved since.
    let line = match (text_of(context, "head_turn_id"), written.replayed) {
        (NO_TURN, false) => format!("created {id}"),
        (NO_TURN, true) => format!("already created {id}"),
        (head, false) => format!("created {id} from turn:{head}"),
        (head, true) => format!("already created {id}, now at turn:{head}"),
    };
    app.out.line(line)
}

fn labels_object(given: &[(String, String)]) -> Result<Map<String, Value>> {
    let mut labels = Map::new();
    for (key, value) in given {
        // Otherwise the last value would win silently.
        if labels.insert(key.clone(), value.as_str().into()).is_some() {
            return Err(Failure::usage(format!("the label `{key}` is given twice")).into());
        }
    }
    Ok(labels)
}

async fn list_contexts(http: &mut Http, args: &CtxListArgs, app: &mut App) -> Result<()> {
    let worlds = if args.all {
        WorldContexts::Listed
    } else {
        WorldContexts::LeftOut
    };
    let ListedContexts { contexts, is_cut } =
        fetch_contexts(http, args.label.as_deref(), worlds, args.limit).await?;
    if app.out.is_json() {
        app.out.json_lines(&contexts)?;
    } else {
        let rows: Vec<_> = contexts.iter().map(context_row).collect();
        app.out
            .table(&["CONTEXT", "HEAD", "DEPTH", "CREATED", "LABELS"], &rows)?;
    }
    // The note goes to standard error: a program that reads the list gets contexts only.
    app.out.flush()?;
    if is_cut {
        eprintln!(
            "only the newest {} are listed: -n N lists more",
            contexts.len()
        );
    }
    Ok(())
}

/// Whether the contexts of worlds are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorldContexts {
    Listed,
    LeftOut,
}

/// Contexts, newest first.
pub(super) struct ListedContexts {
    pub(super) contexts: Vec<Value>,
    /// Whether there are more than were asked for.
    pub(super) is_cut: bool,
}

/// Reads pages of contexts until there are `limit`, and one more to know whether the list is cut.
pub(super) async fn fetch_contexts(
    http: &mut Http,
    label: Option<&str>,
    worlds: WorldContexts,
    limit: usize,
) -> Result<ListedContexts> {
    const PAGE: usize = 1000;
    let without_worlds = (worlds == WorldContexts::LeftOut).then_some(0);
    let list = Call::get("/v1/contexts")
        .query_if("worlds", without_worlds)
        .query_if("label", label);
    let mut contexts = Vec::new();
    let mut cursor: Option<String> = None;
    while contexts.len() <= limit {
        let wanted = (limit - contexts.len()).saturating_add(1);
        let call = list
            .clone()
            .query("limit", wanted.min(PAGE))
            .query_if("cursor", cursor.as_ref());
        let mut page = http.json(call).await?;
        if let Some(Value::Array(found)) = page.get_mut("contexts").map(Value::take) {
            contexts.extend(found);
        }
        cursor = text_at(&page, "/next_cursor");
        if cursor.is_none() {
            break;
        }
    }
    // One more than the limit was fetched only to learn this.
    let is_cut = contexts.len() > limit;
    contexts.truncate(limit);
    Ok(ListedContexts { contexts, is_cut })
}

async fn show_context(http: &mut Http, context: ContextName, app: &mut App) -> Result<()> {
    let context = http
        .json(Call::get(format!("/v1/contexts/{}", context.0)))
        .await?;
    print_context(&context, app)
}

/// Shows one context.
pub(super) fn print_context(context: &Value, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(context);
    }
    let labels = match lost_part(context) {
        Some(LostPart::Creation) => CREATION_LOST.to_owned(),
        _ => labels_text(context),
    };
    let pairs = [
        ("Context", format!("ctx:{}", text_of(context, "context_id"))),
        ("Head", head_text(context)),
        ("Created", date_text(text_of(context, "created_at"))),
        ("Labels", labels),
    ];
    app.out.pairs(&pairs)
}

const CREATION_LOST: &str = "unknown: its creation was lost to damage";

fn head_text(context: &Value) -> String {
    let depth = depth_text(context);
    match (text_of(context, "head_turn_id"), lost_part(context)) {
        // Its base turn, if it had one, was lost with the record.
        (NO_TURN, Some(LostPart::Creation)) => CREATION_LOST.to_owned(),
        (NO_TURN, _) => "none: the context is empty".to_owned(),
        (head, Some(LostPart::Head)) => {
            format!("turn:{head}, depth {depth}; it was lost to damage")
        }
        (head, _) => format!("turn:{head}, depth {depth}"),
    }
}

/// What damage took of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostPart {
    /// The record of its creation, with its labels and its base.
    Creation,
    /// Its newest turn.
    Head,
}

fn lost_part(context: &Value) -> Option<LostPart> {
    if is_true(context, "head_lost") {
        Some(LostPart::Head)
    } else if is_true(context, "creation_lost") {
        Some(LostPart::Creation)
    } else {
        None
    }
}

fn context_row(context: &Value) -> Vec<String> {
    let head = match (text_of(context, "head_turn_id"), lost_part(context)) {
        (NO_TURN, Some(LostPart::Creation)) => "(creation lost)".to_owned(),
        (NO_TURN, _) => "-".to_owned(),
        (head, Some(LostPart::Head)) => format!("turn:{head} (lost)"),
        (head, _) => format!("turn:{head}"),
    };
    let depth = match text_of(context, "head_turn_id") {
        NO_TURN => "-".to_owned(),
        _ => depth_text(context),
    };
    vec![
        format!("ctx:{}", text_of(context, "context_id")),
        head,
        depth,
        date_text(text_of(context, "created_at")),
        labels_text(context),
    ]
}

fn depth_text(context: &Value) -> String {
    number_of(context, "head_depth").to_string()
}

fn labels_text(context: &Value) -> String {
    let labels = context.get("labels").and_then(Value::as_object);
    let mut texts = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        texts.push(match value.as_str() {
            None | Some("") => printable(key),
            Some(value) => format!("{}={}", printable(key), printable(value)),
        });
    }
    texts.join(" ")
}
