//! A client that sends one request at a time over one connection, and waits for the answer.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::child::ServerProcess;

/// An answer that takes longer is a fault.
const ANSWER_MAX: Duration = Duration::from_mins(1);

/// One keep-alive connection.
pub(super) struct HttpClient {
    stream: TcpStream,
    host: String,
    token: String,
    answer: Vec<u8>,
}

impl HttpClient {
    pub(super) fn connect(server: &ServerProcess) -> Result<Self> {
        let stream = TcpStream::connect(server.http)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let token = server.endpoint.token.clone().unwrap_or_default();
        Ok(Self {
            stream,
            host: server.http.to_string(),
            token,
            answer: Vec::new(),
        })
    }

    /// Bytes of the answer's body.
    pub(super) fn get(&mut self, path: &str) -> Result<usize> {
        self.send_request("GET", path, "")
    }

    pub(super) fn post(&mut self, path: &str, body: &Value) -> Result<usize> {
        self.send_request("POST", path, &body.to_string())
    }

    pub(super) fn patch(&mut self, path: &str, body: &Value) -> Result<usize> {
        self.send_request("PATCH", path, &body.to_string())
    }

    /// The body of the last answer.
    pub(super) fn last_answer(&self) -> Result<Value> {
        let (head, _) = parse_head(&self.answer).context("no answer")?;
        Ok(serde_json::from_slice(&self.answer[head..])?)
    }

    fn send_request(&mut self, method: &str, path: &str, body: &str) -> Result<usize> {
        let (host, token, bytes) = (&self.host, &self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes())?;
        self.receive_body()
            .with_context(|| format!("{method} {path}"))
    }

    fn receive_body(&mut self) -> Result<usize> {
        self.answer.clear();
        let mut piece = [0; 16 << 10];
        loop {
            let count = self.stream.read(&mut piece)?;
            ensure!(count > 0, "the server closed the connection");
            self.answer.extend_from_slice(&piece[..count]);
            if let Some((head, length)) = parse_head(&self.answer)
                && self.answer.len() >= head + length
            {
                let ok = self.answer.starts_with(b"HTTP/1.1 20");
                ensure!(ok, "refused: {}", String::from_utf8_lossy(&self.answer));
                return Ok(length);
            }
        }
    }
}

/// The bytes of a head that is complete, and how many follow it.
fn parse_head(answer: &[u8]) -> Option<(usize, usize)> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&answer[..end]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    Some((end, length?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_tells_where_the_answer_ends() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        assert_eq!(parse_head(answer), Some((answer.len() - 5, 5)));
        assert_eq!(parse_head(&answer[..30]), None);
    }
}
