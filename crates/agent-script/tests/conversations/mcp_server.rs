//! A small MCP server: it records each request, and answers tool calls from a function.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) authorization: String,
    pub(crate) session: String,
    pub(crate) revision: String,
    pub(crate) message: Value,
}

pub(crate) struct McpServer {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone, Copy)]
pub(crate) enum AnswerForm {
    Json,
    Events,
}

impl McpServer {
    /// Starts a server whose tools `answer` with a result. Its thread ends with the test process.
    pub(crate) fn start(form: AnswerForm, answer: fn(&str, &Value) -> Value) -> McpServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve(stream, form, answer, &notes);
            }
        });
        McpServer { url, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The tools that were called, with their arguments.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        let calls = self
            .seen()
            .into_iter()
            .filter(|seen| seen.message["method"] == "tools/call");
        calls
            .map(|seen| {
                let params = &seen.message["params"];
                (
                    params["name"].as_str().unwrap().to_owned(),
                    params["arguments"].clone(),
                )
            })
            .collect()
    }
}

fn serve(
    stream: TcpStream,
    form: AnswerForm,
    answer: fn(&str, &Value) -> Value,
    notes: &Mutex<Vec<Seen>>,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let seen = read_request(&mut reader);
    let message = seen.message.clone();
    notes.lock().unwrap().push(seen);
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "serverInfo": {"name": "test", "version": "0"}}),
        Some("tools/call") => {
            let params = &message["params"];
            answer(params["name"].as_str().unwrap(), &params["arguments"])
        }
        _ => return respond(stream, "202 Accepted", "", ""),
    };
    let body = match result.get("rpcError") {
        Some(error) => json!({"jsonrpc": "2.0", "id": message["id"], "error": error}),
        None => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
    };
    match form {
        AnswerForm::Json => respond(stream, "200 OK", "application/json", &body.to_string()),
        AnswerForm::Events => {
            let events = format!(": hello\n\nevent: message\ndata: {body}\n\n");
            respond(stream, "200 OK", "text/event-stream", &events);
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Seen {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        headers.push(line);
    }
    let header = |name: &str| {
        let fits = |line: &&String| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
        let line = headers.iter().find(fits);
        line.map(|line| line[name.len() + 1..].trim().to_owned())
            .unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Seen {
        authorization: header("authorization"),
        session: header("mcp-session-id"),
        revision: header("mcp-protocol-version"),
        message: serde_json::from_slice(&body).unwrap(),
    }
}

fn respond(mut stream: TcpStream, status: &str, content_type: &str, body: &str) {
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nMcp-Session-Id: session-7\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).unwrap();
}
