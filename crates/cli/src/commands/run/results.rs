//! `turnkeep run verify` and `turnkeep run apply`.

use anyhow::Result;
use serde_json::json;
use turnkeep_wire::percent_encode;
use turnkeep_wire::runs::{AppliedChanges, RunView, VerificationAnswer};

use super::client::{RunsClient, ServerAnswer, run_path};
use super::failed_verification::FailedVerification;
use super::names::RunName;
use crate::commands::App;
use crate::failure::{Failure, ProblemsReported};
use crate::http::{Call, HttpRefusal};
use crate::output::{Output, Style};
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
/// All of them, or none if one conflicts with a change of yours. Changes that were applied before
/// are left out.
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
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let call = Call::post(run_path(&run.id.0, "/verify"), &json!({}));
    let verified: ServerAnswer<VerificationAnswer> = client.fetch(call).await?;
    let VerificationAnswer { ok, artifact } = verified.view;
    if app.out.is_json() {
        app.out.json(&verified.json)?;
    } else if ok {
        app.out.line(passed_text(&run, &app.out))?;
    } else {
        print_failure(&mut client, &run, &artifact.id.0, app).await?;
    }
    if ok {
        Ok(())
    } else {
        Err(ProblemsReported.into())
    }
}

fn passed_text(run: &RunView, out: &Output) -> String {
    if run.verify.is_empty() {
        let text = "nothing was checked: the run has no verification commands";
        return out.paint(Style::Warning, text);
    }
    out.paint(Style::Good, "the verification passed")
}

/// Prints what failed, and the commands by which a person goes on.
async fn print_failure(
    client: &mut RunsClient,
    run: &RunView,
    artifact: &str,
    app: &mut App,
) -> Result<()> {
    let tail = format!("/artifacts/{}", percent_encode(artifact));
    let call = Call::get(run_path(&run.id.0, &tail)).query("raw", 1);
    let failed = FailedVerification::read(&client.send(call).await?, run);
    let title = format!("the verification failed: {}", failed.what);
    app.out.line(app.out.paint(Style::Bad, &title))?;
    for line in &failed.details {
        app.out.line(format!("    {line}").trim_end())?;
    }
    let short = client.known_runs().await?.short_id(&run.id.0);
    let steps = failed.next_steps(run, &short);
    steps.iter().try_for_each(|line| app.out.line(line))
}

pub(super) async fn run_run_apply(args: &RunApplyArgs, app: &mut App) -> Result<()> {
    let mut client = RunsClient::connect(app).await?;
    let run = client.fetch_run(args.run.as_ref()).await?.view.run;
    let short = client.known_runs().await?.short_id(&run.id.0);
    let call = Call::post(run_path(&run.id.0, "/apply"), &json!({}));
    let answer = client.fetch(call).await;
    let applied: ServerAnswer<AppliedChanges> =
        answer.map_err(|error| explain_conflict(error, &short))?;
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
    let text = if verified {
        let text = "verified: the commands passed on exactly this state";
        app.out.paint(Style::Good, text)
    } else if run.verify.is_empty() {
        let text = "not verified: the run has no verification commands";
        app.out.paint(Style::Warning, text)
    } else {
        let text = format!("not verified: `turnkeep run verify {short}` runs the commands");
        app.out.paint(Style::Warning, &text)
    };
    app.out.line(text)
}

/// Nothing is applied if one file conflicts. The server names the files, and verifying also names
/// the nodes.
fn explain_conflict(error: anyhow::Error, short: &str) -> anyhow::Error {
    let Some(files) = HttpRefusal::conflicting_files(&error) else {
        return error;
    };
    let files = printable(&files.join(", "));
    Failure::new(format!("nothing was applied, because changes conflict in {files}"))
        .hint(format!(
            "`turnkeep run verify {short}` says whose changes they are; a change of yours in the directory counts too"
        ))
        .into()
}
