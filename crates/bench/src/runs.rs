//! `turnkeep bench runs`: what runs of agents cost.
//!
//! Two questions: how a run feels that has grown large, and what many agents that stream at once cost
//! the server. The agents are the scripted agent, so no model and no network is part of a figure. The
//! server, the agents and this program share the machine's cores; only the server's own processor
//! time and memory are counted. Files are in a scratch directory that is removed.

mod agents;
mod event_socket;
mod large;
mod streams;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::ledger::current_commit;
use super::report::{describe_machine, write_section};
use super::scratch::ScratchDir;
use super::table::Table;

/// Measure runs of agents: a large run, and agents that stream at the same time
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:
  turnkeep bench runs                  about three minutes
  turnkeep bench runs --seconds 300    stream for five minutes
  turnkeep bench runs --quick          see that it works; the figures mean nothing
  turnkeep bench runs --write docs/performance.md")]
pub(crate) struct BenchRunsArgs {
    /// Run everything once and tiny, to see that it works
    #[arg(long)]
    quick: bool,
    /// Seconds for which the agents stream
    #[arg(long, default_value_t = 60, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Where to write; must be on the disk in question [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the table into the part of this file that is kept for it
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// Between these two lines of the document the table is.
const MARKS: [&str; 2] = ["<!-- runs -->\n", "<!-- /runs -->\n"];

/// How much to do, resolved from the arguments.
struct RunsEffort {
    large: large::LargeRun,
    streams: streams::Streams,
}

impl RunsEffort {
    fn from_args(args: &BenchRunsArgs) -> Self {
        if args.quick {
            return Self {
                large: large::LargeRun {
                    nodes: 6,
                    edges: 8,
                    events: 300,
                    pages: 5,
                },
                streams: streams::Streams {
                    nodes: 2,
                    time: Duration::from_secs(1),
                },
            };
        }
        Self {
            large: large::LargeRun {
                nodes: 100,
                edges: 200,
                events: 50_000,
                pages: 400,
            },
            streams: streams::Streams {
                nodes: 20,
                time: Duration::from_secs(u64::from(args.seconds)),
            },
        }
    }
}

/// Runs the measurements and prints them.
pub(super) fn run_bench_runs(args: &BenchRunsArgs, json: bool) -> Result<()> {
    let effort = RunsEffort::from_args(args);
    let scratch = ScratchDir::create(args.dir.as_deref())?;
    let mut table = Table::new(!args.quick);
    table.add_rows(large::measure_large(&effort.large, &scratch)?);
    table.add_rows(streams::measure_streams(&effort.streams, &scratch)?);
    if json {
        let mut report = table.to_json();
        report["commit"] = Value::from(current_commit());
        println!("{report}");
    } else {
        println!("commit {}", current_commit());
        print!("{}", table.to_text());
    }
    match &args.write {
        Some(path) => write_table(path, &table, &effort),
        None => Ok(()),
    }
}

/// Puts the table where the document keeps it.
fn write_table(path: &Path, table: &Table, effort: &RunsEffort) -> Result<()> {
    let section = format!(
        "{}\nCommit {}, {}. The agents streamed for {} s.\n",
        table.to_markdown(),
        current_commit(),
        describe_machine(),
        effort.streams.time.as_secs(),
    );
    write_section(path, MARKS, &section)
}
