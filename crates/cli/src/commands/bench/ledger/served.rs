//! The same world behind `turnkeep up`: what a client waits for over HTTP, and what the disk alone
//! costs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use turnkeep_ledger::teamworld::TeamWorld;

use super::made;
use super::world::{request, timed};
use crate::commands::bench::bare_file::BareFile;
use crate::commands::bench::child::Server;
use crate::commands::bench::figures::number;
use crate::commands::bench::progress;
use crate::commands::bench::table::Row;

/// Worlds that are written to at once.
const WORLDS: usize = 64;
/// What one beat adds to the log, about.
const BEAT_BYTES: usize = 2048;
/// An answer that takes longer is a fault.
const ANSWER_MAX: Duration = Duration::from_mins(1);
const OPERATOR: &str = "GEORGE";

/// How much to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) beats: usize,
    /// Of the beats over many worlds.
    pub(super) time: Duration,
}

/// Measures a data directory that holds the made-up world.
pub(super) fn measure(team: &TeamWorld, data: &Path, load: Load) -> Result<Vec<Row>> {
    progress("starting a server on it: from the log, then from what that start left");
    let (first, from_log) = start(data)?;
    let memory_from_log = from_log.anonymous_bytes()?;
    drop(from_log);
    let (second, server) = start(data)?;
    let memory_from_checkpoint = server.anonymous_bytes()?;
    let mut client = Client::connect(&server)?;
    progress("search over HTTP");
    let questions = team.questions.iter().map(|question| question.text.as_str());
    let search = timed(questions, |text| {
        client.post(
            &format!("/v1/worlds/{}/tools", made::WORLD),
            &request("LEDGER_SEARCH", text, OPERATOR),
        )
    })?;
    let mut rows = vec![
        Row::seconds("start of the server, from the log", first.as_secs_f64()).at_most(10.0),
        Row::seconds(
            "start of the server, with a checkpoint",
            second.as_secs_f64(),
        )
        .at_most(1.0),
        Row::megabytes(
            "memory (RssAnon) after a start from the log",
            number_of_megabytes(memory_from_log),
        ),
        Row::megabytes(
            "memory (RssAnon) after a start with a checkpoint",
            number_of_megabytes(memory_from_checkpoint),
        ),
        Row::millis("LEDGER_SEARCH over HTTP, p99", search.p99_ms).at_most(20.0),
    ];
    rows.extend(beats(&mut client, data, load.beats)?);
    rows.push(many(&server, load.time)?);
    Ok(rows)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a figure for a table needs no more than 52 bits"
)]
fn number_of_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Starts a server and waits until it answers for the world.
fn start(data: &Path) -> Result<(Duration, Server)> {
    let begin = Instant::now();
    let server = Server::start(data)?;
    Client::connect(&server)?.get(&format!("/v1/worlds/{}", made::WORLD))?;
    Ok((begin.elapsed(), server))
}

fn beats(client: &mut Client, data: &Path, count: usize) -> Result<Vec<Row>> {
    progress("beats, one after the other, and their replay");
    let folder = data.with_extension("bare");
    std::fs::create_dir(&folder)?;
    let mut file = BareFile::create(&folder, 1 << 20)?;
    let sync = timed(0..count, |_| file.write(&[1; BEAT_BYTES]).map(|()| 1))?;
    let path = format!("/v1/worlds/{}/beats", made::WORLD);
    let beat = timed(0..count, |number| {
        client.post(&path, &body(&format!("beat-{number}")))
    })?;
    let replay = timed(0..count, |number| {
        client.post(&path, &body(&format!("beat-{number}")))
    })?;
    let allowed = sync.p99_ms + 5.0;
    let goal = format!("<= one sync + 5 ms ({allowed:.2} ms)");
    Ok(vec![
        Row::millis("beat without a writer, p99", beat.p99_ms)
            .versus(sync.p99_ms)
            .goal(&goal, beat.p99_ms <= allowed),
        Row::millis("replay, p99", replay.p99_ms).at_most(5.0),
    ])
}

/// A beat of one entry.
fn body(id: &str) -> Value {
    json!({
        "envelope": {
            "request_id": id, "invoker": { "invoker_id": "bench", "invoker_role": "INVOKER" },
            "operator": { "operator_id": OPERATOR, "input_text": "" }, "mode": { "kind": "BEAT" },
        },
        "bundle": {
            "bundle_id": null, "request_id": id, "proposed_by": { "engine": "bench", "actor": "bench" },
            "wrote": true,
            "entries": [{
                "request_id": id, "author": { "author_id": "WORLD", "author_class": "WORLD" },
                "visibility": { "scope": "PUBLIC" }, "channel": "VOICE",
                "text": format!("The tests of {id} are green again, nothing else is new."),
            }],
        },
    })
}

/// Beats per second over many worlds, a connection each.
fn many(server: &Server, time: Duration) -> Result<Row> {
    progress("beats over many worlds");
    let mut clients = Vec::new();
    for number in 0..WORLDS {
        let mut client = Client::connect(server)?;
        client.post(
            "/v1/worlds",
            &json!({ "world_id": format!("many-{number}") }),
        )?;
        clients.push((number, client));
    }
    let begin = Instant::now();
    let counts: Vec<Result<usize>> = std::thread::scope(|scope| {
        let beat = |(number, mut client): (usize, Client)| {
            let path = format!("/v1/worlds/many-{number}/beats");
            let mut count = 0;
            while begin.elapsed() < time {
                client.post(&path, &body(&format!("beat-{count}")))?;
                count += 1;
            }
            Ok(count)
        };
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(move || beat(client)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Ok(0)))
            .collect()
    });
    let count: usize = counts.into_iter().sum::<Result<usize>>()?;
    let rate = number(count) / begin.elapsed().as_secs_f64();
    Ok(Row::plain_rate("beats over 64 worlds", rate).at_least(2000.0))
}

/// One keep-alive connection.
struct Client {
    stream: TcpStream,
    host: String,
    token: String,
    answer: Vec<u8>,
}

impl Client {
    fn connect(server: &Server) -> Result<Self> {
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
    fn get(&mut self, path: &str) -> Result<usize> {
        self.send("GET", path, "")
    }

    fn post(&mut self, path: &str, body: &Value) -> Result<usize> {
        self.send("POST", path, &body.to_string())
    }

    fn send(&mut self, method: &str, path: &str, body: &str) -> Result<usize> {
        let (host, token, bytes) = (&self.host, &self.token, body.len());
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {bytes}\r\n\r\n{body}"
        );
        self.stream.write_all(request.as_bytes())?;
        self.receive().with_context(|| format!("{method} {path}"))
    }

    fn receive(&mut self) -> Result<usize> {
        self.answer.clear();
        let mut piece = [0; 16 << 10];
        loop {
            let count = self.stream.read(&mut piece)?;
            ensure!(count > 0, "the server closed the connection");
            self.answer.extend_from_slice(&piece[..count]);
            if let Some((head, length)) = head(&self.answer)
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
fn head(answer: &[u8]) -> Option<(usize, usize)> {
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
        assert_eq!(head(answer), Some((answer.len() - 5, 5)));
        assert_eq!(head(&answer[..30]), None);
    }
}
