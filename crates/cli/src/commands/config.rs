//! `turnkeep config`: shows every setting and its source.

use anyhow::Result;
use clap::Subcommand;
use serde_json::{Value, json};

use super::App;
use crate::config::{ServeFlags, SettingRow};

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
    // The only subcommand so far; a second one turns this into a match.
    let ConfigCommand::Show(args) = command;
    let config = app.config_with(&args.serve)?;
    if app.out.is_json() {
        return config
            .rows()
            .into_iter()
            .try_for_each(|row| app.out.json(&setting_json(&row)));
    }
    let rows: Vec<_> = config.rows().iter().map(setting_cells).collect();
    app.out.table(&["NAME", "VALUE", "SOURCE"], &rows)?;
    app.out.line("")?;
    let missing = if config.file.exists() {
        ""
    } else {
        " (not there)"
    };
    let file = config.file.display();
    app.out
        .line(format!("The configuration file is {file}{missing}."))
}

/// A setting with its value and source.
pub(super) fn setting_json(row: &SettingRow) -> Value {
    json!({ "name": row.name, "value": row.value, "source": row.source.to_string() })
}

/// A setting as a row of a table.
pub(super) fn setting_cells(row: &SettingRow) -> Vec<String> {
    vec![
        row.name.to_owned(),
        value_text(&row.value),
        row.source.to_string(),
    ]
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
