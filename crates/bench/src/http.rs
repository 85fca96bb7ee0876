//! Typed pages of 64 turns over HTTP on 8 keep-alive connections.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::child::ServerProcess;
use super::figures::{Measured, requests_for};
use super::load::{self, Framing, Requests};
use super::protocol::{self, AppendHead, PAGE_TURNS};
use super::table::Row;
use super::{Effort, report_progress};

const CONNECTIONS: usize = 8;
const REQUESTS_MAX: usize = 1_000_000;
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// The least pages per second.
const LEAST: f64 = 3_000.0;
const TYPE_ID: &str = "com.example.bench.Message";
const BUNDLE_ID: &str = "bench-1";
const BUNDLE: &str = r#"{"registry_version":1,"bundle_id":"bench-1","types":{"com.example.bench.Message":{"versions":{"1":{"fields":{
"1":{"name":"role","type":"u8","enum":"com.example.bench.Role"},"2":{"name":"text","type":"string"},
"3":{"name":"sent_at","type":"u64","semantic":"unix_ms"},"4":{"name":"tool_call_id","type":"u64","optional":true}}}}}},
"enums":{"com.example.bench.Role":{"1":"system","2":"user","3":"assistant","4":"tool"}}}"#;

/// A message whose text fills it up to `bytes`; msgpack is big-endian.
fn encode_message(number: u8, bytes: usize) -> Vec<u8> {
    let text = "The quick brown fox \"jumps\" over the lazy dog.\n".repeat(bytes / 40 + 1);
    let text = &text.as_bytes()[..bytes.saturating_sub(28)];
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    // A map of four fields: the role, and the text with a length of two bytes.
    let mut out = vec![0x84, 1, 1 + number % 4, 2, 0xDA];
    out.extend(len.to_le_bytes().iter().rev());
    out.extend_from_slice(text);
    // Two numbers of 64 bits: a time in 2024, and one above what JavaScript can represent.
    out.extend_from_slice(&[3, 0xCF, 0, 0, 0x01, 0x8F, 0, 0, 0, number]);
    out.extend_from_slice(&[4, 0xCF, 0xFF, 0, 0, 0, 0, 0, 0, number]);
    out
}

/// Publishes the type and appends a page of messages; the context that holds them.
async fn fill_context(server: &ServerProcess, bytes: usize) -> Result<u64> {
    let mut stream = load::connect_binary(&server.endpoint).await?;
    load::call_once(&mut stream, &protocol::put_bundle(BUNDLE_ID, BUNDLE)).await?;
    let context = load::create_context(&mut stream).await?;
    for number in 0..u8::try_from(PAGE_TURNS).unwrap_or(u8::MAX) {
        let mut frame = Vec::new();
        let head = AppendHead {
            context,
            request: 0,
            type_id: TYPE_ID,
            key: &[],
        };
        protocol::put_append(&mut frame, head, &encode_message(number, bytes));
        load::call_once(&mut stream, &frame).await?;
    }
    Ok(context)
}

async fn run_round(server: &ServerProcess, context: u64, each: usize) -> Result<Measured> {
    let token = server.endpoint.token.as_deref().unwrap_or_default();
    let request = format!(
        "GET /v1/contexts/{context}/turns?limit={PAGE_TURNS}&view=typed HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
        server.http
    );
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(server.http).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let bytes = request.as_bytes().repeat(each * CONNECTIONS);
    let requests = Arc::new(Requests {
        bytes,
        stride: request.len(),
        each,
    });
    load::run_load(streams, requests, 1, Framing::Http).await
}

/// The body of one answer.
pub(super) async fn fetch_body(server: &ServerProcess, path: &str) -> Result<Vec<u8>> {
    let token = server.endpoint.token.as_deref().unwrap_or_default();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n",
        server.http
    );
    let mut stream = TcpStream::connect(server.http).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // The request asks the server to close the connection, so the answer ends with it.
    let mut bounded = stream.take(ANSWER_BYTES_MAX);
    bounded.read_to_end(&mut answer).await?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let head = head.context("no answer")?;
    let is_ok = answer.starts_with(b"HTTP/1.1 200");
    ensure!(is_ok, "refused: {}", String::from_utf8_lossy(&answer));
    Ok(answer.split_off(head + 4))
}

/// Measures pages per second.
pub(super) fn measure_pages(effort: &Effort, server: &ServerProcess) -> Result<Vec<Row>> {
    report_progress("typed pages over HTTP");
    let context = load::block_on(fill_context(server, effort.payload))?;
    // Reads the page into the cache, and its rate says how many requests fill the time.
    let warm = load::block_on(run_round(server, context, 16))?;
    let each = (requests_for(warm.rate, effort.millis, REQUESTS_MAX) / CONNECTIONS).max(1);
    let runs = (0..effort.rounds).map(|_| load::block_on(run_round(server, context, each)));
    let measured = Measured::median_of(&runs.collect::<Result<Vec<_>>>()?);
    Ok(vec![
        Row::rate("typed page of 64 over HTTP, 8 connections", measured).at_least(LEAST),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_is_json_and_a_message_is_a_map_of_its_length() {
        let bundle: serde_json::Value = serde_json::from_str(BUNDLE).unwrap();
        assert_eq!(bundle["bundle_id"], BUNDLE_ID);
        assert!(bundle["types"][TYPE_ID]["versions"]["1"]["fields"]["4"].is_object());
        let message = encode_message(2, 1024);
        assert_eq!((message.len(), message[0], message[2]), (1023, 0x84, 3));
    }
}
