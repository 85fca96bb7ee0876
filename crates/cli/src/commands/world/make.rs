//! `turnkeep world new`, `list`, `show` and `fork`.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::answer::{is_true, list_at, text_at, text_of};
use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::world_path;
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::date_text;

/// Make a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world new payments --person PLANNER --person CODER
  turnkeep world new story --profile narrative
  turnkeep world new play --profile narrative --writer \"cmd: ./writer.py\"")]
pub(crate) struct WorldNewArgs {
    /// Its name
    world: String,
    /// workspace: time is the real time, and only added persons exist; narrative: each beat takes a
    /// second, and whoever is named becomes a person
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    profile: Profile,
    /// Somebody who may write and be written to; may be repeated
    #[arg(long = "person", value_name = "PERSON")]
    persons: Vec<String>,
    /// What people see of the operator
    #[arg(long, value_name = "TEXT")]
    operator_label: Option<String>,
    /// The zone in which local times are meant, such as Europe/Berlin
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Who is asked when the operator speaks: silence, or `cmd: PROGRAM ARGUMENTS`
    #[arg(long, value_name = "WRITER")]
    writer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Profile {
    Narrative,
    #[default]
    Workspace,
}

/// List the worlds
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world list
  turnkeep world list --json | jq -r .world_id")]
pub(crate) struct WorldListArgs {}

/// Show a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world show payments
  turnkeep world show payments --json | jq .persons")]
pub(crate) struct WorldShowArgs {
    /// The world
    world: String,
}

/// Make a world that shares another's past; nothing is copied
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world fork payments payments-2
  turnkeep world fork payments what-if --at 2026-11-15T09:00:00Z")]
pub(crate) struct WorldForkArgs {
    /// The world
    world: String,
    /// The new one's name
    new: String,
    /// Up to when: a time, or a cursor of the operator's [default: now]
    #[arg(long, value_name = "TIME|CURSOR")]
    at: Option<String>,
}

pub(super) async fn run_world_new(
    http: &mut Http,
    args: &WorldNewArgs,
    app: &mut App,
) -> Result<()> {
    let persons = args.persons.iter();
    let persons: Vec<_> = persons
        .map(|person| json!({ "person_id": person }))
        .collect();
    // The wire form is in capitals, the flag in lower case.
    let profile = match args.profile {
        Profile::Narrative => "NARRATIVE",
        Profile::Workspace => "WORKSPACE",
    };
    let body = json!({
        "world_id": args.world,
        "profile": profile,
        "persons": persons,
        "operator_label": args.operator_label,
        "timezone": args.timezone,
        "writer": args.writer,
    });
    let world = http.json(Call::post("/v1/worlds", &body)).await?;
    print_made(&world, app)
}

pub(super) async fn run_world_fork(
    http: &mut Http,
    args: &WorldForkArgs,
    app: &mut App,
) -> Result<()> {
    let body = json!({ "world_id": args.new, "at": args.at });
    let call = Call::post(world_path(&args.world, "/fork"), &body);
    let world = http.json(call).await?;
    print_made(&world, app)?;
    // A time before the first entry is a likely mistake, and the fork itself succeeds.
    if args.at.is_some() && is_empty_world(http, &args.new).await {
        eprintln!("note: nothing that the operator may see is from before then");
    }
    Ok(())
}

/// Whether the operator sees nothing in a world. Counts as false if the server does not answer.
async fn is_empty_world(http: &mut Http, world: &str) -> bool {
    let call = Call::get(world_path(world, "/stream")).query("limit", 1);
    let page = http.json(call).await;
    page.is_ok_and(|page| list_at(&page, "/stream/entries").is_empty())
}

fn print_made(world: &Value, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(world);
    }
    let name = app.out.paint(Style::Name, text_of(world, "world_id"));
    let line = match text_at(world, "/forked_from/world_id") {
        Some(past) => format!("made {name} from {past}"),
        None => format!("made {name}"),
    };
    app.out.line(line)
}

pub(super) async fn run_world_list(
    http: &mut Http,
    _: &WorldListArgs,
    app: &mut App,
) -> Result<()> {
    let answer = http.json(Call::get("/v1/worlds")).await?;
    let worlds = list_at(&answer, "/worlds");
    if app.out.is_json() {
        return app.out.json_lines(worlds);
    }
    let rows: Vec<_> = worlds.iter().map(world_row).collect();
    app.out
        .table(&["WORLD", "PROFILE", "PEOPLE", "WRITER", "TIME"], &rows)
}

fn world_row(world: &Value) -> Vec<String> {
    vec![
        text_of(world, "world_id").to_owned(),
        text_of(world, "profile").to_lowercase(),
        list_at(world, "/persons").len().to_string(),
        printable(text_of(world, "writer")),
        time_text(world),
    ]
}

fn time_text(world: &Value) -> String {
    let clock = world.get("world_time").unwrap_or(&Value::Null);
    let paused = if is_true(clock, "paused") {
        ", paused"
    } else {
        ""
    };
    format!("{}{paused}", date_text(text_of(clock, "time")))
}

pub(super) async fn run_world_show(
    http: &mut Http,
    args: &WorldShowArgs,
    app: &mut App,
) -> Result<()> {
    let world = http.json(Call::get(world_path(&args.world, ""))).await?;
    if app.out.is_json() {
        return app.out.json(&world);
    }
    app.out.pairs(&world_pairs(&world))
}

fn world_pairs(world: &Value) -> Vec<(&'static str, String)> {
    let people: Vec<_> = list_at(world, "/persons")
        .iter()
        .map(|person| text_of(person, "person_id"))
        .collect();
    let time = format!("{} ({})", time_text(world), text_of(world, "timezone"));
    let mut pairs = vec![
        ("World", text_of(world, "world_id").to_owned()),
        ("Profile", text_of(world, "profile").to_lowercase()),
        ("Clock", text_of(world, "clock").to_lowercase()),
        ("Registry", text_of(world, "registry").to_lowercase()),
        ("Time", time),
        ("Operator", printable(text_of(world, "operator_label"))),
        ("Writer", printable(text_of(world, "writer"))),
        ("People", people.join(", ")),
    ];
    let forked_from = text_at(world, "/forked_from/world_id");
    pairs.extend(forked_from.map(|past| ("Forked from", past)));
    pairs.extend(rehydrations_text(world).map(|text| ("Rehydrations", text)));
    pairs
}

/// How often the attached writer was restarted because its context was full, and how much of the
/// history the last restart carried over.
fn rehydrations_text(world: &Value) -> Option<String> {
    let rehydrations = world.get("rehydrations")?;
    let number = |pointer: &str| rehydrations.pointer(pointer)?.as_u64();
    let count = number("/count")?;
    let carried = number("/last/carried_entries")?;
    let dropped = number("/last/dropped_entries")?;
    Some(format!(
        "{count}, the last carried {carried} entries and dropped {dropped}"
    ))
}
