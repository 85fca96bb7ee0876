//! The real binary killed with SIGKILL again and again, at moments counted in acks. After every
//! kill a reader of its own, which shares no code with the server, finds every acked turn in the
//! log and nothing twice; then the server goes on with the same directory.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod log;
#[allow(dead_code, reason = "each test file uses a part of it")]
#[path = "../sandbox/mod.rs"]
mod sandbox;
mod writer;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, kill_process};
use sandbox::{Sandbox, ServerProcess};

use crate::log::Log;
use crate::writer::{Kept, Writer};

const KILLS: u64 = 55;
const WRITERS: u64 = 4;
/// A kill comes after one ack at least and this many at most.
const ACKS_MAX: u64 = 70;

fn start(sandbox: &Sandbox) -> ServerProcess {
    sandbox.up(&["--no-auth"])
}

/// Lets all writers write until `acks` answers have come, and kills the server at that very moment.
fn write_until_killed(server: &ServerProcess, writers: &mut [Writer], acks: u64) {
    let pid = server.pid();
    let counted = AtomicU64::new(0);
    let on_ack = || {
        if counted.fetch_add(1, Ordering::Relaxed) + 1 == acks {
            kill_process(pid, Signal::KILL).unwrap();
        }
    };
    std::thread::scope(|scope| {
        for writer in writers {
            scope.spawn(|| writer.write_until_the_end(server.tcp(), &on_ack));
        }
    });
    assert!(
        counted.into_inner() >= acks,
        "the connections ended before the kill"
    );
}

/// Every acked append is in the log as it was acked. Every append in the log was requested, and is
/// there once.
fn check(log: &Log, writers: &[Writer]) {
    let asked: BTreeMap<&[u8], &[Vec<u8>]> = writers.iter().flat_map(Writer::asked).collect();
    for append in &log.appends {
        let payloads = asked
            .get(&append.key[..])
            .expect("nobody asked for this append");
        let logged: Vec<&[u8]> = append
            .turns
            .iter()
            .map(|turn| &log.payloads[&turn.hash][..])
            .collect();
        assert_eq!(
            logged, **payloads,
            "an append is in the log with other payloads"
        );
    }
    let logged: BTreeMap<&[u8], _> = log
        .appends
        .iter()
        .map(|append| (&append.key[..], append))
        .collect();
    assert_eq!(
        logged.len(),
        log.appends.len(),
        "an append is in the log twice"
    );
    for Kept {
        key,
        context,
        turns,
    } in writers.iter().flat_map(|writer| &writer.acked)
    {
        let append = logged
            .get(&key[..])
            .expect("an acked append is not in the log");
        assert_eq!(append.context, *context, "it was acked for another context");
        let found: Vec<_> = append
            .turns
            .iter()
            .map(|turn| (turn.id, turn.depth, turn.hash))
            .collect();
        assert_eq!(
            found, *turns,
            "it was acked otherwise than it is in the log"
        );
    }
}

#[test]
fn nothing_acked_is_lost_or_doubled_by_killing_the_server_again_and_again() {
    let sandbox = Sandbox::new();
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    for kill in 0..KILLS {
        let server = start(&sandbox);
        // Spread over the range, and all different from round to round.
        let acks = 1 + kill * 31 % ACKS_MAX;
        write_until_killed(&server, &mut writers, acks);
        drop(server);
        check(&Log::read(&sandbox.data()), &writers);
    }
    let server = start(&sandbox);
    for writer in &mut writers {
        writer.finish(server.tcp());
    }
    let log = Log::read(&sandbox.data());
    check(&log, &writers);
    let acked: usize = writers.iter().map(|writer| writer.acked.len()).sum();
    assert_eq!(
        acked,
        log.appends.len(),
        "in the end every append is acked, each once"
    );
    for context in 1..=log.heads.len() as u64 {
        assert_eq!(
            writer::read_back(server.tcp(), context),
            log.path(context),
            "context {context}"
        );
    }
    assert!(server.terminate().success());
}
