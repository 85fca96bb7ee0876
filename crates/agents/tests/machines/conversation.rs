//! A conversation with a machine in which every action is a line of text.

use serde_json::Value;
use turnkeep_agents::request::{Access, Permissions, StartOptions};
use turnkeep_agents::{
    Action, AgentEvent, AgentProtocol, Answer, Exit, Request, RequestError, TurnEnd,
};

/// A machine and what it does, as lines of text.
pub(crate) struct Conversation {
    machine: Box<dyn AgentProtocol>,
}

impl Conversation {
    pub(crate) fn new(machine: impl AgentProtocol + 'static) -> Self {
        Self {
            machine: Box::new(machine),
        }
    }

    pub(crate) fn request(&mut self, request: Request) -> Vec<String> {
        let actions = self.machine.request(request).unwrap();
        actions.iter().map(describe_action).collect()
    }

    pub(crate) fn rejection(&mut self, request: Request) -> RequestError {
        self.machine.request(request).unwrap_err()
    }

    pub(crate) fn start(&mut self) -> Vec<String> {
        self.request(Request::Start(start_options()))
    }

    pub(crate) fn send(&mut self, prompt: &str) -> Vec<String> {
        let prompt = prompt.to_owned();
        self.request(Request::Send { prompt })
    }

    pub(crate) fn answer(&mut self, request_id: &str, answer: Answer) -> Vec<String> {
        self.request(answer_to(request_id, answer))
    }

    /// The program prints a message.
    pub(crate) fn prints(&mut self, message: Value) -> Vec<String> {
        self.prints_text(&message.to_string())
    }

    pub(crate) fn prints_text(&mut self, line: &str) -> Vec<String> {
        let actions = self.machine.receive_line(line.as_bytes());
        actions.iter().map(describe_action).collect()
    }

    pub(crate) fn exits(&mut self, code: i32, errors: &str) -> Vec<String> {
        let actions = self.machine.receive_end(&Exit {
            code: Some(code),
            last_errors: errors.to_owned(),
        });
        actions.iter().map(describe_action).collect()
    }

    pub(crate) fn machine(&self) -> &dyn AgentProtocol {
        &*self.machine
    }
}

pub(crate) fn answer_to(request_id: &str, answer: Answer) -> Request {
    Request::Answer {
        request_id: request_id.to_owned(),
        answer,
    }
}

pub(crate) fn deny(reason: &str) -> Answer {
    Answer::Deny {
        reason: reason.to_owned(),
    }
}

pub(crate) fn start_options() -> StartOptions {
    StartOptions {
        session: None,
        cwd: "/work/demo".to_owned(),
        mcp: None,
        permissions: Permissions::Gated,
        access: Access::Write,
    }
}

pub(crate) fn resumed(session: &str) -> Request {
    Request::Start(StartOptions {
        session: Some(session.to_owned()),
        ..start_options()
    })
}

fn describe_action(action: &Action) -> String {
    match action {
        Action::Write(text) => format!("write {}", text.trim_end()),
        Action::CloseInput => "close input".to_owned(),
        Action::SignalInterrupt => "SIGINT".to_owned(),
        Action::Emit(event) => describe_event(event),
    }
}

pub(crate) fn describe_event(event: &AgentEvent) -> String {
    match event {
        AgentEvent::AnswerDelta(text) => format!("delta {text:?}"),
        AgentEvent::AnswerFinal(text) => format!("final {text:?}"),
        AgentEvent::ToolProposed(call) => {
            format!("tool {} {} {}", call.provider_id, call.name, call.args)
        }
        AgentEvent::ToolCompleted(result) => {
            let (id, output) = (&result.provider_id, &result.output);
            match &result.error {
                Some(error) => format!("result {id} error {error:?}"),
                None => format!("result {id} {output:?}"),
            }
        }
        AgentEvent::PermissionAsked(request) => {
            let (id, call) = (&request.request_id, &request.call.provider_id);
            let always = if request.can_allow_always {
                "always"
            } else {
                "once"
            };
            format!("ask {id} about {call}, {always}: {}", request.context)
        }
        AgentEvent::PermissionWithdrawn { request_id } => format!("withdrawn {request_id}"),
        AgentEvent::ToolCallRequested(call) => format!("call {} {}", call.name, call.args),
        AgentEvent::Usage(usage) => {
            let (prompt, completion) = (usage.prompt_tokens, usage.completion_tokens);
            let (cached, cost) = (usage.cached_tokens, usage.cost_micro_usd);
            format!("usage {prompt}+{completion} cached {cached} cost {cost:?}")
        }
        AgentEvent::TurnEnded(TurnEnd::RateLimited { reset, .. }) => {
            format!("ended: limited {reset:?}")
        }
        AgentEvent::TurnEnded(end) => format!("ended: {end:?}"),
        other => format!("{other:?}"),
    }
}
