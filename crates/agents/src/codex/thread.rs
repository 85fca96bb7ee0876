//! Opens the thread of a conversation: the handshake, then a new thread or the one to resume.

use serde_json::{Value, json};

use crate::event::{AgentEvent, TurnEnd};
use crate::field::text_at;
use crate::request::{Access, Permissions, RequestError, StartOptions};
use crate::turn::ID_BYTES_MAX;

use super::usage::ThreadUsage;
use super::{Codex, Purpose};

/// How far the conversation is.
#[derive(Debug)]
pub(super) enum ThreadStage {
    NotStarted,
    /// The thread does not exist yet.
    Starting {
        options: StartOptions,
        /// Sent as soon as the thread exists.
        prompt: Option<String>,
    },
    Ready {
        thread: String,
        cwd: String,
    },
    /// The program could not open a thread and is about to exit; a turn fails with this reason.
    Broken(TurnEnd),
}

impl Codex {
    pub(super) fn start(&mut self, options: StartOptions) -> Result<(), RequestError> {
        if !matches!(self.stage, ThreadStage::NotStarted) {
            return Err(RequestError::AlreadyStarted);
        }
        self.stage = ThreadStage::Starting {
            options,
            prompt: None,
        };
        let version = env!("CARGO_PKG_VERSION");
        let client = json!({"name": "turnkeep", "title": "Turnkeep", "version": version});
        let params = json!({"clientInfo": client});
        self.call(Purpose::Initialize, "initialize", &params);
        Ok(())
    }

    pub(super) fn open_thread(&mut self) {
        let ThreadStage::Starting { options, .. } = &self.stage else {
            return;
        };
        let mut params = thread_params(options);
        let session = options.session.clone();
        let initialized = json!({"jsonrpc": "2.0", "method": "initialized"});
        self.turn.write(&initialized);
        match session {
            Some(session) => {
                // A resumed thread reports its earlier usage; that must not count twice.
                self.usage = ThreadUsage::of_resumed_thread();
                if let Value::Object(fields) = &mut params {
                    fields.insert("threadId".to_owned(), json!(session));
                }
                self.call(Purpose::ResumeThread, "thread/resume", &params);
            }
            None => self.call(Purpose::StartThread, "thread/start", &params),
        }
    }

    pub(super) fn receive_thread(&mut self, result: &Value) {
        let ThreadStage::Starting { options, prompt } = &mut self.stage else {
            return;
        };
        let named = text_at(result, "/thread/id").filter(|name| name.len() <= ID_BYTES_MAX);
        let Some(thread) = named else {
            let error = json!({"message": "codex opened a thread without a usable name"});
            return self.break_down(&error);
        };
        let prompt = prompt.take();
        let thread = thread.to_owned();
        self.stage = ThreadStage::Ready {
            thread: thread.clone(),
            cwd: std::mem::take(&mut options.cwd),
        };
        self.turn.emit(AgentEvent::Session(thread));
        if let Some(prompt) = prompt {
            self.start_turn(&prompt);
        }
    }

    /// The caller must know that the session is gone before the next prompt, so the prompt that
    /// waits is not sent. The next one finds a new thread.
    pub(super) fn replace_lost_thread(&mut self, error: &Value) {
        let ThreadStage::Starting { options, prompt } = &mut self.stage else {
            return;
        };
        options.session = None;
        *prompt = None;
        let params = thread_params(options);
        let reason = text_at(error, "/message").unwrap_or("unknown thread");
        self.usage = ThreadUsage::default();
        self.call(Purpose::StartThread, "thread/start", &params);
        self.turn.lose_session(reason);
    }

    pub(super) fn break_down(&mut self, error: &Value) {
        let end = self.classify_error(error);
        self.stage = ThreadStage::Broken(end.clone());
        self.turn.end_with_error(end);
        // Another process may do better, so this one ends.
        self.turn.close_input();
    }
}

/// The directory, the approval policy and the sandbox of a thread.
///
/// In its read-only sandbox the program asks for whatever the sandbox forbids. Where the agent may
/// write, it asks for every command that it does not know to be harmless: inside the writable
/// sandbox it would otherwise change files without a question.
fn thread_params(options: &StartOptions) -> Value {
    let (sandbox, gated_policy) = match options.access {
        Access::ReadOnly => ("read-only", "on-request"),
        Access::Write => ("workspace-write", "untrusted"),
    };
    let policy = match options.permissions {
        Permissions::Gated => gated_policy,
        Permissions::Skip => "never",
    };
    json!({"cwd": options.cwd, "approvalPolicy": policy, "sandbox": sandbox})
}
