//! A million small turns: what they cost in memory and on disk, and how long a start takes after
//! kill -9.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::append::Appends;
use super::child::ServerProcess;
use super::figures::{count_f64, megabytes, number_f64};
use super::scratch::{ScratchDir, bytes_in};
use super::table::Row;
use super::{Effort, load, protocol, report_progress};

const PAYLOAD: usize = 128;
const CONNECTIONS: usize = 8;
const KEY: usize = 36;

/// What one data set showed.
struct Cost {
    /// In bytes.
    memory: u64,
    memory_after_start: u64,
    disk_per_turn: f64,
    start_seconds: f64,
}

/// Measures without keys, and then memory again with a key on each turn.
pub(super) fn measure_memory(effort: &Effort, scratch: &ScratchDir) -> Result<Vec<Row>> {
    report_progress("memory, disk and start at a million turns");
    let plain = measure_cost(effort.turns, 0, &scratch.create_folder("memory")?)?;
    report_progress("memory with a key on each turn");
    let keyed = measure_cost(effort.turns, KEY, &scratch.create_folder("memory-keys")?)?;
    Ok(vec![
        megabytes_row("memory (RssAnon), 1M turns of 128 B", plain.memory).at_most(150.0),
        megabytes_row("memory after a restart", plain.memory_after_start).at_most(150.0),
        megabytes_row("memory with a 36-byte key each", keyed.memory).at_most(200.0),
        Row::bytes("disk per turn of 128 B, log + index", plain.disk_per_turn).at_most(260.0),
        Row::seconds("start after kill -9, 1M turns", plain.start_seconds).at_most(1.0),
        Row::seconds(
            "start after kill -9, a 36-byte key each",
            keyed.start_seconds,
        )
        .at_most(1.0),
    ])
}

fn megabytes_row(name: &str, bytes: u64) -> Row {
    Row::megabytes(name, megabytes(bytes))
}

fn measure_cost(turns: usize, key: usize, data: &Path) -> Result<Cost> {
    let each = turns / CONNECTIONS;
    let server = ServerProcess::start(data)?;
    let appends = Appends {
        connections: CONNECTIONS,
        in_flight: 64,
        each,
        payload: PAYLOAD,
        key,
    };
    let (_, contexts) = appends.run_load(&server.endpoint)?;
    let memory = server.anonymous_bytes()?;
    // Dropping the server is kill -9.
    drop(server);
    let begin = Instant::now();
    let server = ServerProcess::start(data)?;
    // A start counts until the first answer to a read, not until the port is open.
    let found = head_depth(&server, contexts[0])? + 1;
    let start_seconds = begin.elapsed().as_secs_f64();
    ensure!(
        found == each,
        "a context has {found} of {each} turns after the restart"
    );
    let disk = log_bytes(&server)? + bytes_in(&data.join("index"))?;
    Ok(Cost {
        memory,
        memory_after_start: server.anonymous_bytes()?,
        disk_per_turn: number_f64(disk) / count_f64(each * CONNECTIONS),
        start_seconds,
    })
}

fn head_depth(server: &ServerProcess, context: u64) -> Result<usize> {
    load::block_on(async {
        let endpoint = &server.endpoint;
        let mut stream = load::connect_binary(endpoint).await?;
        let request = protocol::whole_frame(protocol::GET_HEAD, 0, &context.to_le_bytes());
        let head = load::call_once(&mut stream, &request).await?;
        Ok(protocol::u32_at(&head, 16).unwrap_or(0) as usize)
    })
}

/// Bytes of log up to its last frame: the preallocated rest of a segment is not counted.
fn log_bytes(server: &ServerProcess) -> Result<u64> {
    let stats = load::block_on(super::http::fetch_body(server, "/v1/stats"))?;
    let stats: serde_json::Value = serde_json::from_slice(&stats)?;
    let bytes = &stats["log_bytes"];
    let bytes = bytes.as_u64().or_else(|| bytes.as_str()?.parse().ok());
    bytes.ok_or_else(|| anyhow::anyhow!("no log_bytes in /v1/stats: {stats}"))
}
