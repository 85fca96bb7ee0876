//! The open turn of a program, as far as its task must remember it.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use turnkeep_agents::Request;
use turnkeep_agents::event::ToolCall;
use turnkeep_agents::request::LineResult;
use turnkeep_runtime::ids::AgentTurnId;

use super::coalescer::DeltaCoalescer;

/// How long text may wait for more.
const FLUSH_AFTER: Duration = Duration::from_millis(100);

/// How often a program's progress is reported.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The turn that a program works on.
pub(super) struct ProgramTurn {
    pub(super) id: AgentTurnId,
    /// What the program gets once its process is ready.
    pub(super) unsent: Option<Request>,
    pub(super) deltas: DeltaCoalescer,
    pub(super) progress: WaitingProgress,
    /// Proposed tools for which the program has not asked permission yet.
    pub(super) unstarted_tools: Vec<String>,
    /// The calls of the server's own tools, by the program's ids. They are reported when they are
    /// done, and only if the server has not recorded them itself.
    pub(super) own_calls: HashMap<String, ToolCall>,
    /// The protocol's ids of open questions, by the program's ids of the calls.
    pub(super) questions: HashMap<String, String>,
    pub(super) line_calls: LineCalls,
    pub(super) calls: CallCounts,
    pub(super) stopping: Option<Stopping>,
    /// When the text and the tools that wait are reported. The first of them sets it: a program
    /// that never rests must not put it off again and again.
    flush_at: Option<Instant>,
}

/// What the program says that it does, until that is reported. Only the newest counts.
#[derive(Default)]
pub(super) struct WaitingProgress {
    newest: Option<String>,
    /// When the next report may be made.
    due_at: Option<Instant>,
}

impl WaitingProgress {
    pub(super) fn add(&mut self, text: String) {
        self.newest = Some(text);
    }

    /// When what waits must be reported, if anything waits.
    pub(super) fn plan_report(&mut self, now: Instant) -> Option<Instant> {
        self.newest.as_ref()?;
        let at = self.due_at.map_or(now, |due_at| due_at.max(now));
        self.due_at = Some(at);
        Some(at)
    }

    /// Takes what waits. The next report comes later.
    pub(super) fn take(&mut self) -> Option<String> {
        self.due_at = self.due_at.map(|due_at| due_at + PROGRESS_EVERY);
        self.newest.take()
    }
}

/// Tools that the agent called by lines of text.
#[derive(Default)]
pub(super) struct LineCalls {
    /// Calls that have no result yet.
    pub(super) open: usize,
    pub(super) results: Vec<LineResult>,
    /// Whether the program waits for the results.
    pub(super) is_awaited: bool,
    /// How often it has waited in this turn.
    pub(super) rounds: u32,
}

/// How many calls a turn made, and how many of them only looked at a command that still runs.
#[derive(Default)]
pub(super) struct CallCounts {
    pub(super) made: usize,
    pub(super) polls: usize,
    /// The polls that count as calls: some programs show none for a poll.
    pub(super) polls_by_call: usize,
}

impl CallCounts {
    /// Whether the turn did nothing but wait for a command.
    pub(super) fn only_polled(&self) -> bool {
        self.polls > 0 && self.made == self.polls_by_call
    }
}

/// A turn that was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopping {
    /// When the protocol's harsher means is tried, unless it was.
    pub(super) repeat_at: Option<Instant>,
    pub(super) kill_at: Instant,
}

impl ProgramTurn {
    pub(super) fn new(id: AgentTurnId) -> Self {
        Self {
            id,
            unsent: None,
            deltas: DeltaCoalescer::default(),
            progress: WaitingProgress::default(),
            unstarted_tools: Vec::new(),
            own_calls: HashMap::new(),
            questions: HashMap::new(),
            line_calls: LineCalls::default(),
            calls: CallCounts::default(),
            stopping: None,
            flush_at: None,
        }
    }

    /// Lets what waits now wait as long as new text.
    pub(super) fn restart_flush(&mut self) {
        self.flush_at = None;
    }

    /// When the text and the tools that wait must be reported.
    pub(super) fn plan_flush(&mut self, now: Instant) -> Option<Instant> {
        let has_waiting = !self.deltas.is_empty() || !self.unstarted_tools.is_empty();
        if has_waiting {
            self.flush_at.get_or_insert(now + FLUSH_AFTER);
        } else {
            self.flush_at = None;
        }
        self.flush_at
    }
}
