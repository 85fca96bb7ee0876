//! Tells a person about new items that wait for them: on the desktop and through a webhook.
//!
//! Nothing happens unless the configuration names a program or an address. One task watches all runs
//! and finds the items that were not there before; another delivers them. Both are bounded and no
//! run waits for them: items that find no room are dropped with a warning, and stay in
//! `/api/attention`. Items that were there when the server started are not announced again.

use std::collections::{HashMap, HashSet};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::process::Command;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, mpsc};
use turnkeep_runtime::ids::RunId;
use turnkeep_wire::runs::{AttentionItem, AttentionList};

use super::json::attention_items;
use super::run_handle::RunHandle;
use super::services::{RunNotice, RunServices};
use super::settings::NotifyConfig;

/// How many batches of items may wait for their delivery.
const BATCHES_MAX: usize = 64;
/// How long the task waits for further events before it looks at the runs. A streaming agent makes
/// many events that change nothing here.
const SETTLE_PAUSE: Duration = Duration::from_millis(200);
/// The pauses between the tries of a delivery.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(25),
];
/// How long the desktop program may take.
const DESKTOP_MAX: Duration = Duration::from_secs(5);
/// How much of a summary the desktop shows, in characters.
const SHOWN_CHARACTERS_MAX: usize = 300;

/// Starts the tasks, if the configuration asks for them.
pub(super) fn start(services: &Arc<RunServices>, runs: &[Arc<RunHandle>]) {
    let config = services.settings.notify.clone();
    if config.desktop.is_none() && config.webhook.is_none() {
        return;
    }
    let (sender, batches) = mpsc::channel(BATCHES_MAX);
    let notices = services.subscribe_notices();
    let mut known = KnownItems::default();
    for handle in runs {
        known.find_new(handle);
    }
    services.spawn_background(watch_runs(notices, known, sender));
    services.spawn_background(deliver_batches(config, batches));
}

/// What identifies an item: the object that it is about, and its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ItemKey {
    target: String,
    kind: &'static str,
}

impl ItemKey {
    fn of(item: &AttentionItem) -> Self {
        Self {
            target: item.target.clone(),
            kind: item.kind.word(),
        }
    }
}

/// The items of every run that were seen last.
#[derive(Debug, Default)]
struct KnownItems(HashMap<RunId, HashSet<ItemKey>>);

impl KnownItems {
    /// The items of a run that were not there before.
    fn find_new(&mut self, handle: &RunHandle) -> Vec<AttentionItem> {
        let id = handle.id();
        if handle.read_live(|run| run.is_deleted) {
            self.0.remove(&id);
            return Vec::new();
        }
        self.replace(id, handle.read(attention_items))
    }

    fn replace(&mut self, run: RunId, items: Vec<AttentionItem>) -> Vec<AttentionItem> {
        let keys = items.iter().map(ItemKey::of).collect();
        let before = self.0.insert(run, keys).unwrap_or_default();
        let is_new = |item: &AttentionItem| !before.contains(&ItemKey::of(item));
        items.into_iter().filter(is_new).collect()
    }
}

async fn watch_runs(
    mut notices: broadcast::Receiver<RunNotice>,
    mut known: KnownItems,
    sender: mpsc::Sender<Vec<AttentionItem>>,
) {
    // A run that was missed for the number of notices is looked at when it has its next event.
    loop {
        let mut changed: HashMap<RunId, Arc<RunHandle>> = HashMap::new();
        match notices.recv().await {
            Ok(notice) => changed.insert(notice.handle.id(), notice.handle),
            Err(RecvError::Lagged(_)) => None,
            Err(RecvError::Closed) => return,
        };
        tokio::time::sleep(SETTLE_PAUSE).await;
        loop {
            match notices.try_recv() {
                Ok(notice) => changed.insert(notice.handle.id(), notice.handle),
                Err(TryRecvError::Lagged(_)) => None,
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            };
        }
        let new: Vec<AttentionItem> = changed
            .values()
            .flat_map(|handle| known.find_new(handle))
            .collect();
        if !new.is_empty() && sender.try_send(new).is_err() {
            tracing::warn!("a notification was dropped: the ones before are not delivered yet");
        }
    }
}

async fn deliver_batches(config: NotifyConfig, mut batches: mpsc::Receiver<Vec<AttentionItem>>) {
    while let Some(items) = batches.recv().await {
        // Both at once: a webhook that does not answer must not delay the desktop.
        tokio::join!(
            show_on_desktop(&config, &items),
            call_webhook(&config, &items)
        );
    }
}

async fn show_on_desktop(config: &NotifyConfig, items: &[AttentionItem]) {
    let Some(program) = &config.desktop else {
        return;
    };
    for item in items {
        let title = format!("Turnkeep: {}", item.kind.word());
        let shown = Command::new(program)
            .args([title, shown_text(&item.summary)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status();
        match tokio::time::timeout(DESKTOP_MAX, shown).await {
            Ok(Ok(status)) if status.success() => {}
            Ok(Ok(status)) => tracing::warn!(%program, %status, "a notification was not shown"),
            Ok(Err(error)) => tracing::warn!(%program, %error, "a notification was not shown"),
            Err(_) => tracing::warn!(%program, "a notification was not shown in time"),
        }
    }
}

/// A summary as an argument. What an agent wrote must not be read as an option.
fn shown_text(summary: &str) -> String {
    let text: String = summary.chars().take(SHOWN_CHARACTERS_MAX).collect();
    if text.starts_with('-') {
        format!(" {text}")
    } else {
        text
    }
}

async fn call_webhook(config: &NotifyConfig, items: &[AttentionItem]) {
    let Some(target) = &config.webhook else {
        return;
    };
    let list = AttentionList {
        items: items.to_vec(),
    };
    let Ok(document) = serde_json::to_vec(&list).map(Bytes::from) else {
        return;
    };
    // One try more than there are pauses: none follows the last.
    for pause in RETRY_PAUSES.iter().map(Some).chain([None]) {
        let Err(error) = target.deliver(document.clone()).await else {
            return;
        };
        if let Some(pause) = pause {
            tracing::debug!(%target, %error, "a webhook is tried again");
            tokio::time::sleep(*pause).await;
        } else {
            tracing::warn!(%target, %error, "a webhook was not reached");
        }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_types::Timestamp;
    use turnkeep_wire::json::Time;
    use turnkeep_wire::runs::{AttentionKind, UuidText};

    use super::*;

    const RUN: &str = "0b5f1c9e-8a3d-4c55-9a67-0123456789ab";

    fn item(target: &str, kind: AttentionKind) -> AttentionItem {
        AttentionItem {
            target: target.to_owned(),
            kind,
            run_id: UuidText(RUN.to_owned()),
            since: Time(Timestamp(1)),
            summary: String::new(),
            actions: Vec::new(),
            node_id: None,
            node_label: None,
            node_alias: None,
        }
    }

    #[test]
    fn an_item_is_announced_once_and_again_after_it_was_gone() {
        let run = RUN.parse().unwrap();
        let mut known = KnownItems::default();
        let mut check = |now: &[AttentionItem], expect: usize| {
            assert_eq!(known.replace(run, now.to_vec()).len(), expect);
        };
        let failure = item("turn:1", AttentionKind::Failure);
        let violation = item("turn:1", AttentionKind::Violation);
        check(&[], 0);
        check(std::slice::from_ref(&failure), 1);
        check(std::slice::from_ref(&failure), 0);
        check(&[failure.clone(), violation], 1);
        check(&[], 0);
        check(&[failure], 1);
    }
}
