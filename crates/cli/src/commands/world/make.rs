//! Worlds: made, listed, shown and forked.

use anyhow::Result;
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::commands::App;
use crate::http::{Call, Http};
use crate::ledger::{entries, path};
use crate::output::Style;
use crate::render::printable;
use crate::render::turn::{date_text, text_of};

/// Make a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world new payments --person PLANNER --person CODER
  turnkeep world new story --profile narrative
  turnkeep world new play --profile narrative --writer \"cmd: ./writer.py\"")]
pub(crate) struct NewArgs {
    /// Its name
    world: String,
    /// workspace: time is the clock's, only those who were added are persons; narrative: time moves
    /// by a second a beat, whoever is named is a person
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
pub(crate) struct ListArgs {}

/// Show a world
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world show payments
  turnkeep world show payments --json | jq .persons")]
pub(crate) struct ShowArgs {
    /// The world
    world: String,
}

/// Make a world that shares another's past; nothing is copied
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep world fork payments payments-2
  turnkeep world fork payments what-if --at 2026-11-15T09:00:00Z")]
pub(crate) struct ForkArgs {
    /// The world
    world: String,
    /// The new one's name
    new: String,
    /// Up to when: a time, or a cursor of the operator's [default: now]
    #[arg(long, value_name = "TIME|CURSOR")]
    at: Option<String>,
}

pub(super) async fn new(http: &mut Http, args: &NewArgs, app: &mut App) -> Result<()> {
    let persons: Vec<_> = args
        .persons
        .iter()
        .map(|person| json!({ "person_id": person }))
        .collect();
    let profile = if args.profile == Profile::Narrative {
        "NARRATIVE"
    } else {
        "WORKSPACE"
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
    made(&world, app)
}

pub(super) async fn fork(http: &mut Http, args: &ForkArgs, app: &mut App) -> Result<()> {
    let body = json!({ "world_id": args.new, "at": args.at });
    let world = http
        .json(Call::post(path(&args.world, "/fork"), &body))
        .await?;
    made(&world, app)?;
    if args.at.is_some() {
        let page = http
            .json(Call::get(path(&args.new, "/stream")).query("limit", 1))
            .await;
        if page.is_ok_and(|page| entries(&page, "/stream/entries").is_empty()) {
            eprintln!("note: nothing that the operator may see is from before then");
        }
    }
    Ok(())
}

fn made(world: &Value, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        return app.out.json(world);
    }
    let name = app.out.paint(Style::Name, text_of(world, "world_id"));
    let past = world
        .pointer("/forked_from/world_id")
        .and_then(Value::as_str);
    app.out.line(past.map_or_else(
        || format!("made {name}"),
        |past| format!("made {name} from {past}"),
    ))
}

pub(super) async fn list(http: &mut Http, _: &ListArgs, app: &mut App) -> Result<()> {
    let answer = http.json(Call::get("/v1/worlds")).await?;
    let worlds = entries(&answer, "/worlds");
    if app.out.is_json() {
        return worlds.iter().try_for_each(|world| app.out.json(world));
    }
    let rows: Vec<_> = worlds.iter().map(row).collect();
    app.out
        .table(&["WORLD", "PROFILE", "PEOPLE", "WRITER", "TIME"], &rows)
}

fn row(world: &Value) -> Vec<String> {
    vec![
        text_of(world, "world_id").to_owned(),
        text_of(world, "profile").to_lowercase(),
        entries(world, "/persons").len().to_string(),
        printable(text_of(world, "writer")),
        time(world),
    ]
}

fn time(world: &Value) -> String {
    let clock = world.get("world_time").unwrap_or(&Value::Null);
    let paused = if clock.get("paused").and_then(Value::as_bool) == Some(true) {
        ", paused"
    } else {
        ""
    };
    format!("{}{paused}", date_text(text_of(clock, "time")))
}

pub(super) async fn show(http: &mut Http, args: &ShowArgs, app: &mut App) -> Result<()> {
    let world = http.json(Call::get(path(&args.world, ""))).await?;
    if app.out.is_json() {
        return app.out.json(&world);
    }
    let people: Vec<_> = entries(&world, "/persons")
        .iter()
        .map(|person| text_of(person, "person_id"))
        .collect();
    let mut pairs = vec![
        ("World", text_of(&world, "world_id").to_owned()),
        ("Profile", text_of(&world, "profile").to_lowercase()),
        ("Clock", text_of(&world, "clock").to_lowercase()),
        ("Registry", text_of(&world, "registry").to_lowercase()),
        (
            "Time",
            format!("{} ({})", time(&world), text_of(&world, "timezone")),
        ),
        ("Operator", printable(text_of(&world, "operator_label"))),
        ("Writer", printable(text_of(&world, "writer"))),
        ("People", people.join(", ")),
    ];
    if let Some(past) = world
        .pointer("/forked_from/world_id")
        .and_then(Value::as_str)
    {
        pairs.push(("Forked from", past.to_owned()));
    }
    if let Some(anew) = rehydrations(&world) {
        pairs.push(("Rehydrations", anew));
    }
    app.out.pairs(&pairs)
}

/// How often the attached writer was full, and what the last one that began anew was told.
fn rehydrations(world: &Value) -> Option<String> {
    let number = |path: &str| {
        world
            .pointer(&format!("/rehydrations/{path}"))
            .and_then(Value::as_u64)
    };
    let (carried, dropped) = (
        number("last/carried_entries")?,
        number("last/dropped_entries")?,
    );
    Some(format!(
        "{}, the last carried {carried} entries and dropped {dropped}",
        number("count")?
    ))
}
