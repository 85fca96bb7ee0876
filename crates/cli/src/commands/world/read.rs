//! `turnkeep world knew`, `audit` and `export`: who could see what, what was done, and every entry.

use anyhow::Result;
use serde_json::Value;

use crate::answer::{list_at, number_of, text_at, text_of};
use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::{Cast, OPERATOR, print_entries, world_path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::date_text;

/// The most entries of a view that the server returns.
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
pub(crate) struct WorldKnewArgs {
    /// The world
    world: String,
    /// The person; the operator by label, or as GEORGE
    person: String,
    /// When: a time, or a cursor of that person's [default: now]
    #[arg(long, value_name = "TIME|CURSOR")]
    at: Option<String>,
    /// Compared with whom
    #[arg(long, value_name = "PERSON")]
    vs: Option<String>,
    /// At most this many entries, the newest
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: usize,
}

/// Show what was done with a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world audit payments
  turnkeep world audit payments --json | jq 'select(.what == \"acting-as\")'")]
pub(crate) struct WorldAuditArgs {
    /// The world
    world: String,
}

/// Write every entry of a world as JSON lines, whoever may see it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world export payments > payments.jsonl")]
pub(crate) struct WorldExportArgs {
    /// The world
    world: String,
}

pub(super) async fn run_world_knew(
    http: &mut Http,
    args: &WorldKnewArgs,
    app: &mut App,
) -> Result<()> {
    let cast = Cast::load(http, &args.world).await?;
    let id = cast.resolve_name(&args.person)?;
    let vs = match &args.vs {
        Some(vs) => Some(cast.resolve_name(vs)?),
        None => None,
    };
    let call = view_call(http, args, &id, vs.as_deref());
    let answer = http.json(call).await?;
    if app.out.is_json() {
        return app.out.json(&answer);
    }
    match &vs {
        None => print_seen(&answer, &id, &cast, app)?,
        Some(other) => print_difference(&answer, &id, other, &cast, app)?,
    }
    if answer.get("complete") == Some(&Value::Bool(false)) {
        app.out.line(more_text(args.limit))?;
    }
    Ok(())
}

/// The request for a person's view, compared with that of another person if one is given.
fn view_call(http: &Http, args: &WorldKnewArgs, id: &str, vs: Option<&str>) -> Call {
    let person = turnkeep_wire::percent_encode(id);
    // The owner reads past what the operator may see, which the server allows and records only if
    // it is asked to. A person's token needs no such permission for that person's own view.
    let audit = (!http.has_person_token()).then_some(1);
    Call::get(world_path(&args.world, &format!("/views/{person}")))
        .query("limit", args.limit.max(1))
        .query_if("audit", audit)
        .query_if("as_of", args.at.as_ref())
        .query_if("vs", vs)
}

/// How to see more than the newest entries: a higher limit as long as the server allows one, then
/// an earlier time.
fn more_text(limit: usize) -> String {
    if limit < KNEW_MAX {
        let more = limit.saturating_mul(2).clamp(2, KNEW_MAX);
        format!("only the newest are shown: -n {more} shows more")
    } else {
        "only the newest are shown: --at TIME shows more".to_owned()
    }
}

fn print_seen(answer: &Value, person: &str, cast: &Cast, app: &mut App) -> Result<()> {
    let count = number_of(answer, "count");
    let noun = if count == 1 { "entry" } else { "entries" };
    app.out.line(format!(
        "{} could see {count} {noun}",
        printable(cast.display_name(person))
    ))?;
    print_entries(list_at(answer, "/entries"), cast, &mut app.out)
}

fn print_difference(
    answer: &Value,
    person: &str,
    other: &str,
    cast: &Cast,
    app: &mut App,
) -> Result<()> {
    let person = printable(cast.display_name(person));
    let other = printable(cast.display_name(other));
    // The other's entries come first: they are what the person did not know.
    let head = OnlyOne {
        has: &other,
        lacks: &person,
    };
    head.print(list_at(answer, "/only_vs"), cast, app)?;
    let head = OnlyOne {
        has: &person,
        lacks: &other,
    };
    head.print(list_at(answer, "/only_view"), cast, app)
}

/// Two readers, of whom one could see entries that the other could not.
struct OnlyOne<'a> {
    has: &'a str,
    lacks: &'a str,
}

impl OnlyOne<'_> {
    fn print(&self, entries: &[Value], cast: &Cast, app: &mut App) -> Result<()> {
        let Self { has, lacks } = self;
        let head = if entries.is_empty() {
            format!("{has} could see nothing that {lacks} could not")
        } else {
            format!("{has} could see, and {lacks} could not:")
        };
        app.out.line(head)?;
        print_entries(entries, cast, &mut app.out)
    }
}

pub(super) async fn run_world_audit(
    http: &mut Http,
    args: &WorldAuditArgs,
    app: &mut App,
) -> Result<()> {
    let cast = Cast::load(http, &args.world).await?;
    let mut cursor: Option<String> = None;
    loop {
        let call =
            Call::get(world_path(&args.world, "/audit/lines")).query_if("cursor", cursor.as_ref());
        let page = http.json(call).await?;
        for line in list_at(&page, "/lines") {
            print_audit_line(line, &cast, app)?;
        }
        cursor = text_at(&page, "/next_cursor");
        if cursor.is_none() {
            return Ok(());
        }
    }
}

/// How the audit names the owner, who is the operator.
const OWNER_PRINCIPAL: &str = "owner";

fn print_audit_line(line: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(line);
    }
    let when = app.out.paint(Style::Faint, &date_text(text_of(line, "at")));
    let what = app.out.paint(Style::Name, text_of(line, "what"));
    let who = match text_of(line, "principal") {
        OWNER_PRINCIPAL => cast.display_name(OPERATOR),
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
            let parts = text.split('/').map(|part| cast.display_name(part));
            *text = parts.collect::<Vec<_>>().join("/");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_operator(item, cast)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| name_operator(field, cast)),
        _ => {}
    }
}

pub(super) async fn run_world_export(
    http: &mut Http,
    args: &WorldExportArgs,
    app: &mut App,
) -> Result<()> {
    let mut cursor: Option<String> = None;
    loop {
        let call = Call::get(world_path(&args.world, "/stream"))
            .query("audit", 1)
            .query_if("cursor", cursor.as_ref());
        let page = http.json(call).await?;
        let entries = list_at(&page, "/stream/entries");
        if entries.is_empty() {
            return Ok(());
        }
        app.out.json_lines(entries)?;
        cursor = text_at(&page, "/stream/cursor_after");
    }
}
