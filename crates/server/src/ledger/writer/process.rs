//! The process of an attached writer, with its assignment and a count of the exchanged bytes.

use turnkeep_ledger::epoch::WriterMemory;

use super::WriterAssignment;
use super::WriterResult;
use super::failure::WriterFailure;
use super::protocol::WriterLine;
use super::tool_session::ToolSession;
use crate::child_process::{ChildCommand, ChildProcess};

/// The longest line from the writer: a bundle of the largest texts, escaped.
const LINE_BYTES_MAX: u64 = 64 << 20;
/// The line end counts as a part of the line.
const LINE_END_BYTES: usize = 1;

/// A running writer process.
pub(super) struct WriterProcess {
    pub(super) assignment: WriterAssignment,
    process: ChildProcess,
    /// Counts the bytes in both directions, to know when the writer's context is full.
    pub(super) memory: WriterMemory,
}

impl WriterProcess {
    /// Starts the program of an assignment.
    pub(super) fn start(assignment: &WriterAssignment) -> Result<Self, WriterFailure> {
        let command = ChildCommand::shell(&assignment.command_line, LINE_BYTES_MAX);
        let process = ChildProcess::start(command)?;
        Ok(Self {
            assignment: assignment.clone(),
            process,
            memory: WriterMemory::default(),
        })
    }

    /// Whether this process has this assignment, runs, and has no unread output. Output that was
    /// not asked for would be taken for the answer to the next beat.
    pub(super) async fn is_ready_for(&mut self, assignment: &WriterAssignment) -> bool {
        self.assignment == *assignment && self.process.is_idle().await
    }

    /// Sends the beat and answers tool requests until the writer is done.
    pub(super) async fn converse(
        &mut self,
        beat: String,
        tools: &mut ToolSession<'_>,
    ) -> Result<WriterResult, WriterFailure> {
        self.send(beat).await?;
        loop {
            let line = self.receive().await?;
            match WriterLine::parse(&line)? {
                WriterLine::Tool(request) => {
                    let answer = tools.answer(request, &line).await?;
                    self.send(answer).await?;
                }
                WriterLine::Proposal(bundle) => return tools.accept_proposal(bundle),
                WriterLine::NoWrite => return tools.accept_silence(),
            }
        }
    }

    async fn send(&mut self, line: String) -> Result<(), WriterFailure> {
        self.memory.add_bytes(line.len() + LINE_END_BYTES);
        Ok(self.process.send_line(line).await?)
    }

    async fn receive(&mut self) -> Result<Vec<u8>, WriterFailure> {
        let line = self.process.receive_line().await?;
        self.memory.add_bytes(line.len() + LINE_END_BYTES);
        Ok(line)
    }
}
