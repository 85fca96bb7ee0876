//! `turnkeep registry`: publishes and shows the descriptions of types.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bytes::Bytes;
use clap::Subcommand;
use hyper::StatusCode;
use serde_json::{Value, json};
use turnkeep_types::TypeRef;
use turnkeep_wire::percent_encode;

use super::App;
use crate::answer::{list_at, text_of};
use crate::failure::Failure;
use crate::http::{Call, Http};
use crate::render::printable;
use crate::session::{Need, StoreSession, input_name, read_input, with_store};

/// Publish and read type descriptions
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep registry put bundle.json
  turnkeep registry types
  turnkeep registry types com.example.Message@1")]
pub(crate) enum RegistryCommand {
    Put(RegistryPutArgs),
    Get(RegistryGetArgs),
    Types(RegistryTypesArgs),
}

/// Publish a bundle of types; the same bundle again changes nothing
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep registry put bundle.json
  generate-bundle | turnkeep registry put -")]
pub(crate) struct RegistryPutArgs {
    /// The bundle's JSON: a file, or - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

/// Print a bundle as it was published; with --json in one line
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep registry get '2025-12-19T20:00:00Z#abc123'")]
pub(crate) struct RegistryGetArgs {
    /// The bundle's id
    bundle: String,
}

/// List the known types, or describe one
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep registry types
  turnkeep registry types com.example.Message@1")]
pub(crate) struct RegistryTypesArgs {
    /// Describe this type
    #[arg(value_name = "TYPE@VERSION")]
    described: Option<TypeRef>,
}

pub(crate) async fn run_registry(command: &RegistryCommand, app: &mut App) -> Result<()> {
    let need = if matches!(command, RegistryCommand::Put(_)) {
        Need::Write
    } else {
        Need::Read
    };
    let config = app.config()?;
    let work = async |session: &mut StoreSession| {
        let http = &mut session.http;
        match command {
            RegistryCommand::Put(args) => put_bundle(http, args, app).await,
            RegistryCommand::Get(args) => get_bundle(http, args, app).await,
            RegistryCommand::Types(args) => match &args.described {
                Some(described) => describe_type(http, described, app).await,
                None => list_types(http, app).await,
            },
        }
    };
    with_store(&config, need, work).await
}

async fn put_bundle(http: &mut Http, args: &RegistryPutArgs, app: &mut App) -> Result<()> {
    let bytes = Bytes::from(read_input(&args.file)?);
    let bundle: Value = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not JSON", input_name(&args.file)))?;
    let id = text_of(&bundle, "bundle_id");
    if id.is_empty() {
        let failure = Failure::new(format!("{} has no bundle_id", input_name(&args.file)));
        return Err(failure
            .hint(
                "a bundle is {\"registry_version\": 1, \"bundle_id\": \"…\", \"types\": {…}, \"enums\": {…}}",
            )
            .into());
    }
    let call = Call::put(
        format!("/v1/registry/bundles/{}", percent_encode(id)),
        "application/json",
        bytes.clone(),
    );
    // The server answers 201 for a new bundle and 200 for one that it has.
    let was_new = http.bytes(call).await?.0 == StatusCode::CREATED;
    if app.out.is_json() {
        return app
            .out
            .json(&json!({ "bundle_id": id, "was_new": was_new }));
    }
    let done = if was_new {
        "published"
    } else {
        "already published"
    };
    app.out.line(format!("{done} {}", printable(id)))
}

async fn get_bundle(http: &mut Http, args: &RegistryGetArgs, app: &mut App) -> Result<()> {
    let call = Call::get(format!(
        "/v1/registry/bundles/{}",
        percent_encode(&args.bundle)
    ));
    let bytes = http.bytes(call).await?.1;
    if app.out.is_json() {
        return app
            .out
            .json(&serde_json::from_slice(&bytes).context("the bundle is not JSON")?);
    }
    app.out.bytes(&bytes)?;
    if bytes.ends_with(b"\n") {
        Ok(())
    } else {
        app.out.line("")
    }
}

async fn list_types(http: &mut Http, app: &mut App) -> Result<()> {
    let answer = http.json(Call::get("/v1/registry/types")).await?;
    let types = list_at(&answer, "/types");
    if app.out.is_json() {
        return types.iter().try_for_each(|known| app.out.json(known));
    }
    let rows: Vec<_> = types
        .iter()
        .map(|known| vec![printable(text_of(known, "type_id")), versions_text(known)])
        .collect();
    app.out.table(&["TYPE", "VERSIONS"], &rows)
}

fn versions_text(known: &Value) -> String {
    list_at(known, "/versions")
        .iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

async fn describe_type(http: &mut Http, described: &TypeRef, app: &mut App) -> Result<()> {
    let path = format!(
        "/v1/registry/types/{}/versions/{}",
        percent_encode(&described.id),
        described.version
    );
    let answer = http.json(Call::get(path)).await?;
    if app.out.is_json() {
        return app.out.json(&answer);
    }
    let bundle = printable(text_of(&answer, "bundle_id"));
    app.out
        .pairs(&[("Type", described.to_string()), ("Bundle", bundle)])?;
    app.out.line("")?;
    let members = |name: &str| {
        answer
            .get(name)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    let rows: Vec<_> = members("fields")
        .map(|(tag, field)| field_row(tag, field))
        .collect();
    app.out.table(&["TAG", "NAME", "TYPE", "NOTES"], &rows)?;
    for (id, labels) in members("enums") {
        app.out.line("")?;
        app.out.pairs(&[("Enum", printable(id))])?;
        app.out.table(&["NUMBER", "LABEL"], &label_rows(labels))?;
    }
    Ok(())
}

/// The labels of an enum, by number ascending.
fn label_rows(labels: &Value) -> Vec<Vec<String>> {
    let labels = labels.as_object().into_iter().flatten();
    let mut rows: Vec<_> = labels
        .map(|(number, label)| {
            (
                number.parse::<i128>().ok(),
                number,
                label.as_str().unwrap_or_default(),
            )
        })
        .collect();
    rows.sort();
    rows.into_iter()
        .map(|(_, number, label)| vec![printable(number), printable(label)])
        .collect()
}

fn field_row(tag: &str, field: &Value) -> Vec<String> {
    let known = ["name", "type"];
    let notes = field
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !known.contains(&key.as_str()));
    let notes = notes.map(|(key, value)| match value {
        Value::Bool(true) => printable(key),
        Value::String(text) => format!("{}={}", printable(key), printable(text)),
        value => format!("{}={}", printable(key), printable(&value.to_string())),
    });
    let notes = notes.collect::<Vec<_>>().join(" ");
    vec![
        tag.to_owned(),
        printable(text_of(field, "name")),
        printable(text_of(field, "type")),
        notes,
    ]
}
