//! `turnkeep doctor`: checks the data directory, the machine, the server and the broker.

mod broker;
mod directory;
mod machine;
mod server;

use anyhow::Result;
use serde_json::json;

use super::App;
use super::config::{setting_cells, setting_json};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::failure::ProblemsReported;
use crate::output::Style;
use crate::session::server_on;

/// Check the data directory, the machine and the server
///
/// Every check says ok, warn or fail, and what to do. A table shows the settings of runs. Changes
/// nothing but a scratch file that measures how fast the disk syncs. With --server only that server is checked. Exits with 1 if a
/// check fails.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep doctor
  turnkeep doctor --data ./store --json | jq 'select(.status != \"ok\")'")]
pub(crate) struct DoctorArgs {}

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ok,
    Warn,
    Fail,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => Style::Good,
            Self::Warn => Style::Warning,
            Self::Fail => Style::Bad,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    check: &'static str,
    status: Status,
    message: String,
    advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Ok,
            message: message.into(),
            advice: None,
        }
    }

    fn warn(check: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Warn,
            message: message.into(),
            advice: Some(advice.into()),
        }
    }

    fn fail(check: &'static str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            check,
            status: Status::Fail,
            message: message.into(),
            advice: Some(advice.into()),
        }
    }
}

pub(crate) async fn run_doctor(_: &DoctorArgs, app: &mut App) -> Result<()> {
    let config = app.config()?;
    let findings = match config.server.value {
        // The server's directory and machine are not these, so only the server itself is checked.
        Some(_) => {
            vec![server::check_server(&config, &DataDir::new(&config.data.value), None).await]
        }
        None => check_this_machine(&config).await,
    };
    for finding in &findings {
        print_finding(finding, app)?;
    }
    // A server elsewhere has a configuration of its own.
    if config.server.value.is_none() {
        print_run_settings(&config, app)?;
    }
    let failed = findings
        .iter()
        .any(|finding| finding.status == Status::Fail);
    if failed {
        Err(ProblemsReported.into())
    } else {
        Ok(())
    }
}

/// Shows what runs may do here: the limits, the programs and where a person is notified.
fn print_run_settings(config: &Config, app: &mut App) -> Result<()> {
    let rows = config.runs.rows();
    if app.out.is_json() {
        let settings: Vec<_> = rows.iter().map(setting_json).collect();
        let message = format!("{} settings", settings.len());
        let line = json!({
            "check": "runs",
            "status": Status::Ok.word(),
            "message": message,
            "advice": null,
            "settings": settings,
        });
        return app.out.json(&line);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(setting_cells).collect();
    app.out.line("")?;
    app.out
        .table(&["SETTING OF RUNS", "VALUE", "SOURCE"], &cells)
}

async fn check_this_machine(config: &Config) -> Vec<Finding> {
    let dir = DataDir::new(&config.data.value);
    // Found once: several checks mean something else while a server runs.
    let running = server_on(&dir).await;
    let mut findings = vec![
        directory::check_permissions(&dir),
        directory::check_token_file(&dir),
        directory::check_lock(&dir, running.is_some()),
        server::check_server(config, &dir, running.as_ref()).await,
    ];
    findings.extend(server::check_ports(config, running.is_some()).await);
    findings.extend([
        machine::check_space(&dir),
        machine::check_sync_speed(&dir),
        machine::check_clock(&dir),
        machine::check_file_limit(),
        directory::check_log(&dir),
        directory::check_torn_writes(&dir),
    ]);
    findings.extend(broker::check_broker());
    findings
}

fn print_finding(finding: &Finding, app: &mut App) -> Result<()> {
    let Finding {
        check,
        status,
        message,
        advice,
    } = finding;
    let word = status.word();
    if app.out.is_json() {
        let line = json!({ "check": check, "status": word, "message": message, "advice": advice });
        return app.out.json(&line);
    }
    let word = app.out.paint(status.style(), &format!("{word:4}"));
    app.out.line(format!("{word}  {check:12}  {message}"))?;
    // The advice stands below the message.
    match advice {
        Some(advice) => app.out.line(format!("                    {advice}")),
        None => Ok(()),
    }
}
