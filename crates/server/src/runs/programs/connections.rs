//! Which programs run, and when they last showed a sign of life.
//!
//! Nothing here is recorded: after a restart no program runs. Snapshots and heartbeats show it, and
//! the watchdog reads it: a program that prints something that makes no event is not silent.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use turnkeep_runtime::decide::LastHeard;
use turnkeep_runtime::ids::NodeId;
use turnkeep_types::Timestamp;
use turnkeep_wire::json::Time;
use turnkeep_wire::runs as wire;

use crate::runs::json::ConnectionViews;

/// The programs of a run.
#[derive(Debug, Default)]
pub(in crate::runs) struct ProgramConnections(Mutex<HashMap<NodeId, Connection>>);

/// The program of a node.
#[derive(Debug, Clone, Copy, Default)]
struct Connection {
    activity: ProgramActivity,
    last_heartbeat_at: Option<Timestamp>,
    last_output_at: Option<Timestamp>,
}

/// What a program does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ProgramActivity {
    /// It does not run.
    #[default]
    Gone,
    /// It waits for a prompt.
    Idle,
    /// It works on a turn.
    Working,
}

impl ProgramConnections {
    fn lock(&self) -> MutexGuard<'_, HashMap<NodeId, Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, node: NodeId, change: impl FnOnce(&mut Connection)) {
        change(self.lock().entry(node).or_default());
    }

    /// Records what a program does now.
    pub(super) fn set_activity(&self, node: NodeId, activity: ProgramActivity) {
        self.change(node, |connection| connection.activity = activity);
    }

    /// Records that a program printed something.
    pub(super) fn note_output(&self, node: NodeId, now: Timestamp) {
        self.change(node, |connection| connection.last_output_at = Some(now));
    }

    /// When each program last printed something.
    pub(in crate::runs) fn last_heard(&self) -> LastHeard {
        let nodes = self.lock();
        let heard = nodes
            .iter()
            .filter_map(|(id, node)| Some((*id, node.last_output_at?)));
        heard.collect()
    }

    /// Records that a program is alive, and returns its connection.
    pub(super) fn beat(&self, node: NodeId, now: Timestamp) -> wire::ConnectionView {
        let mut nodes = self.lock();
        let connection = nodes.entry(node).or_default();
        connection.last_heartbeat_at = Some(now);
        connection.view()
    }

    /// The connection of a node. A node whose program never ran has none.
    pub(in crate::runs) fn view(&self, node: NodeId) -> Option<wire::ConnectionView> {
        self.lock().get(&node).map(Connection::view)
    }

    /// The connections of all nodes whose program has run.
    pub(in crate::runs) fn views(&self) -> ConnectionViews {
        let nodes = self.lock();
        nodes.iter().map(|(id, node)| (*id, node.view())).collect()
    }
}

impl Connection {
    fn view(&self) -> wire::ConnectionView {
        wire::ConnectionView {
            status: match self.activity {
                ProgramActivity::Gone => wire::ConnectionStatus::Disconnected,
                ProgramActivity::Idle => wire::ConnectionStatus::Idle,
                ProgramActivity::Working => wire::ConnectionStatus::Connected,
            },
            streaming: self.activity == ProgramActivity::Working,
            last_heartbeat_at: self.last_heartbeat_at.map(Time),
            last_output_at: self.last_output_at.map(Time),
        }
    }
}

#[cfg(test)]
mod tests {
    use turnkeep_runtime::ids::Uuid as _;

    use super::*;

    #[test]
    fn a_connection_shows_what_the_program_does_and_when_it_spoke() {
        let connections = ProgramConnections::default();
        let node = NodeId::from_bits(1);
        assert_eq!(connections.view(node), None, "it never ran");
        connections.set_activity(node, ProgramActivity::Working);
        connections.note_output(node, Timestamp(5));
        let beat = connections.beat(node, Timestamp(7));
        assert_eq!(beat.status, wire::ConnectionStatus::Connected);
        assert!(beat.streaming);
        assert_eq!(beat.last_heartbeat_at, Some(Time(Timestamp(7))));
        assert_eq!(beat.last_output_at, Some(Time(Timestamp(5))));
        for (activity, expect) in [
            (ProgramActivity::Idle, wire::ConnectionStatus::Idle),
            (ProgramActivity::Gone, wire::ConnectionStatus::Disconnected),
        ] {
            connections.set_activity(node, activity);
            let shown = connections.view(node).unwrap();
            assert_eq!((shown.status, shown.streaming), (expect, false));
        }
        assert_eq!(connections.views().len(), 1);
        let expect = LastHeard::from([(node, Timestamp(5))]);
        assert_eq!(connections.last_heard(), expect);
    }
}
