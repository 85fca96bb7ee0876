//! Notices for the owner: which worlds, sessions and runs to read again, and how much waits for a
//! person.
//!
//! A notice says that something changed and not what, so it is never repeated and has no id. The
//! changes of one object within [`PAUSE`] become one notice. A feed keeps at most one entry for each
//! object, however slow its reader is. A feed that missed changes names every object instead.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use turnkeep_ledger::ids::Name;
use turnkeep_runtime::ids::RunId;
use turnkeep_wire::json;
use turnkeep_wire::runs::AttentionKind;

use super::{sessions, sse};
use crate::broker::{InProcessBroker, SessionChanges};
use crate::ledger::WorldChanges;
use crate::runs::{RunHandle, RunNotice, json as runs_json};
use crate::shared::Shared;

/// The shortest time between two notices about one object. A streaming agent makes many events.
const PAUSE: Duration = Duration::from_millis(250);

/// What changed for the owner and has not been told yet.
pub(crate) struct Notices {
    shared: Arc<Shared>,
    worlds: WorldChanges,
    sessions: SessionSource,
    runs: broadcast::Receiver<RunNotice>,
    /// What waited for a person in each run when it was looked at last.
    waiting: HashMap<RunId, Vec<WaitingItem>>,
    pending: Pending,
    /// Before this time no notice is sent.
    pause_end: Instant,
}

/// Where changes of sessions come from.
enum SessionSource {
    /// Other machines can reach the listener, so it shows no sessions.
    Never,
    /// A broker that has not started.
    NotYet,
    /// The broker.
    Broker(SessionChanges),
}

/// What identifies an item that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WaitingItem {
    target: String,
    kind: AttentionKind,
}

/// Objects with changes that have not been told.
#[derive(Default)]
struct Pending {
    worlds: BTreeSet<Name>,
    sessions: BTreeSet<String>,
    runs: HashMap<RunId, Arc<RunHandle>>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.worlds.is_empty() && self.sessions.is_empty() && self.runs.is_empty()
    }
}

/// A change, or none where changes were missed.
enum Change {
    World(Option<Name>),
    Session(Option<String>),
    Run(Option<Arc<RunHandle>>),
}

impl Notices {
    /// Follows everything from now on.
    pub(crate) fn subscribe(shared: &Arc<Shared>) -> Self {
        let sessions = match sessions::local_broker(shared) {
            Ok(broker) => SessionSource::Broker(broker.subscribe_changes()),
            Err(_) if sessions::within_the_machine(shared.addrs.http).is_ok() => {
                SessionSource::NotYet
            }
            Err(_) => SessionSource::Never,
        };
        // Before the runs are looked at, so that no change falls in between.
        let runs = shared.runs.subscribe_notices();
        let handles = shared.runs.list();
        let waiting = handles.iter().map(|run| (run.id(), waiting_items(run)));
        Self {
            worlds: shared.worlds.subscribe_changes(),
            sessions,
            runs,
            waiting: waiting.collect(),
            pending: Pending::default(),
            pause_end: Instant::now(),
            shared: Arc::clone(shared),
        }
    }

    /// Waits until there is a notice to send. The future may be dropped at any time without losing
    /// one.
    pub(crate) async fn wait_until_due(&mut self) {
        loop {
            let has_pending = !self.pending.is_empty();
            if has_pending && self.pause_end <= Instant::now() {
                return;
            }
            let change = tokio::select! {
                () = sleep_until(self.pause_end), if has_pending => return,
                change = self.next_change() => change,
            };
            self.add(change);
        }
    }

    async fn next_change(&mut self) -> Change {
        let Self {
            shared,
            worlds,
            sessions,
            runs,
            ..
        } = self;
        tokio::select! {
            world = worlds.next() => Change::World(world),
            session = sessions.next(shared) => Change::Session(session),
            run = next_run(runs) => Change::Run(run),
        }
    }

    fn add(&mut self, change: Change) {
        let Pending {
            worlds,
            sessions,
            runs,
        } = &mut self.pending;
        match change {
            Change::World(Some(world)) => _ = worlds.insert(world),
            Change::World(None) => {
                let all = self.shared.worlds.list();
                worlds.extend(all.iter().map(|handle| handle.name().clone()));
            }
            Change::Session(Some(session)) => _ = sessions.insert(session),
            Change::Session(None) => {
                let all = self.shared.broker.get().map(InProcessBroker::session_ids);
                sessions.extend(all.unwrap_or_default());
            }
            Change::Run(Some(run)) => _ = runs.insert(run.id(), run),
            Change::Run(None) => {
                let all = self.shared.runs.list();
                runs.extend(all.into_iter().map(|run| (run.id(), run)));
            }
        }
    }

    /// Adds the notices that are due to a chunk, and begins the pause.
    pub(crate) fn push_due(&mut self, chunk: &mut String) {
        let Pending {
            worlds,
            sessions,
            runs,
        } = std::mem::take(&mut self.pending);
        for world in worlds {
            let r#ref = format!("world:{world}");
            push(chunk, "world.changed", &json::WorldChanged { r#ref });
        }
        for session in sessions {
            let r#ref = format!("session:{session}");
            push(chunk, "session.changed", &json::SessionChanged { r#ref });
        }
        let mut is_other = false;
        for (id, run) in runs {
            let r#ref = format!("run:{id}");
            push(chunk, "run.changed", &json::RunChanged { r#ref });
            is_other |= self.look_at(&run);
        }
        // The count is that of all runs. It is news only if one of these runs has changed its part.
        if is_other {
            let count = self.waiting.values().map(|items| items.len() as u64).sum();
            push(
                chunk,
                "attention.changed",
                &json::AttentionChanged { count },
            );
        }
        self.pause_end = Instant::now() + PAUSE;
    }

    /// Notes what waits for a person in a run. Returns whether that is something else than before.
    fn look_at(&mut self, run: &RunHandle) -> bool {
        let items = waiting_items(run);
        let before = if items.is_empty() {
            self.waiting.remove(&run.id()).unwrap_or_default()
        } else {
            let before = self.waiting.insert(run.id(), items.clone());
            before.unwrap_or_default()
        };
        items != before
    }
}

impl SessionSource {
    async fn next(&mut self, shared: &Shared) -> Option<String> {
        match self {
            Self::Never => std::future::pending().await,
            Self::NotYet => {
                let changes = shared.broker.wait().await.subscribe_changes();
                *self = Self::Broker(changes);
                None
            }
            Self::Broker(changes) => changes.next().await.map(|session| session.to_string()),
        }
    }
}

async fn next_run(runs: &mut broadcast::Receiver<RunNotice>) -> Option<Arc<RunHandle>> {
    match runs.recv().await {
        Ok(notice) => Some(notice.handle),
        Err(RecvError::Lagged(_)) => None,
        Err(RecvError::Closed) => std::future::pending().await,
    }
}

fn waiting_items(run: &RunHandle) -> Vec<WaitingItem> {
    if run.read_live(|live| live.is_deleted) {
        return Vec::new();
    }
    let items = run.read(runs_json::attention_items).into_iter();
    let items = items.map(|item| WaitingItem {
        target: item.target,
        kind: item.kind,
    });
    items.collect()
}

/// Adds a notice. It is a plain struct, so encoding it cannot fail.
fn push(chunk: &mut String, kind: &str, data: &impl Serialize) {
    if let Ok(data) = serde_json::to_string(data) {
        sse::push_notice(chunk, kind, data);
    }
}
