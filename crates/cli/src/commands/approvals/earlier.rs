//! Says how an approval was resolved that a person names too late.
//!
//! The list of open approvals does not have it any more, so the runs' events are searched. This runs
//! only where the command fails anyway.

use anyhow::Result;
use serde::Deserialize as _;
use serde_json::Value;
use turnkeep_wire::runs::{EventBody, EventView, ResolutionView};

use crate::answer::list_at;
use crate::commands::run::client::{RunsClient, run_path};
use crate::failure::Failure;
use crate::http::Call;
use crate::render::printable;
use crate::render::run_text::{one_line, place_words};
use crate::render::turn::date_text;

/// How many of the newest runs are searched.
const RUNS_MAX: usize = 100;
/// How many of the newest resolutions of each run are searched: one page.
const RESOLUTIONS_MAX: usize = 2000;

/// The failure for a name that no open approval has.
pub(super) async fn not_open_failure(client: &mut RunsClient, name: &str) -> Result<Failure> {
    let name = name.strip_prefix("approval:").unwrap_or(name);
    let runs = client.known_runs().await?;
    for run in runs.all().iter().take(RUNS_MAX) {
        let call = Call::get(run_path(&run.id.0, "/events"))
            .query("types", "approval.resolved")
            .query("limit", RESOLUTIONS_MAX);
        // The run may have been deleted meanwhile. The command fails in any case.
        let Ok(page) = client.send(call).await else {
            continue;
        };
        // Of several approvals with this head the person means the latest.
        let mut newest_first = list_at(&page, "/events").iter().rev();
        if let Some(failure) = newest_first.find_map(|event| failure_of(event, name)) {
            return Ok(failure);
        }
    }
    let failure = Failure::new(format!("no open approval is `{}`", printable(name)));
    Ok(failure.hint("`turnkeep approvals` lists what waits"))
}

/// The failure for an event that resolved the approval with this head of an id.
fn failure_of(event: &Value, name: &str) -> Option<Failure> {
    let event = EventView::deserialize(event).ok()?;
    let EventBody::ApprovalResolved {
        approval_id,
        resolution,
    } = event.body
    else {
        return None;
    };
    let at = date_text(&event.ts.to_string());
    let is_meant = !name.is_empty() && approval_id.0.starts_with(name);
    is_meant.then(|| resolved_failure(&resolution, &at))
}

fn resolved_failure(resolution: &ResolutionView, at: &str) -> Failure {
    let place = resolution.by.map_or("", place_words);
    let status = resolution.status.word();
    let failure = Failure::new(format!("the approval was {status} already{place}, {at}"));
    match &resolution.reason {
        Some(reason) => failure.hint(format!("the reason was: {}", one_line(reason))),
        None => failure,
    }
}
