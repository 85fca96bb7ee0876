//! What an agent hears of a write when answers are lost between `turnkeep mcp` and its server.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::Agent;
use crate::sandbox::Sandbox;

/// A server's neighbour that passes requests on to it, and loses answers when a test says so.
struct LossyForwarder {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The `request_id` of each write that the server has answered.
    write_ids: Vec<String>,
    /// How many answers to writes are still to be lost.
    losses_left: usize,
}

impl LossyForwarder {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = Arc::<Mutex<State>>::default();
        let (server, shared) = (server.to_owned(), Arc::clone(&state));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (server, state) = (server.clone(), Arc::clone(&shared));
                std::thread::spawn(move || forward_all(&client.unwrap(), &server, &state));
            }
        });
        Self { address, state }
    }

    fn lose_answers(&self, count: usize) {
        self.state.lock().unwrap().losses_left = count;
    }

    fn take_write_ids(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().write_ids)
    }
}

/// Serves one connection until its client ends it, or until an answer is lost.
fn forward_all(client: &TcpStream, server: &str, state: &Mutex<State>) {
    let mut requests = BufReader::new(client);
    while let Some(request) = HttpMessage::read(&mut requests) {
        let mut to_server = TcpStream::connect(server).unwrap();
        to_server.write_all(&request.head).unwrap();
        to_server.write_all(&request.body).unwrap();
        let answer = HttpMessage::read(&mut BufReader::new(to_server)).unwrap();
        if let Some(id) = request.write_id() {
            let mut state = state.lock().unwrap();
            state.write_ids.push(id);
            if state.losses_left > 0 {
                state.losses_left -= 1;
                return;
            }
        }
        let mut to_client = client;
        to_client.write_all(&answer.head).unwrap();
        to_client.write_all(&answer.body).unwrap();
    }
}

/// A request or an answer, whose body has a declared length.
struct HttpMessage {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl HttpMessage {
    /// The next message; none at the end of the connection.
    fn read(from: &mut impl BufRead) -> Option<Self> {
        let (mut head, mut body_bytes) = (Vec::new(), 0);
        loop {
            let line_start = head.len();
            if from.read_until(b'\n', &mut head).unwrap_or(0) == 0 {
                return None;
            }
            let line = String::from_utf8_lossy(&head[line_start..]).to_ascii_lowercase();
            if let Some(length) = line.strip_prefix("content-length:") {
                body_bytes = length.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; body_bytes];
        from.read_exact(&mut body).ok()?;
        Some(Self { head, body })
    }

    /// The id of a write to a world; none for any other request.
    fn write_id(&self) -> Option<String> {
        let message: Value = serde_json::from_slice(&self.body).ok()?;
        message
            .pointer("/params/name")
            .filter(|tool| *tool == "ledger_write")?;
        let id = message.pointer("/params/arguments/request_id");
        Some(id.and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}

fn times_written(sandbox: &Sandbox, text: &str) -> usize {
    sandbox.ok(&["stream", "team"]).matches(text).count()
}

#[test]
fn a_write_whose_answer_is_lost_is_repeated_with_its_id_and_written_once() {
    let sandbox = Sandbox::new().with_team();
    let token = sandbox.token_of("ANN");
    let server = sandbox.up(&[]);
    let forwarder = LossyForwarder::start(server.http());
    let mut agent = Agent::start_at(&sandbox, &token, Some(&forwarder.address));
    forwarder.lose_answers(2);
    agent.call("ledger_write", &json!({ "text": "Once only." }));
    let ids = forwarder.take_write_ids();
    assert_eq!(ids.len(), 3, "{ids:?}");
    assert!(
        ids[0].starts_with("bridge-") && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
    assert_eq!(times_written(&sandbox, "Once only."), 1);
    agent.end();
    server.terminate();
}

#[test]
fn a_write_is_of_unknown_outcome_only_when_nothing_answers_and_its_id_settles_it() {
    let sandbox = Sandbox::new().with_team();
    let token = sandbox.token_of("ANN");
    let server = sandbox.up(&[]);
    let forwarder = LossyForwarder::start(server.http());
    let mut agent = Agent::start_at(&sandbox, &token, Some(&forwarder.address));
    forwarder.lose_answers(usize::MAX);
    let call = json!({ "name": "ledger_write", "arguments": { "text": "Perhaps." } });
    let answer = agent.ask("tools/call", &call);
    let ids = forwarder.take_write_ids();
    assert!(
        ids.len() > 1 && ids.iter().all(|id| *id == ids[0]),
        "{ids:?}"
    );
    let said = answer["error"]["message"].as_str().unwrap();
    assert!(
        said.starts_with("no server answers, so whether it was written is not known")
            && said.contains(&format!("request_id `{}`", ids[0])),
        "{said}"
    );
    forwarder.lose_answers(0);
    agent.call(
        "ledger_write",
        &json!({ "text": "Perhaps.", "request_id": ids[0] }),
    );
    assert_eq!(times_written(&sandbox, "Perhaps."), 1);
    agent.end();
    server.terminate();
}
