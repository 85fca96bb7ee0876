//! A model that answers from a script, on a loopback port.
//!
//! It speaks as much of three interfaces as the agent programs need: Anthropic's messages
//! (`anthropic`), `OpenAI` responses (`openai`) and Gemini's content (`gemini`). A script is a list
//! of topics:
//!
//! ```text
//! Topic { when: "Write the file", replies: [Run("printf hi > hi.txt"), Say("It is written.")] }
//! ```
//!
//! A program sends the whole conversation with each request. The model looks for the last prompt
//! that contains the `when` of a topic, and counts the results of tools after it: with none it
//! gives the first reply, with one the second. It keeps no state, so a repeated request gets the
//! same answer.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::{anthropic, gemini, openai};

/// Every answer uses so many tokens.
pub(crate) const PROMPT_TOKENS: u64 = 100;
pub(crate) const COMPLETION_TOKENS: u64 = 50;

/// What the model answers to a prompt that contains `when`.
pub(crate) struct Topic {
    pub(crate) when: &'static str,
    pub(crate) replies: Vec<Reply>,
}

/// One answer of the model.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Says something and is done.
    Say(&'static str),
    /// Wants to run a command with the program's shell tool.
    Run(&'static str),
    /// Wants to call a tool of the server, which the program offers under a longer name.
    Call { tool: &'static str, args: Value },
    /// Says something and never finishes the answer.
    SayAndWait(&'static str),
    /// Answers with an HTTP error.
    Refuse { status: u16, body: Value },
}

/// What a program asked, in words that depend on no interface.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) entries: Vec<Entry>,
    /// The names of the tools that the program offers. A request without tools is not about the
    /// agent's work: programs also ask for titles and the like.
    pub(crate) tools: Vec<String>,
}

/// A part of a conversation. What the model said before does not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Prompt(String),
    ToolResult(String),
}

/// A call of a tool under the name that the program offers.
pub(crate) struct ModelCall {
    pub(crate) name: String,
    pub(crate) args: Value,
}

impl Asked {
    /// The reply of the script.
    fn choose_reply(&self, topics: &[Topic]) -> Reply {
        if self.tools.is_empty() {
            return Reply::Say("A title");
        }
        let mut results = 0;
        for entry in self.entries.iter().rev() {
            match entry {
                Entry::ToolResult(_) => results += 1,
                Entry::Prompt(text) => {
                    if let Some(topic) = find_last_topic(topics, text) {
                        let reply = topic.replies.get(results).cloned();
                        return reply.unwrap_or(Reply::Say("The script is over."));
                    }
                }
            }
        }
        Reply::Say("No topic fits.")
    }

    /// The tool of our server whose name ends so: each program puts the server's name in front of it.
    pub(crate) fn find_tool(&self, end: &str) -> String {
        let mut offered = self.tools.iter();
        let is_ours = |name: &&String| name.contains("turnkeep") && name.ends_with(end);
        let found = offered.find(is_ours);
        found.cloned().unwrap_or_else(|| end.to_owned())
    }

    /// The first of these tools that the program offers.
    pub(crate) fn first_tool(&self, names: &[&str]) -> String {
        let offers = |name: &&&str| self.tools.iter().any(|tool| tool == **name);
        let found = names.iter().find(offers);
        (*found.unwrap_or(&"shell")).to_owned()
    }

    /// Whether the conversation has a prompt with this text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let has = |entry: &Entry| matches!(entry, Entry::Prompt(prompt) if prompt.contains(text));
        self.entries.iter().any(has)
    }
}

/// The topic that a prompt mentions last: a prompt may repeat earlier ones before its own words.
fn find_last_topic<'a>(topics: &'a [Topic], prompt: &str) -> Option<&'a Topic> {
    let mentioned = topics.iter().filter(|topic| prompt.contains(topic.when));
    mentioned.max_by_key(|topic| prompt.rfind(topic.when))
}

/// The running model. It serves until the test process ends.
pub(crate) struct Model {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

struct Served {
    topics: Vec<Topic>,
    asked: Arc<Mutex<Vec<Asked>>>,
    answers: AtomicU64,
}

impl Model {
    pub(crate) fn start(topics: Vec<Topic>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::default();
        let served = Arc::new(Served {
            topics,
            asked: Arc::clone(&asked),
            answers: AtomicU64::new(0),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                // An error means that the program has closed the connection, as an interrupted
                // program does.
                thread::spawn(move || serve(&served, stream).ok());
            }
        });
        Self { address, asked }
    }

    /// The last request about the agent's work.
    pub(crate) fn last_asked(&self) -> Asked {
        let asked = self.asked.lock().unwrap();
        asked.last().cloned().unwrap_or_default()
    }

    /// All requests about the work of agents.
    pub(crate) fn all_asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(served: &Served, stream: TcpStream) -> std::io::Result<()> {
    let Some(request) = HttpRequest::read(&stream)? else {
        return Ok(());
    };
    let mut answer = HttpAnswer { stream };
    let path = request.path.split('?').next().unwrap_or_default();
    let Some(interface) = Interface::of_path(path) else {
        return answer.send_json(404, &json!({"error": {"message": "unknown path"}}));
    };
    let asked = interface.read(&request.body);
    let mut reply = asked.choose_reply(&served.topics);
    if !asked.tools.is_empty() {
        served.asked.lock().unwrap().push(asked.clone());
    }
    if let Reply::Refuse { status, body } = reply {
        return answer.send_json(status, &body);
    }
    let number = served.answers.fetch_add(1, Ordering::Relaxed);
    let streams = request.body["stream"] == true || path.ends_with("streamGenerateContent");
    if !streams {
        return answer.send_json(200, &interface.whole_answer(number));
    }
    let waits = matches!(reply, Reply::SayAndWait(_));
    if let Reply::SayAndWait(text) = reply {
        reply = Reply::Say(text);
    }
    let events = interface.stream(&asked, &reply, number);
    answer.start_events()?;
    if waits {
        for event in events.before_end {
            answer.send_event(&event)?;
        }
        return answer.wait_for_close();
    }
    for event in events.before_end.iter().chain(&events.end) {
        answer.send_event(event)?;
    }
    Ok(())
}

/// The events of a streamed answer.
pub(crate) struct AnswerEvents {
    pub(crate) before_end: Vec<Value>,
    /// Those that say that the answer is complete.
    pub(crate) end: Vec<Value>,
}

/// The parts in which a text is streamed.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

#[derive(Debug, Clone, Copy)]
enum Interface {
    Anthropic,
    OpenAi,
    Gemini,
}

impl Interface {
    fn of_path(path: &str) -> Option<Self> {
        if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::OpenAi)
        } else if path.ends_with("enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    fn read(self, body: &Value) -> Asked {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::OpenAi => openai::read(body),
            Self::Gemini => gemini::read(body),
        }
    }

    fn stream(self, asked: &Asked, reply: &Reply, number: u64) -> AnswerEvents {
        match self {
            Self::Anthropic => anthropic::stream(asked, reply, number),
            Self::OpenAi => openai::stream(asked, reply, number),
            Self::Gemini => gemini::stream(asked, reply),
        }
    }

    /// The answer to a request that wants no stream, which is never about the agent's work.
    fn whole_answer(self, number: u64) -> Value {
        match self {
            Self::Anthropic => anthropic::whole_answer(number),
            Self::OpenAi => json!({"error": {"message": "only streams are served"}}),
            Self::Gemini => gemini::whole_answer(),
        }
    }
}

/// All text in a value, whatever its nesting. The interfaces put a text into `text`, `content`,
/// `parts`, `output` or the value itself.
pub(crate) fn text_in(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(text_in).collect();
            texts.join("\n")
        }
        Value::Object(fields) => {
            let keys = ["text", "content", "parts", "output"];
            let found = keys.iter().find_map(|key| fields.get(*key));
            found.map(text_in).unwrap_or_default()
        }
        _ => String::new(),
    }
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

struct HttpRequest {
    path: String,
    body: Value,
}

impl HttpRequest {
    /// Reads a request; `None` if the connection closes without one.
    fn read(stream: &TcpStream) -> std::io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some(path) = line.split(' ').nth(1).map(str::to_owned) else {
            return Ok(None);
        };
        let mut length = 0;
        let mut is_chunked = false;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let header = header.trim().to_ascii_lowercase();
            match header.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse().unwrap_or(0),
                Some(("transfer-encoding", _)) => is_chunked = true,
                Some(_) => {}
                None => break,
            }
        }
        let body = if is_chunked {
            read_chunks(&mut reader)?
        } else {
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            body
        };
        let body = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some(Self { path, body }))
    }
}

fn read_chunks(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let mut chunk = vec![0; size];
        reader.read_exact(&mut chunk)?;
        body.extend(chunk);
        // The line break after a chunk, or the empty line after the last one.
        reader.read_line(&mut String::new())?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// The answer to one request. The connection closes after it.
struct HttpAnswer {
    stream: TcpStream,
}

impl HttpAnswer {
    fn send_json(&mut self, status: u16, body: &Value) -> std::io::Result<()> {
        let body = body.to_string();
        write!(
            self.stream,
            "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// The end of the connection ends the events.
    fn start_events(&mut self) -> std::io::Result<()> {
        write!(
            self.stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
             Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
        )
    }

    fn send_event(&mut self, event: &Value) -> std::io::Result<()> {
        let name = event["type"].as_str();
        let name = name.map(|name| format!("event: {name}\n"));
        let name = name.unwrap_or_default();
        write!(self.stream, "{name}data: {event}\n\n")
    }

    /// Waits until the program gives the answer up.
    fn wait_for_close(&mut self) -> std::io::Result<()> {
        self.stream.read_to_end(&mut Vec::new()).map(drop)
    }
}
