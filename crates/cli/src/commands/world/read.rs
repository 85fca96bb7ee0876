//! Who knew what, what was done, and everything at once.

use anyhow::Result;
use serde_json::Value;

use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::{Cast, OPERATOR, entries, path, print_entry};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::{date_text, text_of};

/// The most entries that the server shows of what somebody knew.
const KNEW_MAX: usize = 500;

/// Show what a person could see, and what somebody else could see instead
///
/// Answers "why did B not know X": with --vs it shows each entry that only one of the two could
/// see, and whom it was addressed to. It reads past what the operator may see, so it leaves a line
/// in the audit. A person's token shows that person's own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world knew payments CODER
  turnkeep world knew payments CODER --at 2026-11-15T09:00:00Z
  turnkeep world knew payments CODER --vs PLANNER")]
pub(crate) struct KnewArgs {
    /// The world
    world: String,
    /// Who; the operator by label, or as GEORGE
    person: String,
    /// When: a time, or a cursor of that person's [default: now]
    #[arg(long, value_name = "TIME|CURSOR")]
    at: Option<String>,
    /// Compared with whom
    #[arg(long, value_name = "PERSON")]
    vs: Option<String>,
    /// At most so many entries, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show what was done with a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world audit payments
  turnkeep world audit payments --json | jq 'select(.what == \"acting-as\")'")]
pub(crate) struct AuditArgs {
    /// The world
    world: String,
}

/// Write every entry of a world as JSON lines, whoever may see it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world export payments > payments.jsonl")]
pub(crate) struct ExportArgs {
    /// The world
    world: String,
}

pub(super) async fn knew(http: &mut Http, args: &KnewArgs, app: &mut App) -> Result<()> {
    let cast = Cast::of(http, &args.world).await?;
    let id = cast.resolve(&args.person)?;
    let vs = args.vs.as_ref().map(|vs| cast.resolve(vs)).transpose()?;
    let person = turnkeep_wire::percent_encode(&id);
    let mut call = Call::get(path(&args.world, &format!("/views/{person}")));
    call = call.query("limit", args.limit.max(1));
    // What a person could see itself it may ask without being the owner.
    if !http.is_a_person() {
        call = call.query("audit", 1);
    }
    for (name, value) in [("as_of", &args.at), ("vs", &vs)] {
        if let Some(value) = value {
            call = call.query(name, value);
        }
    }
    let answer = http.json(call).await?;
    if app.out.is_json() {
        return app.out.json(&answer);
    }
    match &vs {
        None => seen(&answer, &id, &cast, app)?,
        Some(other) => difference(&answer, &id, other, &cast, app)?,
    }
    if answer.get("complete").and_then(Value::as_bool) == Some(false) {
        let more = args.limit.saturating_mul(2).clamp(2, KNEW_MAX);
        let how = if args.limit < KNEW_MAX {
            format!("-n {more}")
        } else {
            "--at TIME".to_owned()
        };
        app.out
            .line(format!("only the newest are shown: {how} shows more"))?;
    }
    Ok(())
}

fn seen(answer: &Value, person: &str, cast: &Cast, app: &mut App) -> Result<()> {
    let count = answer
        .get("count")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let noun = if count == 1 { "entry" } else { "entries" };
    app.out.line(format!(
        "{} could see {count} {noun}",
        printable(cast.name(person))
    ))?;
    entries(answer, "/entries")
        .iter()
        .try_for_each(|entry| print_entry(entry, cast, &mut app.out))
}

fn difference(answer: &Value, person: &str, other: &str, cast: &Cast, app: &mut App) -> Result<()> {
    for (list, has, lacks) in [("/only_vs", other, person), ("/only_view", person, other)] {
        let only = entries(answer, list);
        let (has, lacks) = (printable(cast.name(has)), printable(cast.name(lacks)));
        if only.is_empty() {
            app.out
                .line(format!("{has} could see nothing that {lacks} could not"))?;
            continue;
        }
        app.out
            .line(format!("{has} could see, and {lacks} could not:"))?;
        only.iter()
            .try_for_each(|entry| print_entry(entry, cast, &mut app.out))?;
    }
    Ok(())
}

pub(super) async fn audit(http: &mut Http, args: &AuditArgs, app: &mut App) -> Result<()> {
    let cast = Cast::of(http, &args.world).await?;
    let mut cursor: Option<String> = None;
    loop {
        let mut call = Call::get(path(&args.world, "/audit/lines"));
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = http.json(call).await?;
        for line in entries(&page, "/lines") {
            print_line(line, &cast, app)?;
        }
        cursor = page
            .get("next_cursor")
            .and_then(Value::as_str)
            .map(str::to_owned);
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// How the audit names the owner, who is the operator.
const OWNER_PRINCIPAL: &str = "owner";

fn print_line(line: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(line);
    }
    let when = app.out.paint(Style::Faint, &date_text(text_of(line, "at")));
    let what = app.out.paint(Style::Name, text_of(line, "what"));
    let who = match text_of(line, "principal") {
        OWNER_PRINCIPAL => cast.name(OPERATOR),
        principal => principal,
    };
    let mut details = line.get("details").cloned().unwrap_or_default();
    name_operator(&mut details, cast);
    app.out.line(format!(
        "{when} {} {what} {}",
        printable(who),
        printable(&details.to_string())
    ))
}

/// Replaces the operator's id by the label, also as a part of a path such as `/views/GEORGE`.
fn name_operator(details: &mut Value, cast: &Cast) {
    match details {
        Value::String(text) => {
            let parts: Vec<&str> = text.split('/').map(|part| cast.name(part)).collect();
            *text = parts.join("/");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_operator(item, cast)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| name_operator(field, cast)),
        _ => {}
    }
}

pub(super) async fn export(http: &mut Http, args: &ExportArgs, app: &mut App) -> Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let mut call = Call::get(path(&args.world, "/stream")).query("audit", 1);
        if let Some(cursor) = &cursor {
            call = call.query("cursor", cursor);
        }
        let page = http.json(call).await?;
        let entries = entries(&page, "/stream/entries");
        if entries.is_empty() {
            return Ok(());
        }
        entries.iter().try_for_each(|entry| app.out.json(entry))?;
        cursor = page
            .pointer("/stream/cursor_after")
            .and_then(Value::as_str)
            .map(str::to_owned);
    }
}
