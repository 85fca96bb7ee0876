//! How fast `turnkeep wrap --keep` makes turns durable.
//!
//! A program in a terminal answers each line at once. Its prompt is a whole line, which ends a turn
//! without a wait, so the figure shows the way to the store and not the detector's timers. The clock
//! runs from the first line typed to the wrapper's end: the wrapper ends when the store has all turns.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::child::ServerProcess;
use super::figures::{count_f64, median};
use super::http_client::HttpClient;
use super::scratch::ScratchDir;
use super::table::Row;
use super::wrap::TerminalProgram;
use super::{Effort, report_progress};

/// No more than may wait in the wrapper at once: beyond, it would drop turns.
const TURNS: usize = 250;
const TURNS_QUICK: usize = 5;
const PROMPT: &[u8] = b"READY";

/// Measures the turns per second that one session keeps.
pub(super) fn measure_kept(effort: &Effort, scratch: &ScratchDir) -> Result<Vec<Row>> {
    report_progress("wrap --keep");
    let turns = effort.quick_or(TURNS_QUICK, TURNS);
    let folder = scratch.create_folder("kept")?;
    let server = ServerProcess::start(&folder)?;
    let mut rates = Vec::new();
    for round in 1..=effort.rounds {
        let elapsed = time_session(&folder, turns)?;
        check_count(&server, round * turns)?;
        rates.push(count_f64(turns) / elapsed.as_secs_f64());
    }
    let name = "wrap --keep: turns kept, one session";
    Ok(vec![Row::plain_rate(name, median(rates.into_iter()))])
}

/// The time from the first line that is typed to the end of the wrapper.
fn time_session(data: &Path, turns: usize) -> Result<Duration> {
    let exe = std::env::current_exe()?;
    let exe = exe.to_str().context("the program's path is not UTF-8")?;
    let data_text = data.to_str().context("the directory is not UTF-8")?;
    let program = format!(
        "stty -echo; echo READY; n=0
         while [ $n -lt {turns} ]; do read line; n=$((n+1)); printf 'answer %s\\nREADY\\n' $n; done"
    );
    let wrapped = ["--", "sh", "-c", &program];
    let options = ["wrap", "--data", data_text, "--keep", "--pattern", "^READY"];
    let argv = [&[exe], &options[..], &wrapped[..]].concat();
    let terminal = TerminalProgram::start(&argv, data)?;
    let mut screen = PromptReader::default();
    screen.wait_for_prompt(&terminal)?;
    let begin = Instant::now();
    for _ in 0..turns {
        terminal.type_keys(b"go\r")?;
        screen.wait_for_prompt(&terminal)?;
    }
    let mut rest = [0; 4096];
    while terminal.read_output(&mut rest)? > 0 {}
    Ok(begin.elapsed())
}

/// Finds the prompts in what the terminal shows.
#[derive(Default)]
struct PromptReader {
    /// Output behind the last prompt that was found.
    unread: Vec<u8>,
}

impl PromptReader {
    fn wait_for_prompt(&mut self, terminal: &TerminalProgram) -> Result<()> {
        let mut piece = [0; 4096];
        loop {
            let mut windows = self.unread.windows(PROMPT.len());
            if let Some(at) = windows.position(|window| window == PROMPT) {
                self.unread.drain(..at + PROMPT.len());
                return Ok(());
            }
            let read = terminal.read_output(&mut piece)?;
            ensure!(read > 0, "the program in the terminal has ended");
            self.unread.extend_from_slice(&piece[..read]);
        }
    }
}

/// Fails if the store does not have so many turns: a rate of lost turns would look good.
fn check_count(server: &ServerProcess, turns: usize) -> Result<()> {
    let mut http = HttpClient::connect(server)?;
    http.get("/v1/stats")?;
    let kept = http.last_answer()?["turns"].as_u64();
    ensure!(
        kept == Some(u64::try_from(turns)?),
        "{kept:?} of {turns} turns are kept"
    );
    Ok(())
}
