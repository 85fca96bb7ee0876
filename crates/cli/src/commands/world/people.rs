//! The people of a world.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::{entries, path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::text_of;

/// Add people to a world, or list them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world person payments add REVIEWER --label \"The reviewer\" --alias Rev
  turnkeep world person payments add MARY --human
  turnkeep world person payments list")]
pub(crate) struct Args {
    /// The world
    world: String,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Add(AddArgs),
    List(ListArgs),
}

/// Add a person, or describe one anew
///
/// What is not said of somebody who is there stays as it is.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Who: letters, digits, `_`, `.` and `-`
    person: String,
    /// What people see
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Another name by which texts call this person; may be repeated, and replaces those that were
    /// given before
    #[arg(long = "alias", value_name = "TEXT")]
    aliases: Vec<String>,
    /// One line about who this is
    #[arg(long, value_name = "TEXT")]
    identity: Option<String>,
    /// This is a human: no program may claim to be this person
    #[arg(long)]
    human: bool,
    /// This is no human
    #[arg(long, conflicts_with = "human")]
    not_human: bool,
}

/// List those who were added
#[derive(Debug, clap::Args)]
struct ListArgs {}

pub(super) async fn run(http: &mut Http, args: &Args, app: &mut App) -> Result<()> {
    match &args.what {
        What::Add(add) => self::add(http, &args.world, add, app).await,
        What::List(_) => list(http, &args.world, app).await,
    }
}

async fn add(http: &mut Http, world: &str, args: &AddArgs, app: &mut App) -> Result<()> {
    let body = json!({
        "person_id": args.person,
        "display_label": args.label,
        "aliases": Some(&args.aliases).filter(|aliases| !aliases.is_empty()),
        "identity": args.identity,
        "human": if args.human { Some(true) } else { args.not_human.then_some(false) },
    });
    let person = http
        .json(Call::post(path(world, "/persons"), &body))
        .await?;
    if app.out.is_json() {
        return app.out.json(&person);
    }
    let name = app.out.paint(Style::Name, text_of(&person, "person_id"));
    let is_human = person.get("human").and_then(Value::as_bool) == Some(true);
    let human = if is_human { ", a human" } else { "" };
    app.out
        .line(format!("{} has {name}{human}", printable(world)))
}

async fn list(http: &mut Http, world: &str, app: &mut App) -> Result<()> {
    let answer = http.json(Call::get(path(world, "/persons"))).await?;
    let persons = entries(&answer, "/persons");
    if app.out.is_json() {
        return persons.iter().try_for_each(|person| app.out.json(person));
    }
    let row = |person: &Value| {
        let aliases: Vec<_> = entries(person, "/aliases")
            .iter()
            .filter_map(Value::as_str)
            .map(printable)
            .collect();
        let human = person
            .get("human")
            .and_then(Value::as_bool)
            .unwrap_or_default();
        vec![
            text_of(person, "person_id").to_owned(),
            printable(text_of(person, "display_label")),
            aliases.join(", "),
            if human { "human" } else { "" }.to_owned(),
        ]
    };
    let rows: Vec<_> = persons.iter().map(row).collect();
    app.out.table(&["PERSON", "LABEL", "ALIASES", ""], &rows)
}
