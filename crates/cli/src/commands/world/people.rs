//! `turnkeep world person`: adds people to a world and lists them.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use crate::answer::{is_true, list_at, text_of};
use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::world_path;
use crate::output::Style;
use crate::render::printable;

/// Add people to a world, or list them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world person payments add REVIEWER --label \"The reviewer\" --alias Rev
  turnkeep world person payments add MARY --human
  turnkeep world person payments list")]
pub(crate) struct WorldPersonArgs {
    /// The world
    world: String,
    #[command(subcommand)]
    command: PersonCommand,
}

#[derive(Debug, Subcommand)]
enum PersonCommand {
    Add(PersonAddArgs),
    List(PersonListArgs),
}

/// Add a person, or change one
///
/// An option that is not given leaves an existing person as it is.
#[derive(Debug, clap::Args)]
struct PersonAddArgs {
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

/// List the added persons
#[derive(Debug, clap::Args)]
struct PersonListArgs {}

pub(super) async fn run_world_person(
    http: &mut Http,
    args: &WorldPersonArgs,
    app: &mut App,
) -> Result<()> {
    match &args.command {
        PersonCommand::Add(add) => add_person(http, &args.world, add, app).await,
        PersonCommand::List(_) => list_persons(http, &args.world, app).await,
    }
}

async fn add_person(
    http: &mut Http,
    world: &str,
    args: &PersonAddArgs,
    app: &mut App,
) -> Result<()> {
    let body = json!({
        "person_id": args.person,
        "display_label": args.label,
        // A missing field keeps what the world has. An empty list would delete the aliases.
        "aliases": Some(&args.aliases).filter(|aliases| !aliases.is_empty()),
        "identity": args.identity,
        "human": if args.human { Some(true) } else { args.not_human.then_some(false) },
    });
    let call = Call::post(world_path(world, "/persons"), &body);
    let person = http.json(call).await?;
    if app.out.is_json() {
        return app.out.json(&person);
    }
    let name = app.out.paint(Style::Name, text_of(&person, "person_id"));
    let is_human = is_true(&person, "human");
    let human = if is_human { ", a human" } else { "" };
    app.out
        .line(format!("{} has {name}{human}", printable(world)))
}

async fn list_persons(http: &mut Http, world: &str, app: &mut App) -> Result<()> {
    let answer = http.json(Call::get(world_path(world, "/persons"))).await?;
    let persons = list_at(&answer, "/persons");
    if app.out.is_json() {
        return app.out.json_lines(persons);
    }
    let rows: Vec<_> = persons.iter().map(person_row).collect();
    app.out.table(&["PERSON", "LABEL", "ALIASES", ""], &rows)
}

fn person_row(person: &Value) -> Vec<String> {
    let aliases = list_at(person, "/aliases").iter();
    let aliases: Vec<_> = aliases.filter_map(Value::as_str).map(printable).collect();
    let is_human = is_true(person, "human");
    let human = if is_human { "human" } else { "" };
    vec![
        text_of(person, "person_id").to_owned(),
        printable(text_of(person, "display_label")),
        aliases.join(", "),
        human.to_owned(),
    ]
}
