//! Opens the session of a conversation: the handshake, a new session or the one to restore, and its
//! mode.

use serde_json::{Value, json};

use crate::event::{AgentEvent, TurnEnd};
use crate::field::{flag_at, object_at, text_at};
use crate::request::{RequestError, StartOptions};
use crate::turn::ID_BYTES_MAX;

use super::end::classify_error;
use super::{Acp, Past, Purpose, mode};

const PROTOCOL_VERSION: u32 = 1;

/// How far the conversation is.
#[derive(Debug)]
pub(super) enum SessionStage {
    NotStarted,
    /// The session does not exist yet, or its mode is not set.
    Starting {
        options: StartOptions,
        session: Option<String>,
        /// Sent as soon as the session is ready.
        prompt: Option<String>,
    },
    Ready {
        options: StartOptions,
        session: String,
    },
    /// The program could not open a session and is about to exit; a turn fails with this reason.
    Broken(TurnEnd),
}

/// What the agent says that it can do.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "agents have these abilities in every combination"
)]
pub(super) struct Capabilities {
    pub(super) load: bool,
    pub(super) resume: bool,
    pub(super) http_mcp: bool,
    /// Whether a loaded session may go on to repeat its past after it is ready.
    pub(super) repeats_past_late: bool,
}

impl Acp {
    pub(super) fn start(&mut self, options: StartOptions) -> Result<(), RequestError> {
        if !matches!(self.stage, SessionStage::NotStarted) {
            return Err(RequestError::AlreadyStarted);
        }
        self.stage = SessionStage::Starting {
            options,
            session: None,
            prompt: None,
        };
        // The agent reads and writes the files of the workspace itself.
        let files = json!({"readTextFile": false, "writeTextFile": false});
        let params = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": {"fs": files},
        });
        self.call(Purpose::Initialize, "initialize", &params);
        Ok(())
    }

    pub(super) fn receive_capabilities(&mut self, result: &Value) {
        let abilities = object_at(result, "/agentCapabilities");
        let resume = abilities.pointer("/sessionCapabilities/resume");
        let capabilities = Capabilities {
            load: flag_at(&abilities, "/loadSession"),
            resume: resume.is_some_and(Value::is_object),
            http_mcp: flag_at(&abilities, "/mcpCapabilities/http"),
            repeats_past_late: text_at(result, "/agentInfo/name") == Some("gemini-cli"),
        };
        self.capabilities = Some(capabilities);
        self.open_session(capabilities);
    }

    /// Resumes a session where possible: a loaded one repeats its whole past first.
    fn open_session(&mut self, capabilities: Capabilities) {
        let SessionStage::Starting { options, .. } = &self.stage else {
            return;
        };
        let mut params = session_params(options, capabilities);
        let Some(session) = options.session.clone() else {
            return self.call(Purpose::NewSession, "session/new", &params);
        };
        if let Value::Object(fields) = &mut params {
            fields.insert("sessionId".to_owned(), json!(session));
        }
        // The agent reports the cost of the whole session, its past included.
        self.reported_cost_micro_usd = None;
        if capabilities.resume {
            self.call(Purpose::RestoreSession, "session/resume", &params);
        } else if capabilities.load {
            self.past = Past::Possible;
            self.call(Purpose::RestoreSession, "session/load", &params);
        } else {
            self.replace_lost_session("the agent cannot restore sessions");
        }
    }

    /// The response to a restore does not repeat the name of the session.
    pub(super) fn receive_session(&mut self, result: &Value) {
        let SessionStage::Starting {
            options, session, ..
        } = &mut self.stage
        else {
            return;
        };
        let named = text_at(result, "/sessionId").filter(|name| name.len() <= ID_BYTES_MAX);
        let named = named.map(str::to_owned);
        let Some(name) = named.or_else(|| options.session.clone()) else {
            let error = json!({"message": "the agent opened a session without a usable name"});
            return self.break_down(&error);
        };
        *session = Some(name.clone());
        let mode = mode::choose_mode(options, result);
        self.turn.emit(AgentEvent::Session(name.clone()));
        match mode {
            Some(mode) => {
                let params = mode.params(&name);
                self.call(Purpose::SetMode, mode.method(), &params);
            }
            None => self.become_ready(),
        }
    }

    pub(super) fn become_ready(&mut self) {
        let stage = std::mem::replace(&mut self.stage, SessionStage::NotStarted);
        let SessionStage::Starting {
            options,
            session: Some(session),
            prompt,
        } = stage
        else {
            self.stage = stage;
            return;
        };
        self.stage = SessionStage::Ready { options, session };
        if let Some(prompt) = prompt {
            self.send_prompt(&prompt);
        }
    }

    /// The caller must know that the session is gone before the next prompt, so the prompt that
    /// waits is not sent. The next one finds a new session.
    pub(super) fn replace_lost_session(&mut self, reason: &str) {
        let SessionStage::Starting {
            options, prompt, ..
        } = &mut self.stage
        else {
            return;
        };
        options.session = None;
        *prompt = None;
        self.reported_cost_micro_usd = Some(0);
        if let Some(capabilities) = self.capabilities {
            let params = session_params(options, capabilities);
            self.call(Purpose::NewSession, "session/new", &params);
        }
        self.turn.lose_session(reason);
    }

    pub(super) fn break_down(&mut self, error: &Value) {
        let end = classify_error(error);
        self.stage = SessionStage::Broken(end.clone());
        self.turn.end_with_error(end);
        // Another process may do better, so this one ends.
        self.turn.close_input();
    }
}

fn session_params(options: &StartOptions, capabilities: Capabilities) -> Value {
    // An agent without HTTP would reject the whole session for the sake of one server.
    let servers = options.mcp.iter().filter(|_| capabilities.http_mcp);
    let servers: Vec<Value> = servers
        .map(|server| {
            let header = json!({"name": "Authorization", "value": server.authorization()});
            json!({"type": "http", "name": server.name, "url": server.url, "headers": [header]})
        })
        .collect();
    json!({"cwd": options.cwd, "mcpServers": servers})
}
