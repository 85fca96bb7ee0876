//! A server as programs meet it that were written for similar stores: frames first, then requests.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Reply, Server, within};

const FRAMES: &str = include_str!("../../../../testdata/interop/frames.json");
const REQUESTS: &str = include_str!("../../../../testdata/interop/requests.json");
const BUNDLE: &str = include_str!("../../../../testdata/interop/bundle.json");

const HEADER_BYTES: usize = 16;

/// One answer as it lies on the wire.
struct Answer {
    msg_type: u16,
    payload: Vec<u8>,
}

async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut header = [0; HEADER_BYTES];
    within(stream.read_exact(&mut header)).await.unwrap();
    let len = u32::from_le_bytes(header[..4].try_into().unwrap());
    let msg_type = u16::from_le_bytes(header[4..6].try_into().unwrap());
    let mut payload = vec![0; usize::try_from(len).unwrap()];
    within(stream.read_exact(&mut payload)).await.unwrap();
    Answer { msg_type, payload }
}

/// Whether hex has the form of a pattern, in which `..` is any byte and a final `*` any bytes.
fn has_form(hex: &str, pattern: &str) -> bool {
    let (pattern, is_open) = pattern
        .strip_suffix('*')
        .map_or((pattern, false), |start| (start, true));
    let is_long_enough = if is_open {
        hex.len() >= pattern.len()
    } else {
        hex.len() == pattern.len()
    };
    is_long_enough
        && hex
            .chars()
            .zip(pattern.chars())
            .all(|(digit, expect)| expect == '.' || digit == expect)
}

async fn run_frames(server: &Server) {
    let steps: Vec<Value> = serde_json::from_str(FRAMES).unwrap();
    let mut stream = TcpStream::connect(server.tcp_addr()).await.unwrap();
    for step in steps {
        stream
            .write_all(&hex::decode(step["send"].as_str().unwrap()).unwrap())
            .await
            .unwrap();
        let answer = read_answer(&mut stream).await;
        let payload = hex::encode(&answer.payload);
        assert_eq!(
            answer.msg_type, step["answer"]["msg_type"],
            "{}: {payload}",
            step["name"]
        );
        let pattern = step["answer"]["payload"].as_str().unwrap();
        assert!(
            has_form(&payload, pattern),
            "{}: {payload} is not {pattern}",
            step["name"]
        );
    }
}

async fn ask(server: &Server, request: &Value) -> Reply {
    let mut call = server.call(
        request["method"].as_str().unwrap(),
        request["path"].as_str().unwrap(),
    );
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        call = call.header(name, value.as_str().unwrap());
    }
    match &request["body"] {
        Value::Null => call,
        Value::String(file) if file == "bundle.json" => call.body(BUNDLE),
        body => call.json(body),
    }
    .send()
    .await
}

/// Asserts that an answer has all that is expected; it may have more members.
fn assert_has(answer: &Value, expect: &Value, at: &str) {
    match (answer, expect) {
        (Value::Object(answer), Value::Object(expect)) => {
            for (name, expect) in expect {
                assert_has(
                    answer.get(name).unwrap_or(&Value::Null),
                    expect,
                    &format!("{at}.{name}"),
                );
            }
        }
        (Value::Array(answer), Value::Array(expect)) => {
            assert_eq!(answer.len(), expect.len(), "{at}: {answer:?}");
            for (index, (answer, expect)) in answer.iter().zip(expect).enumerate() {
                assert_has(answer, expect, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(answer, expect, "{at}"),
    }
}

fn check(reply: &Reply, request: &Value) {
    let name = request["name"].as_str().unwrap();
    assert_eq!(
        u64::from(reply.status),
        request["status"],
        "{name}: {}",
        reply.text()
    );
    if let Some(expect) = request.get("json") {
        assert_has(&reply.json(), expect, name);
    }
    if let Some(expect) = request["text"].as_str() {
        assert_eq!(reply.text(), expect, "{name}");
    }
    if let Some(expect) = request["text_has"].as_str() {
        assert!(
            reply.text().lines().any(|line| line == expect),
            "{name}: {}",
            reply.text()
        );
    }
    for member in request["lacks"].as_array().into_iter().flatten() {
        assert_eq!(reply.json().get(member.as_str().unwrap()), None, "{name}");
    }
    for (header, expect) in request["answer_headers"].as_object().into_iter().flatten() {
        assert_eq!(reply.header(header), expect.as_str(), "{name}: {header}");
    }
}

#[tokio::test]
async fn frames_and_requests_of_other_programs_are_answered() {
    let server = Server::start().await;
    run_frames(&server).await;
    let requests: Vec<Value> = serde_json::from_str(REQUESTS).unwrap();
    assert!(requests.len() > 30);
    for request in &requests {
        check(&ask(&server, request).await, request);
    }
    server.stop().await;
}

#[tokio::test]
async fn what_was_published_in_another_spelling_is_still_there_after_a_restart() {
    let disk = turnkeep_journal::MemoryStorage::new();
    let path = "/v1/registry/types/com.example.agent.Item/versions/1";
    let server = Server::start_on(disk.clone(), |_| {}).await;
    let published = "/v1/registry/bundles/2025-12-19T20%3A00%3A00Z%23agent";
    assert_eq!(server.put(published).body(BUNDLE).send().await.status, 201);
    let described = server.read(path).await;
    assert_eq!(
        described["fields"]["5"]["ref"], "com.example.agent.Usage",
        "as it was published"
    );
    server.stop().await;
    let server = Server::start_on(disk, |_| {}).await;
    assert_eq!(server.read(path).await, described);
    assert_eq!(server.put(published).body(BUNDLE).send().await.status, 204);
    server.stop().await;
}

#[test]
fn a_pattern_says_which_bytes_may_be_any() {
    assert!(has_form("0a0b", "0a.."));
    assert!(has_form("0a0b0c", "0a*"));
    assert!(!has_form("0b0b", "0a.."));
    assert!(!has_form("0a0b0c", "0a.."));
}
