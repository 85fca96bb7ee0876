//! The contexts of a copy, from the first one to the running run.
//!
//! A copy has several contexts, and a crash may come between any two of them. So the context of its
//! events begins with a label that no start looks for, and gets the label of a run when everything
//! is there. What a crash leaves behind is never read: transcripts without events belong to no run.

use std::sync::Arc;

use turnkeep_runtime::Run;
use turnkeep_runtime::decide::{self, RunCopy};
use turnkeep_runtime::fact::RequestKey;
use turnkeep_runtime::ids::{NodeId, RunId};
use turnkeep_store::{Command, CreateContext, Labels, Outcome, Store};
use turnkeep_types::{ContextId, TurnId};

use super::ArchiveError;
use crate::durable_state::RecordLog as _;
use crate::runs::run_handle::NewRunHandle;
use crate::runs::run_log::{COPIED_LABEL, NODE_LABEL, RUN_LABEL, RunLog};
use crate::runs::services::RunServices;
use crate::runs::{RunError, RunHandle, Runs};

/// The label of a context that will be the events of a run; its value is the run's id.
const UNFINISHED_LABEL: &str = "turnkeep.run.unfinished";

/// The contexts of a run that no reader sees yet.
pub(super) struct NewCopy {
    pub(super) id: RunId,
    events: ContextId,
    transcripts: Vec<(NodeId, ContextId)>,
}

impl NewCopy {
    /// Creates the context of the events, from an event of another run if there is one. It blocks.
    pub(super) fn begin(
        services: &RunServices,
        id: RunId,
        base: Option<TurnId>,
    ) -> Result<Self, ArchiveError> {
        let labels = Labels::from([(UNFINISHED_LABEL.to_owned(), id.to_string())]);
        let events = create_context(services.store.store(), base, labels)?;
        services.claim_context(events, id);
        Ok(Self {
            id,
            events,
            transcripts: Vec::new(),
        })
    }

    pub(super) fn events(&self) -> ContextId {
        self.events
    }

    /// Creates the transcript of a node. It blocks.
    pub(super) fn add_transcript(
        &mut self,
        services: &RunServices,
        node: NodeId,
        base: Option<TurnId>,
    ) -> Result<ContextId, ArchiveError> {
        let labels = Labels::from([
            (RUN_LABEL.to_owned(), self.id.to_string()),
            (NODE_LABEL.to_owned(), node.to_string()),
        ]);
        let context = create_context(services.store.store(), base, labels)?;
        services.claim_context(context, self.id);
        self.transcripts.push((node, context));
        Ok(context)
    }

    /// Ends what the copy cannot share with its origin, and makes it a run.
    pub(super) async fn publish(
        self,
        runs: &Runs,
        copy: RunCopy,
        key: Option<RequestKey>,
    ) -> Result<Arc<RunHandle>, ArchiveError> {
        let services = &runs.services;
        let Self { id, events, .. } = self;
        let new = self.load(services).await?;
        let copied = new.handle.read_live(|run| run.last_seq);
        let settle = move |run: &Run, around: decide::Surroundings<'_>| {
            Ok(decide::settle_copy(run, around, &copy))
        };
        new.handle.decide_once(key.clone(), settle).await?;
        // The label makes it a run: a start of the server finds it from now on, complete.
        let labels = Labels::from([
            (RUN_LABEL.to_owned(), id.to_string()),
            (COPIED_LABEL.to_owned(), copied.to_string()),
        ]);
        let context = events;
        let command = Command::SetLabels { context, labels };
        services.store.run(command).await?;
        let handle = Arc::clone(&new.handle);
        let cwd = handle.read_live(|run| run.settings.cwd.clone());
        runs.detect_repository(cwd).await?;
        runs.remember_key(key.as_ref(), id);
        runs.insert(&handle);
        runs.start_tasks(new);
        Ok(handle)
    }

    /// Reads the copy as a start of the server would.
    async fn load(self, services: &Arc<RunServices>) -> Result<NewRunHandle, ArchiveError> {
        let store = services.store.store().clone();
        let id = self.id;
        let read = move || {
            let mut log = RunLog::new(self.events);
            for (node, context) in self.transcripts {
                log.add_transcript(node, context);
            }
            let mut run = Run::new(id);
            for event in log.read_new_facts(&store)? {
                run.apply(&event);
            }
            Ok::<_, RunError>((run, log))
        };
        let (run, log) = services.run_blocking(read).await??;
        Ok(RunHandle::make(run, log, Arc::clone(services)))
    }
}

fn create_context(
    store: &Store,
    base: Option<TurnId>,
    labels: Labels,
) -> Result<ContextId, ArchiveError> {
    let create = CreateContext {
        base,
        labels,
        // A repeat makes new contexts: those of a copy that was cut off may have some of its turns.
        key: None,
    };
    match store.run(Command::CreateContext(create))? {
        Outcome::Created(created) => Ok(created.context),
        other => {
            let message = format!("a context ended as {other:?}");
            Err(RunError::Abandoned(message).into())
        }
    }
}
