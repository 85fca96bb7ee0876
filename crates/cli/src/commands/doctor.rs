//! `turnkeep doctor`: checks the data directory, the machine, the server and the broker.

mod broker;
mod directory;
mod machine;
mod server;

use anyhow::Result;
use serde_json::json;

use super::App;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::failure::ProblemsReported;
use crate::output::Style;
use crate::session::server_on;

/// Check the data directory, the machine and the server
///
/// Every check says ok, warn or fail, and what to do. Changes nothing but a scratch file that
/// measures how fast the disk syncs. With --server only that server is checked. Exits with 1 if a
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
    let failed = findings
        .iter()
        .any(|finding| finding.status == Status::Fail);
    if failed {
        Err(ProblemsReported.into())
    } else {
        Ok(())
    }
}

async fn check_this_machine(config: &Config) -> Vec<Finding> {
    let dir = DataDir::new(&config.data.value);
    // Found once: several checks mean something else while a server runs.
    let running = server_on(&dir).await;
    let mut findings = vec![
        directory::check_permissions(&dir),
        directory::check_token_file(&dir),
    ];
    findings.push(directory::check_lock(&dir, running.is_some()));
    findings.push(server::check_server(config, &dir, running.as_ref()).await);
    findings.extend(server::check_ports(config, running.is_some()).await);
    findings.extend([
        machine::check_space(&dir),
        machine::check_sync_speed(&dir),
        machine::check_clock(&dir),
        machine::check_file_limit(),
    ]);
    findings.extend([
        directory::check_log(&dir),
        directory::check_torn_writes(&dir),
    ]);
    findings.extend(broker::check_broker());
    findings
}

fn print_finding(finding: &Finding, app: &mut App) -> Result<()> {
    if app.out.is_json() {
        let Finding {
            check,
            status,
            message,
            advice,
        } = finding;
        let line = json!({ "check": check, "status": status.word(), "message": message, "advice": advice });
        return app.out.json(&line);
    }
    let word = app.out.paint(
        finding.status.style(),
        &format!("{:4}", finding.status.word()),
    );
    app.out
        .line(format!("{word}  {:12}  {}", finding.check, finding.message))?;
    match &finding.advice {
        Some(advice) => app.out.line(format!("                    {advice}")),
        None => Ok(()),
    }
}
