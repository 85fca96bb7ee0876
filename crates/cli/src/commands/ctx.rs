//! `turnkeep ctx`: contexts, the heads of branches.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Map, Value, json};

use super::App;
use crate::failure::Failure;
use crate::http::{Call, Http, Written};
use crate::names::{ContextName, TurnName, parse_label};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::{date_text, text_of};
use crate::session::{Need, Session};

/// Make, list, show and fork contexts
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep ctx new --label agent=demo
  turnkeep ctx fork turn:7                a new branch that starts from turn 7
  turnkeep ctx list --label agent=demo
  turnkeep ctx show 1")]
pub(crate) enum Command {
    New(NewArgs),
    List(ListArgs),
    Show(ShowArgs),
    Fork(ForkArgs),
}

/// Make a context, empty or on top of a turn
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx new
  turnkeep ctx new --base turn:7 --label task=review")]
pub(crate) struct NewArgs {
    /// The turn to start from
    #[arg(long, value_name = "TURN")]
    base: Option<TurnName>,
    #[command(flatten)]
    with: WithArgs,
}

/// Make a context that starts from a turn; nothing is copied
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep ctx fork turn:7
  turnkeep ctx fork 7 --key retry-safe-1")]
pub(crate) struct ForkArgs {
    /// The turn to start from
    #[arg(value_name = "TURN")]
    base: TurnName,
    #[command(flatten)]
    with: WithArgs,
}

#[derive(Debug, clap::Args)]
struct WithArgs {
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
pub(crate) struct ListArgs {
    /// Only contexts with this label: KEY or KEY=VALUE
    #[arg(long, value_name = "KEY[=VALUE]")]
    label: Option<String>,
    /// At most so many
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
pub(crate) struct ShowArgs {
    /// The context
    context: ContextName,
}

pub(crate) async fn run(command: &Command, app: &mut App) -> Result<()> {
    let need = match command {
        Command::New(_) => Need::Write,
        // The turn to start from is in a store already.
        Command::Fork(_) => Need::Change,
        Command::List(_) | Command::Show(_) => Need::Read,
    };
    let mut session = Session::open(&app.config()?, need).await?;
    let done = match command {
        Command::New(args) => create(&mut session.http, args.base, &args.with, app).await,
        Command::Fork(args) => create(&mut session.http, Some(args.base), &args.with, app).await,
        Command::List(args) => list(&mut session.http, args, app).await,
        Command::Show(args) => show(&mut session.http, args.context, app).await,
    };
    session.close().await;
    done
}

async fn create(
    http: &mut Http,
    base: Option<TurnName>,
    with: &WithArgs,
    app: &mut App,
) -> Result<()> {
    let mut body = json!({ "base_turn_id": base.map(|base| base.0.to_string()) });
    if !with.labels.is_empty() {
        body["labels"] = Value::Object(labels_of(&with.labels)?);
    }
    if let Some(key) = &with.key {
        body["idempotency_key"] = key.as_str().into();
    }
    let Written {
        answer: context,
        replayed,
        ..
    } = http.write(Call::post("/v1/contexts", &body)).await?;
    if app.out.is_json() {
        return app.out.json(&context);
    }
    let id = app.out.paint(
        Style::Name,
        &format!("ctx:{}", text_of(&context, "context_id")),
    );
    let done = if replayed {
        "already created"
    } else {
        "created"
    };
    match text_of(&context, "head_turn_id") {
        "0" => app.out.line(format!("{done} {id}")),
        head if replayed => app.out.line(format!("{done} {id}, now at turn:{head}")),
        head => app.out.line(format!("{done} {id} from turn:{head}")),
    }
}

fn labels_of(given: &[(String, String)]) -> Result<Map<String, Value>> {
    let mut labels = Map::new();
    for (key, value) in given {
        if labels.insert(key.clone(), value.as_str().into()).is_some() {
            return Err(Failure::usage(format!("the label `{key}` is given twice")).into());
        }
    }
    Ok(labels)
}

async fn list(http: &mut Http, args: &ListArgs, app: &mut App) -> Result<()> {
    let worlds = if args.all {
        Worlds::Listed
    } else {
        Worlds::LeftOut
    };
    let Listed { contexts, is_cut } =
        fetch_contexts(http, args.label.as_deref(), worlds, args.limit).await?;
    if app.out.is_json() {
        contexts
            .iter()
            .try_for_each(|context| app.out.json(context))?;
    } else {
        let rows: Vec<_> = contexts.iter().map(row).collect();
        app.out
            .table(&["CONTEXT", "HEAD", "DEPTH", "CREATED", "LABELS"], &rows)?;
    }
    // Beside the list, so that a program that reads it gets contexts and nothing else.
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
pub(super) enum Worlds {
    Listed,
    LeftOut,
}

/// Contexts, newest first.
pub(super) struct Listed {
    pub(super) contexts: Vec<Value>,
    /// Whether there are more than were asked for.
    pub(super) is_cut: bool,
}

/// Reads pages of contexts until there are `limit`, and one more to know whether the list is cut.
pub(super) async fn fetch_contexts(
    http: &mut Http,
    label: Option<&str>,
    worlds: Worlds,
    limit: usize,
) -> Result<Listed> {
    const PAGE: usize = 1000;
    let mut contexts = Vec::new();
    let mut cursor: Option<String> = None;
    while contexts.len() <= limit {
        let mut call = Call::get("/v1/contexts").query(
            "limit",
            PAGE.min((limit - contexts.len()).saturating_add(1)),
        );
        if worlds == Worlds::LeftOut {
            call = call.query("worlds", 0);
        }
        if let Some(label) = label {
            call = call.query("label", label);
        }
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let mut page = http.json(call).await?;
        if let Some(Value::Array(found)) = page.get_mut("contexts").map(Value::take) {
            contexts.extend(found);
        }
        cursor = page
            .get("next_cursor")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    let is_cut = contexts.len() > limit;
    contexts.truncate(limit);
    Ok(Listed { contexts, is_cut })
}

async fn show(http: &mut Http, context: ContextName, app: &mut App) -> Result<()> {
    let context = http
        .json(Call::get(format!("/v1/contexts/{}", context.0)))
        .await?;
    print(&context, app)
}

/// Shows one context.
pub(super) fn print(context: &Value, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(context);
    }
    let head = match (text_of(context, "head_turn_id"), lost_part(context)) {
        ("0", Some(LostPart::Creation)) => "unknown: its creation was lost to damage".to_owned(),
        ("0", _) => "none: the context is empty".to_owned(),
        (head, Some(LostPart::Head)) => {
            format!(
                "turn:{head}, depth {}; it was lost to damage",
                depth(context)
            )
        }
        (head, _) => format!("turn:{head}, depth {}", depth(context)),
    };
    let labels = match lost_part(context) {
        Some(LostPart::Creation) => "unknown: its creation was lost to damage".to_owned(),
        _ => labels(context),
    };
    let pairs = [
        ("Context", format!("ctx:{}", text_of(context, "context_id"))),
        ("Head", head),
        ("Created", date_text(text_of(context, "created_at"))),
        ("Labels", labels),
    ];
    app.out.pairs(&pairs)
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
    let is = |name: &str| context.get(name).and_then(Value::as_bool) == Some(true);
    if is("head_lost") {
        Some(LostPart::Head)
    } else if is("creation_lost") {
        Some(LostPart::Creation)
    } else {
        None
    }
}

fn row(context: &Value) -> Vec<String> {
    let (head, depth) = match (text_of(context, "head_turn_id"), lost_part(context)) {
        ("0", Some(LostPart::Creation)) => ("(creation lost)".to_owned(), "-".to_owned()),
        ("0", _) => ("-".to_owned(), "-".to_owned()),
        (head, Some(LostPart::Head)) => (format!("turn:{head} (lost)"), depth(context)),
        (head, _) => (format!("turn:{head}"), depth(context)),
    };
    let created = date_text(text_of(context, "created_at"));
    vec![
        format!("ctx:{}", text_of(context, "context_id")),
        head,
        depth,
        created,
        labels(context),
    ]
}

fn depth(context: &Value) -> String {
    context
        .get("head_depth")
        .and_then(Value::as_u64)
        .unwrap_or_default()
        .to_string()
}

fn labels(context: &Value) -> String {
    let labels = context.get("labels").and_then(Value::as_object);
    let pairs = labels.into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        if value.is_empty() {
            printable(key)
        } else {
            format!("{}={}", printable(key), printable(value))
        }
    });
    pairs.collect::<Vec<_>>().join(" ")
}
