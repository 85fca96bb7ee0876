//! What the server does first with a run that it finds at its start: it ends what was open.
//!
//! Before this, time must not pass in the run. A deadline that passed while no server ran would start
//! turns in a run that waits for a person.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_runtime::decide::{self, Restart};

use super::clock_task;
use super::error::RunError;
use super::run_handle::RunHandle;

/// The pause after the store refused the restart, perhaps because its disk is full.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// Ends the turns that were open when the server stopped, and records what they changed.
pub(super) async fn restart_run(handle: &Arc<RunHandle>) -> Result<(), RunError> {
    let settings = &handle.services.settings;
    let resume = settings.resume_on_start;
    let resumable = settings.resumable_programs();
    let changes = handle.services.workspaces.finish_lost_turns(handle).await;
    let restarted = handle.decide(move |run, around| {
        let restart = Restart {
            resume,
            resumable_programs: &resumable,
            changes: &changes,
        };
        Ok(decide::restart(run, around, restart))
    });
    restarted.await
}

/// Tries again until the run is restarted, then lets time pass in it.
pub(super) async fn restart_later(handle: Arc<RunHandle>) {
    loop {
        tokio::time::sleep(REFUSED_PAUSE).await;
        match restart_run(&handle).await {
            Ok(()) => return clock_task::pass_time(handle).await,
            Err(RunError::UnknownRun(_)) => return,
            Err(error) => {
                tracing::warn!(run = %handle.id(), %error, "the run is not restarted yet");
            }
        }
    }
}
