//! The broker under load: two hundred sessions that complete turns at a steady pace, and captures
//! meanwhile.
//!
//! One thread sends turns at fixed times and does not wait for earlier ones. Another thread captures
//! one turn at a time, so that the figures show the broker's time and not the load's.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use bytes::Bytes;
use tokio::task::JoinSet;
use turnkeep_client::broker::{AsyncConnection, Connection, socket_path};
use turnkeep_types::broker::{CompletedTurn, Register, Role};

use super::child::ServerProcess;
use super::figures::{Measured, count_f64, megabytes};
use super::scratch::ScratchDir;
use super::table::Row;
use super::{Effort, load, report_progress};

const SESSIONS: usize = 200;
const TURN_BYTES: usize = 16 << 10;
/// Twenty turns a second.
const TURN_EVERY: Duration = Duration::from_millis(50);
/// Between two captures.
const CAPTURE_PAUSE: Duration = Duration::from_millis(1);
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Measures how many turns are taken, how long a capture takes meanwhile, and what it costs in
/// memory.
pub(super) fn measure_broker(effort: &Effort, scratch: &ScratchDir) -> Result<Vec<Row>> {
    report_progress("broker, 200 sessions x 20 turns/s");
    let folder = scratch.create_folder("broker")?;
    let server = ServerProcess::start(&folder)?;
    let socket = socket_path(&folder);
    // Five times as long as other measurements: each session sends only twenty turns a second.
    let turns = usize::try_from(effort.millis * 5)? / 50;
    let (rate, captures) = run_both(&socket, effort.quick_or(2, turns))?;
    let memory = megabytes(server.anonymous_bytes()?);
    Ok(vec![
        Row::plain_rate("broker: turns of 16 KiB taken, 200 sessions x 20/s", rate)
            .at_least(3_900.0),
        Row::millis("broker: capture meanwhile, p99", captures.p99_ms).at_most(5.0),
        Row::megabytes("broker: memory with 200 full rings", memory).at_most(300.0),
    ])
}

/// Completes turns and captures meanwhile. Returns the turns per second, and the captures.
fn run_both(socket: &Path, turns: usize) -> Result<(f64, Measured)> {
    // The captures run as long as the load does, which only the load knows.
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let captures = threads.spawn(|| capture_until(socket, &over));
        let rate = load::block_on(complete_turns(socket, turns));
        over.store(true, Ordering::Relaxed);
        let captures = captures.join();
        let captures = captures.unwrap_or_else(|_| Err(anyhow!("the captures panicked")));
        Ok((rate?, captures?))
    })
}

/// Registers all sessions, then completes `turns` of each in step with the clock; turns per second.
async fn complete_turns(socket: &Path, turns: usize) -> Result<f64> {
    // All of them before the first turn, so that registering takes no time from the measurement.
    let mut wrappers = Vec::new();
    for number in 0..SESSIONS {
        wrappers.push(register_session(socket, number).await?);
    }
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for (number, wrapper) in wrappers.into_iter().enumerate() {
        // Spread over the interval: all sessions at once would measure a burst.
        let offset = TURN_EVERY.mul_f64(count_f64(number) / count_f64(SESSIONS));
        let name = session_name(number);
        tasks.spawn(run_session(wrapper, name, begin + offset, turns));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(count_f64(SESSIONS * turns) / begin.elapsed().as_secs_f64())
}

async fn register_session(socket: &Path, number: usize) -> Result<AsyncConnection> {
    let mut wrapper = AsyncConnection::open(socket, Role::Wrapper, ANSWER_WITHIN).await?;
    let register = Register {
        session: session_name(number),
        pid: 1,
        ..Register::default()
    };
    wrapper.register(register).await?;
    Ok(wrapper)
}

async fn run_session(
    mut wrapper: AsyncConnection,
    session: String,
    begin: Instant,
    turns: usize,
) -> Result<()> {
    let content = Bytes::from(vec![b'x'; TURN_BYTES]);
    let mut due = tokio::time::Instant::from_std(begin);
    for _ in 0..turns {
        tokio::time::sleep_until(due).await;
        due += TURN_EVERY;
        let turn = CompletedTurn {
            session: session.clone(),
            content: content.clone(),
            ..CompletedTurn::default()
        };
        wrapper.turn_completed(turn).await?;
    }
    // The last turn has its time too, so that the rate is that of the pace and not of its end.
    tokio::time::sleep_until(due).await;
    Ok(())
}

/// Captures from one session after the other until the load is over.
fn capture_until(socket: &Path, over: &AtomicBool) -> Result<Measured> {
    let mut client = Connection::open(socket, Role::Client, ANSWER_WITHIN)?;
    let begin = Instant::now();
    let mut latencies = Vec::new();
    let mut next = 0;
    while !over.load(Ordering::Relaxed) {
        let start = Instant::now();
        let captured = client.capture(&session_name(next % SESSIONS));
        match captured {
            Ok(_) => latencies.push(start.elapsed()),
            // Not yet registered, or no turn yet.
            Err(error) if error.reason().is_some() => {}
            Err(error) => return Err(error.into()),
        }
        next += 1;
        std::thread::sleep(CAPTURE_PAUSE);
    }
    Ok(Measured::from_latencies(begin.elapsed(), latencies))
}

fn session_name(number: usize) -> String {
    format!("bench-{number}")
}
