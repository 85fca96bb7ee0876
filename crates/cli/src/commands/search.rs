//! `turnkeep search`: finds a world's entries by words.

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use crate::answer::{is_true, list_at, text_of};
use crate::http::{Call, Http};
use crate::ledger::{Cast, call_as, tool_request, world_path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::date_text;
use crate::session::{Need, StoreSession, with_store};

/// Search a world for entries, best first
///
/// Words in double quotes must occur exactly as written. The search covers what the operator may see
/// or, with --as or a person's token, exactly what that person may see.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep search payments \"refund blocker\"
  turnkeep search payments '\"rounding test\"' --as CODER
  turnkeep search payments \"refund blocker\" --context 3    with what was said around it
  turnkeep search payments \"\" --from 2026-11-15T00:00:00Z      the newest since then")]
pub(crate) struct SearchArgs {
    /// The world
    world: String,
    /// The words
    words: String,
    /// Read as this person
    #[arg(long = "as", value_name = "PERSON")]
    person: Option<String>,
    /// Only what this person wrote
    #[arg(long, value_name = "PERSON")]
    by: Option<String>,
    /// Not before this time
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// At most this many entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: u32,
    /// Of these, at most this many that do not match but are next to a match
    #[arg(long, value_name = "N", default_value_t = 0)]
    context: u32,
}

pub(crate) async fn run_search(args: &SearchArgs, app: &mut App) -> Result<()> {
    let search = async |session: &mut StoreSession| search_world(&mut session.http, args).await;
    let SearchAnswer { pack, cast } = with_store(&app.config()?, Need::Read, search).await?;
    let results = list_at(&pack, "/results");
    if app.out.is_json() {
        return app.out.json_lines(results);
    }
    if results.is_empty() {
        return app.out.line("nothing found");
    }
    results
        .iter()
        .try_for_each(|result| print_result(result, &cast, app))
}

/// The evidence pack that the world returned, and the people in that world.
struct SearchAnswer {
    pack: Value,
    cast: Cast,
}

/// Searches as the person of `--as`, or else as the person whose token it is.
async fn search_world(http: &mut Http, args: &SearchArgs) -> Result<SearchAnswer> {
    let cast = Cast::load(http, &args.world).await?;
    let by = match &args.by {
        Some(by) => Some(cast.resolve_name(by)?),
        None => None,
    };
    let constraints = json!({
        "time_window": { "from": args.from, "to": args.to },
        "limit": args.limit,
        "context": args.context,
        "person_id": by,
    });
    let actor = args.person.as_ref().unwrap_or(&cast.view);
    let request = tool_request(actor, "LEDGER_SEARCH", &args.words, &constraints)?;
    let call = Call::post(world_path(&args.world, "/tools"), &request);
    let pack = http.json(call_as(call, args.person.as_deref())).await?;
    Ok(SearchAnswer { pack, cast })
}

fn print_result(result: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    let id = app.out.paint(Style::Id, text_of(result, "entry_id"));
    let when = date_text(text_of(result, "created_at_world"));
    let when = app.out.paint(Style::Faint, &when);
    let who = printable(cast.display_name(text_of(result, "author_id")));
    let who = app.out.paint(Style::Name, &who);
    let is_private = text_of(result, "visibility_scope") == "PRIVATE";
    let scope = if is_private { " (private)" } else { "" };
    let is_context = is_true(result, "context");
    let context = if is_context { " (beside a match)" } else { "" };
    app.out.line(format!("{id} {when} {who}{scope}{context}"))?;
    for line in text_of(result, "verbatim_excerpt").lines() {
        app.out.line(format!("    {}", printable(line)))?;
    }
    Ok(())
}
