//! The thread that reads standard input.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::SyncSender;

use super::Event;
use crate::protocol::Framing;

/// A longer line ends the input: nothing that follows could be cut correctly.
const LINE_BYTES_MAX: u64 = 64 << 20;
const READ_BYTES: usize = 8 << 10;

/// Starts the thread. It ends with the input, or with the process.
pub(super) fn start_reader(framing: Framing, sender: SyncSender<Event>) -> Result<(), String> {
    let read = move || {
        match framing {
            Framing::Lines => read_lines(&sender),
            Framing::Bytes => read_bytes(&sender),
            Framing::Whole => read_whole(&sender),
        }
        // The runner may have left already; then there is nothing to tell it.
        drop(sender.send(Event::InputEnded));
    };
    let started = std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(read);
    started
        .map(|_| ())
        .map_err(|error| format!("cannot start a thread: {error}"))
}

fn read_lines(sender: &SyncSender<Event>) {
    let mut reader = BufReader::new(std::io::stdin());
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        // Without a line break this is the last line, or the first part of one that is too long.
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if u64::try_from(line.len()).is_ok_and(|length| length == LINE_BYTES_MAX) {
            eprintln!("turnkeep-agent-script: a line is longer than {LINE_BYTES_MAX} bytes");
            return;
        }
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        if !is_blank && sender.send(Event::Input(line)).is_err() {
            return;
        }
    }
}

fn read_whole(sender: &SyncSender<Event>) {
    let mut input = Vec::new();
    match std::io::stdin()
        .take(LINE_BYTES_MAX)
        .read_to_end(&mut input)
    {
        // The runner may have left already, as above.
        Ok(_) => drop(sender.send(Event::Input(input))),
        Err(error) => eprintln!("turnkeep-agent-script: cannot read the prompt: {error}"),
    }
}

fn read_bytes(sender: &SyncSender<Event>) {
    let mut input = std::io::stdin();
    let mut buffer = [0; READ_BYTES];
    while let Ok(length @ 1..) = input.read(&mut buffer) {
        let bytes = buffer.get(..length).unwrap_or_default().to_vec();
        if sender.send(Event::Input(bytes)).is_err() {
            return;
        }
    }
}
