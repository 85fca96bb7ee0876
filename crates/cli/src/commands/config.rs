//! `turnkeep config`: what is set, and by whom.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::App;
use crate::config::ServeFlags;

/// Show the configuration
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  turnkeep config show
  TURNKEEP_HTTP=127.0.0.1:8080 turnkeep config show")]
pub(crate) enum ConfigCommand {
    Show(ConfigShowArgs),
}

/// Show every setting and where it comes from
///
/// Flags win over TURNKEEP_* variables, those over the configuration file, that over the default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep config show
  turnkeep config show --json | jq -r 'select(.name == \"data\").value'

The configuration file is TOML, with the names shown here:
  http = \"127.0.0.1:8080\"
  strict_types = true
  [limits]
  blob_bytes_max = 67108864")]
pub(crate) struct ConfigShowArgs {
    #[command(flatten)]
    serve: ServeFlags,
}

pub(crate) fn run_config(command: &ConfigCommand, app: &mut App) -> Result<()> {
    let ConfigCommand::Show(args) = command;
    let config = app.config_with(&args.serve)?;
    let rows = config.rows();
    if app.out.is_json() {
        return rows.iter().try_for_each(|(name, value, source)| {
            app.out
                .json(&json!({ "name": name, "value": value, "source": source.to_string() }))
        });
    }
    let rows: Vec<_> = rows
        .into_iter()
        .map(|(name, value, source)| vec![name.to_owned(), value_text(&value), source.to_string()])
        .collect();
    app.out.table(&["NAME", "VALUE", "SOURCE"], &rows)?;
    let found = if config.file.exists() {
        ""
    } else {
        " (not there)"
    };
    app.out.line("")?;
    app.out.line(format!(
        "The configuration file is {}{found}.",
        config.file.display()
    ))
}

/// A value as a person writes it.
fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
