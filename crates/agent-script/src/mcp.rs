//! A small client of the Model Context Protocol over HTTP, revision 2025-06-18.
//!
//! It calls tools of a server on this machine, and does no more: each message is one POST on a
//! connection of its own, answered with one JSON document or with a stream of events. It refuses
//! any other host, because a script must not carry a token off the machine. Every answer is bounded
//! by [`ANSWER_BYTES_MAX`] and [`ANSWER_TIMEOUT`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use crate::tool::{ToolOutcome, ToolStatus};

const REVISION: &str = "2025-06-18";
const SESSION_HEADER: &str = "mcp-session-id";
const ANSWER_BYTES_MAX: u64 = 16 << 20;
const HEADER_LINES_MAX: usize = 100;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the 45 seconds after which a waiting tool has to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);

/// Where the agent's tools are, as the protocol handed it over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpServer {
    pub name: String,
    pub url: String,
    pub headers: Vec<Header>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub name: String,
    pub value: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum McpError {
    #[error("{url:?} is no http address of this machine")]
    NotLoopback { url: String },
    #[error("cannot reach {url}: {source}")]
    Unreachable { url: String, source: std::io::Error },
    #[error("the MCP server answered {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("the MCP server's answer is not valid: {what}")]
    Invalid { what: &'static str },
    #[error("{message}")]
    Rpc { message: String },
}

/// A connection to one server: the state that `initialize` left.
#[derive(Debug, Clone)]
pub(crate) struct McpSession {
    server: McpServer,
    address: Address,
    session_id: Option<String>,
    next_id: u64,
}

impl McpSession {
    /// Introduces the agent to the server.
    pub(crate) fn open(server: McpServer) -> Result<McpSession, McpError> {
        let address = Address::parse(&server.url)?;
        let mut session = McpSession {
            server,
            address,
            session_id: None,
            next_id: 1,
        };
        session.request(
            "initialize",
            &json!({
                "protocolVersion": REVISION,
                "capabilities": {},
                "clientInfo": {
                    "name": "turnkeep-agent-script",
                    "version": env!("CARGO_PKG_VERSION"),
                },
            }),
        )?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        session.post(&initialized)?;
        Ok(session)
    }

    pub(crate) fn is_with(&self, server: &McpServer) -> bool {
        self.server == *server
    }

    /// Calls a tool. Its own failure is an outcome, not an error.
    pub(crate) fn call_tool(&mut self, name: &str, args: &Value) -> Result<ToolOutcome, McpError> {
        let result = self.request("tools/call", &json!({"name": name, "arguments": args}))?;
        Ok(read_tool_result(&result))
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<Value, McpError> {
        let id = self.next_id;
        self.next_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.post(&message)?;
        // A server without sessions sends no id.
        if let Some(session_id) = &answer.session_id {
            self.session_id = Some(session_id.clone());
        }
        let mut answer = answer.find_message(id)?;
        if let Some(error) = answer.get("error") {
            let message = error.get("message").and_then(Value::as_str);
            return Err(McpError::Rpc {
                message: message.unwrap_or("the call failed").to_owned(),
            });
        }
        let result = answer.get_mut("result").map(Value::take);
        result.ok_or(McpError::Invalid {
            what: "it has no result",
        })
    }

    fn post(&self, message: &Value) -> Result<HttpAnswer, McpError> {
        let unreachable = |source| McpError::Unreachable {
            url: self.server.url.clone(),
            source,
        };
        let mut stream = self.address.connect().map_err(unreachable)?;
        stream
            .write_all(self.compose(message).as_bytes())
            .map_err(unreachable)?;
        // The limit bounds the answer whatever its headers promise.
        let mut reader = BufReader::new(stream.take(ANSWER_BYTES_MAX));
        let answer = HttpAnswer::read(&mut reader).map_err(unreachable)?;
        match answer.status {
            200..=299 => Ok(answer),
            status => Err(McpError::Refused {
                status,
                body: answer.body,
            }),
        }
    }

    fn compose(&self, message: &Value) -> String {
        let body = message.to_string();
        let Address { host, path, .. } = &self.address;
        let mut request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {REVISION}\r\nContent-Length: {}\r\n",
            body.len()
        );
        let session = self
            .session_id
            .iter()
            .map(|id| (SESSION_HEADER, id.as_str()));
        let given = self
            .server
            .headers
            .iter()
            .map(|h| (h.name.as_str(), h.value.as_str()));
        for (name, value) in given.chain(session) {
            // A line break in a value would start another header.
            if !name.contains(['\r', '\n', ':']) && !value.contains(['\r', '\n']) {
                request.extend([name, ": ", value, "\r\n"]);
            }
        }
        request.push_str("\r\n");
        request.push_str(&body);
        request
    }
}

/// The answer of a tool: `structuredContent`, else its text, which may itself be JSON.
fn read_tool_result(result: &Value) -> ToolOutcome {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.into_iter().flatten();
    let texts: Vec<&str> = texts
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    let output = texts.join("\n");
    // Older servers send JSON as text only.
    let structured = result
        .get("structuredContent")
        .filter(|value| !value.is_null());
    let value = match structured {
        Some(value) => value.clone(),
        None => serde_json::from_str(&output).unwrap_or_else(|_| Value::String(output.clone())),
    };
    let is_error = result
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    ToolOutcome {
        status: if is_error {
            ToolStatus::Failed
        } else {
            ToolStatus::Completed
        },
        output,
        exit_code: None,
        value,
    }
}

#[derive(Debug, Clone)]
struct Address {
    socket: SocketAddr,
    host: String,
    path: String,
}

impl Address {
    fn parse(url: &str) -> Result<Address, McpError> {
        Address::read(url).ok_or_else(|| McpError::NotLoopback {
            url: url.to_owned(),
        })
    }

    fn read(url: &str) -> Option<Address> {
        let rest = url.strip_prefix("http://")?;
        let (host, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let (name, port) = match host.rsplit_once(':') {
            // The last colon of a bare `[::1]` is part of the address.
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()?),
            _ => (host, 80),
        };
        let ip: IpAddr = match name {
            "localhost" => Ipv4Addr::LOCALHOST.into(),
            "[::1]" => Ipv6Addr::LOCALHOST.into(),
            _ => name.parse().ok()?,
        };
        ip.is_loopback().then(|| Address {
            socket: SocketAddr::new(ip, port),
            host: host.to_owned(),
            path: path.to_owned(),
        })
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.socket, CONNECT_TIMEOUT)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.set_write_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(stream)
    }
}

#[derive(Debug, Default)]
struct HttpAnswer {
    status: u16,
    session_id: Option<String>,
    is_event_stream: bool,
    body: String,
}

impl HttpAnswer {
    fn read(reader: &mut impl BufRead) -> std::io::Result<HttpAnswer> {
        let mut answer = HttpAnswer::default();
        let status_line = read_header_line(reader)?;
        // A status that cannot be read becomes 0, which no caller accepts.
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|word| word.parse().ok());
        answer.status = status.unwrap_or(0);
        let mut length = None;
        let mut is_chunked = false;
        for _ in 0..HEADER_LINES_MAX {
            let line = read_header_line(reader)?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok(),
                "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
                "content-type" => answer.is_event_stream = value.starts_with("text/event-stream"),
                SESSION_HEADER => answer.session_id = Some(value.to_owned()),
                _ => {}
            }
        }
        // Without either header the answer lasts until the connection closes.
        let body = if is_chunked {
            read_chunks(reader)?
        } else {
            let mut body = Vec::new();
            reader
                .take(length.unwrap_or(ANSWER_BYTES_MAX))
                .read_to_end(&mut body)?;
            body
        };
        answer.body = String::from_utf8_lossy(&body).into_owned();
        Ok(answer)
    }

    /// The message with this id, in the document or among the events.
    fn find_message(&self, id: u64) -> Result<Value, McpError> {
        let fits = |message: &Value| message.get("id").and_then(Value::as_u64) == Some(id);
        if !self.is_event_stream {
            let message = serde_json::from_str(&self.body).ok().filter(fits);
            return message.ok_or(McpError::Invalid {
                what: "it is no JSON-RPC response",
            });
        }
        // Other events, such as progress, may come before the response.
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"));
        let mut messages = data.filter_map(|data| serde_json::from_str(data.trim()).ok());
        messages.find(fits).ok_or(McpError::Invalid {
            what: "no event has the response",
        })
    }
}

fn read_header_line(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut line = Vec::new();
    reader.take(64 << 10).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn read_chunks(reader: &mut impl BufRead) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = read_header_line(reader)?;
        let digits = size.split(';').next().unwrap_or_default();
        // An unreadable size ends the body, as an early end of the stream does.
        let size = u64::from_str_radix(digits.trim(), 16).unwrap_or(0);
        if size == 0 {
            return Ok(body);
        }
        reader.by_ref().take(size).read_to_end(&mut body)?;
        read_header_line(reader)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_address(url: &str, expect: Option<&str>) {
        let found = Address::read(url).map(|a| format!("{} {}", a.socket, a.path));
        assert_eq!(found.as_deref(), expect, "{url}");
    }

    #[test]
    fn only_this_machine_is_reached() {
        check_address("http://127.0.0.1:8080/mcp", Some("127.0.0.1:8080 /mcp"));
        check_address("http://localhost/mcp?x=1", Some("127.0.0.1:80 /mcp?x=1"));
        check_address("http://[::1]:9/", Some("[::1]:9 /"));
        check_address("http://127.0.0.1:1", Some("127.0.0.1:1 /"));
        check_address("https://127.0.0.1/mcp", None);
        check_address("http://10.0.0.1/mcp", None);
        check_address("http://example.com/mcp", None);
        check_address("http://127.0.0.1:port/", None);
        check_address("", None);
    }

    fn check_answer(bytes: &str, expect: &str) {
        let answer = HttpAnswer::read(&mut bytes.as_bytes()).unwrap();
        let message = answer.find_message(7);
        let shown = match message {
            Ok(message) => message.get("result").unwrap_or(&Value::Null).to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expect, "{bytes}");
    }

    #[test]
    fn answers_are_read_in_each_form() {
        let body = r#"{"id":7,"result":1}"#;
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        check_answer(
            &format!("{head}Content-Length: 19\r\n\r\n{body}trailing"),
            "1",
        );
        check_answer(&format!("{head}\r\n{body}"), "1");
        let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
        check_answer(
            &format!("{chunked}9\r\n{{\"id\":7,\"\r\na\r\nresult\":1}}\r\n0\r\n\r\n"),
            "1",
        );
        let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        check_answer(
            &format!("{events}data: {{\"id\":1}}\n\nevent: x\ndata: {body}\n\n"),
            "1",
        );
        check_answer(
            events,
            "the MCP server's answer is not valid: no event has the response",
        );
        let invalid = "the MCP server's answer is not valid: it is no JSON-RPC response";
        check_answer(&format!("{head}\r\n{{\"id\":8}}"), invalid);
        check_answer("", invalid);
    }

    fn check_tool(result: &Value, expect: &Value, ok: bool) {
        let outcome = read_tool_result(result);
        assert_eq!(&outcome.value, expect);
        assert_eq!(outcome.is_ok(), ok);
    }

    #[test]
    fn a_tool_answers_with_a_value_or_a_text() {
        let text = json!({"content": [{"type": "text", "text": "{\"a\":1}"}]});
        check_tool(&text, &json!({"a": 1}), true);
        let plain = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        check_tool(&plain, &json!("no"), false);
        let structured = json!({"content": [], "structuredContent": {"b": 2}});
        check_tool(&structured, &json!({"b": 2}), true);
        check_tool(&json!({}), &json!(""), true);
    }
}
