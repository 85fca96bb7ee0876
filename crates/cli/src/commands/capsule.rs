//! `turnkeep capsule`: what there is to read about a person.

use anyhow::Result;
use serde_json::Value;

use super::App;
use crate::http::{Call, Http};
use crate::ledger::{Cast, acting, entries, path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::text_of;
use crate::session::{Need, Session};

/// Show what is written by and about a person, verbatim
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep capsule payments CODER
  turnkeep capsule payments CODER --as PLANNER --json | jq .capsule_id")]
pub(crate) struct Args {
    /// The world
    world: String,
    /// About whom
    person: String,
    /// With whose eyes [default: the operator's]
    #[arg(long = "as", value_name = "PERSON")]
    reader: Option<String>,
}

pub(crate) async fn run(args: &Args, app: &mut App) -> Result<()> {
    let mut session = Session::open(&app.config()?, Need::Read).await?;
    let capsule = read_capsule(&mut session.http, args).await;
    session.close().await;
    let capsule = capsule?;
    if app.out.is_json() {
        return app.out.json(&capsule);
    }
    for section in entries(&capsule, "/sections") {
        print(section, app)?;
    }
    Ok(())
}

async fn read_capsule(http: &mut Http, args: &Args) -> Result<Value> {
    let person = Cast::of(http, &args.world).await?.resolve(&args.person)?;
    let person = turnkeep_wire::percent_encode(&person);
    let call = Call::get(path(&args.world, &format!("/persons/{person}/capsule")));
    http.json(acting(call, args.reader.as_deref())).await
}

fn print(section: &Value, app: &mut App) -> Result<()> {
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
