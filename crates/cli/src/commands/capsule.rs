//! `turnkeep capsule`: shows what is written by and about a person.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::answer::{list_at, text_of};
use crate::http::{Call, Http};
use crate::ledger::{Cast, call_as, world_path};
use crate::output::Style;
use crate::render::printable;
use crate::session::{Need, StoreSession, with_store};

/// Show what is written by and about a person, verbatim
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capsule payments CODER
  turnkeep capsule payments CODER --as PLANNER --json | jq .capsule_id")]
pub(crate) struct CapsuleArgs {
    /// The world
    world: String,
    /// The person
    person: String,
    /// Read as this person [default: the operator]
    #[arg(long = "as", value_name = "PERSON")]
    reader: Option<String>,
}

pub(crate) async fn run_capsule(args: &CapsuleArgs, app: &mut App) -> Result<()> {
    let read = async |session: &mut StoreSession| read_capsule(&mut session.http, args).await;
    let capsule = with_store(&app.config()?, Need::Read, read).await?;
    if app.out.is_json() {
        return app.out.json(&capsule);
    }
    for section in list_at(&capsule, "/sections") {
        print_section(section, app)?;
    }
    Ok(())
}

async fn read_capsule(http: &mut Http, args: &CapsuleArgs) -> Result<Value> {
    // The label is resolved here, because the path needs the id.
    let person = Cast::load(http, &args.world)
        .await?
        .resolve_name(&args.person)?;
    let person = turnkeep_wire::percent_encode(&person);
    let call = Call::get(world_path(
        &args.world,
        &format!("/persons/{person}/capsule"),
    ));
    http.json(call_as(call, args.reader.as_deref())).await
}

fn print_section(section: &Value, app: &mut App) -> Result<()> {
    let text = text_of(section, "text");
    let name = match text_of(section, "name") {
        "SOURCE_EXCERPTS" if text.is_empty() => "nothing is written by or about this person",
        "SOURCE_EXCERPTS" => "as it was written",
        _ => "derived",
    };
    let name = app.out.paint(Style::Faint, name);
    app.out.line(name)?;
    text.lines()
        .try_for_each(|line| app.out.line(format!("    {}", printable(line))))
}
