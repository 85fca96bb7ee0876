//! Wakes a run when time alone changes something: a turn that is silent or too long, an approval
//! that expires, a provider that may be tried again, or a turn of another run that has ended.
//!
//! Nothing polls. The task sleeps until the run's next deadline and looks again whenever the run has
//! new events or another run uses less.
//!
//! Worked example of the one race: a decision finds all turns in use and leaves a node waiting. The
//! last of these turns ends before this task looks. So the task first asks whether something could
//! start right now, and only then waits for news.

use std::sync::Arc;
use std::time::Duration;

use turnkeep_runtime::decide;
use turnkeep_types::Timestamp;

use super::error::RunError;
use super::run_handle::RunHandle;

/// The pause after the store refused a decision, perhaps because its disk is full.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);

/// What the task knew when it looked at the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    last_seq: u64,
    /// Counts how often other runs freed something.
    freed: u64,
}

/// Calls the runtime at each deadline, for as long as the run lives.
pub(super) async fn pass_time(handle: Arc<RunHandle>) {
    let mut events = handle.subscribe_seq();
    let mut freed = handle.services.capacity.subscribe_freed();
    // What was seen before a decision that started nothing. It is made again only after a change.
    let mut idle_at = None;
    while !handle.read_live(|run| run.is_deleted) {
        let seen = Seen {
            last_seq: *events.borrow_and_update(),
            freed: *freed.borrow_and_update(),
        };
        let is_due = if idle_at != Some(seen) && could_start(&handle) {
            true
        } else {
            tokio::select! {
                () = sleep_until(&handle, next_deadline(&handle)) => true,
                changed = freed.changed() => changed.is_ok() && waits_for_capacity(&handle),
                // The deadline may have changed, but the decision has done what was due.
                _ = events.changed() => false,
            }
        };
        if is_due {
            match decide_now(&handle).await {
                Ok(()) => {}
                Err(RunError::UnknownRun(_)) => return,
                Err(error) => {
                    tracing::warn!(run = %handle.id(), %error, "a deadline of the run was missed");
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
            }
            idle_at = (*events.borrow() == seen.last_seq).then_some(seen);
        }
    }
}

async fn decide_now(handle: &Arc<RunHandle>) -> Result<(), RunError> {
    handle
        .decide(|run, around| Ok(decide::pass_time(run, around)))
        .await
}

async fn sleep_until(handle: &RunHandle, deadline: Option<Timestamp>) {
    match deadline {
        Some(deadline) => {
            let now = handle.services.clock.now();
            let pause = Duration::from_millis(deadline.0.saturating_sub(now.0));
            tokio::time::sleep(pause).await;
        }
        None => std::future::pending().await,
    }
}

/// When the run, or a provider that it waits for, next needs attention.
fn next_deadline(handle: &RunHandle) -> Option<Timestamp> {
    let now = handle.services.clock.now();
    let free = handle.services.capacity.find_free(now);
    let heard = handle.connections.last_heard();
    let of_run = handle.read_live(|run| decide::next_deadline(run, now, free.borrow(), &heard));
    // Another run's node may have parked a program that a node of this run waits for.
    let of_others = waits_for_capacity(handle)
        .then(|| handle.services.capacity.next_unparking(now))
        .flatten();
    of_run.into_iter().chain(of_others).min()
}

/// Whether a node could start a turn now.
fn could_start(handle: &RunHandle) -> bool {
    let now = handle.services.clock.now();
    let free = handle.services.capacity.find_free(now);
    let has_room = free.borrow().turns > 0;
    has_room && handle.read_live(|run| decide::waits_for_capacity(run, now, free.borrow()))
}

/// Whether a node waits for something that other runs use.
fn waits_for_capacity(handle: &RunHandle) -> bool {
    let now = handle.services.clock.now();
    let free = handle.services.capacity.find_free(now);
    handle.read_live(|run| decide::waits_for_capacity(run, now, free.borrow()))
}
