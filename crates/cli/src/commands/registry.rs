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
    let id = &bundle_id(&bytes, &input_name(&args.file))?;
    // The bytes as they are: the server keeps them, and `registry get` prints them again.
    let call = Call::put(bundle_path(id), "application/json", bytes);
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

/// The id in a bundle, which the request's path has to name.
fn bundle_id(bytes: &[u8], file: &str) -> Result<String> {
    let bundle: Value =
        serde_json::from_slice(bytes).with_context(|| format!("{file} is not JSON"))?;
    let id = text_of(&bundle, "bundle_id");
    if id.is_empty() {
        return Failure::new(format!("{file} has no bundle_id"))
            .hint(
                "a bundle is {\"registry_version\": 1, \"bundle_id\": \"…\", \"types\": {…}, \"enums\": {…}}",
            )
            .fail();
    }
    Ok(id.to_owned())
}

/// The path of a published bundle.
pub(super) fn bundle_path(id: &str) -> String {
    format!("/v1/registry/bundles/{}", percent_encode(id))
}

async fn get_bundle(http: &mut Http, args: &RegistryGetArgs, app: &mut App) -> Result<()> {
    let (_, bytes) = http.bytes(Call::get(bundle_path(&args.bundle))).await?;
    if app.out.is_json() {
        // Parsed and printed again, because the published text may have several lines.
        let bundle = serde_json::from_slice(&bytes).context("the bundle is not JSON")?;
        return app.out.json(&bundle);
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
        return app.out.json_lines(types);
    }
    let rows: Vec<_> = types
        .iter()
        .map(|known| vec![printable(text_of(known, "type_id")), versions_text(known)])
        .collect();
    app.out.table(&["TYPE", "VERSIONS"], &rows)
}

fn versions_text(known: &Value) -> String {
    let versions = list_at(known, "/versions").iter();
    versions
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
    print_type(described, &answer, app)
}

fn print_type(described: &TypeRef, answer: &Value, app: &mut App) -> Result<()> {
    let bundle = printable(text_of(answer, "bundle_id"));
    app.out
        .pairs(&[("Type", described.to_string()), ("Bundle", bundle)])?;
    app.out.line("")?;
    let fields = members_of(answer.get("fields"));
    let rows: Vec<_> = fields.map(|(tag, field)| field_row(tag, field)).collect();
    app.out.table(&["TAG", "NAME", "TYPE", "NOTES"], &rows)?;
    for (id, labels) in members_of(answer.get("enums")) {
        app.out.line("")?;
        app.out.pairs(&[("Enum", printable(id))])?;
        app.out.table(&["NUMBER", "LABEL"], &label_rows(labels))?;
    }
    Ok(())
}

/// The members of an object; none if the value is missing or of another type.
fn members_of(value: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    value.and_then(Value::as_object).into_iter().flatten()
}

/// The labels of an enum, by number ascending.
fn label_rows(labels: &Value) -> Vec<Vec<String>> {
    let mut labels: Vec<_> = members_of(Some(labels)).collect();
    // The keys of a JSON object are texts: sorted as such, 10 would come before 9.
    labels.sort_by_key(|(number, _)| (number.parse::<i128>().ok(), *number));
    let row = |(number, label): (&String, &Value)| {
        vec![
            printable(number),
            printable(label.as_str().unwrap_or_default()),
        ]
    };
    labels.into_iter().map(row).collect()
}

fn field_row(tag: &str, field: &Value) -> Vec<String> {
    // The name and the type have columns of their own.
    let others =
        members_of(Some(field)).filter(|(key, _)| !["name", "type"].contains(&key.as_str()));
    let notes: Vec<String> = others.map(|(key, value)| note_text(key, value)).collect();
    vec![
        tag.to_owned(),
        printable(text_of(field, "name")),
        printable(text_of(field, "type")),
        notes.join(" "),
    ]
}

fn note_text(key: &str, value: &Value) -> String {
    let key = printable(key);
    match value {
        Value::Bool(true) => key,
        Value::String(text) => format!("{key}={}", printable(text)),
        value => format!("{key}={}", printable(&value.to_string())),
    }
}
