//! `turnkeep run verify` and `turnkeep run apply`.

use anyhow::Result;
use serde_json::json;
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{AppliedChanges, VerificationAnswer};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::names::RunName;
use crate::commands::App;
use crate::failure::ProblemsReported;
use crate::http::Call;
use crate::output::Style;
use crate::render::printable;

/// Run a run's verification commands on everything that its nodes changed together
///
/// Ends with exit code 1 if they fail.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run verify
  turnkeep run verify 3f2a && turnkeep run apply 3f2a")]
pub(crate) struct RunVerifyArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
}

/// Bring the nodes' changes into the run's directory
///
/// All of them, or none if one conflicts with a change of yours. What was applied before is left
/// out.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  turnkeep run apply
  turnkeep run apply @last --json | jq -r '.applied[]'")]
pub(crate) struct RunApplyArgs {
    /// The run: its id, a unique head of its id, or @last [default: the only active one]
    run: Option<RunName>,
}

pub(super) async fn run_run_verify(args: &RunVerifyArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let id = client.find_run(args.run.as_ref()).await?;
    let call = Call::post(run_path(&id, "/verify"), &json!({}));
    let verified: ServerAnswer<VerificationAnswer> = client.fetch(call).await?;
    let VerificationAnswer { ok, artifact } = verified.view;
    if app.out.is_json() {
        app.out.json(&verified.json)?;
    } else if ok {
        app.out
            .line(app.out.paint(Style::Good, "the verification passed"))?;
    } else {
        app.out
            .line(app.out.paint(Style::Bad, "the verification failed"))?;
        print_report(&mut client, &id, &artifact.id.0, app).await?;
    }
    if ok {
        Ok(())
    } else {
        Err(ProblemsReported.into())
    }
}

async fn print_report(
    client: &mut RunsClient,
    run: &str,
    artifact: &str,
    app: &mut App,
) -> Result<()> {
    let tail = format!("/artifacts/{}", percent_encode(artifact));
    let call = Call::get(run_path(run, &tail)).query("raw", 1);
    let (_, report) = client.http().bytes(call).await?;
    let report = String::from_utf8_lossy(&report).into_owned();
    report
        .lines()
        .try_for_each(|line| app.out.line(printable(line)))
}

pub(super) async fn run_run_apply(args: &RunApplyArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let id = client.find_run(args.run.as_ref()).await?;
    let call = Call::post(run_path(&id, "/apply"), &json!({}));
    let applied: ServerAnswer<AppliedChanges> = client.fetch(call).await?;
    if app.out.is_json() {
        return app.out.json(&applied.json);
    }
    let AppliedChanges {
        applied, verified, ..
    } = applied.view;
    if applied.is_empty() {
        return app.out.line("nothing is new since the last time");
    }
    for file in &applied {
        app.out.line(format!("applied {}", printable(file)))?;
    }
    let (style, text) = if verified {
        (
            Style::Good,
            "verified: the commands passed on exactly this state",
        )
    } else {
        (
            Style::Warning,
            "not verified: `turnkeep run verify` runs the commands",
        )
    };
    app.out.line(app.out.paint(style, text))
}
