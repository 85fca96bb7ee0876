//! `turnkeep search`: evidence by words.

use anyhow::Result;
use serde_json::{Value, json};

use super::App;
use crate::http::{Call, Http};
use crate::ledger::{Cast, acting, entries, path, tool_request};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::{date_text, text_of};
use crate::session::{Need, Session};

/// Search a world for entries, best first
///
/// Words in double quotes must occur exactly so. What is found is what the operator may see or,
/// with --as or a person's token, exactly what that person may see.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep search payments \"refund blocker\"
  turnkeep search payments '\"rounding test\"' --as CODER
  turnkeep search payments \"refund blocker\" --context 3    with what was said around it
  turnkeep search payments \"\" --from 2026-11-15T00:00:00Z      the newest since then")]
pub(crate) struct Args {
    /// The world
    world: String,
    /// The words
    words: String,
    /// With whose eyes
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
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    limit: u32,
    /// Of these, at most so many that do not match themselves but stand beside a match
    #[arg(long, value_name = "N", default_value_t = 0)]
    context: u32,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut session = Session::open(&app.config()?, Need::Read).await?;
    let answer = ask(&mut session.http, args).await;
    session.close().await;
    let (pack, cast) = answer?;
    let results = entries(&pack, "/results");
    if app.out.is_json() {
        return results.iter().try_for_each(|result| app.out.json(result));
    }
    if results.is_empty() {
        return app.out.line("nothing found");
    }
    results
        .iter()
        .try_for_each(|result| print(result, &cast, app))
}

/// Asks in the name of whoever is asked for, or of whose token it is.
async fn ask(http: &mut Http, args: &Args) -> Result<(Value, Cast)> {
    let cast = Cast::of(http, &args.world).await?;
    let by = args.by.as_ref().map(|by| cast.resolve(by)).transpose()?;
    let constraints = json!({
        "time_window": { "from": args.from, "to": args.to },
        "limit": args.limit,
        "context": args.context,
        "person_id": by,
    });
    let actor = args.person.as_ref().unwrap_or(&cast.view);
    let request = tool_request(actor, "LEDGER_SEARCH", &args.words, &constraints)?;
    let call = Call::post(path(&args.world, "/tools"), &request);
    let pack = http.json(acting(call, args.person.as_deref())).await?;
    Ok((pack, cast))
}

fn print(result: &Value, cast: &Cast, app: &mut App) -> Result<()> {
    let id = app.out.paint(Style::Id, text_of(result, "entry_id"));
    let when = app.out.paint(
        Style::Faint,
        &date_text(text_of(result, "created_at_world")),
    );
    let who = app.out.paint(
        Style::Name,
        &printable(cast.name(text_of(result, "author_id"))),
    );
    let scope = if text_of(result, "visibility_scope") == "PRIVATE" {
        " (private)"
    } else {
        ""
    };
    let is_context = result.get("context").and_then(Value::as_bool) == Some(true);
    let context = if is_context { " (beside a match)" } else { "" };
    app.out.line(format!("{id} {when} {who}{scope}{context}"))?;
    for line in text_of(result, "verbatim_excerpt").lines() {
        app.out.line(format!("    {}", printable(line)))?;
    }
    Ok(())
}
